"""What this machine offers to bound and to end an agent, found out by trying; for `mam doctor`.

Nothing is changed by looking, also where a worker would change something: a cgroup
that was delegated is said to be one, and the worker that is alone in it goes into a
leaf of it when it starts.
"""

from __future__ import annotations

import os
import resource
import sys
from typing import NamedTuple

from mam_core.work.caps import scope_works
from mam_core.work.cgroups import own_cgroup, was_delegated, words_of
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
        _says(
            "a systemd scope for each attempt",
            scope_works(),
            "MemoryMax and MemorySwapMax hold a job to its memory",
            "no systemd of this user that can limit memory",
        ),
        _cgroup(),
        _says(
            "limit of a tree's memory",
            os.path.isdir("/proc/self"),
            "at least weighed four times a second, which a sudden leap can pass",
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
    folder = own_cgroup()
    if folder is None:
        return Means(what, False, "there is no cgroup v2 here")
    if not any(map(was_delegated, (folder, os.path.dirname(folder)))):
        return Means(what, False, "ours was not delegated to us")
    if "memory" not in words_of(folder, "cgroup.controllers"):
        return Means(what, False, "without the memory controller")
    return Means(what, True, "with memory: a worker that is alone in it can limit its jobs")
