"""What an audit log is, wherever it is kept: the histories of all jobs, written and read.

Whoever tells or asks about a job comes through `Audit`. The files store keeps one
folder a job (`audit.AuditLog`); a database keeps the same lines in tables of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from mam_core.records import Job


class Piece(NamedTuple):
    """Some lines of one history, and where the next piece begins."""

    lines: list[dict[str, Any]]
    until: int
    damaged: int


class Logs(Protocol):
    """All histories, read in pieces from where a reader stopped. For one thread.

    A place in a history is a number that grows with it and means something to its log alone.
    """

    def names(self) -> Iterator[str]:
        """The jobs that have a history, in no order."""

    def sizes(self, job_ids: Iterable[str] | None = None) -> dict[str, int]:
        """Where the histories of all jobs, or of these, end now; 0 where there is none."""

    def meta(self, job_id: str) -> dict[str, Any] | None:
        """The record as registered, without its secrets."""

    def pieces(self, job_id: str, since: int = 0) -> Iterator[Piece]:
        """What stands after the place `since`, which is where a line begins."""


class Audit(Protocol):
    """The history of every job. Methods that write never raise; they warn."""

    path: str  #: the folder on this host with the files of attempts: output, prompts, marks

    @property
    def kept_as(self) -> str:
        """A word for the log that places in histories belong to: part of a file's name."""

    def begin(self, job: Job, line: dict[str, Any], *, meta: dict[str, Any] | None = None) -> bool:
        """A job's first line, with the record as registered; True when all stand."""

    def append(self, job_id: str, line: dict[str, Any], job: Job | None = None) -> bool:
        """One more line, and the new status when `job` is given."""

    def append_all(self, job_id: str, lines: Sequence[dict[str, Any]]) -> bool:
        """Several lines at the price of one; on a failure some of them may stand."""

    def set_status(self, job: Job, *, meta: dict[str, Any] | None = None) -> bool:
        """The status alone, and the record as registered where that is missing."""

    def meta(self, job_id: str) -> dict[str, Any] | None:
        """The record as registered, without its secrets."""

    def status(self, job_id: str) -> dict[str, Any] | None:
        """The job's status as it was last told."""

    def lines(self, job_id: str) -> Iterator[bytes]:
        """The lines as they are stored; nothing for a job that is not logged."""

    def events(self, job_id: str) -> Iterator[dict[str, Any]]:
        """The lines parsed; one that is torn or no JSON object is skipped."""

    def news(self, job_id: str, since: int | None, reach: int) -> tuple[int, list[bytes]]:
        """The whole lines after the place `since`, or of the last `reach` bytes, and their end.

        A history that became shorter, or grew by more than that, is read as a new one.
        """

    def has(self, job_id: str) -> bool: ...

    def job_ids(self) -> list[str]:
        """Every job that ever was logged here, oldest history first."""

    def published_since(self, job_id: str, seq: int) -> set[int]:
        """The numbers from `seq` on of events that a line says were published."""

    def published(self, job_id: str, seqs: Collection[int]) -> dict[int, bytes]:
        """The newest line that says so, for each of these events that has one.

        Searched from the end, so that recent events are found at once in a long history.
        """

    def logs(self) -> AbstractContextManager[Logs]:
        """All histories, to be read through."""
