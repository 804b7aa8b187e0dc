"""What the operator does to the job table itself: marks, ranges, order and columns."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from mam_tui.columns import COLUMNS
from mam_tui.model import Order
from mam_tui.screens.view import View
from mam_tui.widgets.job_table import JobTable


class TableActs(View):
    """A view with the table of jobs; the board is the one."""

    @property
    def table(self) -> JobTable:
        return self.query_one(JobTable)

    # -- marks ---------------------------------------------------------------------------------

    def _do_mark(self) -> None:
        job_id = self.desk.board.cursor
        if self.table.range is not None:
            self.table.end_range()
        elif job_id is not None:
            self.desk.board.toggle_mark(job_id)
            self.table.redraw(job_id)
            self.table.action_go(1)
        self.settle()

    def _do_range(self) -> None:
        if self.table.range is not None:
            self.table.end_range()
        else:
            self.table.begin_range(sticky=True)
        self.settle()

    def _do_mark_all(self) -> None:
        self.table.end_range()
        self.desk.board.mark_shown()
        self.table.refresh()
        self.settle()

    def _do_clear_marks(self) -> None:
        self.acted()

    def acted(self) -> None:
        """Something was done to the marked ones: they need no mark any more."""
        self.table.end_range()
        self.desk.board.marks.clear()
        self.table.refresh()
        self.settle()

    # -- copies --------------------------------------------------------------------------------

    def _do_copy_row(self) -> None:
        rows = self.desk.board.rows
        chosen = [rows[job_id] for job_id in self.desk.board.chosen() if job_id in rows]
        self._give("\n".join(map(self.table.as_text, chosen)), "line", len(chosen))

    def _do_copy_path(self) -> None:
        chosen = self.desk.board.chosen()
        paths = (os.path.join(self.desk.registry_path, f"{job_id}.json") for job_id in chosen)
        self._give("\n".join(paths), "path", len(chosen))

    def _do_copy_command(self) -> None:
        """That shows the same jobs, from whatever folder."""
        chosen = self.desk.board.chosen()
        where = ["--registry-dir", os.path.abspath(self.desk.registry_path)]
        lines = (shlex.join(["mam", "get", job_id, *where]) for job_id in chosen)
        self._give("\n".join(lines), "command line", len(chosen))

    def _give(self, text: str, kind: str, count: int) -> None:
        """By the terminal's own way, which also works over ssh and in tmux."""
        self.app.copy_to_clipboard(text)
        what = f"the {kind}" if count == 1 else f"{count} {kind}s"
        words = f"{what}: given to the terminal's clipboard (OSC 52), if it takes it"
        self.notify(words, markup=False)

    # -- order ---------------------------------------------------------------------------------

    def on_job_table_sort_asked(self, event: JobTable.SortAsked) -> None:
        self.sort_by(event.column)

    def sort_by(self, column: str) -> None:
        """By this column; if it is that already, the other way round."""
        order = self.desk.board.order
        self.sort(Order(column, order.name == column and not order.reverse))

    def sort(self, order: Order) -> None:
        if order.name in COLUMNS:
            self.desk.board.sort(order)
            self.table.moved()
            if self.desk.past is None:
                self.console.choices.change(sort=order.name, reverse=order.reverse)

    def _do_sort(self) -> None:
        shown = list(self.table.headings)
        at = shown.index(self.desk.board.order.name) if self.desk.board.order.name in shown else -1
        self.sort(Order(shown[(at + 1) % len(shown)]))

    def _do_reverse(self) -> None:
        order = self.desk.board.order
        self.sort(order._replace(reverse=not order.reverse))

    def _do_sort_state(self) -> None:
        self.sort_by("state")

    def _do_sort_id(self) -> None:
        self.sort_by("id")

    def _do_sort_age(self) -> None:
        self.sort_by("age")

    def _do_sort_run(self) -> None:
        self.sort_by("run")

    def _do_sort_idle(self) -> None:
        self.sort_by("idle")

    # -- columns -------------------------------------------------------------------------------

    def choose_columns(self, names: Sequence[str]) -> None:
        """For this time and the next; none: those of ``mam.toml``, else what the width allows."""
        self.table.choose_columns(names or self.desk.config.console.columns or ())
        self.console.choices.change(columns=tuple(names))

    def _do_columns(self) -> None:
        from mam_tui.screens.columns_dialog import ColumnsDialog

        dialog = ColumnsDialog(COLUMNS, tuple(self.table.headings), self.table.columns)
        self.app.push_screen(dialog, self._chose_columns)

    def _chose_columns(self, names: Sequence[str] | None) -> None:
        if names is not None:
            self.choose_columns(names)
