"""A live agent on a terminal of its own, between its pane and us: bytes both ways, and signs.

It outlives the jobs that it is given. Whoever has one takes turns, with a job or
without; in each, what it printed goes to the pane and to the log of the attempt
that it works on, and what a person types goes to it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from mam_core.agents.calls import OpenCall
from mam_core.agents.channels import Reader
from mam_core.agents.judging import Judge
from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.clock import Clock
from mam_core.pace import paced
from mam_core.work.agent_input import AgentDoesNotRead
from mam_core.work.live.pane import Pane
from mam_core.work.live.paste_mode import PasteMode
from mam_core.work.output import OutputLog
from mam_core.work.reports import Ended, Report, Started
from mam_core.work.running import Running

#: Between two looks at what the agent writes into files.
_LOOK_SEC = 0.2
#: While the pane is slow: until it is tried again.
_SLOW_SEC = 0.02
#: For what is still to be shown when an agent has ended.
_LAST_WORDS_SEC = 2.0
_TAIL_BYTES = 4096


class Likeness(NamedTuple):
    """What a job needs of its agent; one that is alike takes it, another is started afresh."""

    profile: str
    workdir: str
    model: str | None
    memory_max: int | None
    resume: str | None


class Moment(NamedTuple):
    """What came in one turn. The judge has not heard the signs: each may be news on its own."""

    signs: list[Sign]
    reports: list[Report]
    printed: bool
    typed: bool


class LiveAgent:
    """One process tree on one terminal."""

    def __init__(
        self, running: Running, pane: Pane, reader: Reader, likeness: Likeness, clock: Clock
    ) -> None:
        self.log: OutputLog | None = None  #: of the attempt that it works on
        self.judge = Judge()
        self.cap = ""  #: what holds it to its memory, as its supervisor says
        self.tail = b""  #: the end of what it printed
        self.has_printed = False  #: before that the pane shows somebody else's screen
        self.paste_mode = PasteMode()
        self.likeness = likeness
        self.running = running
        self._pane = pane
        self._reader = reader
        self._clock = clock
        self._look_at = 0.0
        self._printed_at = clock.since_boot()
        starting = Sign(AgentState.STARTING, Channel.PROCESS, "started by mam", clock.now())
        self.judge.hear(starting)

    @property
    def supervisor(self) -> int:
        return self.running.supervisor

    @property
    def ended(self) -> Ended | None:
        return self.running.ended

    @property
    def is_over(self) -> bool:
        return self.running.is_over

    @property
    def speaks_for_itself(self) -> bool:
        return self._reader.speaks_for_itself

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        return self._reader.open_calls

    def quiet_sec(self, now: float) -> float:
        return now - self._printed_at

    def believed(self) -> Sign | None:
        return self.judge.believed(self._clock.now())

    @property
    def is_working(self) -> bool:
        sign = self.believed()
        return sign is not None and sign.state is AgentState.WORKING

    def turn(self, pause_sec: float) -> Moment:
        """Wait until something comes, at most for the pause."""
        pane, now = self._pane, self._clock.since_boot()
        self.running.listen(not pane.is_full)
        pause_sec = min(pause_sec, max(0.0, self._look_at - now))
        pause_sec = min(pause_sec, _SLOW_SEC) if pane.has_unshown else pause_sec
        heard = self.running.turn(pause_sec, *pane.files)
        signs: list[Sign] = []
        for data, _, _ in heard.output:
            pane.show(data)
            if self.log is not None:
                self.log.write(data)
            self.paste_mode.feed(data)
            self.tail = (self.tail + data)[-_TAIL_BYTES:]
            signs += self._reader.heard(data, self._clock.now())
        pane.show()
        typed = self._pass_keys()
        for report in heard.reports:
            if isinstance(report, Started):
                self._reader.started(report.pid)
                self.cap = report.cap
        now = self._clock.since_boot()
        if heard.output:
            self._printed_at, self.has_printed = now, True
        if now >= self._look_at:
            self._look_at = now + paced(_LOOK_SEC)
            signs += self._reader.look(self._clock.now())
        return Moment(signs, heard.reports, bool(heard.output), typed)

    def _pass_keys(self) -> bool:
        size = self._pane.new_size()
        if size is not None:
            self.running.resize(*size)
        keys = self._pane.keys()
        if keys:
            with suppress(AgentDoesNotRead):  # a terminal drops what nobody reads, too
                self.running.type(keys)
        return bool(keys)

    def stop(self, grace_sec: float) -> None:
        """Said in every turn until it is over."""
        self.running.stop(grace_sec)

    def end(self, grace_sec: float, meanwhile: Callable[[], object] = lambda: None) -> None:
        """End its whole tree, and wait for that."""
        while not self.is_over:
            self.stop(grace_sec)
            self.turn(paced(_LOOK_SEC))
            meanwhile()

    def close(self) -> None:
        """Show the last of it, and let go."""
        deadline = self._clock.since_boot() + _LAST_WORDS_SEC
        while self._pane.has_unshown and self._clock.since_boot() < deadline:
            self.running.turn(_SLOW_SEC)
            self._pane.show()
        self.running.close()
