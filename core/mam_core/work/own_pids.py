"""A PID namespace for one attempt: when its first process dies, the kernel kills all the others.

The supervisor stays outside. A middle process makes the namespace and goes, so
that the *first* process becomes the supervisor's child (it is a subreaper) and is
bound to its life: killing the supervisor, even with -9, kills the attempt. The
first process starts the agent, buries the orphans, and ends when nobody is left.
It has its own /proc, so that pids agree; where that cannot be mounted there is
no namespace at all, since `kill $(cat x.pid)` would find nobody, or another.

Inside a *user* namespace, which needs no privilege, root's files seem to belong to
nobody: `ssh` then refuses its own configuration and `sudo` does not work. So
that is done only when asked for.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # see processes.py
import os

from mam_core.work import kernel
from mam_core.work.launch import become_agent, forget_signals
from mam_core.work.processes import everybody, read_fact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


class NoNamespace(Exception):
    """The kernel said no: at which stage, and by which errno."""

    def __init__(self, stage: str, number: int) -> None:
        super().__init__(stage, number)
        self.stage = stage
        self.number = number


class Ends:
    """The two pipes between supervisor and first process."""

    def __init__(self) -> None:
        self.words, self.its_words = os.pipe()  #: what the first process says
        self.its_go, self.go = os.pipe()  #: it waits for a byte of ours

    def keep_ours(self) -> None:
        os.close(self.its_words)
        os.close(self.its_go)

    def keep_its(self) -> None:
        os.close(self.words)
        os.close(self.go)


class FirstProcess:
    """The first process of a new namespace, as its supervisor sees it."""

    def __init__(self, pid: int, ends: Ends) -> None:
        self.pid = pid
        self.words = ends.words
        self._go = ends.go
        self._heard = b""

    def start_agent(self) -> int:
        """The agent's pid as it is outside; it runs when this returns."""
        self.tell()
        try:
            self.hear()
        except NoNamespace:  # it was killed, and nothing is left of it
            os.waitpid(self.pid, 0)
            self.close()
            raise
        # It waits for our word, so it is the one child that is there.
        children = read_fact(self.pid, f"task/{self.pid}/children").split()
        if children:
            agent = int(children[0])
        else:  # a kernel without that file
            agent = next((one.pid for one in everybody() if one.parent == self.pid), 0)
        self.tell()
        return agent

    def tell(self) -> None:
        os.write(self._go, b"g")

    def hear(self) -> list[str]:
        """Its next line; raises `NoNamespace` when that is a no, or when it is gone."""
        while b"\n" not in self._heard:
            data = os.read(self.words, 100)
            if not data:
                raise NoNamespace("first", 0)
            self._heard += data
        line, _, self._heard = self._heard.partition(b"\n")
        words = line.decode("ascii").split()
        if words[0] == "no":
            raise NoNamespace(words[1], int(words[2]))
        return words

    def close(self) -> None:
        os.close(self.words)
        os.close(self._go)


def make(
    orders: dict[str, Any], stdout: int, stderr: int, trouble: int, line: int, *, by_user: bool
) -> FirstProcess:
    """Raises `NoNamespace`; then nothing is left of the attempt at it.

    `line` is our own line to the worker, which nobody else may hold open.
    """
    ends = Ends()
    middle = os.fork()
    if middle == 0:
        os.close(line)
        ends.keep_its()
        _middle(orders, stdout, stderr, trouble, ends, by_user)
    ends.keep_ours()
    first = FirstProcess(0, ends)
    try:
        first.pid = int(first.hear()[1])
        os.waitpid(middle, 0)
        middle = 0
        first.tell()
        first.hear()
    except NoNamespace:
        first.close()
        for pid in (middle, first.pid):
            if pid:
                os.waitpid(pid, 0)
        raise
    return first


def _middle(
    orders: dict[str, Any], stdout: int, stderr: int, trouble: int, ends: Ends, by_user: bool
) -> NoReturn:
    try:
        uid, gid = os.geteuid(), os.getegid()
        kernel.unshare(kernel.NEW_PIDS | kernel.NEW_MOUNTS | (kernel.NEW_USER if by_user else 0))
        if by_user:
            kernel.same_user_inside(uid, gid)
        pid = os.fork()
        if pid == 0:
            _first(orders, stdout, stderr, trouble, ends)
        _say(ends, f"first {pid}")
    except OSError as problem:
        _say(ends, f"no namespace {problem.errno or 0}")
    finally:
        os._exit(0)


def _first(orders: dict[str, Any], stdout: int, stderr: int, trouble: int, ends: Ends) -> NoReturn:
    """Process 1 of the namespace. Signals do not reach it unless it asks for them."""
    try:
        _signal.set_wakeup_fd(-1)
        forget_signals()
        _wait_for_word(ends)  # the middle process is gone: our parent is the supervisor
        try:
            kernel.mount_own_proc()
            kernel.die_with_parent(_signal.SIGKILL)
        except OSError as problem:
            _say(ends, f"no proc {problem.errno or 0}")
            os._exit(1)
        _say(ends, "bound")
        _wait_for_word(ends)  # it lives: it cannot have died before we were bound to it
        agent = os.fork()
        if agent == 0:
            _wait_for_word(ends)
            become_agent(orders, 1, stdout, stderr, trouble)
        for fd in {stdout, stderr, trouble, ends.its_go, orders["input"]} - {-1}:
            os.close(fd)
        _say(ends, "forked")
        _bury(agent, ends)
    finally:
        os._exit(1)


def _bury(agent: int, ends: Ends) -> None:
    """Until nobody is left."""
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            os._exit(0)
        if pid == agent:
            _say(ends, f"ended {status}")


def _say(ends: Ends, line: str) -> None:
    os.write(ends.its_words, f"{line}\n".encode())


def _wait_for_word(ends: Ends) -> None:
    if not os.read(ends.its_go, 1):
        os._exit(1)  # the supervisor is gone
