"""Attention: one list of what needs a person, the most urgent first, answered where it stands."""

from __future__ import annotations

from asyncio import TimerHandle
from contextlib import suppress
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from mam_core.operations.attention import Need
from mam_core.records import Status
from mam_tui.actions import ACTIONS, Place, key_of, refusal, why_not
from mam_tui.attention.columns import NEED_FACES
from mam_tui.attention.reading import NeedReading
from mam_tui.attention.words import paragraphs
from mam_tui.desk import Desk
from mam_tui.faces import FACES
from mam_tui.folding import Folded
from mam_tui.screens.view import View, bindings
from mam_tui.soon import soon
from mam_tui.widgets.detail.asking import Answer
from mam_tui.widgets.detail.heading import Heading, Words
from mam_tui.widgets.detail.page import Page
from mam_tui.widgets.key_bar import KeyBar, key_name
from mam_tui.widgets.need_table import NeedTable
from mam_tui.widgets.status_bar import StatusBar

#: With less height the list has all of it.
_ROOM_FOR_A_DETAIL = 14
#: A cursor that is only passing by asks for nothing.
_REST_SEC = 0.12
#: Of the board's actions those that make sense here, too.
_BORROWED = ("cancel", "retry", "edit", "copy", "detail", "export")
#: What is done to the job of a need.
_TO_ITS_JOB = (
    *("attend", "look", "aside", "detail", "attach", "say"),
    *("answer", "cancel", "retry", "edit", "copy", "export"),
)
_LISTENS = "only a running job has an agent that listens"


class AttentionScreen(View):
    """List, the whole of the one under the cursor, keys."""

    DEFAULT_CSS = """
    AttentionScreen.-empty NeedTable { display: none; }
    AttentionScreen Heading { display: none; }
    AttentionScreen Page { display: none; }
    AttentionScreen.-detail NeedTable { max-height: 55%; }
    AttentionScreen.-detail Heading { display: block; }
    AttentionScreen.-detail Page { display: block; height: 1fr; }
    """
    NAME = "attention"
    PLACES = (Place.ATTENTION, Place.EVERYWHERE)
    BINDINGS: ClassVar[list[BindingType]] = bindings(PLACES, _BORROWED)

    class WasRead(Message):
        """From the asking thread."""

        def __init__(self, answer: Answer) -> None:
            super().__init__()
            self.answer = answer

    def __init__(self, desk: Desk, *, ascii_only: bool = False) -> None:
        super().__init__(desk, ascii_only=ascii_only)
        self._reading = NeedReading(desk, self._was_read)
        self._wants_detail = True
        self._version = -1  #: of the list that is shown
        self._clock: Timer | None = None
        self._rest: TimerHandle | None = None
        self._has_chosen = False  #: the operator went to one of them since this came up
        self.add_class("-empty", update=False)

    def compose(self) -> ComposeResult:
        yield StatusBar(ascii_only=self._ascii)
        yield NeedTable(
            self.desk.needing,
            self._reading.words_of,
            ascii_only=self._ascii,
            clock=self.desk.clock,
        )
        yield Static(classes="empty", markup=False)
        yield Heading(ascii_only=self._ascii)
        yield Page()
        yield KeyBar()

    @property
    def table(self) -> NeedTable:
        return self.query_one(NeedTable)

    # -- while it is seen ----------------------------------------------------------------------

    def on_mount(self) -> None:
        self._clock = self.set_interval(1.0, self._tick, pause=True)
        self.table.focus()
        if (job_id := self.desk.board.cursor) is not None:
            self.table.go_to_job(job_id)
        self._show_all()

    def on_screen_resume(self) -> None:
        self._has_chosen = False
        if self._clock is not None:
            self._clock.resume()
        self._reading.forget()
        self._show_all()

    def on_screen_suspend(self) -> None:
        if self._clock is not None:
            self._clock.pause()
        self._forget_rest()
        self._reading.rest()
        self._lead_the_board()

    def _lead_the_board(self) -> None:
        """Who went to a job here finds it there, if the board shows it."""
        table, need = self.console.board.table, self.table.need
        if self._has_chosen and need is not None and table.range is None:
            table.go_to_job(need.job_id)

    def on_unmount(self) -> None:
        self._forget_rest()
        self._reading.close()

    def on_resize(self, event: events.Resize) -> None:
        self.settle()

    def _tick(self) -> None:
        if self.is_seen:
            self.table.tick()

    def take(self, folded: Folded) -> None:
        if self._version != self.desk.needing.version:
            self._show_all()
        else:
            self.settle()

    def _show_all(self) -> None:
        """The list is another."""
        self._version = self.desk.needing.version
        self.table.changed()
        self.settle()

    def settle(self) -> None:
        """Everything around the list says how it stands now."""
        count, standing = len(self.desk.needing), self.console.standing()
        self.query_one(StatusBar).standing = standing._replace(
            view="attention", filter="", marked=0, shown=0, total=0
        )
        self.table.stale = standing.stale_sec is not None
        self.set_class(not count, "-empty")
        if not count:
            self.query_one(".empty", Static).update(self._nobody(loading=standing.loading))
        has_room = bool(count) and self.size.height >= _ROOM_FOR_A_DETAIL
        self.set_class(self._wants_detail and has_room, "-detail")
        self.table.styles.height = self.table.rows + 1 if self.has_class("-detail") else "1fr"
        self.query_one(KeyBar).show(self.keys())
        self._show_detail()

    def _nobody(self, *, loading: bool) -> str:
        if loading or not self.desk.needing.has_begun:
            return "reading the registry …"
        counts = self.desk.live.counts
        live = [word for word, face in FACES.items() if counts[word] and face.style != "done"]
        at_work = ", ".join(f"{counts[word]:,} {word}" for word in live)
        key = self.desk.keys.get("view-board", "1")
        return f"nobody needs you\n\n{at_work or 'nothing runs'}\n\n{key_name(key)}  every job"

    # -- the one under the cursor --------------------------------------------------------------

    def _show_detail(self) -> None:
        need = self.table.need
        if need is not None and self.has_class("-detail"):
            row = self.desk.live.rows.get(need.job_id)
            head = row.summary.head if row is not None and row.summary is not None else ""
            note = "  ".join(filter(None, (need.session, need.agent, head)))
            face = NEED_FACES[need.kind]
            self.query_one(Heading).words = Words(need.job_id, face, need.attempt, note)
            detail = self._reading.detail_of(need)
            self.query_one(Page).put(paragraphs(need, detail, self.desk))
        if self._rest is None and self.is_seen:
            self._rest = soon(self, _REST_SEC, self._read)

    def _read(self) -> None:
        self._rest = None
        if self.is_seen:
            need = self.table.need if self.has_class("-detail") else None
            self._reading.read(need, self.table.in_sight_needs())

    def _forget_rest(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None

    def _was_read(self, answer: Answer) -> None:
        """On the asking thread."""
        with suppress(RuntimeError):  # the console has just been left
            self.post_message(self.WasRead(answer))

    def on_attention_screen_was_read(self, event: WasRead) -> None:
        event.stop()
        if self._reading.take(event.answer) and self.is_seen:
            self._show_all()

    # -- what is asked -------------------------------------------------------------------------

    def on_need_table_moved(self) -> None:
        self._has_chosen = True
        self.query_one(Page).action_first()
        self.settle()

    def on_need_table_opened(self) -> None:
        self.action_act("attend")

    def lacks(self, name: str) -> str | None:
        """Why an action cannot be done to the need under the cursor; None when it can."""
        action = ACTIONS[name]
        if name not in _TO_ITS_JOB:
            return why_not(action, self.desk)
        if (reason := refusal(action, self.desk)) is not None:
            return reason
        need = self.table.need if self.is_mounted else None
        if need is None:
            return "nobody needs you"
        return self._against(name, need)

    def _against(self, name: str, need: Need) -> str | None:
        row = self.desk.live.rows.get(_retried(need) if name == "retry" else need.job_id)
        status = row.summary.status if row is not None and row.summary is not None else None
        if name == "answer":
            return None if need.can_be_answered else "it asks nothing"
        if name in ("say", "attach"):
            return None if status is Status.RUNNING else _LISTENS
        if name == "retry":
            is_over = status in (Status.ERROR, Status.CANCELLED)
            return None if is_over else "only failed or cancelled jobs"
        if name == "cancel":
            return None if status is not None and status.is_live else "it has ended already"
        if name == "edit":
            return None if status is Status.PENDING else "only a job that nobody has claimed yet"
        return None

    def keys(self) -> list[tuple[str, str]]:
        """Those of the board that are borrowed stand here, too; to answer is the first of all."""
        here = [
            action
            for action in ACTIONS.values()
            if action.weight
            and action.name != "answer"
            and (action.place in self.PLACES or action.name in _BORROWED)
            and key_of(action, self.desk)
            and self.lacks(action.name) is None
        ]
        here.sort(key=lambda action: -action.weight)
        return [(key_of(action, self.desk), action.words) for action in here]

    @property
    def job_at_hand(self) -> str:
        need = self.table.need
        return need.job_id if need is not None else ""

    @property
    def _need(self) -> Need:
        """Only after `lacks` had nothing against it."""
        need = self.table.need
        assert need is not None
        return need

    def action_act(self, name: str) -> None:
        self._has_chosen |= name in _TO_ITS_JOB
        super().action_act(name)

    def _do_attend(self) -> None:
        if self._need.can_be_answered and self.lacks("answer") is None:
            self._do_answer()
        else:
            self._do_look()

    def _do_look(self) -> None:
        self.console.board.open_job(self._need.job_id)

    def _do_aside(self) -> None:
        job_id = self._need.job_id
        self.console.board.needs_changed(self.desk.needing.put_aside(job_id))

    def _do_answer(self) -> None:
        self.console.talk.answer(self._need.job_id)

    def _do_say(self) -> None:
        self.console.talk.say(self._need.job_id)

    def _do_attach(self) -> None:
        self.console.talk.attach_to_job(self._need.job_id)

    def _do_cancel(self) -> None:
        self.console.jobs.cancel([self._need.job_id])

    def _do_retry(self) -> None:
        self.console.jobs.retry([_retried(self._need)])

    def _do_edit(self) -> None:
        self.console.jobs.edit(self._need.job_id)

    def _do_copy(self) -> None:
        self.console.jobs.copy([self._need.job_id])

    def _do_export(self) -> None:
        self.console.jobs.export([need.job_id for need in self.desk.needing])

    def _do_detail(self) -> None:
        self._wants_detail = not self._wants_detail
        self.settle()

    def _do_refresh(self) -> None:
        self._reading.forget()
        self.settle()
        self.console.act("refresh")

    def _do_back(self) -> None:
        if self.query_one(Page).has_focus:
            self.table.focus()
        else:
            self.dismiss()


def _retried(need: Need) -> str:
    """The job that is tried again: of jobs that come after one that failed, that one."""
    found = (help.job_id for help in need.help if help.action == "retry")
    return next(found, need.job_id)
