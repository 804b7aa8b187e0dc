"""What a supervisor says, as records."""

from __future__ import annotations

import errno
import json
import signal
from enum import StrEnum
from typing import Any, NamedTuple

from mam_core.work import launch
from mam_core.work.orders import why_not


class Why(StrEnum):
    """Why the processes of an attempt were ended."""

    AGENT_ENDED = "agent_ended"
    STOPPED = "stopped"
    WORKER_GONE = "worker_gone"
    SIGNALLED = "signalled"
    OVER_MEMORY = "over_memory"
    NOT_STARTED = "not_started"
    LEASE_OVER = "lease_over"  #: the worker did not renew it, or could not say so
    TIMEOUT = "timeout"  #: the job's time was over, and the worker did not end it
    #: The supervisor itself died and told nothing: whether a process is left must be asked.
    LOST = "lost"


class Started(NamedTuple):
    """The agent's command runs."""

    pid: int
    started: str  #: its start time; empty when it had already ended
    isolation: str  #: namespace, user_namespace, subreaper or scan
    lacking: tuple[str, ...]  #: sentences: what was asked for and could not be had
    cap: str = ""  #: what holds it to its memory, one of `caps.Means`; empty: it has no limit


class NotStarted(NamedTuple):
    """The agent's command does not run, and nothing else does."""

    stage: str
    errno: int

    @property
    def exit_code(self) -> int:
        """What a shell would answer: 127 not found, 126 not executable."""
        not_found = self.stage == launch.COMMAND and self.errno == errno.ENOENT
        return launch.NOT_FOUND if not_found else launch.NOT_EXECUTABLE

    @property
    def words(self) -> str:
        if self.stage == launch.COMMAND:
            if self.errno == errno.ENOENT:
                return "the agent's command was not found"
            return f"the agent's command cannot be run: {why_not(self.errno)}"
        return {
            launch.INTERPRETER: "the interpreter that the agent's command names was not found",
            launch.WORKDIR: f"the job's folder cannot be used: {why_not(self.errno)}",
            launch.PROCESS: f"no process can be started: {why_not(self.errno)}",
            launch.STDIN: f"the agent's input cannot be opened: {why_not(self.errno)}",
        }.get(self.stage, f"a limit cannot be set: {why_not(self.errno)}")


class Usage(NamedTuple):
    """A sample. Counts only grow; compare two of them to see whether anything happens."""

    processes: int
    memory: int
    cpu_sec: float
    io_bytes: int
    net_bytes: int | None  #: None where it cannot be told


class Exited(NamedTuple):
    """The agent itself has ended; what it left is being ended."""

    code: int | None
    signal: int | None


class Lingering(NamedTuple):
    """KILL was sent and these are still there: stuck in the kernel, or not ours to signal."""

    processes: int


class Ended(NamedTuple):
    """The last word. No process of the attempt is left, unless `why` is LOST."""

    why: Why
    code: int | None = None
    signal: int | None = None
    left: int = 0  #: processes that were alive when the agent had ended
    told: int = 0  #: processes that got TERM
    killed: int = 0  #: processes that needed KILL
    kernel_oom: bool = False  #: the kernel killed somebody for want of memory meanwhile
    peak: int = 0
    cpu_sec: float = 0.0
    io_bytes: int = 0
    net_bytes: int | None = None

    @property
    def tree_empty(self) -> bool:
        return self.why is not Why.LOST

    @property
    def was_oom(self) -> bool:
        """Over its own limit, or killed in a way and at a time that point to the kernel's."""
        if self.why is Why.OVER_MEMORY:
            return True
        killed = self.signal == signal.SIGKILL or self.code == 128 + signal.SIGKILL
        return self.why is Why.AGENT_ENDED and killed and self.kernel_oom


Report = Started | NotStarted | Usage | Exited | Lingering | Ended

_KINDS: dict[str, type[Report]] = {
    "not_started": NotStarted,
    "usage": Usage,
    "exited": Exited,
    "lingering": Lingering,
}


def parse(line: bytes) -> Report | None:
    """None for a word that is not a report: our own supervisor says none, but a crash may."""
    try:
        facts: dict[str, Any] = json.loads(line)
        kind = facts.pop("report")
        if kind == "started":
            facts["lacking"] = tuple(_lack(*words.split()) for words in facts["lacking"])
            return Started(**facts)
        if kind == "ended":
            return Ended(**{**facts, "why": Why(facts["why"])})
        return _KINDS[kind](**facts)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _lack(stage: str, number: str) -> str:
    what = {
        "namespace": "no PID namespace of its own",
        "first": "no PID namespace of its own, since its first process was killed",
        "proc": "no PID namespace of its own, since it cannot have its own /proc",
        "subreaper": "orphans of the agent do not become the supervisor's",
    }.get(stage, f"no {stage}")
    return f"{what}: {why_not(int(number))}"
