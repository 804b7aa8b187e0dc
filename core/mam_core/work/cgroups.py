"""A cgroup v2 that was delegated to us: where the caps of attempts can be made.

Only what whoever owns the tree above has given us is touched. A cgroup that has
processes cannot limit others below it, so a worker that is alone in its own goes
into a leaf of it first; with anybody else in there, nothing is changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache

_PREFIX = "mam-"


@cache
def delegated_base() -> str | None:
    """Below which cgroups for attempts can be made; None: nowhere. Found out once."""
    own = own_cgroup()
    return None if own is None else base_of(own)


def base_of(
    own: str, *, is_delegated: Callable[[str], bool] | None = None, pid: int | None = None
) -> str | None:
    """`own` is the folder of the cgroup that we are in; the one above may be prepared for us."""
    given = is_delegated or was_delegated
    for folder in (own, os.path.dirname(own)):
        if given(folder) and "memory" in words_of(folder, "cgroup.subtree_control"):
            return _tidied(folder)
    if given(own) and "memory" in words_of(own, "cgroup.controllers"):
        return _moved_into_leaf(own, os.getpid() if pid is None else pid)
    return None


def own_cgroup() -> str | None:
    """The folder of the v2 cgroup that we are in."""
    mounted = next(
        (
            line.split()[4]
            for line in read("/proc/self/mountinfo").splitlines()
            if " - cgroup2 " in line
        ),
        None,
    )
    ours = next(
        (line[3:] for line in read("/proc/self/cgroup").splitlines() if line.startswith("0::")),
        None,
    )
    return None if mounted is None or ours is None else mounted + ours.rstrip("/")


def was_delegated(folder: str) -> bool:
    """Given to us by whoever owns the tree above: made ours, or marked so by systemd."""
    try:
        if os.geteuid() != 0:
            return os.stat(folder).st_uid == os.geteuid() and os.access(folder, os.W_OK)
        return os.getxattr(folder, "trusted.delegate") == b"1"
    except (OSError, AttributeError):
        return False


def words_of(folder: str, name: str) -> list[str]:
    return read(os.path.join(folder, name)).split()


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _moved_into_leaf(own: str, pid: int) -> str | None:
    """Make room for limits below `own`, if nobody but us is in it; all of it or nothing."""
    if words_of(own, "cgroup.procs") != [str(pid)]:
        return None
    leaf = os.path.join(own, f"{_PREFIX}worker")
    try:
        os.mkdir(leaf)
        _write(leaf, "cgroup.procs", str(pid))
        _write(own, "cgroup.subtree_control", "+memory")
    except OSError:
        with suppress(OSError):
            _write(own, "cgroup.procs", str(pid))
        with suppress(OSError):
            os.rmdir(leaf)
        return None
    return own


def _tidied(base: str) -> str:
    """What a killed supervisor left is empty, and goes; one with processes cannot be removed."""
    with suppress(OSError):
        for name in os.listdir(base):
            if name.startswith(_PREFIX):
                with suppress(OSError):
                    os.rmdir(os.path.join(base, name))
    return base


def _write(folder: str, name: str, text: str) -> None:
    fd = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
