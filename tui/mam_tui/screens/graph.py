"""The graph: which job comes after which, and what the blocked ones wait for."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from mam_core.records import Status
from mam_core.safe_text import clip, one_line
from mam_tui.actions import ACTIONS, Place, key_of, refusal
from mam_tui.desk import Desk
from mam_tui.filters import Filter
from mam_tui.graph.lines import Kind
from mam_tui.graph.text import GONE, Cells, full_words
from mam_tui.screens.graph_making import GraphMaking
from mam_tui.screens.view import bindings
from mam_tui.widgets.filter_line import FilterLine
from mam_tui.widgets.graph_table import GraphTable
from mam_tui.widgets.key_bar import KeyBar, key_name
from mam_tui.widgets.status_bar import StatusBar

#: With less height the lines have all of it.
_ROOM_FOR_A_DETAIL = 14
_ROOM_FOR_ALL_OF_IT = 28
#: Of the board's actions those that make sense here, too.
_BORROWED = ("open", "filter", "detail", "copy", "export", "cancel", "retry", "edit")
_TO_A_LINE = ("open", "parent", "child", "fold", "fold-finished", "fold-group", "fold-groups")
_TO_A_JOB = ("copy", "cancel", "retry", "edit", "attach", "say", "answer")
_READING = "reading the registry …"
_EMPTY = """\
no job comes after another one

mam register --after ID …  makes one that waits until job ID has completed
{key}  every job"""


class GraphScreen(GraphMaking):
    """Lines, the one under the cursor in full words, keys."""

    DEFAULT_CSS = """
    GraphScreen.-empty GraphTable { display: none; }
    GraphScreen .full { display: none; height: 3; background: $surface; }
    GraphScreen.-detail .full { display: block; padding: 0 1; }
    GraphScreen.-detail.-high .full { height: 6; }
    """
    NAME = "graph"
    PLACES = (Place.GRAPH, Place.EVERYWHERE)
    BINDINGS: ClassVar[list[BindingType]] = bindings(PLACES, _BORROWED)

    def __init__(self, desk: Desk, *, ascii_only: bool = False) -> None:
        super().__init__(desk, ascii_only=ascii_only)
        self._wants_detail = True
        self._full = ""  #: what is said in full below the lines
        self.add_class("-empty", update=False)

    def compose(self) -> ComposeResult:
        yield StatusBar(ascii_only=self._ascii)
        yield GraphTable(self.state.facts, ascii_only=self._ascii, clock=self.desk.now)
        yield Static(_READING, classes="empty", markup=False)
        yield Static(classes="full", markup=False)
        yield FilterLine()
        yield KeyBar()

    # -- what is said --------------------------------------------------------------------------

    def settle(self) -> None:
        """Everything around the lines says how it stands now."""
        standing, drawn, table = self.console.standing(), self.state.drawing, self.table
        count = sum(len(tree.jobs) for tree in drawn.trees)
        total = count + len(drawn.held)
        self.query_one(StatusBar).standing = standing._replace(
            view=f"graph {count:,}" if self.times_made else "graph, being made …",
            filter=self.state.filter.text,
            marked=0,
            shown=total if table.fitting is None else len(table.fitting),
            total=total,
        )
        table.stale = standing.stale_sec is not None
        self.set_class(not table.rows, "-empty")
        if not table.rows:
            self.query_one(".empty", Static).update(self._why_empty(loading=standing.loading))
        has_room = bool(table.rows) and self.size.height >= _ROOM_FOR_A_DETAIL
        self.set_class(has_room and self._wants_detail, "-detail")
        self.set_class(self.size.height >= _ROOM_FOR_ALL_OF_IT, "-high")
        if self.has_class("-detail") and (row := table.row) is not None:
            words = full_words(row, self.state.facts())
            if words != self._full:
                self._full = words
                self.query_one(".full", Static).update(words)
        self.query_one(KeyBar).show(self.keys())

    def _why_empty(self, *, loading: bool) -> str:
        if loading or not self.times_made:
            return _READING
        if self.state.filter.text:
            wanted = clip(one_line(self.state.filter.text), 40)
            return f"no job here fits {wanted}\n\nesc  shows all"
        return _EMPTY.format(key=key_name(self.desk.keys.get("view-board", "1")))

    # -- what is asked -------------------------------------------------------------------------

    @property
    def _row(self) -> Cells | None:
        return self.table.row if self.is_mounted else None

    @property
    def _job_id(self) -> str:
        """Of the job under the cursor; empty: there is none."""
        row = self._row
        return row.job_id if row is not None else ""

    @property
    def job_at_hand(self) -> str:
        return self._job_id

    def on_graph_table_moved(self) -> None:
        if job_id := self._job_id:
            self.desk.board.cursor = job_id
        self.settle()

    def on_graph_table_opened(self) -> None:
        self.action_act("open")

    def lacks(self, name: str) -> str | None:
        """Why an action cannot be done to what is under the cursor; None when it can."""
        row = self._row
        if (name in _TO_A_LINE or name == "export") and row is None:
            return "there is no job here"
        if name == "open" and row is not None and row.face == GONE:
            return "its record is gone"
        if name == "fold-group" and row is not None and not self._group_of(row):
            return "it is in no group"
        if name in _TO_A_LINE or name == "filter":
            return None
        if name == "export":
            return refusal(ACTIONS[name], self.desk)
        return self._against(name) if name in _TO_A_JOB else super().lacks(name)

    def _against(self, name: str) -> str | None:
        if (reason := refusal(ACTIONS[name], self.desk)) is not None:
            return reason
        row = self.desk.board.rows.get(self._job_id)
        status = row.summary.status if row is not None and row.summary is not None else None
        if row is None:
            return "there is no job here"
        if name in ("attach", "say", "answer"):
            return None if row.is_running else "only a running job has an agent that listens"
        if name == "cancel":
            return None if row.is_live else "it has ended already"
        if name == "retry" and status not in (Status.ERROR, Status.CANCELLED):
            return "only failed or cancelled jobs"
        if name == "edit" and status is not Status.PENDING:
            return "only a job that nobody has claimed yet"
        return None

    def keys(self) -> list[tuple[str, str]]:
        """Those of the board that are borrowed stand here, too."""
        here = [
            action
            for action in ACTIONS.values()
            if action.weight
            and (self.knows(action) or action.name in _BORROWED)
            and key_of(action, self.desk)
            and self.lacks(action.name) is None
        ]
        here.sort(key=lambda action: -action.weight)
        return [(key_of(action, self.desk), action.words) for action in here]

    def _do_open(self) -> None:
        """A job on the whole screen; what is folded where it stands."""
        row = self._row
        if row is None:
            return
        node = self.state.drawing.graph.nodes.get(row.line.name)
        if row.line.kind is Kind.FOLD:
            self._do_fold()
        elif node is not None and node.is_folded:
            self._do_fold_group()
        elif row.job_id:
            self.console.board.open_job(row.job_id)

    def _do_parent(self) -> None:
        """The one that it is drawn under."""
        row = self._row
        if row is not None and row.line.parent:
            self.table.go_to(f"{Kind.NODE} {row.line.parent}")

    def _do_child(self) -> None:
        row = self._row
        if row is None:
            return
        node = self.state.drawing.graph.nodes.get(row.line.name)
        if row.line.kind is Kind.FOLD:
            self._do_fold()
        elif node is not None and node.children:
            keys = (f"{Kind.NODE} {child}" for child in node.children)
            shown = [line for key in keys if (line := self.table.line_of(key)) is not None]
            if shown:
                self.table.move(min(shown))

    def _do_fold(self) -> None:
        if (row := self._row) is not None and self.state.turn(row.line.name):
            self.show()

    def _do_fold_finished(self) -> None:
        self.state.turn_finished()
        self.show()

    def _group_of(self, row: Cells) -> str:
        node = self.state.drawing.graph.nodes.get(row.line.name)
        return node.group if node is not None else ""

    def _do_fold_group(self) -> None:
        if (row := self._row) is not None:
            self.state.turn_group(self._group_of(row))
            self.make()

    def _do_fold_groups(self) -> None:
        self.state.turn_groups()
        self.make()

    def _do_filter(self) -> None:
        self.query_one(FilterLine).open(self.state.filter.text)

    def on_filter_line_changed(self, event: FilterLine.Changed) -> None:
        self._narrow(event.chosen)

    def on_filter_line_left(self) -> None:
        self.table.focus()

    def _narrow(self, chosen: Filter) -> None:
        self.state.filter = chosen
        self.show()

    def _do_back(self) -> None:
        if self.state.filter.text:
            self._narrow(Filter())
        else:
            self.dismiss()

    def _do_detail(self) -> None:
        self._wants_detail = not self._wants_detail
        self.settle()

    def _do_refresh(self) -> None:
        self.make()
        self.console.act("refresh")

    def _do_copy(self) -> None:
        self.console.jobs.copy([self._job_id])

    def _do_export(self) -> None:
        rows = (self.table.row_at(line) for line in range(self.table.rows))
        self.console.jobs.export(list(dict.fromkeys(row.job_id for row in rows if row.job_id)))

    def _do_cancel(self) -> None:
        self.console.jobs.cancel([self._job_id])

    def _do_retry(self) -> None:
        self.console.jobs.retry([self._job_id])

    def _do_edit(self) -> None:
        self.console.jobs.edit(self._job_id)

    def _do_attach(self) -> None:
        self.console.talk.attach_to_job(self._job_id)

    def _do_say(self) -> None:
        self.console.talk.say(self._job_id)

    def _do_answer(self) -> None:
        self.console.talk.answer(self._job_id)
