"""Which of the signs is believed: the channels are ranked, and named rules correct the order.

A higher channel is believed before a lower one, and what a lower one says later than it
corrects it only where a rule says so, because each channel is silent about something:
no hook tells of Esc, a title can be written by a model, the screen of an agent whose
answer streams may look idle. The numbers are waits, and each says what it waits for.
"""

from __future__ import annotations

from mam_core.agents.signs import AgentState, Channel, Sign

#: Two channels tell of one change within this; the longest seen was a quarter of a second.
SETTLE_SEC = 0.75
#: A title is text that a model may write, so it must stand alone for longer.
TITLE_SEC = 3.0
#: Two looks at the screen, so far apart, must agree before it corrects an agent's own word.
TWICE_SEC = 1.0
#: A claim of work that nobody repeated for so long may fall to an idle screen; where the
#: screen says "interrupted" it need not be that old.
OLD_SEC = 10.0
#: Background tasks outlive their turn, and end without a word when they are killed.
TASKS_SEC = 600.0
#: How often the screen is looked at while nothing is heard, and when nothing else speaks.
RECHECK_SEC = 15.0
SCREEN_SEC = 1.0

_OWN = (Channel.STREAM, Channel.HOOK, Channel.STATUS, Channel.OSC, Channel.TITLE)
_BUSY = (AgentState.WORKING, AgentState.WAITING)
#: They say nothing about the turn: a subagent stops within it, a compacted session goes on.
_NOT_ABOUT_THE_TURN = ("SubagentStop", "SessionStart: compact")
_TASKS = "background tasks"


class Misses:
    """Nobody is dead because he was not seen once: two looks that worked, and found nothing.

    A look that failed is none, so a tmux error neither counts nor forgives.
    """

    def __init__(self, apart_sec: float = TWICE_SEC) -> None:
        self._apart_sec = apart_sec
        self._first: float | None = None
        self._confirmed = False

    def seen(self) -> None:
        self._first, self._confirmed = None, False

    def missed(self, at: float) -> bool:
        """Whether this was the second one."""
        if self._first is None:
            self._first = at
        elif at - self._first >= self._apart_sec:
            self._confirmed = True
        return self._confirmed


class Judge:
    """Folds signs into the one that is believed now."""

    def __init__(self) -> None:
        self._signs: dict[Channel, Sign] = {}
        self._misses = Misses()
        self._screen_since: Sign | None = None  #: the first of the looks that agree
        self._unreadable: Sign | None = None  #: the last look, when it told nothing
        self._looked_at = float("-inf")

    def hear(self, sign: Sign) -> None:
        if sign.rule.startswith(_NOT_ABOUT_THE_TURN):
            return
        known = self._signs.get(sign.channel)
        if known is not None and known.at > sign.at:
            return  # it came late
        if sign.channel is Channel.PROCESS:
            self._hear_of_process(sign)
        elif sign.channel is Channel.SCREEN:
            self._see(sign)
        else:
            if sign.state is not AgentState.ENDED:
                self._misses.seen()
            self._settle(sign.at)
            self._signs[sign.channel] = sign

    def _see(self, sign: Sign) -> None:
        """A look that told nothing takes nothing back."""
        self._looked_at = max(self._looked_at, sign.at)
        if sign.state is AgentState.UNKNOWN:
            self._unreadable = sign
            return
        self._unreadable = None
        if self._screen_since is None or self._screen_since.state is not sign.state:
            self._screen_since = sign
        self._signs[Channel.SCREEN] = sign

    def _hear_of_process(self, sign: Sign) -> None:
        """An exit is a fact; "missing" is a look that found nothing, and wants a second one."""
        if sign.state is AgentState.UNKNOWN:
            return
        if sign.state is not AgentState.ENDED:
            self._misses.seen()
        elif sign.rule.startswith("missing") and not self._misses.missed(sign.at):
            return
        self._signs[Channel.PROCESS] = sign

    def believed(self, now: float) -> Sign | None:
        process = self._signs.get(Channel.PROCESS)
        if process is not None and process.state is AgentState.ENDED:
            return process
        claim = self._own(now)
        screen = self._signs.get(Channel.SCREEN)
        if claim is None:
            silence = self._signs.get(Channel.SILENCE)
            return self._unreadable or screen or process or silence
        if screen is not None and self._screen_corrects(claim, screen):
            return screen
        return claim

    def wants_screen(self, now: float) -> bool:
        """Nothing better speaks, two channels disagree, or nobody has spoken for a while."""
        claim = self._own(now)
        since = now - self._looked_at
        if claim is None:
            return since >= SCREEN_SEC
        if claim.state is AgentState.ENDED:
            return False
        news = max(sign.at for sign in self._signs.values() if sign.channel in _OWN)
        if self._looked_at < news + SETTLE_SEC:  # once after each change, when it is drawn
            return now >= news + SETTLE_SEC
        screen = self._signs.get(Channel.SCREEN)
        if screen is not None and screen.state is not claim.state:
            return since >= TWICE_SEC
        return since >= RECHECK_SEC

    # -- the agent's own channels ------------------------------------------------------------

    def _own(self, now: float) -> Sign | None:
        """The highest channel, unless a lower one spoke later and its word stands."""
        claim: Sign | None = None
        for sign in self._said():
            if claim is None or self._is_corrected(claim, sign, now):
                claim = sign
        return claim

    def _settle(self, now: float) -> None:
        """Forget what was corrected: it must not come back when the corrector says more."""
        claim: Sign | None = None
        for sign in self._said():
            if claim is None:
                claim = sign
            elif self._is_corrected(claim, sign, now):
                del self._signs[claim.channel]
                claim = sign

    def _said(self) -> list[Sign]:
        said = [self._signs[channel] for channel in _OWN if channel in self._signs]
        return [sign for sign in said if sign.state is not AgentState.UNKNOWN]

    def _is_corrected(self, claim: Sign, later: Sign, now: float) -> bool:
        if later.at <= claim.at or later.state is claim.state:
            return False
        if claim.state is AgentState.ENDED:
            return False
        if _has_tasks(claim) and later.state is AgentState.IDLE and now - claim.at < TASKS_SEC:
            return False
        screen = self._signs.get(Channel.SCREEN)
        if screen is not None and screen.at >= later.at:  # looked at because they disagree
            if screen.state is later.state:
                return True
            if screen.state is claim.state:
                return False
        return now - later.at >= (TITLE_SEC if later.channel is Channel.TITLE else SETTLE_SEC)

    # -- the screen --------------------------------------------------------------------------

    def _screen_corrects(self, claim: Sign, screen: Sign) -> bool:
        """Where the agent's own word is older, and is one that it may have failed to take back."""
        first = self._screen_since
        if first is None or screen.state is claim.state or claim.state is AgentState.ENDED:
            return False
        if screen.state is AgentState.WAITING:
            # A dialog with its choices, and not one that is about to be wiped away: it is what
            # titles lie about.
            return screen.at - claim.at >= SETTLE_SEC
        if first.at <= claim.at:
            return False
        if screen.state is AgentState.ENDED or screen.at - first.at < TWICE_SEC:
            return False  # the end of a program is told by its process
        if screen.state is AgentState.WORKING:
            return claim.state in (AgentState.IDLE, AgentState.STARTING)
        if claim.state not in _BUSY or _has_tasks(claim):
            return False
        return screen.rule.endswith("interrupted") or first.at - claim.at >= OLD_SEC


def _has_tasks(claim: Sign) -> bool:
    return claim.rule.endswith(_TASKS)
