"""The process that owns one attempt's processes, from the agent's start until none is left.

``python -I -S`` in a session of its own; it holds no file of the registry. Its
one line to the worker brings the orders and takes reports, a JSON line each. When
that line closes, also because the worker was killed, when it is told to stop, or
when the agent has ended, it ends the whole tree and says so: that the tree is
empty, and how many needed KILL. It does the same when a deadline passes. The worker
moves the deadlines ahead; this process waits for nothing but its own poll, so they hold
while the worker is stopped or blocked.

Every job pays for the start of this process, so it imports next to nothing:
no json, no enum, no typing, no signal, which together would cost as much as Python.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # see processes.py
import marshal
import os
import resource
import select
import sys
import time

from mam_core.work import tree as trees
from mam_core.work.ending import Ending
from mam_core.work.launch import HEADROOM, PROCESS
from mam_core.work.line import Line
from mam_core.work.oom import kernel_kills
from mam_core.work.processes import Process, look
from mam_core.work.usage import Meter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mam_core.work.kernel_cap import KernelCap

#: Why the tree was ended, as it is reported.
AGENT_ENDED, STOPPED, WORKER_GONE, SIGNALLED = "agent_ended", "stopped", "worker_gone", "signalled"
OVER_MEMORY, NOT_STARTED = "over_memory", "not_started"
LEASE_OVER, TIMEOUT = "lease_over", "timeout"

#: At the end of a lease the grace is this at most, counted from the deadline: another host takes
#: the job up `leases.FENCED_SEC` after the whole lease, and KILL and the proof come before that.
FENCED_GRACE_SEC = 4.0

#: Between two looks at the memory of a tree that has a limit; all else waits for `sample_sec`.
WEIGH_SEC = 0.25
#: A tree that KILL does not empty (a process stuck in the kernel) is told of this often.
LINGER_SEC = 5.0
#: Mostly an agent leaves nobody; that is known this much later, and saves a look at everybody.
_SETTLE_SEC = 0.003

#: The clock of the deadlines, and of all else: it goes on while the machine is suspended.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_NEVER = float("inf")

_STOP_SIGNALS = (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP)


def main() -> None:
    """``supervisor LINE STDOUT STDERR [STDIN]``: the numbers of open files; then a label."""
    fds = [int(word) for word in sys.argv[2:-1]]
    for fd in fds:
        os.set_inheritable(fd, False)
    line = Line(fds[0])
    orders = line.orders()
    if orders is None:
        return
    try:
        Supervisor(line, marshal.loads(orders)).run(*fds[1:])
    except BaseException as problem:
        # The kernel ends the agent with us; the worker looks for the rest by the token.
        line.say("broken", error=type(problem).__name__)
        raise


class Supervisor:
    """One attempt."""

    def __init__(self, line: Line, orders: dict[str, Any]) -> None:
        self._line = line
        self._orders = orders
        self._deadlines: dict[str, float] = {LEASE_OVER: _NEVER, TIMEOUT: _NEVER}
        # A worker that runs on through an upgrade says no such thing.
        self._allow(orders.get("until", (_NEVER, _NEVER)))
        self._meter = Meter()
        self._ending: Ending | None = None
        self._why = ""
        self._left: int | None = None  #: alive when the agent had ended
        self._signalled = False
        self._cap: KernelCap | None = None
        self._next_look = 0.0
        self._next_sample = 0.0
        self._next_linger = 0.0

    def run(self, stdout: int, stderr: int, stdin: int = -1) -> None:
        if _now() >= self._deadlines[LEASE_OVER]:  # the worker was stopped before it could say go
            self._line.say("ended", why=LEASE_OVER)
            return self._line.finish()
        self._orders["input"] = stdin
        wake = self._hear_signals()
        lacking = trees.prepare()
        self._oom_before = kernel_kills()
        self._put_on_cap()
        trouble, its_trouble = os.pipe()
        try:
            self._tree, more = trees.plant(self._orders, stdout, stderr, its_trouble, self._line.fd)
        except OSError as problem:  # too many processes
            self._line.say("not_started", stage=PROCESS, errno=problem.errno or 0)
            self._line.say("ended", why=NOT_STARTED)
            self._take_off_cap()
            return self._line.finish()
        for fd in {stdout, stderr, its_trouble, stdin} - {-1}:
            os.close(fd)
        self._lacking = lacking + more
        self._trouble = trouble
        self._poll = select.poll()
        for fd in (wake, trouble, self._tree.words, self._line.fd):
            if fd >= 0:
                self._poll.register(fd, select.POLLIN)
        self._wake = wake
        now = _now()
        self._next_sample = now + self._orders["sample_sec"]
        self._next_look = now + WEIGH_SEC if self._orders["memory_max"] else self._next_sample
        while not self._tree.is_empty:
            self._turn()
        self._report_end()
        self._take_off_cap()
        return self._line.finish()

    def _put_on_cap(self) -> None:
        """The kernel's, where it was asked for and is in force; else there are only the scales."""
        orders = self._orders
        if orders["cap"] not in ("systemd scope", "cgroup"):
            return
        from mam_core.work.kernel_cap import KernelCap

        limit = orders["memory_max"]
        self._cap = KernelCap.in_force(orders["cap"], limit, orders["cgroup"], orders["token"])
        if self._cap is None:
            orders["cap"] = "sampled"
            orders["limits"]["data"] = limit + HEADROOM
        else:
            orders["door"] = self._cap.door

    def _take_off_cap(self) -> None:
        if self._cap is not None:
            self._cap.close()

    def _hear_signals(self) -> int:
        """The end of a child and a request to stop both wake us; the file that they wake."""
        wake, alarm = os.pipe()
        for fd in (wake, alarm):
            os.set_blocking(fd, False)
        _signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
        _signal.signal(_signal.SIGCHLD, lambda *_: None)
        for number in _STOP_SIGNALS:
            _signal.signal(number, self._on_signal)
        return wake

    def _on_signal(self, *_: object) -> None:
        self._signalled = True

    def _turn(self) -> None:
        """Sleep until something happens or is due, and do it."""
        pause = max(0.0, min(self._next_look, *self._deadlines.values()) - _now())
        for fd, event in self._poll.poll(pause * 1000 + 1):
            if fd == self._tree.words and event & select.POLLHUP:
                self._poll.unregister(fd)  # it is ending; that it has ended comes as a signal
            elif fd == self._wake:
                _drain(fd)
            elif fd == self._trouble:
                self._hear_start()
            elif fd == self._line.fd:
                self._hear_worker()
        if self._signalled:
            self._signalled = False
            self._end(self._unless_over_memory(SIGNALLED))
        had_ended = self._tree.status is not None
        self._tree.collect()
        if self._tree.status is not None and not had_ended:
            self._agent_ended()
        if self._tree.is_empty:
            return
        self._heed_deadlines()
        now = _now()
        if now >= self._next_look:
            self._look(now)

    def _hear_start(self) -> None:
        """The agent's command has started when the pipe closes without a word."""
        said = os.read(self._trouble, 100).decode("ascii").split()
        self._poll.unregister(self._trouble)
        os.close(self._trouble)
        self._trouble = -1
        if said:
            self._why = NOT_STARTED
            self._line.say("not_started", stage=said[0], errno=int(said[1]))
            return
        agent = look(self._tree.agent)
        self._line.say(
            "started",
            pid=self._tree.agent,
            started=agent.started if agent else "",
            isolation=self._tree.isolation,
            cap=self._orders["cap"],
            lacking=[f"{stage} {number}" for stage, number in self._lacking],
        )

    def _hear_worker(self) -> None:
        """``stop GRACE`` and ``until LEASE WALL``; the line's end is an order too."""
        for words in self._line.hear():
            if words[0] == "stop":
                self._end(STOPPED, float(words[1]) if len(words) > 1 else None)
            elif words[0] == "until":
                self._allow([float(word) for word in words[1:]])
        if self._line.is_closed:
            self._poll.unregister(self._line.fd)
            self._end(WORKER_GONE)

    def _allow(self, until: Iterable[float]) -> None:
        self._deadlines[LEASE_OVER], self._deadlines[TIMEOUT] = until

    def _heed_deadlines(self) -> None:
        now = _now()
        for why, at in self._deadlines.items():
            if now < at:
                continue
            self._deadlines[why] = _NEVER
            grace = self._orders["grace_sec"]
            if why == LEASE_OVER:
                grace = max(0.0, min(grace, at + FENCED_GRACE_SEC - now))
            self._end(why, grace)

    def _agent_ended(self) -> None:
        if self._trouble >= 0:
            self._hear_start()
        if self._why == NOT_STARTED:
            return
        self._line.say("exited", **_outcome(self._tree.status))
        self._end(self._unless_over_memory(AGENT_ENDED))
        self._next_look += _SETTLE_SEC

    def _unless_over_memory(self, why: str) -> str:
        """Where the kernel has killed for the cap, that is the reason, whoever tells it first."""
        return OVER_MEMORY if self._cap is not None and self._cap.has_killed else why

    def _end(self, why: str, grace: float | None = None) -> None:
        """Begin, or hurry; the first reason is the reason."""
        now = _now()
        asked = self._orders["grace_sec"] if grace is None else grace
        self._why = self._why or why
        if self._ending is None:
            self._ending = Ending(now, asked)
        else:
            self._ending.hurry(now, asked)
        self._next_look = now

    def _look(self, now: float) -> None:
        members = self._tree.members()
        if self._left is None and self._tree.status is not None:
            self._left = len(members)
        if now >= self._next_sample:
            self._meter.sample(members, self._tree.waited_sec())
            self._next_sample = now + self._orders["sample_sec"]
            self._line.mention("usage", **self._usage(len(members)))
        else:
            self._meter.weigh(members)
        limit = self._orders["memory_max"]
        if limit and self._ending is None and self._is_over(members, limit):
            self._end(OVER_MEMORY, 0.0)  # grace would let it eat on
        if self._ending is not None:
            self._next_look = now + self._ending.step(members, now)
            if self._ending.is_over(now):
                self._tree.kill()
                self._tell_of_lingerers(len(members), now)
        elif limit:
            self._next_look = now + WEIGH_SEC
        else:
            self._next_look = self._next_sample

    def _is_over(self, members: list[Process], limit: int) -> bool:
        if self._cap is not None and self._cap.has_killed:
            return True
        return self._meter.exceeds(members, limit)

    def _tell_of_lingerers(self, count: int, now: float) -> None:
        if not self._next_linger:
            self._next_linger = now + LINGER_SEC
        elif now >= self._next_linger:
            self._next_linger = now + LINGER_SEC
            self._line.say("lingering", processes=count)

    def _usage(self, processes: int) -> dict[str, Any]:
        meter = self._meter
        return {
            "processes": processes,
            "memory": meter.memory,
            "cpu_sec": round(meter.cpu_sec, 3),
            "io_bytes": meter.io_bytes,
            "net_bytes": meter.net_bytes,
        }

    def _report_end(self) -> None:
        self._meter.count_cpu([], self._tree.waited_sec())
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        per_unit = 1 if sys.platform == "darwin" else 1024
        ending = self._ending
        limit = self._orders["memory_max"]
        if limit and self._why == AGENT_ENDED and self._tree.status and largest * per_unit > limit:
            self._why = OVER_MEMORY  # it leapt over the cap between two looks, and fell
        self._line.say(
            "ended",
            why=self._why,
            **_outcome(self._tree.status),
            left=self._left or 0,
            told=len(ending.told) if ending else 0,
            killed=len(ending.killed) if ending else 0,
            kernel_oom=kernel_kills() > self._oom_before,
            peak=max(self._meter.peak, largest * per_unit),
            cpu_sec=round(self._meter.cpu_sec, 3),
            io_bytes=self._meter.io_bytes,
            net_bytes=self._meter.net_bytes,
        )


def _now() -> float:
    return time.clock_gettime(_CLOCK)


def _outcome(status: int | None) -> dict[str, int | None]:
    if status is None:
        return {"code": None, "signal": None}
    code = os.waitstatus_to_exitcode(status)
    return {"code": None, "signal": -code} if code < 0 else {"code": code, "signal": None}


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 512):
            pass
    except BlockingIOError:
        return
