"""The list of needs: a line each, and the one under the cursor with more of its words.

A line of the table is a line on the screen, so the need under the cursor is several of
them; whoever goes down from its first one comes to the next need.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from textual import events
from textual.message import Message
from textual.strip import Strip

from mam_core.operations.attention import Need
from mam_core.safe_text import one_line
from mam_tui.attention.columns import COLUMNS, NEED_COLUMNS, NEED_FACES, Piece, room_for
from mam_tui.attention.needing import Needing
from mam_tui.laying import Look, cell
from mam_tui.widgets.detail.spans import Paragraph, Span, clipped, wrap
from mam_tui.widgets.line_table import LineTable

#: So many lines at most has the need under the cursor.
_MOST_LINES = 4
#: So much of its words is looked at for a line.
_MOST_CHARS = 1000
_MOST_OF_AN_ID = 26
_IDS = 200


class NeedTable(LineTable[Piece]):
    """Shows the console's needs; `words_of` knows more of some of them than the list."""

    class Moved(Message):
        """Another need is under the cursor."""

    class Opened(Message):
        """The operator wants to deal with it."""

    def __init__(
        self,
        needing: Needing,
        words_of: Callable[[Need], str],
        *,
        ascii_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(NEED_COLUMNS, ascii_only=ascii_only, clock=clock)
        self._needing = needing
        self._words_of = words_of
        self._cursor: str | None = None
        self._at = 0  #: where the cursor is, or was when its need went away
        self._more: list[str] = []  #: the further lines of the one under the cursor
        self._ages: list[str] = []
        self.settle_cursor()

    # -- the need under the cursor -------------------------------------------------------------

    @property
    def need(self) -> Need | None:
        return self._needing.get(self._cursor) if self._cursor is not None else None

    def settle_cursor(self) -> None:
        """It stays with its need; where that is gone, with the line that took its place."""
        line = self._needing.line_of(self._cursor) if self._cursor is not None else None
        if line is None and len(self._needing):
            line = min(self._at, len(self._needing) - 1)
        self._at = line or 0
        self._cursor = None if line is None else self._needing[line].job_id

    def changed(self) -> None:
        """The list is another, or more is known of one in it."""
        self.settle_cursor()
        self.lay_out()
        self.moved()

    def go_to_job(self, job_id: str) -> None:
        if (line := self._needing.line_of(job_id)) is not None:
            self._set(line)

    def _set(self, need_line: int) -> None:
        self._at = need_line
        self._cursor = self._needing[need_line].job_id
        self._break()

    def lay_out(self) -> None:
        super().lay_out()
        self._break()

    def _break(self) -> None:
        """The words of the one under the cursor into lines."""
        need, self._more = self.need, []
        wide = self.headings.get("words", 0)
        if need is None or not wide:
            return
        words = one_line(self._words_of(need)[:_MOST_CHARS])
        rows = wrap(Paragraph((Span(words),)), wide)
        lines = ["".join(span.text for span in row) for row in rows]
        if len(lines) > _MOST_LINES:
            rest = " ".join(lines[_MOST_LINES - 1 :])  # the cell is clipped, with its sign
            lines = [*lines[: _MOST_LINES - 1], rest]
        self._more = lines

    # -- lines of the screen -------------------------------------------------------------------

    @property
    def _extra(self) -> int:
        return max(0, len(self._more) - 1)

    def in_sight_needs(self) -> list[Need]:
        found = {piece.need.job_id: piece.need for piece in map(self.row_at, self.in_sight())}
        return list(found.values())

    @property
    def rows(self) -> int:
        count = len(self._needing)
        return count + self._extra if count else 0

    def row_at(self, line: int) -> Piece:
        at = self._at
        if at <= line <= at + self._extra and self._more:
            return Piece(self._needing[at], self._more[line - at], line > at)
        need = self._needing[line if line < at else line - self._extra]
        return Piece(need, clipped(one_line(self._words_of(need)[:_MOST_CHARS])))

    def name_of(self, row: Piece) -> str:
        return row.need.job_id

    def line_of(self, name: str) -> int | None:
        line = self._needing.line_of(name)
        return line if line is None or line <= self._at else line + self._extra

    @property
    def cursor_line(self) -> int | None:
        return self._at if self._cursor is not None else None

    def put_cursor(self, line: int) -> None:
        """The lines that the need under the cursor has more are jumped over."""
        if not len(self._needing):
            return
        if line > self._at:
            line = max(self._at + 1, line - self._extra)
        self._set(max(0, min(line, len(self._needing) - 1)))

    def keep_cursor_in_sight(self) -> None:
        """With all of its lines, where they have room."""
        last = self._at + self._extra
        bottom = self.scroll_offset.y + max(1, self.size.height - 1)
        if self._cursor is not None and self.size.height and last >= bottom:
            self._scroll(min(self._at, last - max(1, self.size.height - 1) + 1))
        super().keep_cursor_in_sight()

    @property
    def sorted_by(self) -> tuple[str, bool]:
        return "", False

    @property
    def used(self) -> Collection[str]:
        return COLUMNS

    def wide(self) -> Mapping[str, int]:
        ids = (self._needing[line].job_id for line in range(min(_IDS, len(self._needing))))
        longest = max(map(len, ids), default=0)
        return {
            "state": room_for(self._needing.counts),
            "id": max(COLUMNS["id"].width, min(_MOST_OF_AN_ID, longest)),
        }

    def style_of(self, row: Piece) -> str:
        return NEED_FACES[row.need.kind].style

    def _line(self, row: Piece, is_cursor: bool, width: int, ground: str = "") -> Strip:
        return super()._line(row, is_cursor or row.is_more, width, ground)

    def tick(self) -> None:
        """A second has passed: only ages that look different are drawn."""
        ages = [laid for laid in self._laid if laid.column.by_clock]
        if not ages:
            return
        look, lines = Look(self._clock(), self.ascii_only), self.in_sight()
        drawn, self._ages = self._ages, [cell(ages[0], self.row_at(at), look) for at in lines]
        for at, (line, age) in enumerate(zip(lines, self._ages, strict=True)):
            if at >= len(drawn) or drawn[at] != age:
                self.redraw_line(line)

    # -- what is asked -------------------------------------------------------------------------

    def cursor_moved(self) -> None:
        self.moved()  # its lines have come, those of the one before have gone
        self.post_message(self.Moved())

    def opened(self) -> None:
        self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        """The further lines of the need under the cursor are itself."""
        at = event.get_content_offset(self)
        line = self.scroll_offset.y + at.y - 1 if at is not None and at.y else -1
        if self._at < line <= self._at + self._extra:
            event.prevent_default()
            if event.chain > 1:
                self.action_open()
