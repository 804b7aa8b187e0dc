"""What Linux can do for a process tree that Python 3.11 has no word for, by way of the C library.

Each function raises OSError where the kernel says no, also where there is no
such kernel; whoever asks says what could not be had. `ctypes` costs 3 ms, which
is why only the supervisor imports this.
"""

from __future__ import annotations

import ctypes
import errno
import os

NEW_MOUNTS = 0x00020000
NEW_USER = 0x10000000
NEW_PIDS = 0x20000000

_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36
_NOSUID, _NODEV, _NOEXEC, _RECURSIVE, _SLAVE = 0x2, 0x4, 0x8, 0x4000, 0x80000

_libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """From now on whoever loses its parent below us becomes our child, not init's."""
    _call("prctl", _SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(number: int) -> None:
    """Get signal `number` at the parent's end, also by kill -9. Survives exec, not fork."""
    _call("prctl", _SET_PDEATHSIG, number, 0, 0, 0)


def unshare(flags: int) -> None:
    _call("unshare", flags)


def same_user_inside(uid: int, gid: int) -> None:
    """In a new user namespace: be inside who we were outside. The kernel allows no one else."""
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        fd = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, line.encode())
        finally:
            os.close(fd)


def mount_own_proc() -> None:
    """In a new mount namespace: a /proc that shows this PID namespace.

    Later mounts of the host still come in; none of ours goes out.
    """
    _call("mount", b"none", b"/", None, ctypes.c_ulong(_RECURSIVE | _SLAVE), None)
    flags = ctypes.c_ulong(_NOSUID | _NODEV | _NOEXEC)
    _call("mount", b"proc", b"/proc", b"proc", flags, None)


def _call(name: str, *arguments: object) -> None:
    function = getattr(_libc, name, None)
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
