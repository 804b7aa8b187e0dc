"""How long an attempt may take, and how long it may be silent: its clocks, and no process.

The wall clock runs from the start. The idle clock begins anew with every sign of life. It
stands still while the agent waits for a person, and is held while a tool call is open, for
as long as a tool may take: after that it counts again, so a call whose end is never told
costs that time once, and an agent that shows life within a long call is never ended for
it. Each clock warns once when four fifths have passed; that an agent is silent is said
before that, once, as a hint for whoever looks, and sooner of one that has said nothing at
all. Times are those of a clock that counts since boot: a suspended machine has not been
idle, it has not been at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from mam_core.agents.calls import OpenCall
from mam_core.limits import Limit
from mam_core.records import DEFAULT_TOOL_TIMEOUT_SEC

#: What part of a limit has passed when it is warned of.
WARN_AT = 0.8
#: So long without a sign of life is silence; half of the idle limit where that is shorter.
SILENT_SEC = 60.0
#: The same before the first output; a quarter of the idle limit where that is shorter.
MUTE_SEC = 30.0


class Due(StrEnum):
    """What a look at the clocks can say."""

    TIMEOUT = "timeout"
    IDLE_TIMEOUT = "idle timeout"
    TOOL_TIMEOUT = "tool timeout"
    TIMEOUT_NEAR = "timeout near"
    IDLE_TIMEOUT_NEAR = "idle timeout near"
    TOOL_TIMEOUT_NEAR = "tool timeout near"
    SILENCE = "silence"
    NO_OUTPUT = "no output"


_HINTS = frozenset({Due.SILENCE, Due.NO_OUTPUT})
_SAID_ONCE_A_SILENCE = _HINTS | {Due.IDLE_TIMEOUT_NEAR, Due.TOOL_TIMEOUT_NEAR}


class Next(NamedTuple):
    """The limit that comes first, as things are."""

    limit: Limit
    since: float  #: when its clock began
    at: float
    call: OpenCall | None = None  #: for the sake of which the idle clock is held


class Patience:
    """The clocks of one attempt."""

    def __init__(
        self,
        now: float,
        *,
        timeout_sec: float,
        idle_timeout_sec: float,
        tool_timeout_sec: float = DEFAULT_TOOL_TIMEOUT_SEC,
        has_printed: bool = False,
    ) -> None:
        self._began = now
        self._timeout = timeout_sec
        self._idle_timeout = idle_timeout_sec
        self._tool_timeout = tool_timeout_sec
        self._silent = min(SILENT_SEC, idle_timeout_sec / 2)
        self._mute = min(MUTE_SEC, idle_timeout_sec / 4)
        self._has_printed = has_printed
        self._seen = now
        self._waiting = False
        self._calls: dict[str, tuple[float, OpenCall]] = {}  #: with the time since when they count
        self._warned: set[Due] = set()

    @property
    def is_waiting(self) -> bool:
        """For a person, who may take his time."""
        return self._waiting

    @property
    def has_hinted(self) -> bool:
        """That it is silent was said, and still holds."""
        return bool(self._warned & _HINTS)

    # -- what is seen ----------------------------------------------------------------------

    def sign_of_life(self, now: float) -> None:
        """Output, an event, work done: whatever it is, the agent is at it."""
        self._seen = now
        self._warned -= _SAID_ONCE_A_SILENCE

    def output(self, now: float) -> None:
        """A sign of life in plain sight."""
        self._has_printed = True
        self.sign_of_life(now)

    def wait_for_person(self, now: float, waiting: bool) -> None:
        if waiting != self._waiting:
            self._waiting = waiting
            # What was asked about has not run meanwhile.
            self._calls = {name: (now, call) for name, (_, call) in self._calls.items()}
            self.sign_of_life(now)

    def at_tools(self, now: float, calls: Iterable[OpenCall]) -> None:
        """These tool calls are open, and no others."""
        known = self._calls
        self._calls = {call.call_id: known.get(call.call_id, (now, call)) for call in calls}

    # -- what follows ----------------------------------------------------------------------

    def elapsed(self, now: float) -> float:
        return max(0.0, now - self._began)

    def idle(self, now: float) -> float:
        return 0.0 if self._waiting else max(0.0, now - self._seen)

    def next_end(self) -> Next:
        """Which limit ends it first if nothing more is seen of it."""
        wall_at = self._began + self._timeout
        if self._waiting:
            return Next(Limit.WAITING, self._began, wall_at)
        idle = self._idle_end()
        return idle if idle.at < wall_at else Next(Limit.WALL, self._began, wall_at)

    def _idle_end(self) -> Next:
        idle_at = self._seen + self._idle_timeout
        since, call = max(self._calls.values(), key=_since, default=(0.0, None))
        if call is not None and since + self._tool_timeout > idle_at:
            return Next(Limit.TOOL, since, since + self._tool_timeout, call)
        return Next(Limit.IDLE, self._seen, idle_at)

    def silence_words(self, due: Due, now: float, call: str) -> str:
        """What a hint says: for how long already, and when that ends it. `call` names the tool."""
        end = self.next_end()
        if end.limit is Limit.TOOL:
            said = f"tool call {call} for {now - end.since:.0f} s"
        elif due is Due.NO_OUTPUT:
            end = end._replace(since=self._began)
            said = f"no output since start ({now - self._began:.0f} s)"
        else:
            said = f"no output for {now - self._seen:.0f} s"
        return f"{said}; ends at {end.at - end.since:.0f} s ({end.limit.timeout})"

    def look(self, now: float) -> Due | None:
        """The most urgent thing to be said now; a warning is said once."""
        if self.elapsed(now) >= self._timeout:
            return Due.TIMEOUT
        end = self._idle_end()
        if not self._waiting and now >= end.at:
            return Due.TOOL_TIMEOUT if end.limit is Limit.TOOL else Due.IDLE_TIMEOUT
        for due, at in self._hints():
            if now >= at and due not in self._warned:
                self._warned |= _HINTS if due in _HINTS else {due}
                return due
        return None

    def next_look(self, now: float) -> float:
        """In how many seconds there may be something to say."""
        moments = [self._began + self._timeout, *(at for _, at in self._hints())]
        if not self._waiting:
            moments.append(self._idle_end().at)
        return min((at - now for at in moments if at > now), default=0.0)

    def _hints(self) -> list[tuple[Due, float]]:
        """What is said before an end, and when; the most urgent first."""
        hints = [(Due.TIMEOUT_NEAR, self._began + self._timeout * WARN_AT)]
        if self._waiting:
            return hints
        end = self._idle_end()
        if end.limit is Limit.TOOL:
            hints.append((Due.TOOL_TIMEOUT_NEAR, end.at - self._tool_timeout * (1 - WARN_AT)))
        else:
            near = self._idle_timeout * (1 - WARN_AT)
            hints.append((Due.IDLE_TIMEOUT_NEAR, end.at - near))
        hints.append((Due.SILENCE, self._seen + self._silent))
        if not self._has_printed:
            hints.append((Due.NO_OUTPUT, self._seen + self._mute))
        return hints


def _since(one: tuple[float, OpenCall]) -> float:
    return one[0]
