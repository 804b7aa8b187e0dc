"""Acts that may take long: on a thread each, told when they are done.

They are waited for when the console is left, so that a session is not left half started, but
not without limit: what they wait for may never come. What only waits (for a job to end, for a
receipt) is told that the console is over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from mam_core.errors import MamError
from mam_core.operations.outcome import Outcome
from mam_core.safe_text import one_line
from mam_tui.desk import Deed
from mam_tui.threads import started

if TYPE_CHECKING:
    from mam_core.registry import Registry
    from mam_tui.app import Console

T = TypeVar("T")

#: A session that starts, with a worktree of a large repository, may take so long.
_PATIENCE_SEC = 30.0
_ERRAND = "mam-errand"

Act: TypeAlias = "Callable[[Registry], Sequence[Outcome] | str]"


def run(
    console: Console,
    words: Sequence[str],
    act: Act,
    done: Callable[[Deed], None] | None = None,
    *,
    is_undo: bool = False,
) -> None:
    """A deed; its outcome is told, or handed to `done` on the console's thread."""

    def go() -> None:
        deed = console.desk.do(words, act, is_undo=is_undo)
        later(console, done or console.tell, deed)

    started(_ERRAND, go)


def beside(work: Callable[[], object]) -> None:
    """Something small that is not lost when the console is left at once: a file is written."""
    started(_ERRAND, work)


def await_all() -> bool:
    """When the console has been left; False: some are still under way, and end with the process."""
    deadline = time.monotonic() + _PATIENCE_SEC
    errands = [thread for thread in threading.enumerate() if thread.name == _ERRAND]
    for thread in errands:
        thread.join(max(0.0, deadline - time.monotonic()))
    return not any(thread.is_alive() for thread in errands)


def ask(
    console: Console,
    question: Callable[[Registry], T],
    answered: Callable[[T], None],
    failed: Callable[[str], None] | None = None,
    *,
    opens: bool = False,
) -> None:
    """Only a look; what goes wrong is told, or handed to `failed` as a sentence.

    `opens`: the answer opens a screen, and the keys that are typed meanwhile are for that.
    """
    release = console.key_queue.hold() if opens else None

    def go() -> None:
        try:
            with console.desk.open_registry() as registry:
                found = question(registry)
        except (MamError, OSError) as problem:
            later(console, failed or partial(_warn, console), str(problem))
        else:
            later(console, answered, found)
        finally:
            if release is not None:
                later(console, release)

    started("mam-question", go)


def is_over(console: Console) -> Callable[[], bool]:
    """For whatever waits on an errand's thread."""
    return lambda: not console.is_running


def _warn(console: Console, text: str) -> None:
    console.notify(one_line(text), severity="error", markup=False)


def later(console: Console, call: Callable[..., object], *args: object) -> None:
    """From an errand's thread: on the console's."""
    with suppress(RuntimeError):  # the console has just been left
        console.call_later(call, *args)
