"""What is written down about an attempt's processes, and what may be concluded from it later.

The mark stands in ``attempts/<n>/process.json`` before the agent starts. A sweep
that finds a job without a living lease asks here whether its processes are
gone, and ends them if they are not. It is believed only as far as it can be
checked: a process is named by pid, start time and boot, or by the attempt's token.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from typing import Any, NamedTuple

from mam_core.clock import Clock, SystemClock
from mam_core.codec import loads
from mam_core.disk import Folder
from mam_core.errors import StoreError, UnreadableRecord
from mam_core.process_mark import FIRST_NAMESPACE, ProcessMark, pid_namespace
from mam_core.work.ending import Ending
from mam_core.work.processes import (
    Process,
    ancestors,
    carriers,
    descendants,
    everybody,
    look,
    pids,
    read_fact,
)

FILE = "process.json"

_LIMIT = 64 * 1024
#: What a supervisor gets beyond the grace before it is taken for stuck.
SUPERVISOR_SEC = 2.0
#: After KILL: who is still there is stuck in the kernel, or not ours to signal.
_STUCK_SEC = 5.0
#: No list of processes is complete that was made while processes were born.
_LOOKS = 2


class AttemptMark(NamedTuple):
    """Who owns an attempt's processes, and how to recognise them."""

    token: str
    node: str
    supervisor: ProcessMark
    namespace: int  #: the PID namespace in which the supervisor has that pid

    @classmethod
    def of(cls, token: str, supervisor: ProcessMark, node: str | None = None) -> AttemptMark:
        return cls(token, node or socket.gethostname(), supervisor, pid_namespace())

    def write(self, folder: Folder) -> None:
        facts = {**self._asdict(), "supervisor": self.supervisor.to_dict()}
        folder.write(FILE, json.dumps(facts).encode() + b"\n")

    @classmethod
    def read(cls, folder: Folder) -> AttemptMark | None:
        """None when there is none, or nothing that makes sense."""
        try:
            facts: dict[str, Any] = loads(folder.read(FILE, _LIMIT)[0])
            mark = cls(
                token=str(facts["token"]),
                node=str(facts["node"]),
                supervisor=ProcessMark.from_dict(facts["supervisor"]),
                namespace=int(facts["namespace"]),
            )
            int(mark.token, 16)
        except (OSError, StoreError, UnreadableRecord, KeyError, TypeError, ValueError):
            return None
        return mark if len(mark.token) == 32 and mark.supervisor.pid > 0 else None


def is_gone(
    mark: AttemptMark, *, node: str | None = None, clock: Clock | None = None
) -> bool | None:
    """Whether no process of the attempt is left.

    True only when that is known; None when it cannot be known from here: the
    attempt ran on another node, or its supervisor in a PID namespace that is not
    seen from ours.
    """
    if mark.node != (node or socket.gethostname()):
        return None
    if mark.supervisor.boot_id != (clock or SystemClock()).boot_id():
        return True
    alive = _is_alive(mark)
    if alive is None:
        return False if _marked(mark) else None
    return not alive and not any(_marked(mark) for _ in range(_LOOKS))


def end_leftovers(mark: AttemptMark, grace: float) -> int:
    """End what is left of an attempt whose worker is gone; how many processes that were.

    A supervisor that still lives is asked to do it; one that does not answer is
    killed. Then whoever carries the token, with descendants, until nobody does,
    or until it is plain that somebody cannot be ended: ask `is_gone` afterwards.
    Several may do this at once. Never ends the process that calls it, nor those
    above it, should they be part of the attempt themselves.
    """
    if mark.supervisor.boot_id != SystemClock().boot_id():
        return 0
    ended = _end_supervisor(mark, grace)
    ending = Ending(time.monotonic(), grace)
    give_up = time.monotonic() + grace + _STUCK_SEC
    looks = 0
    while looks < _LOOKS and time.monotonic() < give_up:
        members = _marked(mark, with_descendants=True)
        looks = 0 if members else looks + 1
        if members:
            time.sleep(ending.step(members, time.monotonic()))
    return ended + len(ending.told | ending.killed)


def _end_supervisor(mark: AttemptMark, grace: float) -> int:
    """TERM lets it do its work in order; CONT, because it may have been stopped."""
    supervisor = _find_supervisor(mark)
    if supervisor is None:
        return 0
    if not supervisor.send(signal.SIGTERM):
        return 0
    supervisor.send(signal.SIGCONT)
    deadline = time.monotonic() + grace + SUPERVISOR_SEC
    while _lives(supervisor):
        if time.monotonic() >= deadline + _STUCK_SEC:
            return 0
        if time.monotonic() >= deadline:
            supervisor.send(signal.SIGKILL)
        time.sleep(0.02)
    return 1


def _marked(mark: AttemptMark, *, with_descendants: bool = False) -> list[Process]:
    everyone = everybody()
    found = carriers(mark.token, everyone)
    if with_descendants:
        spared = ancestors(os.getpid(), everyone)
        below = descendants({process.pid for process in found}, everyone)
        found = [process for process in (*found, *below) if process.pid not in spared]
    return found


def _is_alive(mark: AttemptMark) -> bool | None:
    """Whether the supervisor lives; None when it would not be seen from here."""
    if _find_supervisor(mark) is not None:
        return True
    here = pid_namespace()
    return False if here in (mark.namespace, FIRST_NAMESPACE) else None


def _find_supervisor(mark: AttemptMark) -> Process | None:
    if pid_namespace() == mark.namespace:
        process = look(mark.supervisor.pid)
        return process if process and process.started == mark.supervisor.started else None
    # It has another pid here, but started at the same moment.
    for pid in pids():
        process = look(pid)
        if process and process.started == mark.supervisor.started:
            _, _, rest = read_fact(pid, "status").partition(b"\nNSpid:")
            if rest.partition(b"\n")[0].split()[-1:] == [str(mark.supervisor.pid).encode()]:
                return process
    return None


def _lives(process: Process) -> bool:
    now = look(process.pid)
    return now is not None and now.started == process.started
