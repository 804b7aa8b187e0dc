"""Where an agent's hooks leave what they are told: one file for each call, read once.

The agent runs the command for every event and waits for it, so it has to be
quick, silent and successful whatever happens: with the folder gone, the disk
full or megabytes on its standard input. A command is one line for any shell; it
neither holds a quote nor a backslash, which shells read differently.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

#: What a call may say; a last message of 200 KB was seen, and what a tool read can be more.
MAX_BYTES = 1024 * 1024
#: A session that nobody reads does not fill a disk: of more than these the oldest go unread.
MAX_FILES = 500

SPOOL = "spool"

#: The call is named after its event, so that it tells something even when its words were cut off
#: or did not fit on the disk. `true`, not `:`, since a failing redirection of `:` ends a shell.
#: The rest of the input is read, too: an agent that writes into a closed pipe may take offence.
_SCRIPT = (
    'exec >/dev/null 2>&1; trap "exit 0" HUP INT PIPE TERM; umask 077; '
    'cd "$1" || { cat; exit 0; }; '
    f'head -c {MAX_BYTES} >".$2.$$" || true >".$2.$$"; '
    'mv -f ".$2.$$" "$2.$$" || rm -f ".$2.$$"; cat; exit 0'
)

_NAME = re.compile(r"(?P<event>[A-Za-z_]+(?:\.[A-Za-z_]+)*)\.(?P<pid>[0-9]+)(?:-(?P<n>[0-9]+))?")
_ABANDONED_SEC = 60.0
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Call(NamedTuple):
    """One call of a hook."""

    event: str
    data: Mapping[str, Any]  #: foreign; empty when it was cut off
    at: float


def command(spool: str, event: str) -> str:
    """The line for an agent's settings that leaves a call of `event` in `spool`."""
    return f"/bin/sh -c {shlex.quote(_SCRIPT)} mam {shlex.quote(spool)} {shlex.quote(event)}"


class Spool:
    """The folder of one agent's calls."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(os.path.abspath(folder), SPOOL)

    def empty(self) -> None:
        """Ready for a new agent: what an earlier one said is not believed of it."""
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        for name in os.listdir(self.path):
            with suppress(OSError):
                os.unlink(os.path.join(self.path, name))

    def take(self) -> list[Call]:
        """The calls since the last time, oldest first; they are removed."""
        try:
            names = os.listdir(self.path)
        except OSError:
            return []  # gone, or not there yet: it has nothing to say
        found = []
        for name in names:
            if name.startswith("."):
                self._forget_abandoned(name)
                continue
            match = _NAME.fullmatch(name)
            state = self._plain_file(name)
            if match is None or state is None:
                self._remove(name)
                continue
            order = (state.st_mtime_ns, int(match["pid"]), int(match["n"] or 0))
            found.append((order, name, match["event"]))
        found.sort()
        for _, name, _ in found[:-MAX_FILES]:
            self._remove(name)
        return [self._read(name, event, order[0]) for order, name, event in found[-MAX_FILES:]]

    def _read(self, name: str, event: str, changed_ns: int) -> Call:
        data: Any = None
        with suppress(OSError, ValueError, RecursionError):
            fd = os.open(os.path.join(self.path, name), _READ)
            with open(fd, "rb") as file:
                data = json.loads(file.read(MAX_BYTES + 1))
        self._remove(name)
        return Call(event, data if isinstance(data, dict) else {}, changed_ns / 1e9)

    def _plain_file(self, name: str) -> os.stat_result | None:
        with suppress(OSError):
            state = os.lstat(os.path.join(self.path, name))
            if stat.S_ISREG(state.st_mode):
                return state
        return None

    def _forget_abandoned(self, name: str) -> None:
        """A hook that was killed leaves its half behind."""
        state = self._plain_file(name)
        if state is None or time.time() - state.st_mtime > _ABANDONED_SEC:
            self._remove(name)

    def _remove(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(os.path.join(self.path, name))
