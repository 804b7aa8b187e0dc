"""The last acts of this console, and the way back from each; without Textual.

What cannot be taken back is on it as well: whoever asks for the last act to be undone must
not have an older one undone instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mam_core.operations.take_back import Cancelled

_KEPT = 50

#: By verb: why it cannot be undone, and what can be done instead.
_NO_WAY_BACK = {
    "retry": "a worker may have it by now; c cancels it",
    "stop": "what it ran has ended with it; s starts another session",
    "register": "a worker may have it by now; c cancels it",
    "edit": "the old words are in its timeline; E changes it again",
    "spawn": "x stops a session",
    "restore": "x stops a session",
    "node": "x takes a host out of the work, r takes it back",
    "say": "the agent has read it",
    "answer": "the agent has gone on by it",
}


class Step(NamedTuple):
    """One act: with cancels or a batch it can be taken back, else `why_not` says why not."""

    words: str
    cancels: tuple[Cancelled, ...] = ()
    batch: str = ""
    why_not: str = ""


class Trail:
    """Newest last; bounded. Acts come from many threads, and a deque takes that."""

    def __init__(self) -> None:
        self._steps: deque[Step] = deque(maxlen=_KEPT)

    @property
    def last(self) -> Step | None:
        return self._steps[-1] if self._steps else None

    def push(self, step: Step) -> None:
        self._steps.append(step)

    def remove(self, step: Step) -> None:
        """It was taken back, or cannot be."""
        if step in self._steps:
            self._steps.remove(step)

    def did(self, words: Sequence[str]) -> None:
        """A verb with what was typed after it; those that need no way back are not kept."""
        verb = words[0] if words else ""
        if (why := _NO_WAY_BACK.get(verb)) is not None:
            self.push(Step(verb, why_not=why))

    def cancelled(self, cancels: Sequence[Cancelled]) -> None:
        if cancels:
            ids = [one.job_id for one in cancels]
            self.push(Step(f"cancel of {jobs(ids)}", cancels=tuple(cancels)))

    def cleaned(self, batch: str, ids: Sequence[str]) -> None:
        self.push(Step(f"clean of {jobs(ids)}", batch=batch))


def jobs(ids: Sequence[str]) -> str:
    """As one says it: one by its name, many by their number."""
    return f"job {ids[0]}" if len(ids) == 1 else f"{len(ids):,} jobs"
