"""The history: every job that ever was, and what persons did; searched, opened, compared.

All of it comes from an index beside the audit log, which a thread reads on while this is
seen. Here are only the rows around those that are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Static

from mam_core.operations.history import Act, Historic, all_ids
from mam_tui.actions import ACTIONS, Place, key_of, refusal, why_not
from mam_tui.desk import Desk
from mam_tui.errands import ask
from mam_tui.history.reading import HistoryReader, Part, Progress, Sight, Want
from mam_tui.history.words import sign, why_empty
from mam_tui.screens.compare import CompareScreen, Tried
from mam_tui.screens.on_a_job import TO_ITS_AGENT, OnAJob
from mam_tui.screens.view import bindings
from mam_tui.widgets.detail.tab_bar import TabBar
from mam_tui.widgets.key_bar import KeyBar
from mam_tui.widgets.paged_table import ActsTable, JobsTable, PagedTable
from mam_tui.widgets.search_line import SearchLine
from mam_tui.widgets.status_bar import StatusBar

#: Of the board's actions those that make sense here, too.
_BORROWED = (
    *("open", "mark", "clear-marks", "copy", "export"),
    *("filter", "next-tab", "previous-tab"),
)
#: They need a job under the cursor.
_NEED_A_JOB = ("open", "copy", "mark", "compare", "export")
_IN_THE_BAR = ("help", "open", "filter", "compare", "acts", "mark", "command", "back")
_WORDS = {"filter": "search", "back": "back", "help": "keys"}


class HistoryScreen(OnAJob):
    """Two tables, of which one is seen; a line to search in; how far the log was read."""

    DEFAULT_CSS = """
    HistoryScreen .head { height: 1; background: $surface; }
    HistoryScreen TabBar { width: 16; }
    HistoryScreen .sign {
        width: 1fr; height: 1; text-align: right; background: $surface; color: $text-warning;
    }
    HistoryScreen PagedTable { display: none; }
    HistoryScreen PagedTable.-open { display: block; }
    HistoryScreen.-empty PagedTable.-open { display: none; }
    """
    NAME = "history"
    PLACES = (Place.HISTORY, Place.EVERYWHERE)
    BINDINGS: ClassVar[list[BindingType]] = bindings(PLACES, _BORROWED)

    class Read(Message):
        """From the reading thread."""

        def __init__(self, what: Sight | Progress) -> None:
            super().__init__()
            self.what = what

    def __init__(self, desk: Desk, *, ascii_only: bool = False) -> None:
        super().__init__(desk, ascii_only=ascii_only)
        self.part = Part.JOBS
        self._texts = dict.fromkeys(Part, "")
        self._seen: dict[Part, Sight] = {}
        self._progress = Progress()
        self.reader = HistoryReader(desk, self._deliver)

    def compose(self) -> ComposeResult:
        yield StatusBar(ascii_only=self._ascii)
        with Horizontal(classes="head"):
            yield TabBar(tuple(Part), self.part)
            yield Static(classes="sign", markup=False)
        jobs = JobsTable(self._go_along, ascii_only=self._ascii, clock=self.desk.clock)
        jobs.add_class("-open", update=False)
        yield jobs
        yield ActsTable(self._go_along, ascii_only=self._ascii, clock=self.desk.clock)
        yield Static("reading …", classes="empty", markup=False)
        yield SearchLine("words of a job: id, how it ended, agent, label, group, prompt")
        yield KeyBar()

    @property
    def jobs(self) -> JobsTable:
        return self.query_one(JobsTable)

    @property
    def table(self) -> PagedTable[Any]:
        """The one that is seen."""
        return self.jobs if self.part is Part.JOBS else self.query_one(ActsTable)

    @property
    def text(self) -> str:
        return self._texts[self.part]

    @property
    def job_id(self) -> str:
        """Under the cursor; empty: there is none, or it has not been read yet."""
        row = self.table.row
        return self.table.job_of(row) if row is not None else ""

    @property
    def job_at_hand(self) -> str:
        return self.job_id

    # -- while it is seen ----------------------------------------------------------------------

    def on_mount(self) -> None:
        # Another program may have the terminal for hours.
        self.app.app_suspend_signal.subscribe(self, lambda _: self.reader.rest(), immediate=True)
        self.app.app_resume_signal.subscribe(self, lambda _: self._return())
        self.table.focus()

    def on_screen_resume(self) -> None:
        self._resume()

    def on_screen_suspend(self) -> None:
        self.reader.rest()

    def _return(self) -> None:
        if self.is_seen:
            self._resume()

    def on_unmount(self) -> None:
        self.reader.close()

    def on_resize(self, event: events.Resize) -> None:
        self.settle()

    def _resume(self) -> None:
        if self.console.standing().paused is None:
            self.reader.watch()
        else:
            self.reader.rest()
        self.settle()

    # -- what is read --------------------------------------------------------------------------

    def _want(self, first: int | None = None) -> Want:
        table = self.table
        begin = table.first if first is None else first
        row = cast("Historic | Act | None", table.row)
        return Want(self.part, self.text, begin, row, table.follows)

    def _look_ahead(self) -> None:
        """More is asked for before one comes to the end of what was read."""
        first = self.table.lacking()
        if first is not None:
            self.reader.ask(self._want(first))
        else:
            self.reader.know(self._want())

    def _deliver(self, what: Sight | Progress) -> None:
        """On the reading thread."""
        with suppress(RuntimeError):  # the console has just been left
            self.post_message(self.Read(what))

    def on_history_screen_read(self, event: Read) -> None:
        event.stop()
        if not self.is_whole:
            return
        if isinstance(event.what, Progress):
            self._progress = event.what
        elif (event.what.want.part, event.what.want.text) == (self.part, self.text):
            self._show(event.what)
        self.settle()

    def _show(self, sight: Sight) -> None:
        table = self.table
        is_same = sight.want.cursor is None or sight.want.cursor == table.row
        self._seen[self.part] = sight
        rows = cast("Sequence[Any]", sight.rows)
        table.put(sight.fitting, sight.first, rows, sight.line if is_same else None)
        self._look_ahead()

    def on_paged_table_scrolled(self, event: PagedTable.Scrolled) -> None:
        event.stop()
        self._look_ahead()

    def on_paged_table_moved(self, event: PagedTable.Moved) -> None:
        event.stop()
        self._look_ahead()
        self.settle()

    def _go_along(self) -> None:
        """The board's cursor: whoever went to another job here finds it there."""
        board = self.desk.board
        if (line := board.line_of(self.job_id or None)) is not None:
            board.move_to(line)

    # -- what stands around it -------------------------------------------------------------------

    def settle(self) -> None:
        """Everything around the table says how it stands now."""
        sight = self._seen.get(self.part)
        total, fitting = (sight.total, sight.fitting) if sight is not None else (0, 0)
        marks = len(self.jobs.marks) if self.part is Part.JOBS else 0
        self.jobs.block(self._is_blocked)
        self.query_one(StatusBar).standing = self.console.standing()._replace(
            view=f"history {total:,} {self.part if total != 1 else self.part[:-1]}",
            filter=self.text,
            marked=marks,
            shown=fitting,
            total=total,
        )
        self.query_one(".sign", Static).update(sign(sight, self._progress))
        self.set_class(not fitting, "-empty")
        if not fitting:
            self.query_one(".empty", Static).update(why_empty(self.part, sight, self._progress))
        self.query_one(KeyBar).show(self.keys())

    def _is_blocked(self, job_id: str) -> bool:
        """As the board has it."""
        row = self.desk.live.rows.get(job_id)
        return row is not None and row.word == "blocked"

    def keys(self) -> list[tuple[str, str]]:
        actions = [ACTIONS[name] for name in _IN_THE_BAR if self.lacks(name) is None]
        return [
            (key, _WORDS.get(action.name, action.words))
            for action in actions
            if (key := key_of(action, self.desk))
        ]

    # -- what is asked -------------------------------------------------------------------------

    def lacks(self, name: str) -> str | None:
        """Why an action cannot be done to the row under the cursor; None when it can."""
        if name in ("mark", "compare") and self.part is not Part.JOBS:
            return "jobs can be compared, and acts cannot"
        if name == "export" and self.part is not Part.JOBS:
            return "jobs can be exported, and acts cannot"
        if name in _NEED_A_JOB and not self.job_id:
            return "there is no job here"
        if name == "compare":
            return self._why_not_compare()
        if name in TO_ITS_AGENT:
            return refusal(ACTIONS[name], self.desk) or self.why_no_agent()
        return None if name in _BORROWED else why_not(ACTIONS[name], self.desk)

    def action_act(self, name: str) -> None:
        super().action_act(name)
        if name == "pause" and self.is_seen:
            self._resume()  # the picture may be held now

    def on_paged_table_opened(self, event: PagedTable.Opened) -> None:
        event.stop()
        self.action_act("open")

    def _do_open(self) -> None:
        self.console.board.open_job(self.job_id)

    def _do_copy(self) -> None:
        self.console.jobs.copy(list(self.jobs.marks) or [self.job_id])

    def _do_export(self) -> None:
        """The marked ones, or all that fit what is searched for; their records may be gone."""
        jobs, text = self.console.jobs, self.text
        if self.jobs.marks:
            jobs.export(list(self.jobs.marks))
        else:
            ask(self.console, lambda registry: all_ids(registry, text), jobs.export)

    def _do_mark(self) -> None:
        self.jobs.mark()
        self.settle()

    def _do_clear_marks(self) -> None:
        self.jobs.clear_marks()
        self.settle()

    def _do_back(self) -> None:
        if self.text:
            self._search("")
        else:
            self.dismiss()

    def _do_refresh(self) -> None:
        self.reader.soon()
        self.console.act("refresh")

    # -- the two parts -------------------------------------------------------------------------

    def _do_acts(self) -> None:
        self._switch(Part.ACTS if self.part is Part.JOBS else Part.JOBS)

    _do_next_tab = _do_previous_tab = _do_acts

    def on_tab_bar_chosen(self, event: TabBar.Chosen) -> None:
        event.stop()
        self._switch(Part(event.name))

    def _switch(self, part: Part) -> None:
        if part is self.part:
            return
        self.table.remove_class("-open")
        self.part = part
        self.table.add_class("-open")
        self.query_one(TabBar).chosen = part
        self.table.focus()
        self.reader.ask(self._want())
        self.settle()

    # -- searching -----------------------------------------------------------------------------

    def _do_filter(self) -> None:
        self.query_one(SearchLine).open(self.text)

    def on_search_line_changed(self, event: SearchLine.Changed) -> None:
        event.stop()
        self._search(event.text)

    def on_search_line_left(self, event: SearchLine.Left) -> None:
        event.stop()
        self.table.focus()

    def _search(self, text: str) -> None:
        if text.split() == self.text.split():
            return
        self._texts[self.part] = text
        self.table.begin_anew()
        self.reader.ask(Want(self.part, text))
        self.settle()

    # -- comparing -----------------------------------------------------------------------------

    def _chosen(self) -> list[Historic]:
        row = self.jobs.row
        return list(self.jobs.marks.values()) or ([row] if row is not None else [])

    def _why_not_compare(self) -> str | None:
        chosen = self._chosen()
        if len(chosen) > 2:
            return "two can be compared: mark one or two jobs"
        least = 2 if len(chosen) == 1 else 1
        if all(row.entry.attempts >= least for row in chosen):
            return None
        return "it has not been tried twice: mark two jobs" if least == 2 else "one was never tried"

    def _do_compare(self) -> None:
        sides = [
            Tried(entry.job_id, entry.attempts, entry.attempts)
            for entry in (row.entry for row in self._chosen())
        ]
        if len(sides) == 1:
            last = sides[0]
            sides = [last._replace(attempt=last.attempt - 1), last]
        screen = CompareScreen(self.desk, sides[0], sides[1], ascii_only=self._ascii)
        self.app.push_screen(screen)
