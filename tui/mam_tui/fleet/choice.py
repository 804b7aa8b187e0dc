"""Which agents' screens are seen together, which of them has the focus, which are marked.

No Textual in here. The sessions, their order and the cursor are those of the view of
sessions: whoever goes from one to the other finds the same session there.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from mam_tui.desk import Desk
from mam_tui.sessions.rows import SessionRow

#: How many screens a page may have.
PER_PAGE = (1, 4, 9, 16)


class By(StrEnum):
    """What a session must be to be seen."""

    ALL = "all"
    FILTER = "filter"  #: one of its jobs fits the board's filter
    GROUP = "group"  #: one of its jobs belongs to the group


class Choice(NamedTuple):
    """Which sessions are seen."""

    by: By = By.ALL
    group: str = ""

    @property
    def words(self) -> str:
        """The filter itself stands elsewhere. A group's name is foreign text."""
        words = {By.ALL: "all sessions", By.FILTER: "by filter", By.GROUP: f"group {self.group}"}
        return words[self.by]


class Fleet:
    """One console's."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.choice = Choice()
        self.per_page = 9
        self.marks: set[str] = set()  #: names of sessions, also of those that are not seen now
        self.rows: list[SessionRow] = []  #: those that fit the choice

    def derive(self) -> None:
        """Anew, from the sessions and jobs as they are known now."""
        sessions = self._desk.sessions
        if self.choice.by is By.FILTER and not self._desk.board.filter.text:
            self.choice = Choice()
        self.marks &= {row.name for row in sessions.rows}
        self.rows = [row for row in sessions.rows if self._fits(row)]
        if self.at is None and self.rows:
            sessions.cursor = self.rows[0].name

    def _fits(self, row: SessionRow) -> bool:
        board = self._desk.board
        if self.choice.by is By.ALL:
            return True
        jobs = [board.rows[job_id] for job_id in row.seen.jobs if job_id in board.rows]
        if self.choice.by is By.FILTER:
            now = self._desk.clock()
            return any(board.filter.fits(job, now) for job in jobs)
        return any(job.summary and job.summary.group == self.choice.group for job in jobs)

    # -- the choice ----------------------------------------------------------------------------

    def choices(self) -> list[Choice]:
        """All that there are now: every session, the board's filter, each group at work."""
        board = self._desk.board
        jobs = (board.rows.get(job_id) for row in self._desk.sessions.rows for job_id in _jobs(row))
        groups = {job.summary.group for job in jobs if job and job.summary and job.summary.group}
        by_filter = [Choice(By.FILTER)] if board.filter.text else []
        return [Choice(), *by_filter, *(Choice(By.GROUP, group) for group in sorted(groups))]

    def choose_next(self) -> None:
        known = self.choices()
        at = known.index(self.choice) + 1 if self.choice in known else 0
        self.choose(known[at % len(known)])

    def choose(self, choice: Choice) -> None:
        self.choice = choice
        self.derive()

    def resize(self, step: int) -> None:
        """More of them on a page, or fewer."""
        at = PER_PAGE.index(self.per_page) + step
        self.per_page = PER_PAGE[max(0, min(at, len(PER_PAGE) - 1))]

    # -- pages and the focus -------------------------------------------------------------------

    @property
    def at(self) -> int | None:
        """Where the focus is, among those that fit."""
        cursor = self._desk.sessions.cursor
        return next((n for n, row in enumerate(self.rows) if row.name == cursor), None)

    @property
    def pages(self) -> int:
        return max(1, -(-len(self.rows) // self.per_page))

    @property
    def page(self) -> int:
        """From 0; the one that the focus is on."""
        return (self.at or 0) // self.per_page

    def page_rows(self) -> list[SessionRow]:
        first = self.page * self.per_page
        return self.rows[first : first + self.per_page]

    def go_to(self, at: int) -> None:
        if self.rows:
            self._desk.sessions.cursor = self.rows[max(0, min(at, len(self.rows) - 1))].name

    def go(self, right: int, down: int, columns: int) -> None:
        """By places, as they stand in so many columns; over the edge is the next page."""
        at, last = self.at or 0, len(self.rows) - 1
        to = at + right + down * columns
        if to > last and last // columns == at // columns:
            return  # there is nothing below
        if to >= 0:
            self.go_to(to)

    def turn(self, pages: int) -> None:
        """To the first place of another page."""
        to = max(0, min(self.page + pages, self.pages - 1))
        if to != self.page:
            self.go_to(to * self.per_page)

    def focus_job(self, job_id: str | None) -> None:
        """On the session that runs it, if one is seen that does."""
        found = (n for n, row in enumerate(self.rows) if job_id in _jobs(row))
        if (at := next(found, None)) is not None:
            self.go_to(at)

    # -- marks ---------------------------------------------------------------------------------

    def marked(self) -> list[SessionRow]:
        """In their order."""
        return [row for row in self._desk.sessions.rows if row.name in self.marks]

    def listening(self) -> list[SessionRow]:
        """Those of the marked ones that have a job, and so an agent that listens."""
        return [row for row in self.marked() if row.job_id]


def _jobs(row: SessionRow) -> tuple[str, ...]:
    return row.seen.jobs
