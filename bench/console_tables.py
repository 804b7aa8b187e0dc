"""Two tables to compare, each an app of its own: `python -m bench.console_tables KIND ROWS`.

Both show as many jobs in the same columns and have one visible row changed a hundred times a
second, by a timer of their own: what it costs to hear of a change is left out for both.
"""

from __future__ import annotations

import sys
import time
from itertools import count

from textual.app import App, ComposeResult
from textual.widgets import DataTable

from mam_core.clock import stamp
from mam_core.records import Status
from mam_core.summaries import Summary
from mam_tui.columns import BY_URGENCY, COLUMNS, sort_key
from mam_tui.laying import Look
from mam_tui.model import Board, Order
from mam_tui.rows import Row
from mam_tui.widgets.job_table import JobTable

RATE = 100
#: Those that are changed: all of them are seen.
VISIBLE = 40
SHOWN = ("id", "state", "agent", "session", "attempt", "age", "event", "prompt")


def job(number: int, words: str = "") -> Summary:
    now = stamp(time.time())
    return Summary(
        job_id=f"job{number:08}",
        status=Status.PENDING,
        agent="claude-code",
        agent_session=f"tmux:agent-{number % 10}",
        group=None,
        priority=0,
        order=number,
        attempt=0,
        created_at=now,
        updated_at=now,
        started_at=None,
        ended_at=None,
        reason=None,
        cancel_requested_at=None,
        last_seq=0,
        head=words or f"Find out why import {number} is slow",
    )


class Ours(App[None]):
    """The console's table and its model, and nothing around them."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.board = Board(sort_key, Order(BY_URGENCY))
        self.board.load(job(number) for number in range(rows))
        self._turn = count()

    def compose(self) -> ComposeResult:
        yield JobTable(self.board, columns=SHOWN)

    def on_mount(self) -> None:
        self.set_interval(1 / RATE, self._change)

    def _change(self) -> None:
        turn = next(self._turn)
        one = job(turn % VISIBLE, f"turn {turn}")
        self.query_one(JobTable).changed(one.job_id, self.board.put(one))


class Theirs(App[None]):
    """Textual's own table."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self._count = rows
        self._turn = count()

    def compose(self) -> ComposeResult:
        yield DataTable(cursor_type="row")

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        for name in SHOWN:
            table.add_column(COLUMNS[name].heading, key=name)
        look = Look(time.time())
        for number in range(self._count):
            row = Row(job(number))
            cells = [COLUMNS[name].text(row, look) for name in SHOWN]
            table.add_row(*cells, key=row.job_id)
        self.set_interval(1 / RATE, self._change)

    def _change(self) -> None:
        turn = next(self._turn)
        one = job(turn % VISIBLE, f"turn {turn}")
        self.query_one(DataTable).update_cell(one.job_id, "prompt", one.head)


if __name__ == "__main__":
    (Ours if sys.argv[1] == "ours" else Theirs)(int(sys.argv[2])).run()
