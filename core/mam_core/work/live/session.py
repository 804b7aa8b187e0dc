"""A pane and who lives in it: at most one agent, kept from job to job while it suits them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping

from mam_core.agents import channels
from mam_core.agents.profiles import Profile
from mam_core.agents.screens import ScreenReading, ScreenRules, rules_of
from mam_core.agents.signs import AgentState
from mam_core.clock import Clock
from mam_core.disk import Folder
from mam_core.locations import AGENT_VARIABLE
from mam_core.process_mark import ProcessMark
from mam_core.tmux.facts import Hand, TmuxFailed
from mam_core.work.live.agent import Likeness, LiveAgent
from mam_core.work.live.pane import Pane
from mam_core.work.marks import AttemptMark
from mam_core.work.orders import Deadlines, Orders
from mam_core.work.running import Running, Way

#: Facts of one job, which the next one of the same agent would read wrongly.
_OF_ONE_JOB = ("MAM_JOB_ID", "MAM_ATTEMPT", "MAM_ARTIFACTS", "MAM_WORKDIR", "COLUMNS", "LINES")
_CHANNELS = "channels"
_UNKNOWN = ScreenReading(AgentState.UNKNOWN, "", "", None, (), None)


class LiveSession:
    """The pane that a worker lives in."""

    def __init__(self, pane: Pane, hand: Hand, folder: Folder, clock: Clock) -> None:
        self.agent: LiveAgent | None = None
        self.mark: AttemptMark | None = None  #: of the agent's processes
        self.hand = hand
        self.pane = pane
        self._folder = folder
        self._clock = clock
        self._rules: ScreenRules | None = None

    # -- the agent -------------------------------------------------------------------------

    def suits(self, likeness: Likeness) -> bool:
        return self.agent is not None and self.agent.likeness == likeness

    def prepare(self, profile: Profile) -> channels.Prepared:
        """What the agent is given so that it speaks of itself; what an earlier one said is gone."""
        place = self._channels
        shutil.rmtree(place, ignore_errors=True)
        with Folder.open(place, create=True):
            return channels.prepare(profile, place)

    def start(
        self,
        orders: Orders,
        profile: Profile,
        likeness: Likeness,
        remember: Callable[[ProcessMark], Deadlines],
    ) -> LiveAgent:
        """On the pane's own size; the pane is the agent's until `dismiss`.

        `remember` is told who the supervisor is before the agent starts, sets the mark, and
        answers until when the agent may run.
        """
        self._rules = rules_of(profile)
        self.pane.take()
        try:
            running = Running.start(orders, self._clock, remember, Way.TERMINAL, self.pane.size())
        except BaseException:
            self.pane.give_back()
            raise
        reader = channels.reader_for(profile, self._channels)
        self.agent = LiveAgent(running, self.pane, reader, likeness, self._clock)
        return self.agent

    def dismiss(self, grace_sec: float, meanwhile: Callable[[], object] = lambda: None) -> None:
        """End the agent, if there is one, and take the pane back."""
        agent, self.agent = self.agent, None
        if agent is None:
            return
        try:
            agent.end(grace_sec, meanwhile)
        finally:
            agent.close()
            self.pane.give_back()

    def wait(self, pause_sec: float, grace_sec: float) -> None:
        """Between jobs: bytes still go both ways; an agent that has ended is let go."""
        if self.agent is None:
            raise ValueError("there is no agent to wait with")
        for sign in self.agent.turn(pause_sec).signs:
            self.agent.judge.hear(sign)
        if self.agent.is_over:
            self.dismiss(grace_sec)

    def close(self, grace_sec: float) -> None:
        self.dismiss(grace_sec)
        shutil.rmtree(self._channels, ignore_errors=True)
        self.pane.close()
        self.hand.close()

    # -- the screen ------------------------------------------------------------------------

    @property
    def knows_boxes(self) -> bool:
        """There are rules for this agent's screen."""
        return bool(self._rules and self._rules.rules)

    def read(self) -> ScreenReading:
        """What the pane shows; unknown when tmux cannot be asked."""
        if self._rules is None:
            return _UNKNOWN
        try:
            seen = self.hand.capture()
        except TmuxFailed:
            return _UNKNOWN
        return self._rules.read(seen.lines, seen.title)

    @property
    def _channels(self) -> str:
        return os.path.join(self._folder.path, _CHANNELS)


def surroundings(environ: Mapping[str, str], agent: str) -> dict[str, str]:
    """The environment of an agent that takes many jobs, in a pane of tmux."""
    kept = {name: value for name, value in environ.items() if name not in _OF_ONE_JOB}
    return kept | {"TERM": _terminal(environ.get("TERM", "")), AGENT_VARIABLE: agent}


def _terminal(name: str) -> str:
    """In a pane it is tmux that draws; its shorter names know eight colours."""
    kind = name.partition("-")[0]
    if kind not in ("tmux", "screen"):
        return "screen-256color"
    return name if "256color" in name or "direct" in name else f"{kind}-256color"
