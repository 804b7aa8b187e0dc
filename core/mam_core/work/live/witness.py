"""What the agent is doing, as the attempt tells it: each change once, and questions with words.

Signs come by themselves; the screen is asked only when the judge wants it, and
seldom. Waiting for a person stops the idle clock (decision 23).
"""

from __future__ import annotations

from collections.abc import Callable

from mam_core.agents.screens import ScreenReading
from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.agents.streams.events import Told
from mam_core.clock import Clock
from mam_core.events.event import EventName
from mam_core.pace import paced
from mam_core.work.live.agent import LiveAgent
from mam_core.work.live.session import LiveSession
from mam_core.work.patience import Patience

#: Between two looks at the screen.
_SCREEN_SEC = 0.5


class Witness:
    """Of one attempt."""

    def __init__(
        self,
        session: LiveSession,
        agent: LiveAgent,
        patience: Patience,
        clock: Clock,
        tell: Callable[[Told], None],
    ) -> None:
        self._session = session
        self._agent = agent
        self._patience = patience
        self._clock = clock
        self._tell = tell
        self._screen_at = 0.0
        self._said: tuple[AgentState, str, bool] | None = None
        self._asked = ""
        self._question_number = 0  #: of the one that is open, or was last
        self._question_words: str | None = None  #: as the screen has them, where they are from it
        self._words = ""
        self._words_at = 0.0
        self._obstacle: Sign | None = None
        self.was_prompted = False  #: before our Enter there is no turn, whatever flickers

    def look(self, now: float) -> Sign | None:
        """What is believed now; told if it is new."""
        judge, moment = self._agent.judge, self._clock.now()
        if now >= self._screen_at and judge.wants_screen(moment):
            self._screen_at = now + paced(_SCREEN_SEC)
            # Also a screen that says nothing: the judge then need not ask for the next one.
            judge.hear(self._session.read().sign(moment))
        return self.show(now)

    def show(self, now: float) -> Sign | None:
        """The same, without a look at the screen: a turn may be shorter than a look."""
        believed = self._agent.believed()
        shown = self._obstacle or believed
        if shown is not None:
            self._show(shown, now)
        return believed

    def hinder(self, state: AgentState, words: str, rule: str) -> None:
        """Something of ours stands still; shown instead of what the agent does."""
        if self._obstacle is None or (self._obstacle.state, self._obstacle.words) != (state, words):
            self._obstacle = Sign(state, Channel.SCREEN, rule, self._clock.now(), words)

    def clear(self) -> None:
        self._obstacle = None

    def is_asked(self, question: str, seen: ScreenReading) -> bool:
        """The open question is this one, and the screen does not show another one already."""
        is_open = self._said is not None and self._said[0] is AgentState.WAITING
        if not is_open or question != str(self._question_number):
            return False
        if not self._question_words or self._question_words.endswith(seen.words):
            return True
        self._words = ""  # the next one came without a word between them: read it, and tell it
        return False

    def _show(self, sign: Sign, now: float) -> None:
        if sign.state is AgentState.WORKING and not self.was_prompted:
            return
        is_waiting = sign.state is AgentState.WAITING
        is_from_screen = sign.channel is Channel.SCREEN
        if is_waiting and not sign.words:
            sign, is_from_screen = sign._replace(words=self._question(now)), True
        self._patience.wait_for_person(now, is_waiting)
        key = (sign.state, sign.words if is_waiting or self._obstacle else "", sign.failed)
        if key == self._said:
            return
        was_unclear = self._said is not None and self._said[:2] == (AgentState.WAITING, "")
        self._said = key
        told = sign.to_dict()
        if is_waiting:
            self._question_number += not was_unclear
            self._question_words = sign.words if is_from_screen else None
            told["asked"] = str(self._question_number)
        self._tell(Told(EventName.STATE, sign.words[:200] or str(sign.state), told))
        if is_waiting and sign.words != self._asked:
            self._asked = sign.words
            data = {"channel": str(sign.channel), "rule": sign.rule, "waits": True}
            self._tell(Told(EventName.PERMISSION_REQUIRED, sign.words[:1000], data))
        if not is_waiting:
            self._asked = self._words = ""

    def _question(self, now: float) -> str:
        """Some channels say only that there is one; its words are on the screen."""
        if not self._words and now >= self._words_at:
            self._words_at = now + paced(_SCREEN_SEC)
            reading = self._session.read()
            self._words = reading.words if reading.dialog is not None else ""
        return self._words
