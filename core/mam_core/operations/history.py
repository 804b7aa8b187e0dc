"""Every job that ever was, and every act of an operator, the newest first, page by page.

From the audit log, so that jobs whose record is gone are there, too. A page is had at
once, as of the last `refresh`; that one reads what is new, and belongs on a thread.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from mam_core.errors import MamError
from mam_core.registry import Registry
from mam_core.replay.chronicle import Chronicle
from mam_core.replay.entries import Act, Entry

__all__ = ["Act", "Entry", "Historic", "History", "HistoryBusy", "NoHistory", "all_ids"]

#: What one page has, unless it is said otherwise.
PAGE = 500
_MANY = 5000


class NoHistory(MamError):
    """The index of the audit log cannot be read."""

    title = "History"


class HistoryBusy(NoHistory):
    """Another process reads the audit log into the same index: what is there can be had."""


class Historic(NamedTuple):
    """An entry, and whether its record is still there."""

    entry: Entry
    exists: bool

    def to_dict(self) -> dict[str, Any]:
        return {**self.entry.to_dict(), "exists": self.exists}


class History:
    """Open it, `refresh`, and turn the pages. For one thread at a time."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._chronicle = Chronicle(registry.store.audit)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._chronicle.close()

    @property
    def damaged(self) -> int:
        """Lines that could not be read."""
        return self._chronicle.damaged

    @property
    def is_kept(self) -> bool:
        """False: the audit folder cannot be written, and all of it is read anew each time."""
        return self._chronicle.is_kept

    def __len__(self) -> int:
        return self.count()

    def count(self, text: str = "") -> int:
        """How many entries there are with these words."""
        with _explained():
            return self._chronicle.count(text)

    def refresh(self, breathe: Callable[[], object] = lambda: None) -> Iterator[tuple[int, int]]:
        """Read what is new: how many bytes of how many are done. It may be left half-way.

        `breathe` is called every few milliseconds: whoever has a screen to draw can let that go
        first. Raises `HistoryBusy` while another one is at it for long.
        """
        with _explained():
            yield from self._chronicle.refresh(breathe)

    def page(
        self, after: Historic | None = None, *, text: str = "", limit: int = PAGE, skip: int = 0
    ) -> list[Historic]:
        """The entries that follow `after`, or the first ones; each word of `text` must be there.
        So many as `skip` says are left out before.

        Where words are looked for is what a person sees of an entry: id, status, agent, label,
        group, why it ended, prompt.
        """
        place = (after.entry.changed_at, after.entry.job_id, 0) if after is not None else None
        with _explained():
            found = self._chronicle.entries(place, text, limit, skip)
        here = self._here([entry.job_id for entry in found])
        return [Historic(entry, entry.job_id in here) for entry in found]

    def line_of(self, job_id: str, *, text: str = "") -> int | None:
        """How many entries stand before this job's; None: it is not among them."""
        with _explained():
            return self._chronicle.line_of(job_id, text)

    def acts(
        self, after: Act | None = None, *, text: str = "", limit: int = PAGE, skip: int = 0
    ) -> list[Act]:
        """What persons did, who and when. Pauses, and what was done to sessions, are no part of a
        job's log, and so not among them."""
        with _explained():
            return self._chronicle.acts(_place(after), limit, text, skip)

    def count_acts(self, text: str = "", *, before: Act | None = None) -> int:
        """How many acts there are with these words, or how many stand before one of them."""
        with _explained():
            return self._chronicle.count_acts(text, _place(before))

    def _here(self, job_ids: list[str]) -> set[str]:
        try:
            facts = self._registry.store.facts()
            return {job_id for job_id in job_ids if facts.status_of(job_id) is not None}
        except MamError:
            return set()  # there is no registry any more


def all_ids(registry: Registry, text: str = "") -> list[str]:
    """Of every entry with these words as of the last `refresh`, the newest first; on a thread."""
    with History(registry) as history:
        found: list[str] = []
        last: Historic | None = None
        while page := history.page(last, text=text, limit=_MANY):
            found += [row.entry.job_id for row in page]
            last = page[-1]
    return found


def _place(act: Act | None) -> tuple[float, str, int] | None:
    return None if act is None else (act.at, act.job_id, act.n)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as problem:
        if getattr(problem, "sqlite_errorcode", None) in _BUSY:
            raise HistoryBusy("another process is reading the audit log into its index") from None
        raise NoHistory(f"the index of the audit log cannot be used: {problem}") from None


_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
