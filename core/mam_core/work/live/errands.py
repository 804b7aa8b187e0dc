"""Messages of a person to the agent in the pane: delivered one by one, each with its receipts.

An answer presses the key of the choice that is meant, and no other; what is not
among the choices on the screen is refused, with their names. An interrupt is Esc.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress

from mam_core.agents.screens import ScreenReading, keys_for
from mam_core.agents.signs import AgentState, Sign
from mam_core.messages import Message, MessageKind, Receipt, Stage
from mam_core.pace import paced
from mam_core.safe_text import clip, one_line
from mam_core.tmux.facts import TmuxFailed, UnsafePaste
from mam_core.work.live.agent import LiveAgent
from mam_core.work.live.delivery import LOOK_SEC, Delivery, Step
from mam_core.work.live.session import LiveSession

#: For a dialog to go away, or a turn to stop.
_CONFIRM_SEC = 5.0
#: For a dialog to go away into which a text cannot be typed; then the message is refused.
_OBSTACLE_SEC = 2.0
_ONE_LINE = "this agent would take each line for a prompt of its own: say it in one line"


class Errands:
    """Those of one attempt: a `Talker` for its correspondence."""

    def __init__(
        self,
        session: LiveSession,
        agent: LiveAgent,
        is_asked: Callable[[str, ScreenReading], bool],
    ) -> None:
        """`is_asked`: this question is the open one, and it is the one on the screen."""
        self._session = session
        self._agent = agent
        self._is_asked = is_asked
        self._waiting: deque[Message] = deque()
        self._receipts: list[Receipt] = []
        self._message: Message | None = None
        self._delivery: Delivery | None = None
        self._before: ScreenReading | None = None
        self._since = 0.0
        self._look_at = 0.0

    def offer(self, message: Message) -> None:
        self._waiting.append(message)

    def receipts(self) -> list[Receipt]:
        told, self._receipts = self._receipts, []
        return told

    @property
    def is_busy(self) -> bool:
        return self._message is not None or bool(self._waiting)

    def next_look(self, now: float) -> float:
        return max(0.0, self._look_at - now) if self._message is not None else 3600.0

    def hear(self, sign: Sign) -> None:
        if self._delivery is not None:
            self._delivery.hear(sign)

    def hold_back(self, why: str) -> None:
        """Nothing can be said for this reason, if there is one: who waits is told so."""
        for message in [one for one in self._waiting if why and one.kind is MessageKind.SAY]:
            self._waiting.remove(message)
            words = f"the prompt of its job is not taken yet: {why}"
            self._note(message, Stage.REFUSED, clip(one_line(words), 400))

    def go_on(self, now: float, *, may_say: bool) -> bool:
        """The next step of the message at hand, or the next message; True when a text was taken.

        `may_say`: the job's own prompt is through, so that another text does not join it.
        """
        if self._message is None:
            self._take(now, may_say)
            return False
        if now < self._look_at:
            return False
        self._look_at = now + paced(LOOK_SEC)
        if self._delivery is not None:
            return self._say(self._message, self._delivery, now)
        if self._message.kind is MessageKind.ANSWER:
            self._confirm_answer(now)
        else:
            self._confirm_interrupt(now)
        return False

    def _take(self, now: float, may_say: bool) -> None:
        ready = [one for one in self._waiting if may_say or one.kind is not MessageKind.SAY]
        if not ready:
            return
        message = ready[0]
        self._waiting.remove(message)
        self._message, self._since, self._look_at = message, now, now
        if message.kind is MessageKind.SAY and "\n" in message.text and not self._takes_lines:
            self._finish(Stage.REFUSED, _ONE_LINE)
        elif message.kind is MessageKind.SAY:
            self._delivery = Delivery(
                message.text.encode(),
                self._session.hand,
                self._session.read,
                knows_boxes=self._session.knows_boxes,
                interrupts=True,
            )
        elif message.kind is MessageKind.ANSWER:
            self._answer(message)
        else:
            self._interrupt(message)

    @property
    def _takes_lines(self) -> bool:
        return self._agent.paste_mode.is_bracketed

    # -- say -------------------------------------------------------------------------------

    def _say(self, message: Message, delivery: Delivery, now: float) -> bool:
        before = delivery.step
        try:
            after = delivery.go_on(
                now,
                quiet_sec=self._agent.quiet_sec(now),
                is_working=self._agent.is_working,
            )
        except UnsafePaste as problem:
            self._finish(Stage.REFUSED, problem.message)
            return False
        if after is Step.READY:
            if now - self._since >= _OBSTACLE_SEC and delivery.obstacle is not None:
                self._finish(Stage.REFUSED, clip(one_line(delivery.obstacle.words), 200))
            return False
        if before is Step.READY:
            self._note(message, Stage.TYPED)
        if before in (Step.READY, Step.TYPED) and delivery.enters:
            self._note(message, Stage.SUBMITTED)
        if after is Step.ACCEPTED:
            self._finish(Stage.ACCEPTED, delivery.by)
            return True
        if after is Step.UNSUBMITTED:
            self._finish(Stage.UNCONFIRMED, "nothing shows that it was taken")
        return False

    # -- answer ----------------------------------------------------------------------------

    def _answer(self, message: Message) -> None:
        seen = self._session.read()
        if seen.dialog is None:
            self._finish(Stage.REFUSED, "no question that is known is on the screen")
            return
        if message.to and not self._is_asked(message.to, seen):
            self._finish(Stage.REFUSED, "the question is no longer open")
            return
        keys = keys_for(seen.choices, message.text)
        if keys is None:
            offered = ", ".join(f"{one.number} {one.words}".strip() for one in seen.choices)
            words = f"it offers: {offered}" if offered else "it offers no choice that is known"
            self._finish(Stage.REFUSED, clip(one_line(words), 400))
            return
        self._before = seen
        self._refuse_rivals(message)
        try:
            for key in keys:
                self._session.hand.press(key)
        except TmuxFailed as problem:
            self._finish(Stage.UNCONFIRMED, problem.message)
            return
        self._note(message, Stage.SUBMITTED)

    def _refuse_rivals(self, chosen: Message) -> None:
        """Two people answered one question: the next one may have the same words."""
        for rival in [one for one in self._waiting if one.kind is MessageKind.ANSWER]:
            if rival.to == chosen.to:
                self._waiting.remove(rival)
                words = "somebody else has answered the question"
                self._note(rival, Stage.REFUSED, words)

    def _confirm_answer(self, now: float) -> None:
        seen, before = self._session.read(), self._before
        is_gone = seen.dialog is None and (seen.state is not AgentState.UNKNOWN or not seen.choices)
        if is_gone or (before is not None and seen.words != before.words):
            self._finish(Stage.ACCEPTED, "the question is gone")
        elif now - self._since >= _CONFIRM_SEC:
            self._finish(Stage.UNCONFIRMED, "the question is still on the screen")

    # -- interrupt -------------------------------------------------------------------------

    def _interrupt(self, message: Message) -> None:
        believed = self._agent.believed()
        if believed is not None and believed.state is AgentState.IDLE:
            self._finish(Stage.REFUSED, "it is not at work")
            return
        with suppress(TmuxFailed):
            self._session.hand.press("Escape")
        self._note(message, Stage.SUBMITTED)

    def _confirm_interrupt(self, now: float) -> None:
        seen, believed = self._session.read(), self._agent.believed()
        is_idle = believed is not None and believed.state is AgentState.IDLE
        if is_idle or seen.state is AgentState.IDLE:
            self._finish(Stage.ACCEPTED, "it is idle")
        elif now - self._since >= _CONFIRM_SEC:
            self._finish(Stage.UNCONFIRMED, "nothing shows that it has stopped")

    def _finish(self, stage: Stage, words: str) -> None:
        if self._message is not None:
            self._note(self._message, stage, words)
        self._message = self._delivery = self._before = None

    def _note(self, message: Message, stage: Stage, words: str = "") -> None:
        self._receipts.append(Receipt(message.n, stage, words))
