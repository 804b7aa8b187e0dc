"""One turn of an agent: when it is over, how, and when it was only interrupted.

"Done" can last 40 ms, when another prompt was queued: so an end counts when it
stays. It counts only from the agent's own word. Some channels say no more than that
it is idle again, which Esc does, too: then the channel that tells of ends must have
spoken, and the screen must not say "interrupted"; else the job waits for that person.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mam_core.agents.signs import AgentState, Channel, Sign

#: So long must an end stay before it is one.
STAYS_SEC = 2.0
#: So ends the rule of a report that the agent is idle, where one that it is done is missing.
_NOT_DONE = "without done"


def is_own_word(sign: Sign) -> bool:
    """The agent says it itself; its screen is only what we make of it."""
    return sign.channel.rank < Channel.SCREEN.rank


class TurnEnd(NamedTuple):
    """How a turn ended, by the agent's own word."""

    failed: bool
    words: str


class Turn:
    """From an accepted prompt on. Before that, signs are of the agent's start or of another's."""

    def __init__(self) -> None:
        self.began = False
        self._forget()

    def begin(self) -> None:
        """A prompt was accepted: what was said of an earlier end is old."""
        self.began = True
        self._forget()

    def _forget(self) -> None:
        self._over: Sign | None = None
        self._over_at = 0.0
        self._idle_at: float | None = None
        self._has_hooks = False  #: they told of this turn, so they would tell of its end
        self._was_cut: bool | None = None  #: None until it was looked into

    def hear(self, sign: Sign, now: float) -> None:
        """`now` is a clock that only goes forward; the sign's own time is the channel's."""
        if not self.began or not is_own_word(sign):
            return
        self._has_hooks = self._has_hooks or sign.channel is Channel.HOOK
        over = self._over
        if sign.turn_over:
            if over is None or sign.channel.rank <= over.channel.rank:
                self._over, self._over_at, self._was_cut = sign, now, None
        elif over is not None and _goes_on(sign, over):
            self._over = self._was_cut = None

    def look(
        self, believed: Sign | None, now: float, shows_interrupted: Callable[[], bool]
    ) -> TurnEnd | None:
        """The end, once it has stayed; `believed` is what the agent does by all channels."""
        is_idle = believed is not None and believed.state is AgentState.IDLE
        if not (is_idle and self.began):
            self._idle_at = None
        elif self._idle_at is None:
            self._idle_at = now
        over = self._over
        if over is None or now - self._over_at < STAYS_SEC:
            return None
        if self._was_cut is None:
            self._was_cut = self._lacks_its_end(over) or shows_interrupted()
        return None if self._was_cut else TurnEnd(over.failed, over.words)

    def was_interrupted(self, now: float) -> bool:
        """It is idle, and nobody has said that its turn came to an end."""
        if self._over is not None:
            return bool(self._was_cut)
        return self._idle_at is not None and now - self._idle_at >= STAYS_SEC

    @property
    def seems_over(self) -> bool:
        """By the agent's word, if it stays so."""
        return self._over is not None

    def next_look(self, now: float) -> float:
        """In how many seconds something may be settled."""
        since = [self._over_at] if self._over is not None and self._was_cut is None else []
        since += [self._idle_at] if self._idle_at is not None and self._over is None else []
        waits = [at + STAYS_SEC - now for at in since]
        return min((wait for wait in waits if wait > 0), default=STAYS_SEC)

    def _lacks_its_end(self, over: Sign) -> bool:
        if over.rule.endswith(_NOT_DONE):
            return True
        return self._has_hooks and over.channel is Channel.STATUS and not over.failed


def _goes_on(sign: Sign, over: Sign) -> bool:
    """A channel that is believed less may only be late."""
    return (
        sign.state in (AgentState.WORKING, AgentState.WAITING)
        and sign.channel.rank <= over.channel.rank
        and sign.at >= over.at
    )
