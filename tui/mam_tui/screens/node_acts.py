"""What can be done to hosts: take one out of the work, and back into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mam_core.operations.nodes import Node, drain, undrain
from mam_tui.desk import Deed
from mam_tui.errands import run
from mam_tui.screens.confirm import Confirm

if TYPE_CHECKING:
    from mam_tui.app import Console

_SAMPLE = 3


class NodeActs:
    """One console's; `changed` is called when it was done, whatever came of it."""

    def __init__(self, console: Console, changed: Callable[[], None]) -> None:
        self._console = console
        self._changed = changed

    def drain(self, node: Node) -> None:
        goes_on = [f"{job_id}: goes on to its end" for job_id in node.running[:_SAMPLE]]
        if (more := len(node.running) - _SAMPLE) > 0:
            goes_on.append(f"and {more} more go on")
        sample = [_line(node), *goes_on, "it claims no more; r takes it back into the work"]

        def answered(is_sure: bool | None) -> None:
            if is_sure:
                words = ["node", "drain", node.name]
                run(self._console, words, lambda registry: drain(registry, node.name), self._told)

        self._console.push_screen(Confirm(f"Drain {node.name}?", sample, "drain"), answered)

    def undrain(self, node: Node) -> None:
        why = [f"drained: {node.why}"] if node.why else []
        question = f"Take {node.name} back into the work?"

        def answered(is_sure: bool | None) -> None:
            if is_sure:
                words = ["node", "resume", node.name]
                run(self._console, words, lambda registry: undrain(registry, node.name), self._told)

        self._console.push_screen(Confirm(question, [_line(node), *why], "back to work"), answered)

    def _told(self, deed: Deed) -> None:
        self._changed()
        self._console.tell(deed)


def _line(node: Node) -> str:
    sessions = " ".join(node.sessions)
    return f"{node.name}  {node.state}  runs {len(node.running)} of {node.slots or '?'}  {sessions}"
