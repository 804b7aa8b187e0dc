"""A live agent at a job: its prompt is delivered, it is watched and talked to, until its turn ends.

The counterpart of `work.tending` for an agent that does not exit. It ends by the
agent's own report or by its own word that the turn is over; a person's wish, a
clock or a lost lease end its whole tree, and so does its own death.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mam_core.agents.profiles import Profile
from mam_core.agents.quota import find_limit
from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.agents.streams import Outcome
from mam_core.agents.streams.base import Tokens
from mam_core.agents.streams.discretion import short
from mam_core.agents.streams.events import Told
from mam_core.audit import AuditEvent
from mam_core.events.event import Event, EventName
from mam_core.messages import without_controls
from mam_core.records import Reason
from mam_core.registry import Registry
from mam_core.work.correspondence import Correspondence
from mam_core.work.hold import Hold, Terms
from mam_core.work.live.agent import LiveAgent, Moment
from mam_core.work.live.delivery import Delivery, Step
from mam_core.work.live.errands import Errands
from mam_core.work.live.session import LiveSession
from mam_core.work.live.turn import Turn, TurnEnd
from mam_core.work.live.witness import Witness
from mam_core.work.output import OutputLog
from mam_core.work.reports import Ended, Why
from mam_core.work.screen import Screen
from mam_core.work.tending import Tending
from mam_core.work.voice import Voice

#: After its report an agent may still say goodbye; then the job ends all the same.
_GOODBYE_SEC = 10.0
#: So ends the name of the screen rules that tell of Esc.
_INTERRUPTED = "interrupted"
_STEPS = (Step.READY, Step.TYPED, Step.SUBMITTED, Step.ACCEPTED)


class LiveTending(Tending):
    """Of one attempt, by whoever holds its job."""

    def __init__(
        self,
        registry: Registry,
        profile: Profile,
        hold: Hold,
        voice: Voice,
        screen: Screen,
        terms: Terms,
    ) -> None:
        super().__init__(registry, profile, hold, voice, screen, terms, has_printed=True)
        self._turn = Turn()
        self._turn_end: TurnEnd | None = None
        self._report: Event | None = None
        self._goodbye_at = 0.0
        self._told_step = Step.READY
        self._tail = b""
        self._mentioned = ""

    def attend(self, session: LiveSession, agent: LiveAgent, log: OutputLog, line: bytes) -> None:
        """Until the job is through, or nothing of the agent is left."""
        self._session, self._agent = session, agent
        self._witness = Witness(session, agent, self._patience, self._clock, self._tell_guarded)
        self._errands = Errands(session, agent, self._witness.is_asked)
        self._correspondence = Correspondence(self._registry, self._hold, self._errands)
        self._delivery = Delivery(line, session.hand, session.read, knows_boxes=session.knows_boxes)
        agent.log = log
        self._tell(Told(EventName.STARTED, "", {"agent": self._profile.name}))
        try:
            while not agent.is_over:
                self._hear(agent.turn(self._pause()))
                if agent.ended is not None:
                    continue
                self._look()
                if self._hold.cause is not None:
                    agent.stop(self._grace_sec)
                    continue
                self._go_on(self._clock.since_boot())
                if self._is_through(self._clock.since_boot()):
                    self.ended = Ended(Why.AGENT_ENDED, code=0)
                    return
            self.ended = agent.ended or self.ended
            self._tell_end()
        finally:
            self._correspondence.look()
            agent.log = None
            self._tail = agent.tail

    # -- what comes ------------------------------------------------------------------------

    def _pause(self) -> float:
        now = self._clock.since_boot()
        return min(
            super()._pause(),
            self._delivery.next_look(now),
            self._errands.next_look(now),
            self._turn.next_look(now),
        )

    def _hear(self, moment: Moment) -> None:
        now = self._clock.since_boot()
        if moment.printed or moment.typed:
            self._patience.sign_of_life(now)
        self._patience.at_tools(now, self._agent.open_calls)
        for sign in moment.signs:
            self._agent.judge.hear(sign)
            self._witness.show(now)
            self._delivery.hear(sign)
            self._errands.hear(sign)
            self._tell_delivery()
            self._turn.hear(sign, now)
        for report in moment.reports:
            self._heed(report)

    def _look(self) -> None:
        others = self._others
        super()._look()
        if self._others > others and self._report is None:
            self._report = self._voice.last_word_of_others(self._job.last_seq)
            goodbye = _GOODBYE_SEC if self._agent.speaks_for_itself else 0.0
            self._goodbye_at = self._clock.since_boot() + goodbye

    def _go_on(self, now: float) -> None:
        agent = self._agent
        self._correspondence.look()
        if agent.has_printed:
            self._delivery.go_on(now, quiet_sec=agent.quiet_sec(now), is_working=agent.is_working)
        self._tell_delivery()
        self._errands.hold_back("" if self._delivery.is_over else self._delivery.standstill(now))
        if self._errands.go_on(now, may_say=self._delivery.is_over):
            self._turn.begin()
        self._show_obstacles(now)
        believed = self._witness.look(now)
        self._turn_end = self._turn.look(
            believed, now, lambda: self._session.read().rule.endswith(_INTERRUPTED)
        )

    def _is_through(self, now: float) -> bool:
        if self._errands.is_busy:
            return False
        if self._turn_end is not None:
            return True
        return self._report is not None and (self._turn.seems_over or now >= self._goodbye_at)

    def _show_obstacles(self, now: float) -> None:
        """What stands still for a reason that the agent itself does not tell."""
        delivery = self._delivery
        obstacle = delivery.obstacle
        words = obstacle.words if obstacle is not None else ""
        if words and words != self._mentioned:
            self._voice.mention(f"its prompt waits: {words}")
        self._mentioned = words
        if obstacle is not None and obstacle.dialog is not None:
            words = f"{obstacle.dialog}: {obstacle.words}"
            self._witness.hinder(AgentState.WAITING, words, "a dialog before the prompt")
        elif delivery.step is Step.UNSUBMITTED:
            words = f"unsubmitted: {delivery.unsubmitted}"
            self._witness.hinder(AgentState.WAITING, words, "prompt delivery")
        elif self._turn.was_interrupted(now):
            self._witness.hinder(AgentState.IDLE, "interrupted", "idle without an end")
        else:
            self._witness.clear()

    def _note_silence(self, sign: Sign, limit: Mapping[str, Any]) -> None:
        """The judge believes everybody else first, the screen too."""
        self._agent.judge.hear(sign)
        self._tell(Told(EventName.STATE, sign.words, limit))

    # -- its end ---------------------------------------------------------------------------

    def outcome(self) -> Outcome:
        """The agent's own word, and how it exited if it did before one."""
        if self._report is not None:
            return self._judged(self._report.event == EventName.COMPLETED, self._report.detail)
        if self._turn_end is not None:
            return self._judged(not self._turn_end.failed, self._turn_end.words)
        ended = self.ended
        if ended.signal is not None:
            return _outcome(False, Reason.SIGNAL, f"the agent was ended by signal {ended.signal}")
        words = f"the agent ended with code {ended.code} before its turn was over"
        said = self._last_line()
        return _outcome(False, Reason.EXIT, f"{words}: {said}" if said else words)

    def _judged(self, ok: bool, words: str) -> Outcome:
        detail = self._guard.hide(short(words))
        if ok:
            return _outcome(True, None, detail)
        limit = find_limit(words, self._clock.now())
        if limit is not None:
            return _outcome(False, Reason.QUOTA, detail)._replace(quota_until=limit.until)
        return _outcome(False, Reason.AGENT, detail or "the agent says that its turn failed")

    def _last_line(self) -> str:
        text = without_controls(self._tail.decode("utf-8", "replace"))
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return self._guard.hide(short(lines[-1])) if lines else ""

    # -- what is told ----------------------------------------------------------------------

    def _tell_delivery(self) -> None:
        """Typed, submitted and accepted are facts of their own, each with its time."""
        step, before = self._delivery.step, self._told_step
        if step is before:
            return
        self._told_step = step
        self._witness.was_prompted = bool(self._delivery.enters)
        begin = _STEPS.index(before) + 1 if before in _STEPS else len(_STEPS) - 1
        for one in _STEPS[begin : _STEPS.index(step) + 1] if step in _STEPS else (step,):
            by = self._delivery.by if one is Step.ACCEPTED else None
            enters = self._delivery.enters if one is not Step.TYPED else None
            self._voice.note(AuditEvent.PROMPT_DELIVERY, stage=str(one), shown=by, enters=enters)
        if step is Step.ACCEPTED:
            self._turn.begin()

    def _tell_end(self) -> None:
        ended = self.ended
        words = f"signal {ended.signal}" if ended.signal is not None else f"code {ended.code}"
        sign = Sign(AgentState.ENDED, Channel.PROCESS, str(ended.why), self._clock.now(), words)
        if self._hold.is_ours and self.not_started is None:
            self._tell(Told(EventName.STATE, str(sign.state), sign.to_dict()))

    def _tell_guarded(self, event: Told) -> None:
        """A screen may show the prompt, and names of folders: not for the world."""
        data = dict(event.data)
        if "words" in data:
            data["words"] = self._guard.hide(short(str(data["words"]), 400))
        detail = self._guard.hide(short(event.detail, 400))
        self._tell(event._replace(detail=detail, data=data))


def _outcome(ok: bool, reason: Reason | None, detail: str) -> Outcome:
    return Outcome(ok, reason, detail, Tokens(), None, None, None, ())
