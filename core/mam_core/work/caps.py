"""How much memory a job may have, and what holds it to that on this host.

Best first: a systemd scope, a cgroup that was delegated to us, or our own scales:
the whole tree is weighed four times a second, and a limit on the data of each
process stops the leap in between. The kernel's two are believed only where a
trial shows that they are in force, and what is in force stands in the record.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from mam_core.config import Config
from mam_core.record_parts import MemoryCap
from mam_core.records import Job
from mam_core.work.cgroups import delegated_base
from mam_core.work.launch import HEADROOM

_TRIAL_BYTES = 64 << 20
_TRIAL_SEC = 10.0
#: The limit of the scope that it runs in, as the kernel has it.
_ASK = 'cat "/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)/memory.max"'


class Means(StrEnum):
    """What holds an attempt to its memory."""

    SCOPE = "systemd scope"
    CGROUP = "cgroup"
    SAMPLED = "sampled"  #: by us, and RLIMIT_DATA for each process
    OFF = "off"  #: nothing does: it was switched off


def scope_argv(limit: int) -> tuple[str, ...]:
    """What goes before a command; never one limit without the other, or it escapes into swap."""
    return (
        *("systemd-run", "--user", "--scope"),
        *("-p", f"MemoryMax={limit}", "-p", "MemorySwapMax=0"),
        *("--quiet", "--collect", "--"),
    )


def scope_environ(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """How the user's systemd is found: a supervisor gets nothing else of our environment."""
    given = {
        name: environ[name]
        for name in ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
        if environ.get(name)
    }
    usual = f"/run/user/{os.getuid()}"
    return {"XDG_RUNTIME_DIR": usual, **given} if os.path.isdir(usual) else given


class Caps:
    """What a worker knows about the memory of its jobs."""

    def __init__(
        self,
        means: Means = Means.SAMPLED,
        groups: Mapping[str, int] | None = None,
        agents: Mapping[str, int] | None = None,
    ) -> None:
        self._means = means
        self._groups = groups or {}
        self._agents = agents or {}

    @classmethod
    def of_settings(cls, config: Config) -> Caps:
        groups = {name: one.memory for name, one in config.groups.items() if one.memory}
        agents = {name: one.memory for name, one in config.agents.items() if one.memory}
        chosen = {"off": Means.OFF, "sampled": Means.SAMPLED}.get(config.defaults.memory_cap)
        # Now, and not when the first job is claimed: whoever claims holds up others.
        return cls(chosen or best_means(), groups, agents)

    def of(self, job: Job) -> MemoryCap | None:
        """The job's own word goes before its group's, and that before its agent's profile."""
        for limit, origin in (
            (job.memory_max, "job"),
            (self._groups.get(job.group or ""), f"group {job.group}"),
            (self._agents.get(job.agent), f"agent {job.agent}"),
        ):
            if limit:
                return MemoryCap(limit, str(self._means), origin)
        return None


class Bounds(NamedTuple):
    """What a supervisor is told about memory."""

    memory_max: int | None = None
    cap: str = ""  #: the means that is to be used
    cgroup: str | None = None  #: below which it makes one for the attempt
    limits: Mapping[str, int] = {}

    def to_orders(self) -> dict[str, Any]:
        return self._asdict()


def bounds_of(job: Job) -> Bounds:
    """For the attempt that `job` is claimed for; without a cap in its record by its own word."""
    cap = job.memory_cap
    if cap is None:
        cap = MemoryCap(job.memory_max, Means.SAMPLED) if job.memory_max else None
    if cap is None or cap.means == Means.OFF:
        return Bounds()
    cgroup = delegated_base() if cap.means == Means.CGROUP else None
    limits = {"data": cap.limit + HEADROOM} if cap.means == Means.SAMPLED else {}
    return Bounds(cap.limit, cap.means, cgroup, limits)


def words(cap: MemoryCap | None) -> str:
    """What the operator is told; that there is none is said, too."""
    if cap is None:
        return "no cap"
    how = {
        Means.SCOPE: "by a systemd scope",
        Means.CGROUP: "by a cgroup",
        Means.SAMPLED: "weighed four times a second: a sudden leap can pass it",
        Means.OFF: "no cap: [defaults] memory_cap is off",
    }.get(Means(cap.means) if cap.means in set(Means) else Means.SAMPLED)
    origin = f" from its {cap.origin}" if cap.origin and cap.origin != "job" else ""
    return f"{cap.limit >> 20:,} MiB{origin}, {how}"


@cache
def best_means() -> Means:
    """Found out once, by trying; a process keeps its answer."""
    if scope_works():
        return Means.SCOPE
    if delegated_base() is not None:
        return Means.CGROUP
    return Means.SAMPLED


def scope_works(environ: Mapping[str, str] = os.environ) -> bool:
    """A scope can be had, and its limit is the kernel's. Without systemd nothing is started."""
    program = shutil.which("systemd-run", path=environ.get("PATH", os.defpath))
    given = scope_environ(environ)
    if program is None or not _has_manager(given.get("XDG_RUNTIME_DIR", "")):
        return False
    try:
        done = subprocess.run(
            [*scope_argv(_TRIAL_BYTES), "/bin/sh", "-c", _ASK],
            env={**given, "PATH": environ.get("PATH", os.defpath)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_TRIAL_SEC,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == str(_TRIAL_BYTES).encode()


def _has_manager(runtime: str) -> bool:
    """Somebody to ask: else the trial would only cost time."""
    places = (os.path.join(runtime, "systemd", "private"), os.path.join(runtime, "bus"))
    return bool(runtime) and any(map(os.path.exists, places))
