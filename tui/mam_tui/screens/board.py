"""The board: every job, live; the first thing that an operator sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from mam_tui.actions import ACTIONS, Place, key_of
from mam_tui.commands import Command
from mam_tui.desk import Desk
from mam_tui.errands import later
from mam_tui.filters import Filter
from mam_tui.folding import Folded
from mam_tui.hints import why_empty
from mam_tui.model import Effect
from mam_tui.panes import source
from mam_tui.screens.board_commands import obey
from mam_tui.screens.board_table import TableActs
from mam_tui.screens.view import bindings
from mam_tui.threads import started
from mam_tui.widgets.command_line import CommandLine
from mam_tui.widgets.detail.beside import Beside
from mam_tui.widgets.detail.panel import DetailPanel
from mam_tui.widgets.filter_line import FilterLine
from mam_tui.widgets.job_table import JobTable
from mam_tui.widgets.key_bar import KeyBar
from mam_tui.widgets.status_bar import StatusBar

if TYPE_CHECKING:
    from mam_tui.screens.job import JobScreen
    from mam_tui.travel.step import Step


class BoardScreen(TableActs):
    """Table, status, keys."""

    DEFAULT_CSS = """
    BoardScreen.-empty JobTable { display: none; }
    BoardScreen.-empty Beside DetailPanel { display: none; }
    """
    NAME = "board"
    PLACES = (Place.BOARD, Place.EVERYWHERE)
    BINDINGS: ClassVar[list[BindingType]] = bindings(PLACES)

    def __init__(
        self,
        desk: Desk,
        *,
        ascii_only: bool = False,
        columns: Sequence[str] = (),
        panel: bool = True,
        tab: str = "",
    ) -> None:
        super().__init__(desk, ascii_only=ascii_only)
        self._columns = columns
        self._tab = tab
        self._wants_panel = panel
        self._opened: JobScreen | None = None
        # As it will be until the first jobs come: a class that changes styles everything anew.
        self.add_class("-empty", update=False)

    def compose(self) -> ComposeResult:
        yield StatusBar(ascii_only=self._ascii)
        with Beside(self.app.size, wanted=self._wants_panel, ascii_only=self._ascii):
            yield JobTable(
                self.desk.board,
                columns=self._columns,
                ascii_only=self._ascii,
                clock=self.desk.now,
                id="jobs",
            )
            yield Static(classes="empty", markup=False)
            yield DetailPanel(
                self.desk, ascii_only=self._ascii, tab=self._tab, pane=source(self.desk)
            )
        yield FilterLine()
        yield CommandLine()
        yield KeyBar()

    def on_mount(self) -> None:
        self.table.focus()
        self.settle()

    def on_resize(self, event: events.Resize) -> None:
        self._make_room()

    def on_screen_resume(self) -> None:
        self.table.moved()  # another view may have moved the cursor
        self.settle()
        self.panel.wake()

    def _make_room(self) -> None:
        self.query_one(Beside).settle_room()
        if self.panel.view.has_focus and not self.panel.display:
            self.table.focus()

    @property
    def panel(self) -> DetailPanel:
        return self.query_one(DetailPanel)

    # -- what arrives --------------------------------------------------------------------------

    def take(self, folded: Folded) -> None:
        """A batch of changes; one frame at most comes of it."""
        if folded.loaded is not None and not self.desk.needing.has_begun:
            started("mam-needs", self._read_needs)
        folded = self.desk.needing.take(folded)
        board, table = self.desk.live, self.table
        board.tick(self.desk.clock())
        moved, lines = False, set()
        if folded.loaded is not None:
            board.load([*folded.loaded.jobs.jobs, *folded.loaded.jobs.unreadable])
            moved = True
        for job_id, record in folded.records.items():
            effect = board.remove(job_id) if record is None else board.put(record)
            moved |= effect is Effect.MOVED
            if effect is Effect.LINE:
                lines.add(job_id)
        for job_id, news in folded.news.items():
            effect = board.hear(job_id, **news)
            moved |= effect is Effect.MOVED
            if effect is Effect.LINE:
                lines.add(job_id)
        if folded.evidence is not None:
            board.gather(folded.evidence)
            moved = True
        if moved:
            table.moved()
        elif self.desk.past is None:  # else the table shows another board
            table.redraw_named(lines)
        self.settle()
        self.panel.take(folded)
        if (opened := self._open_job) is not None:
            opened.take(folded)

    def wake(self) -> None:
        """Time has passed: it may have been all that some job waited for."""
        if self.desk.live.wake(self.desk.clock()):
            self.table.moved()
            self.settle()

    def _read_needs(self) -> None:
        """On a thread: modules that no first picture needs."""
        import mam_core.operations.needs  # noqa: F401

        later(self.console, self._begin_needs)

    def _begin_needs(self) -> None:
        if self.is_running and not self.desk.needing.has_begun:
            self.needs_changed(self.desk.needing.begin())

    def needs_changed(self, folded: Folded) -> None:
        """By the operator, by time, or since they are known at all: not by what was told."""
        self.take(folded)
        if (view := self.console.views.seen) is not None:
            view.take(folded)

    def travelled(self, step: Step | None) -> None:
        if step is None:
            self.table.end_range()
            self.table.board = self.desk.board
        if step is None or step.has_moved:
            self.table.moved()
        else:
            self.table.refresh()  # everything that has an age is older or younger now
        for panel in self._panels():
            panel.travelled(None if step is None else step.jobs)
        self.settle()

    def _panels(self) -> Iterator[DetailPanel]:
        yield self.panel
        if (opened := self._open_job) is not None:
            yield opened.panel

    @property
    def _open_job(self) -> JobScreen | None:
        """The key of a view takes it away without a word, and it still counts as mounted then."""
        opened = self._opened
        is_there = opened is not None and opened.is_mounted and opened in self.app.screen_stack
        return opened if is_there else None

    def settle(self) -> None:
        """Everything around the table says how it stands now."""
        board = self.desk.board
        standing = self.console.standing()
        self.query_one(StatusBar).standing = standing
        self.table.stale = standing.stale_sec is not None
        self.set_class(not len(board), "-empty")
        if not len(board):
            self.query_one(".empty", Static).update(why_empty(self.desk, loading=standing.loading))
        self.query_one(KeyBar).show(self.keys())
        self.panel.show(board.cursor)
        if (opened := self._open_job) is not None:
            opened.settle()

    # -- what is asked -------------------------------------------------------------------------

    def on_filter_line_changed(self, event: FilterLine.Changed) -> None:
        self.narrow(event.chosen)

    def on_filter_line_left(self) -> None:
        self.table.focus()

    def on_detail_panel_switched(self, event: DetailPanel.Switched) -> None:
        self.console.choices.change(tab=self.panel.open_tab.name)

    def on_job_table_moved(self) -> None:
        self.settle()

    def _do_filter(self) -> None:
        self.query_one(FilterLine).open(self.desk.board.filter.text)

    def _do_back(self) -> None:
        if self.panel.view.has_focus:
            self.table.focus()
        elif self.table.range is not None:
            self.table.drop_range()
            self.settle()
        elif self.desk.board.filter.text:
            self.narrow(Filter())

    def _do_quit(self) -> None:
        self.console.act("quit")

    def _do_demo(self) -> None:
        """Whoever opened us runs it, in this terminal and not inside of us."""
        self.desk.then = "demo"
        self.console.act("quit")

    def keys(self) -> list[tuple[str, str]]:
        if self.table.range is None:
            return super().keys()
        ends = [(ACTIONS["range"], "end the range"), (ACTIONS["back"], "drop the range")]
        return [*((key_of(action, self.desk), words) for action, words in ends), *super().keys()]

    def _do_open(self) -> None:
        self.table.action_open()

    def on_job_table_opened(self, event: JobTable.Opened) -> None:
        self.open_job(event.job_id)

    def open_job(self, job_id: str) -> None:
        """On the whole screen, whichever view is seen now."""
        from mam_tui.screens.job import JobScreen

        self._opened = JobScreen(self, job_id, ascii_only=self._ascii)
        self.app.push_screen(self._opened, self._left_job)

    def _left_job(self, tab: str | None) -> None:
        self._opened = None
        self.panel.switch(tab or "")
        self.table.moved()
        self.settle()

    def _do_detail(self) -> None:
        beside = self.query_one(Beside)
        beside.wanted = not beside.wanted
        self.console.choices.change(panel=beside.wanted)
        self._make_room()
        if beside.wanted and not self.panel.display and len(self.desk.board):
            words = "there is no room for it here: enter opens a job on the whole screen"
            self.notify(words, severity="warning", markup=False)

    def _do_next_tab(self) -> None:
        self._step(1)

    def _do_previous_tab(self) -> None:
        self._step(-1)

    def _step(self, by: int) -> None:
        if self.panel.display:
            self.panel.step(by)

    def _do_cancel(self) -> None:
        self.console.jobs.cancel(self.desk.board.chosen())

    def _do_retry(self) -> None:
        self.console.jobs.retry(self.desk.board.chosen())

    def _do_copy(self) -> None:
        self.console.jobs.copy(self.desk.board.chosen())

    def _do_export(self) -> None:
        board = self.desk.board
        self.console.jobs.export(
            board.chosen() if board.marks else [row.job_id for row in board.view()]
        )

    def _do_report(self) -> None:
        self.console.jobs.report(self.desk.board.chosen())

    def _do_edit(self) -> None:
        if self.desk.board.cursor is not None:
            self.console.jobs.edit(self.desk.board.cursor)

    def obey(self, command: Command) -> None:
        obey(self, command)

    def narrow(self, chosen: Filter) -> None:
        self.desk.board.tick(self.desk.now())
        self.desk.board.narrow(chosen)
        self.table.moved()
        self.settle()
