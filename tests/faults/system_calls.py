"""Faults aimed at one system call: kill there, or let the call fail.

strace attaches to a child that waits on hold, so that counting begins with the
act itself. A first, quiet run lists the calls; each later run aims at one of them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from typing import IO, NamedTuple

from tests.faults.ground import Ground
from tests.faults.nursery import Child, Ended, Nursery

#: Everything that changes or guards something. A kill is delivered on entering a call, so a kill
#: at the next one of these is also a kill right after this one. `?`: not every machine has it.
STATE_CALLS = (
    "?open,openat,?creat,write,pwrite64,?pwritev,fsync,fdatasync,?sync,?syncfs,?rename,renameat,"
    "?renameat2,ftruncate,?unlink,unlinkat,?mkdir,mkdirat,?rmdir,flock,fchmod,?chmod,fchmodat,"
    "utimensat"
)

_CALL = re.compile(r"(?:\d+ +)?(\w+)\(")
_LONG_PATH = re.compile(r'/[^<>"]*/\.mam')
_ATTACHED = re.compile(r"strace: Process \d+ attached")


class Call(NamedTuple):
    """The n-th call of its name, with strace's words for it."""

    name: str
    nth: int
    text: str

    def __str__(self) -> str:
        short = _LONG_PATH.sub(".mam", self.text)
        return short if len(short) < 120 else short[:119] + "…"

    @property
    def in_index(self) -> bool:
        """A call of the index, which is derived and may be lost, only never be wrong."""
        return "/.index" in self.text


class Run(NamedTuple):
    """A child that was watched to its end."""

    ended: Ended
    calls: list[Call]

    @property
    def was_hit(self) -> bool:
        """The failure came in the act itself; SQLite does not always make the same calls."""
        for call in self.calls:
            if call.text.startswith("ftruncate(-1"):
                return False
            if "(INJECTED)" in call.text:
                return True
        return False


def watch(child: Child, *options: str) -> Run:
    """Let a child on hold go, under strace with `options`."""
    with tempfile.NamedTemporaryFile("r", prefix="mam-strace-", errors="replace") as log:
        look = ["-e", f"trace={STATE_CALLS}", "-y", "-s", "200", "-o", log.name]
        strace = subprocess.Popen(
            ["strace", "-p", str(child.pid), *look, *options],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert strace.stderr is not None
            _await_attached(strace.stderr)
            child.go()
            ended = child.wait()
            strace.wait(20)
        finally:
            if strace.poll() is None:
                strace.kill()
                strace.wait()
            if strace.stderr is not None:
                strace.stderr.close()
        return Run(ended, _parse(log))


def kill_at(call: Call) -> list[str]:
    """strace's options for a kill -9 on entering `call`."""
    return ["-e", f"inject={call.name}:signal=KILL:when={call.nth}"]


def fail_at(call: Call, error: str) -> list[str]:
    """strace's options for letting `call`, and no other, fail with `error`."""
    return ["-e", f"inject={call.name}:error={error}:when={call.nth}"]


def why_no_strace(nursery: Nursery) -> str | None:
    """Why system calls cannot be watched here; None when they can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    child = nursery.start("recover", "/nonexistent", hold=True)
    try:
        watch(child)
    except CannotAttach as problem:
        child.kill()
        return f"strace cannot attach to a process of its own user here: {problem}"
    return None


def on_stage(
    nursery: Nursery, act: str, ground: Ground, options: list[str], *, probe: bool = False
) -> Run:
    """One act in a child of its own, with a fault aimed at it."""
    return watch(nursery.start("perform", act, str(ground.root), probe, hold=True), *options)


def sampled(calls: list[Call], step: int, index_step: int) -> list[Call]:
    """Every `step`-th of the calls, of the index's every `index_step`-th; and the last one."""
    ours = [call for call in calls if not call.in_index]
    index = [call for call in calls if call.in_index]
    return [*ours[:-1:step], *index[::index_step], *ours[-1:]]


class CannotAttach(Exception):
    """strace said no."""


def _await_attached(stderr: IO[str]) -> None:
    said = stderr.readline()
    if not _ATTACHED.match(said):
        raise CannotAttach(said.strip() or "it ended without a word")


def _parse(log: IO[str]) -> list[Call]:
    counts: Counter[str] = Counter()
    calls = []
    for line in log:
        if match := _CALL.match(line):
            counts[match[1]] += 1
            # Opening to read changes nothing; it is counted all the same, because strace counts it.
            if not match[1].startswith("open") or "O_CREAT" in line:
                calls.append(Call(match[1], counts[match[1]], line.strip()))
    return calls
