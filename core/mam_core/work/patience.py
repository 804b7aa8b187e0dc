"""How long an attempt may take, and how long it may be silent: two clocks, and no process.

The wall clock runs from the start. The idle clock begins anew with every sign
of life and stands still while the agent waits for a person. Each warns once
when four fifths have passed; that an agent is silent is said before that, once,
as a hint for whoever looks. Times are those of a clock that counts since boot:
a suspended machine has not been idle, it has not been at all.
"""

from __future__ import annotations

from enum import StrEnum

#: What part of a limit has passed when it is warned of.
WARN_AT = 0.8
#: So long without a sign of life is silence; half of the idle limit where that is shorter.
SILENT_SEC = 60.0


class Due(StrEnum):
    """What a look at the clocks can say."""

    TIMEOUT = "timeout"
    IDLE_TIMEOUT = "idle timeout"
    TIMEOUT_NEAR = "timeout near"
    IDLE_TIMEOUT_NEAR = "idle timeout near"
    SILENCE = "silence"


class Patience:
    """The two clocks of one attempt."""

    def __init__(self, now: float, *, timeout_sec: float, idle_timeout_sec: float) -> None:
        self._began = now
        self._timeout = timeout_sec
        self._idle_timeout = idle_timeout_sec
        self._silent = min(SILENT_SEC, idle_timeout_sec / 2)
        self._seen = now
        self._waiting = False
        self._warned: set[Due] = set()

    @property
    def is_waiting(self) -> bool:
        """For a person, who may take his time."""
        return self._waiting

    def sign_of_life(self, now: float) -> None:
        """Output, an event, work done: whatever it is, the agent is at it."""
        self._seen = now
        self._warned -= {Due.IDLE_TIMEOUT_NEAR, Due.SILENCE}

    def wait_for_person(self, now: float, waiting: bool) -> None:
        if waiting != self._waiting:
            self._waiting = waiting
            self.sign_of_life(now)

    def elapsed(self, now: float) -> float:
        return max(0.0, now - self._began)

    def idle(self, now: float) -> float:
        return 0.0 if self._waiting else max(0.0, now - self._seen)

    def look(self, now: float) -> Due | None:
        """The most urgent thing to be said now; a warning is said once."""
        elapsed, idle = self.elapsed(now), self.idle(now)
        if elapsed >= self._timeout:
            return Due.TIMEOUT
        if idle >= self._idle_timeout:
            return Due.IDLE_TIMEOUT
        near = (
            (elapsed >= self._timeout * WARN_AT, Due.TIMEOUT_NEAR),
            (idle >= self._idle_timeout * WARN_AT, Due.IDLE_TIMEOUT_NEAR),
            (idle >= self._silent, Due.SILENCE),
        )
        for is_near, due in near:
            if is_near and due not in self._warned:
                self._warned.add(due)
                return due
        return None

    def next_look(self, now: float) -> float:
        """In how many seconds there may be something to say."""
        ends = [self._timeout, self._timeout * WARN_AT]
        due = [end - self.elapsed(now) for end in ends]
        if not self._waiting:
            ends = [self._idle_timeout, self._idle_timeout * WARN_AT, self._silent]
            due += [end - self.idle(now) for end in ends]
        return min((left for left in due if left > 0), default=0.0)
