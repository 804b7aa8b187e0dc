"""The processes of one attempt as one thing: who is in it, how the agent ended, is it empty.

That a tree is empty is never guessed from a list of processes: it is the kernel's
answer that we have no child left (orphans become ours), or that the first
process of the namespace has ended, which it does last.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # see processes.py
import os
import resource

from mam_core.work import kernel, own_pids
from mam_core.work.launch import become_agent
from mam_core.work.processes import HAS_PROC, Process, carriers, descendants, everybody, look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Which isolation was had.
NAMESPACE, USER_NAMESPACE, SUBREAPER, SCAN = "namespace", "user_namespace", "subreaper", "scan"


class Tree:
    """All below this process."""

    isolation = SUBREAPER
    words = -1  #: a file to wait on, beside the signal of a child's end

    def __init__(self, token: str, agent: int) -> None:
        self.agent = agent
        self.status: int | None = None  #: of the agent, as `wait` has it
        self.is_empty = False
        self._token = token

    def members(self) -> list[Process]:
        return descendants({os.getpid()}, everybody())

    def collect(self) -> None:
        """Bury who has ended."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self.agent and self.status is None:  # later it may be an orphan's
                    self.status = status
        except ChildProcessError:
            self.is_empty = True

    def waited_sec(self) -> float:
        """CPU time of those whom we have buried."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def kill(self) -> None:
        """What can be killed at one blow."""


class ScannedTree(Tree):
    """Where orphans do not become ours (macOS): also whoever carries the attempt's token."""

    isolation = SCAN

    def members(self) -> list[Process]:
        everyone = everybody()
        below = {one.name: one for one in descendants({os.getpid()}, everyone)}
        below |= {one.name: one for one in carriers(self._token, everyone)}
        return list(below.values())

    def collect(self) -> None:
        super().collect()
        if self.is_empty and self.members():
            self.is_empty = False


class NamespaceTree(Tree):
    """All below the first process of a namespace."""

    isolation = NAMESPACE

    def __init__(self, token: str, first: own_pids.FirstProcess, agent: int) -> None:
        super().__init__(token, agent)
        self._first = first
        self._waited = 0.0
        self.words = first.words

    def members(self) -> list[Process]:
        return descendants({self._first.pid}, everybody())

    def collect(self) -> None:
        pid, status, used = os.wait4(self._first.pid, os.WNOHANG)
        self._listen()
        if pid:
            self.is_empty = True
            self._waited = used.ru_utime + used.ru_stime
            if self.status is None:
                self.status = status  # it was killed, and all others with it

    def waited_sec(self) -> float:
        first = None if self.is_empty else look(self._first.pid)
        return first.cpu_sec if first else self._waited

    def kill(self) -> None:
        """It is our child and not yet buried, so its pid is still its own."""
        os.kill(self._first.pid, _signal.SIGKILL)

    def _listen(self) -> None:
        os.set_blocking(self.words, False)
        try:
            while self.status is None:
                words = self._first.hear()
                if words[0] == "ended":
                    self.status = int(words[1])
        except (BlockingIOError, own_pids.NoNamespace):
            return


def plant(
    orders: dict[str, Any], stdout: int, stderr: int, trouble: int, line: int
) -> tuple[Tree, list[tuple[str, int]]]:
    """Start the agent's process; also what could not be had of what was asked for."""
    lacking = []
    for by_user in _namespaces(orders["isolation"]):
        try:
            first = own_pids.make(orders, stdout, stderr, trouble, line, by_user=by_user)
            tree = NamespaceTree(orders["token"], first, first.start_agent())
        except own_pids.NoNamespace as no:
            lacking.append((no.stage, no.number))
            continue
        if by_user:
            tree.isolation = USER_NAMESPACE
        return tree, lacking
    return _plant_below_us(orders, stdout, stderr, trouble), lacking


def _namespaces(asked: str) -> list[bool]:
    """Which kinds to try, each as "by a user namespace"."""
    if not HAS_PROC or asked == "off":
        return []
    if asked == "user":
        return [False, True] if os.geteuid() == 0 else [True]
    return [False] if os.geteuid() == 0 else []


def _plant_below_us(orders: dict[str, Any], stdout: int, stderr: int, trouble: int) -> Tree:
    us = os.getpid()
    agent = os.fork()
    if agent == 0:
        become_agent(orders, us, stdout, stderr, trouble)
    kind = Tree if HAS_PROC else ScannedTree
    return kind(orders["token"], agent)


def prepare() -> list[tuple[str, int]]:
    """Before anything is started: orphans become ours. What could not be had."""
    try:
        kernel.become_subreaper()
    except OSError as problem:
        return [("subreaper", problem.errno or 0)]
    return []
