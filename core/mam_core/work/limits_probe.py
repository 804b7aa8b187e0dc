"""What this machine offers to bound and to end an agent, found out by trying; for `mam doctor`.

Nothing is changed by looking. A cgroup is looked for and said, not used: a
memory limit there would need the worker itself to move into a leaf of it, and
other people's cgroups are not ours to change. So a tree's memory is weighed four
times a second instead, which cannot stop a sudden leap.
"""

from __future__ import annotations

import os
import resource
import sys
from typing import NamedTuple

from mam_core.work.orders import Isolation, Orders, new_token
from mam_core.work.reports import Started
from mam_core.work.supervised import Supervised

_TRY_SEC = 10.0


class Means(NamedTuple):
    """One thing that a kernel may have."""

    what: str
    is_there: bool
    words: str


def look_around() -> tuple[Means, ...]:
    """Everything, most useful first. Starts a harmless command twice."""
    own = _try(Isolation.AUTO)
    user = _try(Isolation.USER)
    return (
        _says(
            "processes named for ever",
            hasattr(os, "pidfd_open"),
            "by pidfd",
            "by pid and start time: a signal could, in theory, reach a successor",
        ),
        _says(
            "orphans of an agent are kept",
            own is not None and own.isolation != "scan",
            "they become the supervisor's",
            "they are found by the attempt's token only",
        ),
        _namespace("a PID namespace for each attempt", own, "needs root"),
        _namespace("the same by a user namespace", user, "not permitted"),
        _says(
            "a mark that an agent cannot take off",
            hasattr(resource, "RLIMIT_RTTIME"),
            "in a limit that limits nobody",
            "the token in the environment is the only one",
        ),
        _cgroup(),
        _says(
            "limit of a tree's memory",
            os.path.isdir("/proc/self"),
            "weighed four times a second; a sudden leap can pass it",
            "by what `ps` says, four times a second",
        ),
    )


def _says(what: str, is_there: bool, yes: str, no: str) -> Means:
    return Means(what, is_there, yes if is_there else no)


def _namespace(what: str, started: Started | None, otherwise: str) -> Means:
    if started is not None and "namespace" in started.isolation:
        return Means(what, True, "killing its supervisor kills all of it")
    why = "; ".join(started.lacking) if started else ""
    return Means(what, False, why or otherwise)


def _try(isolation: Isolation) -> Started | None:
    """What a real supervisor gets here."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        orders = Orders((sys.executable, "-I", "-S", "-c", ""), "/", {}, new_token())
        supervised = Supervised.start(
            orders._replace(isolation=isolation), stdout=nowhere, stderr=nowhere
        )
    finally:
        os.close(nowhere)
    try:
        for report in supervised.until_end(_TRY_SEC):
            if isinstance(report, Started):
                return report
        return None
    finally:
        supervised.close()


def _cgroup() -> Means:
    what = "a cgroup of our own"
    folder = _own_cgroup()
    if folder is None:
        return Means(what, False, "there is no cgroup v2 here")
    if not _is_delegated(folder):
        return Means(what, False, "ours was not delegated to us")
    has_memory = "memory" in _read(os.path.join(folder, "cgroup.controllers")).split()
    return Means(what, True, "with memory" if has_memory else "without the memory controller")


def _own_cgroup() -> str | None:
    """The folder of the v2 cgroup that we are in."""
    mounted = next(
        (
            line.split()[4]
            for line in _read("/proc/self/mountinfo").splitlines()
            if " - cgroup2 " in line
        ),
        None,
    )
    ours = next(
        (line[3:] for line in _read("/proc/self/cgroup").splitlines() if line.startswith("0::")),
        None,
    )
    return None if mounted is None or ours is None else mounted + ours


def _is_delegated(folder: str) -> bool:
    """Given to us by whoever owns the tree above: made ours, or marked so by systemd."""
    try:
        if os.geteuid() != 0:
            return os.stat(folder).st_uid == os.geteuid() and os.access(folder, os.W_OK)
        return os.getxattr(folder, "trusted.delegate") == b"1"
    except (OSError, AttributeError):
        return False


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
