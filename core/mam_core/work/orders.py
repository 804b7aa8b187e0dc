"""What a supervisor is told to run, and with which bounds."""

from __future__ import annotations

import errno
import marshal
import os
import secrets
from collections.abc import Mapping
from enum import StrEnum
from math import inf
from types import MappingProxyType
from typing import NamedTuple

from mam_core.errors import InvalidField
from mam_core.work.line import LENGTH_BYTES
from mam_core.work.processes import TOKEN_VARIABLE

#: Between TERM and KILL (decision 31, which leaves it to the settings).
GRACE_SEC = 5.0
#: From the wish to end an attempt until nothing of it is alive: what is promised at the usual
#: settings. Beyond the grace, which only who ignores TERM uses up, there must be time to notice
#: the wish, to kill, and to prove it.
PROMISED_SEC = GRACE_SEC + 2.0
#: Between two reports of usage.
SAMPLE_SEC = 1.0

#: The limits that can be asked for. Each holds for one process, not for the tree, so none
#: is set unasked: `as` stops JavaScript agents from starting at all, `rss` does nothing.
LIMITS = ("as", "core", "cpu", "data", "fsize", "nofile", "nproc")


class Deadlines(NamedTuple):
    """Until when an attempt's processes may run, on the clock since boot.

    The supervisor ends them then, whatever its worker is doing.
    """

    lease: float = inf  #: another host may take the job up soon after
    wall: float = inf  #: the job's time is over

    @property
    def words(self) -> str:
        """As they are said on the line."""
        return f"until {self.lease!r} {self.wall!r}"


FOREVER = Deadlines()


class Isolation(StrEnum):
    """How far the agent's processes are set apart."""

    #: A PID namespace for root; else orphans become the supervisor's, and marks do the rest.
    AUTO = "auto"
    #: A PID namespace also for everybody else, by a user namespace: no sudo, no setuid, and
    #: root's files seem to be nobody's, so that ssh may refuse its configuration.
    USER = "user"
    OFF = "off"


class Orders(NamedTuple):
    """One attempt, as its supervisor sees it. Holds an environment: never print it."""

    argv: tuple[str, ...]
    cwd: str
    environ: Mapping[str, str]
    token: str
    stdin: str | None = None  #: a file's path; None is an empty input, or an open file
    grace_sec: float = GRACE_SEC
    sample_sec: float = SAMPLE_SEC
    memory_max: int | None = None  #: bytes, of the whole tree
    cap: str = ""  #: what is to hold it to that, one of `caps.Means`; empty: the scales alone
    cgroup: str | None = None  #: below which a cgroup for it is made
    isolation: Isolation = Isolation.AUTO
    limits: Mapping[str, int] = MappingProxyType({})
    label: str = ""  #: for people who look at the list of processes

    def __repr__(self) -> str:
        return f"<Orders {self.label}>"

    def check(self) -> None:
        """Raises `InvalidField` for what no process can be given."""
        for name in self.limits:
            if name not in LIMITS:
                raise InvalidField(
                    f"there is no limit called {name}; there are {', '.join(LIMITS)}"
                )
        environ = self.environ
        texts = (*self.argv, self.cwd, self.stdin or "", *environ, *environ.values())
        if not self.argv or any("\0" in text for text in texts):
            raise InvalidField("a command, its folder and its environment hold no NUL character")

    def encode(self, until: Deadlines = FOREVER) -> bytes:
        """Bytes throughout, so that no encoding can change a path or a variable.

        `marshal`, because both ends are the same Python, and reading it costs nothing.
        """
        environ = {**self.environ, TOKEN_VARIABLE: self.token}
        data = marshal.dumps(
            {
                "argv": [os.fsencode(word) for word in self.argv],
                "cwd": os.fsencode(self.cwd),
                "environ": {os.fsencode(k): os.fsencode(v) for k, v in environ.items()},
                "token": self.token,
                "stdin": os.fsencode(self.stdin) if self.stdin else None,
                "input": -1,  # the supervisor knows its number
                "until": tuple(map(float, until)),
                "grace_sec": float(self.grace_sec),
                "sample_sec": float(self.sample_sec),
                "memory_max": self.memory_max,
                "cap": str(self.cap),
                "cgroup": self.cgroup,
                "door": -1,  # the supervisor opens it
                "isolation": str(self.isolation),
                "limits": dict(self.limits),
            }
        )
        return len(data).to_bytes(LENGTH_BYTES, "big") + data


def new_token() -> str:
    """A mark for one attempt: it says nothing and opens nothing, it only finds processes."""
    return secrets.token_hex(16)


def why_not(number: int) -> str:
    """An errno in words; 0 is an answer that never came."""
    if number == 0:
        return "no reason was given"
    if number == errno.EPERM:
        return "the system does not permit it"
    return os.strerror(number).lower()
