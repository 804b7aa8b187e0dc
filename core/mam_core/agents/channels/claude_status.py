"""Claude Code's session status file: ``sessions/<pid>.json`` in its configuration folder.

Recorded with 2.1.197 and documented nowhere, so that its absence means nothing.
It follows every change within a quarter of a second, an interrupt too, which no
hook tells. The pid is the one that the program has for itself: below what was
started, and another one in a PID namespace of its own.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import Any, NamedTuple

from mam_core.agents.signs import AgentState
from mam_core.agents.streams.values import label
from mam_core.work.processes import descendants, everybody, read_fact

_STATES = {
    "idle": AgentState.IDLE,
    "busy": AgentState.WORKING,
    "waiting": AgentState.WAITING,
}
#: How often all processes are looked through while its file has not been found.
_SEARCH_SEC = 2.0
_MAX_BYTES = 64 * 1024


class SessionStatus(NamedTuple):
    """What the file says."""

    word: str
    waits_for: str

    @property
    def state(self) -> AgentState:
        return _STATES.get(self.word, AgentState.UNKNOWN)


class StatusFile:
    """Finds the file of one agent, and reads it when it has changed."""

    def __init__(self, config_folder: str) -> None:
        self.changed_at = 0.0  #: when it was written, by the clock that dates the hooks, too
        self._folder = os.path.join(config_folder, "sessions")
        self._pid = 0
        self._began = 0.0
        self._session = ""
        self._path = ""
        self._seen: tuple[int, int, int] | None = None
        self._searched = float("-inf")

    def started(self, pid: int) -> None:
        self._pid = pid
        self._began = time.time()
        self._session = self._path = ""
        self._seen = None
        self._searched = float("-inf")

    def expect(self, session: str) -> None:
        """The session that the hooks are of: two namespaces may have one pid, and so one file."""
        self._session = session or self._session

    def look(self, now: float) -> SessionStatus | None:
        """What it says now; None when there is no news of it."""
        if not self._path and not self._find(now):
            return None
        try:
            state = os.stat(self._path)
        except OSError:
            self._path, self._seen = "", None
            return None
        seen = (state.st_mtime_ns, state.st_size, state.st_ino)
        if seen == self._seen:
            return None
        self._seen = seen
        self.changed_at = state.st_mtime
        return self._read()

    def _read(self) -> SessionStatus | None:
        data: Any = None
        with suppress(OSError, ValueError, RecursionError), open(self._path, "rb") as file:
            data = json.loads(file.read(_MAX_BYTES))
        if not isinstance(data, dict):
            self._seen = None  # caught in the middle of a write: look again
            return None
        session = label(data.get("sessionId"))
        if self._session and session and session != self._session:
            self._seen = None  # perhaps the hooks have yet to tell of this session
            return None
        word = label(data.get("status"))
        return SessionStatus(word, label(data.get("waitingFor"))) if word else None

    def _find(self, now: float) -> bool:
        if not self._pid or not os.path.isdir(self._folder):
            return False
        names = [_own_pid(self._pid)]
        if now - self._searched >= _SEARCH_SEC:
            self._searched = now
            names += [_own_pid(one.pid) for one in descendants({self._pid}, everybody())]
        for name in names:
            path = os.path.join(self._folder, f"{name}.json")
            with suppress(OSError):
                # An older one was left behind by a program that was killed.
                if os.stat(path).st_mtime >= self._began - 1:
                    self._path = path
                    return True
        return False


def _own_pid(pid: int) -> int:
    """The pid that a process has for itself: the innermost of its namespaces."""
    for line in read_fact(pid, "status").splitlines():
        if line.startswith(b"NSpid:"):
            return int(line.split()[-1])
    return pid
