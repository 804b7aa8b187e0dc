"""One job on the whole screen: the detail panel with all the room there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget

from mam_core.records import Status
from mam_tui.actions import ACTIONS, Place, key_of, refusal, why_not
from mam_tui.folding import Folded
from mam_tui.panes import source
from mam_tui.widgets.command_line import CommandLine
from mam_tui.widgets.detail.panel import DetailPanel
from mam_tui.widgets.key_bar import KeyBar
from mam_tui.widgets.status_bar import StatusBar

if TYPE_CHECKING:
    from mam_tui.screens.board import BoardScreen

#: Keys of the past that are shown before those of the job.
_OF_THE_PAST = 4
#: Of the board's actions those that make sense for one job, whatever is marked on the board.
_ACTIONS = (
    *("next-tab", "previous-tab", "cancel", "retry", "edit", "export"),
    *("answer", "attach", "say", "spawn", "pause", "refresh", "help"),
)
_TABS = ("next-tab", "previous-tab")
#: Done to this job, and only while its agent is there.
_TO_ITS_AGENT = ("answer", "attach", "say")
#: Done to this job, whatever its agent does.
_TO_THE_JOB = ("cancel", "retry", "edit")


class JobScreen(Screen[str]):
    """Opened from the board, and answers which tab was open when it was left."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "back", id="back"),
        Binding("J", "neighbour(1)", "next job", show=False),
        Binding("K", "neighbour(-1)", "job before", show=False),
        *(
            Binding(ACTIONS[name].key, f"act('{name}')", ACTIONS[name].words, id=name, show=False)
            for name in _ACTIONS
        ),
        Binding("colon", "command", "command", id="command", show=False),
    ]

    def __init__(self, board: BoardScreen, job_id: str, *, ascii_only: bool = False) -> None:
        super().__init__()
        self._board = board
        self._job_id = job_id
        self._ascii = ascii_only
        self._focused_before: Widget | None = None  #: while the ``:`` line is typed in

    def compose(self) -> ComposeResult:
        yield StatusBar(ascii_only=self._ascii)
        tab = self._board.panel.open_tab.name
        desk = self._board.desk
        yield DetailPanel(desk, ascii_only=self._ascii, tab=tab, pane=source(desk))
        yield CommandLine()
        yield KeyBar()

    def on_mount(self) -> None:
        if not self.is_current:
            return  # left before it stood
        self.panel.show(self._job_id)
        self.panel.view.focus()
        self.settle()

    def on_screen_resume(self) -> None:
        self.panel.wake()
        self._board.console.came_up()

    @property
    def job_at_hand(self) -> str:
        return self._job_id

    @property
    def panel(self) -> DetailPanel:
        return self.query_one(DetailPanel)

    def take(self, folded: Folded) -> None:
        """A batch of changes, after the board took it."""
        if self.is_mounted:
            self.panel.take(folded)
            self.settle()

    def settle(self) -> None:
        """Everything around the panel says how it stands now."""
        standing = self._board.console.standing()
        view = self._board.console.views.name
        self.query_one(StatusBar).standing = standing._replace(view=f"{view} > {self._job_id}")
        keys = [
            *(
                (pair for pair in self._board.keys()[:_OF_THE_PAST])
                if self._board.desk.past
                else ()
            ),
        ]
        keys += [
            (key_of(ACTIONS[name], self._board.desk), ACTIONS[name].words)
            for name in ("help", "back", *_TO_ITS_AGENT, *_TO_THE_JOB, *_TABS)
            if not self.lacks(name)
        ]
        self.query_one(KeyBar).show([*keys, ("J", "next job"), ("K", "job before")])

    # -- what is asked -------------------------------------------------------------------------

    def action_leave(self) -> None:
        if self._board.console.put_away():
            return
        self.dismiss(self.panel.open_tab.name)

    def action_neighbour(self, step: int) -> None:
        """The next job in the board's order; the board's cursor goes along."""
        board = self._board.desk.board
        line = board.line_of(self._job_id)
        if line is not None and 0 <= line + step < len(board):
            board.move_to(line + step)
            self._job_id = board[line + step].job_id
            self.panel.show(self._job_id)
            self.settle()

    def action_command(self) -> None:
        self._focused_before = self.focused
        self.query_one(CommandLine).open()

    def on_command_line_left(self) -> None:
        self.set_focus(self._focused_before)

    def on_command_line_entered(self, event: CommandLine.Entered) -> None:
        name, word = event.command
        if name == "back":
            self.action_leave()
        elif name == "report" and word and self.lacks(name) is None:
            self._board.console.jobs.report([self._job_id], word)
        elif not word and name in ACTIONS and self._knows(name):
            self.action_act(name)
        else:
            self._board.console.everywhere.obey(event.command)

    def _knows(self, name: str) -> bool:
        return name in _ACTIONS or (
            ACTIONS[name].place is Place.EVERYWHERE and name not in ("command", "back")
        )

    def action_act(self, name: str) -> None:
        if (reason := self.lacks(name)) is not None:
            self.notify(f"{ACTIONS[name].words}: {reason}", severity="warning", markup=False)
            return
        mine: dict[str, Callable[[], None]] = {
            "next-tab": lambda: self.panel.step(1),
            "previous-tab": lambda: self.panel.step(-1),
            "cancel": lambda: self._board.console.jobs.cancel([self._job_id]),
            "retry": lambda: self._board.console.jobs.retry([self._job_id]),
            "edit": lambda: self._board.console.jobs.edit(self._job_id),
            "export": lambda: self._board.console.jobs.export([self._job_id], ".md"),
            "report": lambda: self._board.console.jobs.report([self._job_id]),
            "answer": lambda: self._board.console.talk.answer(self._job_id),
            "attach": lambda: self._board.console.talk.attach_to_job(self._job_id),
            "say": lambda: self._board.console.talk.say(self._job_id),
        }
        act = mine.get(name)
        if act is not None:
            act()
        else:
            self._board.console.act(name)

    def lacks(self, name: str) -> str | None:
        """Why it cannot be done to this job; the board's own answer is about its marks."""
        if (reason := refusal(ACTIONS[name], self._board.desk)) is not None:
            return reason
        if name not in (*_TO_ITS_AGENT, *_TO_THE_JOB):
            return None if name in _ACTIONS else why_not(ACTIONS[name], self._board.desk)
        row = self._board.desk.board.rows.get(self._job_id)
        status = row.summary.status if row is not None and row.summary is not None else None
        if status is None:
            return "its record cannot be read"
        if name in _TO_ITS_AGENT:
            listens = status is Status.RUNNING
            return None if listens else "only a running job has an agent that listens"
        if name == "cancel":
            return None if status.is_live else "it has ended already"
        if name == "edit":
            return None if status is Status.PENDING else "only a job that nobody has claimed yet"
        can = status in (Status.ERROR, Status.CANCELLED)
        return None if can else "only failed or cancelled jobs"
