"""An agent at work: what it prints is logged, read and told, and its clocks are looked at.

A loop in one thread. Nothing in here may stop it but the end of the agent: a
broker that is down, a log that is full and a registry that is busy are warned
of, and tried again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mam_core.agents.dialogue import Dialogue
from mam_core.agents.profiles import Profile
from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.agents.streams import Happening, Kind, Outcome, StreamFormat, parser_for
from mam_core.agents.streams.discretion import PromptGuard
from mam_core.agents.streams.events import Pace, Told, told
from mam_core.audit import warn
from mam_core.errors import JobNotFound, MamError, TransitionRefused
from mam_core.events.event import EventName
from mam_core.limits import NearLimit
from mam_core.pace import paced
from mam_core.records import Job
from mam_core.registry import Registry
from mam_core.work.activity import Activity, MemoryNews, over_budget
from mam_core.work.agent_input import AgentDoesNotRead
from mam_core.work.correspondence import Correspondence, Deaf
from mam_core.work.decision import Cause
from mam_core.work.hold import Hold, Terms
from mam_core.work.output import OutputLog
from mam_core.work.patience import Due, Patience
from mam_core.work.reports import Ended, Exited, NotStarted, Report, Started, Usage, Why
from mam_core.work.running import Running
from mam_core.work.screen import Screen
from mam_core.work.voice import Voice

_LOOK_SEC = 0.5
#: While an agent's turn is over, and it is to be let go in a moment.
_REST_SEC = 0.1
#: Of what came at once, so much is shown on the pane; the log has all of it.
_SHOWN_AT_ONCE = 40
#: Of these only the last of several in a row is news.
_PASSING = (Kind.TEXT, Kind.LOG)
_SILENT = "no output, no event, no work"


class Tending:
    """Of one attempt, by whoever holds its job."""

    def __init__(
        self,
        registry: Registry,
        profile: Profile,
        hold: Hold,
        voice: Voice,
        screen: Screen,
        terms: Terms,
        dialogue: Dialogue | None = None,
        *,
        has_printed: bool = False,
    ) -> None:
        """`has_printed`: an agent that was there before, from which nothing more need come."""
        job = hold.job
        self.not_started: NotStarted | None = None
        self.ended = Ended(Why.LOST)
        self._registry = registry
        self._profile = profile
        self._hold = hold
        self._voice = voice
        self._screen = screen
        self._grace_sec = terms.grace_sec
        self._tool_timeout_sec = terms.tool_timeout_sec
        self._clock = registry.clock
        self._patience = Patience(
            self._clock.since_boot(),
            timeout_sec=job.timeout_sec,
            idle_timeout_sec=job.idle_timeout_sec,
            tool_timeout_sec=terms.tool_timeout_sec,
            has_printed=has_printed,
        )
        self._dialogue = dialogue
        self._parser = dialogue or parser_for(profile.stream, self._clock.now)
        self._correspondence = Correspondence(registry, hold, dialogue or Deaf())
        self._pace = Pace(job.prompt)
        self._guard = PromptGuard(job.prompt)
        self._activity = Activity()
        self._memory = MemoryNews()
        self._others = 0
        self._has_hinted = False

    @property
    def _job(self) -> Job:
        return self._hold.job

    @property
    def elapsed_sec(self) -> float:
        return self._patience.elapsed(self._clock.since_boot())

    def tend(self, running: Running, log: OutputLog) -> None:
        """Until nothing of it is left, or at least its supervisor has died."""
        self._tell(Told(EventName.STARTED, "", {"agent": self._profile.name}))
        with running.reading_into(log, newest_only=self._profile.stream is StreamFormat.PLAIN):
            while not running.is_over:
                self._take_turn(running)
        self.ended = running.ended or self.ended
        self._consider(self._parser.close())
        self._correspondence.look()

    def _take_turn(self, running: Running) -> None:
        heard = running.turn(self._pause())
        for printed in heard.output:
            self._patience.output(printed.at)
            self._consider(self._parser.feed(printed.data, aside=printed.aside))
            self._patience.at_tools(printed.at, self._parser.open_calls)
        for report in heard.reports:
            self._heed(report)
        if running.ended is None:
            self._look()
            self._converse(running)
            if self._hold.cause is not None:
                running.stop(self._grace_sec)

    def outcome(self) -> Outcome:
        """The agent's own word, with its exit; all that was held back is told before."""
        outcome = self._parser.end(self.ended.code, self.ended.signal)
        self._tell(*self._pace.rest(self._clock.since_boot()))
        return outcome._replace(detail=self._guard.hide(outcome.detail))

    def _pause(self) -> float:
        now = self._clock.since_boot()
        look_sec = _REST_SEC if self._dialogue and self._dialogue.is_resting else _LOOK_SEC
        return min(paced(look_sec), self._hold.next_look(now), self._patience.next_look(now))

    # -- what comes ------------------------------------------------------------------------

    def _consider(self, happenings: Sequence[Happening]) -> None:
        self._show(happenings)
        for number, happening in enumerate(happenings, 1):
            after = happenings[number].kind if number < len(happenings) else None
            # Of many lines at once only the last is news; an agent may print a million of them.
            is_passing = happening.kind in _PASSING and after is happening.kind
            if not is_passing:
                self._weigh(happening)

    def _show(self, happenings: Sequence[Happening]) -> None:
        """The last of them, on the pane."""
        shown = happenings[-_SHOWN_AT_ONCE:]
        skipped = [one for one in happenings if one.kind is Kind.SKIPPED]
        left_out = len(happenings) - len(shown) + sum(int(one.data["lines"]) for one in skipped)
        if left_out:
            self._voice.mention(f"… {left_out:,} lines left out here; the log has them")
        for happening in shown:
            self._screen.show(self._job.job_id, happening)

    def _weigh(self, happening: Happening) -> None:
        now = self._clock.since_boot()
        kind, data = happening.kind, happening.data
        if kind is Kind.SESSION:
            self._keep_session(str(data["session"]))
        if self._dialogue is None and kind is not Kind.LOG:  # a line on the side is no answer
            self._patience.wait_for_person(now, kind is Kind.QUESTION and bool(data.get("waits")))
        if overspent := over_budget(self._job, happening):
            self._hold.stop(Cause.BUDGET, overspent)
        if kind is Kind.ERROR and data.get("hopeless"):
            self._hold.stop(Cause.HOPELESS, happening.text[:200])
        event = told(happening)
        if event is not None:
            self._tell(*self._pace.offer(event, now))

    def _keep_session(self, session_id: str) -> None:
        try:
            self._registry.in_session(self._job.job_id, session_id, attempt=self._job.attempt)
        except (TransitionRefused, JobNotFound) as problem:
            self._hold.stop(Cause.TAKEN, problem.message)
        except (MamError, OSError) as problem:
            warn(f"the session of job {self._job.job_id} is not kept: {problem}")

    def _heed(self, report: Report) -> None:
        now = self._clock.since_boot()
        if isinstance(report, Started):
            for lack in report.lacking:
                self._voice.mention(lack)
            self.note_cap(report.cap)
        elif isinstance(report, NotStarted):
            self.not_started = report
        elif isinstance(report, Exited):
            self._patience.sign_of_life(now)
        elif isinstance(report, Usage):
            if self._activity.is_busy(report, now):
                self._patience.sign_of_life(now)
            if memory := self._memory.of(report):
                self._tell(*self._pace.offer(Told(EventName.PROGRESS, "", memory), now))

    def note_cap(self, means: str) -> None:
        """What holds it to its memory, where that is not what was expected at the claim."""
        cap = self._job.memory_cap
        if cap is None or not means or cap.means == means:
            return
        self._voice.mention(f"its memory is held by other means than planned: {means}")
        try:
            actual = cap._replace(means=means)
            self._registry.capped(self._job.job_id, actual, attempt=self._job.attempt)
        except (TransitionRefused, JobNotFound) as problem:
            self._hold.stop(Cause.TAKEN, problem.message)
        except (MamError, OSError) as problem:
            warn(f"the memory cap of job {self._job.job_id} is not written down: {problem}")

    # -- what is said ----------------------------------------------------------------------

    def _converse(self, running: Running) -> None:
        """With an agent that listens: messages go to it, and it is let go when all is said."""
        if self._hold.cause is not None:
            return
        self._correspondence.look()
        dialogue, now = self._dialogue, self._clock.since_boot()
        if dialogue is None:
            return
        try:
            running.say(dialogue.spoken())
        except AgentDoesNotRead as problem:
            self._hold.stop(Cause.HOPELESS, problem.message)
        if running.was_heard:
            dialogue.was_read()
        self._patience.wait_for_person(now, dialogue.waits_for_person)
        if dialogue.is_resting:
            self._patience.sign_of_life(now)
        self._consider(dialogue.news())
        if dialogue.may_hang_up(now):
            running.hang_up()

    # -- what is looked at -----------------------------------------------------------------

    def _look(self) -> None:
        now = self._clock.since_boot()
        if self._hold.is_stopping:
            self._hold.stop(Cause.STOPPED)
        self._hold.keep(now)
        if self._hold.events_of_others > self._others:
            self._others = self._hold.events_of_others
            self._patience.wait_for_person(now, False)
            self._patience.sign_of_life(now)
        self._heed_clocks(now)
        self._tell(*self._pace.due(now))

    def _heed_clocks(self, now: float) -> None:
        due, job = self._patience.look(now), self._job
        if due is None:
            self._take_hint_back()
            return
        if due not in (Due.TIMEOUT, Due.TIMEOUT_NEAR) and self._asks_a_person():
            self._patience.wait_for_person(now, True)
        elif due in (Due.SILENCE, Due.NO_OUTPUT):
            self._hint(due, now)
        elif due is Due.TIMEOUT:
            self._hold.stop(Cause.TIMEOUT, f"it ran for {job.timeout_sec:g} s")
        elif due is Due.IDLE_TIMEOUT:
            words = f"no output for {job.idle_timeout_sec:g} s (idle timeout)"
            self._hold.stop(Cause.IDLE_TIMEOUT, words)
        elif due is Due.TOOL_TIMEOUT:
            self._hold.stop(Cause.IDLE_TIMEOUT, self._tool_words(now))
        else:
            limit = {
                Due.TIMEOUT_NEAR: job.timeout_sec,
                Due.IDLE_TIMEOUT_NEAR: job.idle_timeout_sec,
                Due.TOOL_TIMEOUT_NEAR: self._tool_timeout_sec,
            }[due]
            self._tell(Told(EventName.LOG, f"{due}: {limit:g} s", {"level": "warning"}))

    def _tool_words(self, now: float) -> str:
        """Of the call that held the idle clock."""
        end = self._patience.next_end()
        name = self._guard.hide(end.call.name) if end.call is not None else ""
        return f"tool call {name} ran for {now - end.since:.0f} s (tool timeout)"

    def _hint(self, due: Due, now: float) -> None:
        """That it is silent, and which limit ends it if it stays so."""
        end = self._patience.next_end()
        name = self._guard.hide(end.call.name) if end.call is not None else ""
        words = self._patience.silence_words(due, now, name)
        sign = Sign(AgentState.WORKING, Channel.SILENCE, _SILENT, self._clock.now(), words)
        limit = NearLimit(end.limit, self._clock.now() + end.at - now, name)
        self._has_hinted = True
        self._note_silence(sign, {"limit": limit.to_event()})

    def _note_silence(self, sign: Sign, limit: Mapping[str, Any]) -> None:
        """A hint, where nobody better speaks of states: it changes none, and ends nothing."""
        state = sign.to_dict() if self._dialogue is None else {}
        self._tell(Told(EventName.STATE, sign.words, {**state, **limit}))

    def _take_hint_back(self) -> None:
        if self._has_hinted and not self._patience.has_hinted:
            self._has_hinted = False
            self._tell(Told(EventName.STATE, "", {"limit": None}))

    def _asks_a_person(self) -> bool:
        """The last event that it told itself is a question; read only when it seems silent."""
        return bool(self._others) and self._voice.asked_by_others(self._job.last_seq)

    def _tell(self, *events: Told) -> None:
        try:
            self._voice.tell(*events)
        except (TransitionRefused, JobNotFound) as problem:
            self._hold.stop(Cause.TAKEN, problem.message)
