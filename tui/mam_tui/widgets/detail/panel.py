"""The detail panel: one job and eight ways to look at it; only the open one costs anything.

What is shown is asked for on a thread, at most five times a second and never while the
panel is hidden. An answer that came too late, for another job or another tab, is dropped.
"""

from __future__ import annotations

import time
from asyncio import TimerHandle
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message

from mam_core.events.feed import EventHeard
from mam_core.records import Status
from mam_core.summaries import Summary
from mam_tui.desk import Desk
from mam_tui.folding import Folded
from mam_tui.soon import soon
from mam_tui.widgets.detail.asking import Answer, Asking
from mam_tui.widgets.detail.heading import Heading, Words
from mam_tui.widgets.detail.line_view import LineView
from mam_tui.widgets.detail.pane import PaneSource, no_source
from mam_tui.widgets.detail.tab import Setting, Tab
from mam_tui.widgets.detail.tab_bar import TabBar
from mam_tui.widgets.detail.tabs import TAIL, Tabs

#: Between two refreshes, and as long as the cursor must rest on a job before it is asked about.
PACE_SEC = 0.2
#: A slow question is asked less often: it may take this share of the time.
_SHARE = 5
#: After so long without an answer the panel says that it waits for one.
_PATIENCE_SEC = 0.5
_NO_JOB = "there is no job here"
_NOT_KEPT = "this is the past, and of this only now is kept; timeline and tail show what was known"
_NOT_THERE = "this is the past: the job was not there at that moment"


class DetailPanel(Vertical):
    """Told which job is looked at, what is heard of it, and that it changed."""

    DEFAULT_CSS = """
    DetailPanel { background: $background; }
    DetailPanel > LineView { display: none; }
    DetailPanel > LineView.-open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("less_than_sign,comma", "other_attempt(-1)", "the attempt before", show=False),
        Binding("greater_than_sign,full_stop", "other_attempt(1)", "the attempt after", show=False),
    ]

    class Switched(Message):
        """Another tab is open."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class Answered(Message):
        """From the asking thread."""

        bubble = False

        def __init__(self, answer: Answer) -> None:
            super().__init__()
            self.answer = answer

    def __init__(
        self,
        desk: Desk,
        *,
        ascii_only: bool = False,
        tab: str = "",
        pane: PaneSource = no_source,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.desk = desk
        self.job_id: str | None = None
        self.refreshes = 0  #: for whoever measures
        self._ascii = ascii_only
        self.tabs = Tabs(Setting(desk.clock, ascii_only), desk, pane)
        self._open = tab if tab in self.tabs else next(iter(self.tabs))
        self._stale = set(self.tabs)
        self._summary: Summary | None = None
        self._asking = Asking(desk, self._deliver)
        self._next_at = 0.0
        self._due: TimerHandle | None = None
        self._look: TimerHandle | None = None

    def compose(self) -> ComposeResult:
        yield TabBar(tuple(self.tabs), self._open)
        yield Heading(ascii_only=self._ascii)
        self.view.add_class("-open")
        yield self.view

    def on_unmount(self) -> None:
        self._asking.close()

    @property
    def open_tab(self) -> Tab:
        return self.tabs[self._open]

    @property
    def view(self) -> LineView:
        return self.open_tab.view

    @property
    def is_seen(self) -> bool:
        if not self.is_attached or not self.screen.is_current:
            return False
        return all(node.display for node in self.ancestors_with_self if hasattr(node, "display"))

    # -- what is told ------------------------------------------------------------------------

    def show(self, job_id: str | None) -> None:
        """Look at this job from now on."""
        if job_id == self.job_id:
            return
        is_first = self.job_id is None
        self.job_id = job_id
        self._summary = self._record()
        self._drop_question()
        for each in self.tabs.made.values():
            self._tell(each)
        self._stale = set(self.tabs) if job_id is not None else set()
        self._head()
        if self._due is not None:
            self._due.cancel()
            self._due = None
        # While the cursor runs over jobs none of them is asked about.
        self._soon(0.0 if is_first else PACE_SEC)

    def hear(self, heard: Iterable[EventHeard]) -> None:
        """Events, perhaps of other jobs."""
        ours = [one for one in heard if one.event.job_id == self.job_id]
        if not ours:
            return
        if self.is_seen and self.open_tab.hear(ours):
            self._soon()
        else:
            self._stale.add(TAIL)

    def changed(self) -> None:
        """The job's record, or its state on the board, is another."""
        was, now = self._summary, self._record()
        self._summary = now
        made = self.tabs.made
        self._stale |= {
            name for name in self.tabs if name not in made or made[name].is_stale(was, now)
        }
        self._soon()

    def take(self, folded: Folded) -> None:
        """A batch of arrivals, after the board took it."""
        if self.job_id in folded.missed:  # all of them are asked for: some are not here
            self._stale.add(TAIL)
        else:
            self.hear(folded.heard)
        told = self.job_id in folded.records or self.job_id in folded.news
        if self._summary is not None and self._summary.status is Status.PENDING:
            # Why it waits may be another, too.
            told |= folded.evidence is not None
            told |= any(one in folded.records for one in self._summary.parents.split())
        if self.job_id is not None and (told or folded.loaded is not None):
            self.changed()

    def travelled(self, jobs: Collection[str] | None) -> None:
        """Another moment is shown, at which these jobs are different; None: all may be."""
        if self.job_id is None or (jobs is not None and self.job_id not in jobs):
            return
        self._summary = self._record()
        self._drop_question()
        for each in self.tabs.made.values():
            if jobs is None:
                self._tell(each)
            else:
                each.renew()
        self._stale = set(self.tabs)
        self._head()
        self._soon()

    def wake(self) -> None:
        """It can be seen again: what happened meanwhile was not asked for."""
        if self.job_id is not None:
            self._stale = set(self.tabs)
            self._soon()

    def on_show(self) -> None:
        self.wake()

    # -- what is asked -----------------------------------------------------------------------

    def switch(self, name: str) -> None:
        if name not in self.tabs or name == self._open:
            return
        had_focus = self.view.has_focus
        self.view.remove_class("-open")
        self._open = name
        if name not in self.tabs.made:
            self._tell(self.open_tab)
            self.mount(self.view)
        self.view.add_class("-open")
        self.query_one(TabBar).chosen = name
        if had_focus:
            self.view.focus()
        self._drop_question()
        self._stale.add(name)
        self._next_at = 0.0
        self._head()
        self._soon()
        self.post_message(self.Switched(name))

    def step(self, by: int) -> None:
        """The tab before or after; round and round."""
        names = list(self.tabs)
        self.switch(names[(names.index(self._open) + by) % len(names)])

    def _tell(self, tab: Tab) -> None:
        tab.show(self.job_id or "")
        if self.job_id is None:
            tab.view.say(_NO_JOB)

    def on_tab_bar_chosen(self, event: TabBar.Chosen) -> None:
        event.stop()
        self.switch(event.name)

    def action_other_attempt(self, step: int) -> None:
        if self.open_tab.other_attempt(step):
            self._drop_question()
            self._stale.add(self._open)
            self._soon()

    # -- refreshing --------------------------------------------------------------------------

    def _soon(self, pause_sec: float = 0.0) -> None:
        if self._due is None and self.is_seen:
            wait = max(pause_sec, self._next_at - time.monotonic(), 0.0)
            self._due = soon(self, wait, self._refresh)

    def _refresh(self) -> None:
        self._due = None
        if not self.is_seen or self.job_id is None:
            return
        if self._open not in self._stale:
            self.open_tab.flush()
        elif self._asking.is_waiting:
            return  # its answer is on its way; it is asked again after that
        elif self._asking.is_busy:
            self._soon(PACE_SEC)
            return
        else:
            self._stale.discard(self._open)
            self._ask()
        self._head()
        self.refreshes += 1
        self._next_at = time.monotonic() + PACE_SEC

    def _ask(self) -> None:
        past, question = self.desk.past, None
        if past is None:
            question = self.open_tab.question()
        elif (then := past.then(self.job_id or "")) is None:
            self.open_tab.sorry(_NOT_THERE)
        elif (question := self.open_tab.question_then(then, past.at)) is None:
            self.open_tab.sorry(_NOT_KEPT)
        if question is not None:
            ticket = self._asking.ask(question)
            soon(self, _PATIENCE_SEC, partial(self._waited, ticket))

    def _deliver(self, answer: Answer) -> None:
        """On the asking thread."""
        with suppress(RuntimeError):  # the console has just been left
            self.post_message(self.Answered(answer))

    def on_detail_panel_answered(self, event: Answered) -> None:
        event.stop()
        answer = event.answer
        if not self._asking.takes(answer.ticket):
            return
        self._next_at = time.monotonic() + max(PACE_SEC, _SHARE * answer.took_sec)
        if answer.trouble:
            self.open_tab.sorry(answer.trouble)
        else:
            self.open_tab.answer(answer.content)
        self._head()
        if self._open in self._stale:
            self._soon()
        self._look_again()

    def _waited(self, ticket: int) -> None:
        if self._asking.is_wanted(ticket):
            self.view.say("reading …")

    def _drop_question(self) -> None:
        self._asking.give_up()
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _look_again(self) -> None:
        """Files and panes tell nobody that they changed."""
        look_sec = self.open_tab.look_sec if self.desk.past is None else None
        row = self.desk.board.rows.get(self.job_id or "")
        if look_sec is not None and self._look is None and row is not None and row.is_running:
            self._look = soon(self, look_sec, self._looked)

    def _looked(self) -> None:
        self._look = None
        if self.is_seen:
            self._stale.add(self._open)
            self._soon()

    # -- the heading ---------------------------------------------------------------------------

    def _record(self) -> Summary | None:
        row = self.desk.board.rows.get(self.job_id or "")
        return row.summary if row is not None else None

    def _head(self) -> None:
        row = self.desk.board.rows.get(self.job_id or "")
        attempt = self._summary.attempt if self._summary is not None else 0
        words = Words(self.job_id or "", row.face if row else None, attempt, self.open_tab.note)
        for heading in self.query(Heading):
            heading.words = words if self.job_id is not None else Words()
