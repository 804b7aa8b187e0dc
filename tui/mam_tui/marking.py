"""A range of marks: from where it began to where the cursor is, as lines stand when it moves.

What it marks are jobs, not lines: jobs that come between later are not in it, and one
that moves away keeps its mark. Going back unmarks only what the range itself has marked.
A step costs as much as the lines that it passes, however long the range is.
"""

from __future__ import annotations

from mam_tui.model import Board


class Range:
    """Begun at the cursor; `sticky` is one that every move of the cursor extends."""

    def __init__(self, board: Board, *, sticky: bool) -> None:
        self.sticky = sticky
        self._board = board
        self._start = board.cursor
        self._taken: set[str] = set()
        if board.cursor is not None:
            self._take({board.cursor})

    def go(self, line: int) -> range:
        """The cursor goes to this line, and the range with it; the answer are the lines passed."""
        board = self._board
        was = board.line_of(board.cursor)
        board.move_to(line)
        now = board.line_of(board.cursor)
        if was is None or now is None:
            return range(0)
        start = board.line_of(self._start)
        if start is None:  # its job is gone or hidden: what was marked stays, and we go on here
            self._start, start = board[was].job_id, was
        passed = range(min(was, now), max(was, now) + 1)
        inside = range(max(passed.start, min(start, now)), min(passed.stop, max(start, now) + 1))
        ids = set(board.ids(inside))
        self._leave(set(board.ids(passed)) - ids)
        self._take(ids)
        return passed

    def drop(self) -> None:
        """As if it had never been."""
        self._leave(self._taken)

    def _take(self, ids: set[str]) -> None:
        ids = ids - self._board.marks
        self._board.marks |= ids
        self._taken |= ids

    def _leave(self, ids: set[str]) -> None:
        ids = ids & self._taken
        self._board.marks -= ids
        self._taken -= ids
