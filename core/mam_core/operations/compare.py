"""Two attempts side by side, of one job or of two: how they went, what they said, what they left.

Each side is put together by itself, and what of it cannot be had is a sentence in its
place: a comparison with a gap is of more use than none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mam_core.errors import MamError
from mam_core.operations.diff import Change, diff
from mam_core.operations.moments import Moment
from mam_core.operations.output import NoOutput, read_output
from mam_core.operations.timeline import Chapter, timeline
from mam_core.registry import Registry
from mam_core.replay.folding import usage

#: Of what an attempt printed, its end.
TAIL_BYTES = 16 * 1024


class NoAttempt(MamError):
    """The job was not started as that attempt."""

    title = "No attempt"


class Side(NamedTuple):
    """One attempt. The texts and the output are foreign words."""

    job_id: str
    attempt: int
    outcome: str  #: how it ended, "running", or empty where no end is logged
    reason: str
    detail: str
    began_at: float | None
    ended_at: float | None
    moments: tuple[Moment, ...]
    events: Mapping[str, int]  #: how many of which name it told
    tokens: int | None
    cost: float | None
    exit_code: int | None
    output: bytes  #: the end of what it printed
    no_output: str  #: why there is none
    files: tuple[Change, ...]  #: what it changed in its repository
    no_files: str  #: why that is not known

    @property
    def elapsed_sec(self) -> float | None:
        if self.began_at is None or self.ended_at is None:
            return None
        return max(0.0, self.ended_at - self.began_at)

    @property
    def additions(self) -> int:
        return sum(file.additions or 0 for file in self.files)

    @property
    def deletions(self) -> int:
        return sum(file.deletions or 0 for file in self.files)

    def to_dict(self) -> dict[str, Any]:
        return {
            **self._asdict(),
            "elapsed_sec": self.elapsed_sec,
            "moments": [moment.to_dict() for moment in self.moments],
            "output": self.output.decode("utf-8", "replace"),
            "files": [file._asdict() for file in self.files],
        }


class Comparison(NamedTuple):
    """The two of them."""

    left: Side
    right: Side

    @property
    def files(self) -> list[tuple[str, Change | None, Change | None]]:
        """Each path that one of them changed, with what either did to it."""
        sides = [{file.path: file for file in side.files} for side in self]
        paths = sorted(sides[0].keys() | sides[1].keys())
        return [(path, sides[0].get(path), sides[1].get(path)) for path in paths]

    def to_dict(self) -> dict[str, Any]:
        return {"left": self.left.to_dict(), "right": self.right.to_dict()}


def compare(registry: Registry, left: tuple[str, int], right: tuple[str, int]) -> Comparison:
    """Each side is a job and an attempt. Raises `JobNotFound` and `NoAttempt`.

    It asks git for both, which may take a while: no work for whoever draws.
    """
    return Comparison(side(registry, *left), side(registry, *right))


def side(registry: Registry, job_id: str, attempt: int) -> Side:
    chapter = _chapter(registry, job_id, attempt)
    output, no_output = _output(registry, job_id, attempt)
    files, no_files = _files(registry, job_id, attempt)
    tokens, cost = usage(chapter.facts)
    exit_code = chapter.facts.get("exit_code")
    return Side(
        job_id,
        attempt,
        chapter.outcome,
        chapter.reason,
        chapter.detail,
        chapter.began_at,
        chapter.ended_at,
        chapter.moments,
        chapter.events,
        tokens,
        cost,
        exit_code if isinstance(exit_code, int) else None,
        output,
        no_output,
        files,
        no_files,
    )


def _chapter(registry: Registry, job_id: str, attempt: int) -> Chapter:
    chapters = timeline(registry, job_id).chapters
    found = {chapter.attempt: chapter for chapter in chapters if chapter.attempt}
    if attempt not in found:
        known = ", ".join(map(str, found)) or "none"
        raise NoAttempt(f"job {job_id} has no attempt {attempt}: there is {known}")
    return found[attempt]


def _output(registry: Registry, job_id: str, attempt: int) -> tuple[bytes, str]:
    try:
        return read_output(registry, job_id, attempt, limit=TAIL_BYTES).data, ""
    except NoOutput as problem:
        return b"", problem.message


def _files(registry: Registry, job_id: str, attempt: int) -> tuple[tuple[Change, ...], str]:
    try:
        return diff(registry, job_id, attempt).files, ""
    except MamError as problem:
        return (), problem.message
