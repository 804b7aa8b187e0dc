"""A supervisor's side of a memory cap that the kernel enforces: a scope around it, or a cgroup.

What is said to be in force was read back from the kernel. Imported only where there
is such a cap: every job pays for what a supervisor imports.
"""

from __future__ import annotations

import os

_SCOPE, _CGROUP = "systemd scope", "cgroup"
_ROOT = "/sys/fs/cgroup"
#: To both limits the kernel answers in pages.
_PAGE = 65536


class KernelCap:
    """Of one attempt."""

    def __init__(self, folder: str, *, is_ours: bool) -> None:
        self._folder = folder
        self._is_ours = is_ours
        self._before = self._kills()
        self.door = -1  #: whoever writes 0 to it comes in; -1: nobody needs to

    @classmethod
    def in_force(
        cls, means: str, limit: int, base: str | None, token: str, root: str = _ROOT
    ) -> KernelCap | None:
        """None when it is not: then the scales alone have to do."""
        if means == _SCOPE:
            return cls._around_us(limit, root)
        if means == _CGROUP and base is not None:
            return cls._made(os.path.join(base, f"mam-{token[:16]}"), limit)
        return None

    @classmethod
    def _around_us(cls, limit: int, root: str) -> KernelCap | None:
        with open("/proc/self/cgroup", encoding="ascii", errors="replace") as file:
            ours = [line[3:].strip() for line in file if line.startswith("0::")]
        folder = root + ours[0] if ours else ""
        return cls(folder, is_ours=False) if folder and _holds(folder, limit) else None

    @classmethod
    def _made(cls, folder: str, limit: int) -> KernelCap | None:
        try:
            os.mkdir(folder)
        except OSError:
            return None
        try:
            for name, text in (
                ("memory.max", str(limit)),
                ("memory.swap.max", "0"),  # else it would only go on in swap
                ("memory.oom.group", "1"),  # who is over ends as a whole
            ):
                _write(folder, name, text)
            cap = cls(folder, is_ours=True)
            cap.door = os.open(os.path.join(folder, "cgroup.procs"), os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            os.rmdir(folder)
            return None
        return cap

    @property
    def has_killed(self) -> bool:
        """The kernel ended a process of it for want of memory."""
        return self._kills() > self._before

    def close(self) -> None:
        """When nothing of the attempt is left."""
        if self.door >= 0:
            os.close(self.door)
        if self._is_ours:
            try:
                os.rmdir(self._folder)
            except OSError:
                return  # the next worker tidies up

    def _kills(self) -> int:
        for line in _read(self._folder, "memory.events").splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill" and count.isdigit():
                return int(count)
        return 0


def _holds(folder: str, limit: int) -> bool:
    """Both limits, as the kernel has them."""
    most = _read(folder, "memory.max").strip()
    swap = _read(folder, "memory.swap.max").strip()
    return most.isdigit() and int(most) <= limit + _PAGE and swap == "0"


def _read(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name), encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _write(folder: str, name: str, text: str) -> None:
    fd = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
