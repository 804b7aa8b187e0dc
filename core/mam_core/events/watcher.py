"""The small process that holds the embedded broker, and ends it when nobody keeps it any more.

It is the broker's parent. It waits for two things, asleep: the broker's end,
and the exclusive lock on ``keep``, which the kernel grants when the last
keeper has closed its shared one, or was killed. Then it ends the broker. Should
it be killed itself, the broker goes with it (Linux) or is ended by the next
keeper that looks; restarting is the keepers' business.

It runs as ``python -I -S`` in its own session, in ``.broker/`` as its working
directory, so that no path of the user's is ever written into a configuration.
Only light modules are imported here: this process lives as long as the console.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from mam_core.clock import SystemClock
from mam_core.disk import FILE_MODE, Folder
from mam_core.process_mark import ProcessMark, pid_namespace

KEEP = "keep"
LOCK = "lock"
RUNNING = "running.json"
START_LOG = "start.log"
ENDED = "the broker ended with code"

_PR_SET_PDEATHSIG = 1
_COULD_NOT_START = 127


@dataclass(frozen=True)
class Orders:
    """What the watcher is told: nothing of it is secret, any user may read it in the list of
    processes."""

    command: tuple[str, ...]
    kind: str
    version: str
    port: int
    lock_fd: int
    linger_sec: float  #: commands that follow each other share one broker
    grace_sec: float

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Orders:
        data: dict[str, Any] = json.loads(text)
        return cls(**{**data, "command": tuple(data["command"])})


def main() -> None:
    """Detach, so that no keeper has to bury us, then watch."""
    orders = Orders.from_json(sys.argv[2])
    if os.fork():
        os._exit(0)
    os.setsid()
    os.umask(0o077)
    # Whatever our starter ignored or held back: the broker must hear that it is to end.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    watch(orders)


def watch(orders: Orders) -> None:
    with suppress(OSError):
        os.unlink(START_LOG)  # whatever it is: to open a pipe would be to wait for its reader
    log = os.open(START_LOG, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE)
    for standard in (1, 2):
        os.dup2(log, standard)
    # Before the fork, so that nobody can be gone before we listen.
    keep = os.open(KEEP, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    server = _start(orders)
    signal.signal(signal.SIGTERM, lambda *_: _signal(server, signal.SIGTERM))
    with Folder.open(".") as folder:
        folder.write(RUNNING, _facts(orders, server))
        threading.Thread(target=_end_when_alone, args=(keep, server, orders), daemon=True).start()
        _, status = os.waitpid(server, 0)
        folder.remove(RUNNING)
    _note(f"{ENDED} {os.waitstatus_to_exitcode(status)}")
    os._exit(0)


def _start(orders: Orders) -> int:
    parent = os.getpid()
    prctl = _prctl()
    pid = os.fork()
    if pid:
        return pid
    try:
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(_COULD_NOT_START)
        # The lock goes along: it is free only when neither of us is left.
        os.set_inheritable(orders.lock_fd, True)
        os.execv(orders.command[0], orders.command)
    except OSError as problem:
        _note(f"{orders.command[0]}: {problem.strerror}")
    os._exit(_COULD_NOT_START)


def _note(line: str) -> None:
    """Into the log that is our stderr; a full disk stops nobody here."""
    with suppress(OSError):
        os.write(2, f"{line}\n".encode())


def _prctl() -> Any:
    """Linux' way to let the broker end with its watcher; None elsewhere."""
    import ctypes

    return getattr(ctypes.CDLL(None), "prctl", None)


def _facts(orders: Orders, server: int) -> bytes:
    marks = {"server": ProcessMark.of(server), "watcher": ProcessMark.of(os.getpid())}
    facts: dict[str, Any] = {name: mark and mark.to_dict() for name, mark in marks.items()}
    facts |= {"kind": orders.kind, "version": orders.version, "port": orders.port}
    facts |= {"since_boot": SystemClock().since_boot(), "namespace": pid_namespace()}
    return json.dumps(facts).encode()


def _end_when_alone(keep: int, server: int, orders: Orders) -> None:
    while True:
        fcntl.flock(keep, fcntl.LOCK_EX)
        fcntl.flock(keep, fcntl.LOCK_UN)
        time.sleep(orders.linger_sec)
        with suppress(BlockingIOError):
            fcntl.flock(keep, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break  # kept until we end: a new keeper waits for that, then starts a new broker
    _signal(server, signal.SIGTERM)
    time.sleep(orders.grace_sec)
    _signal(server, signal.SIGKILL)


def _signal(server: int, number: signal.Signals) -> None:
    """It is our child and not yet waited for, so its pid is still its own."""
    with suppress(ProcessLookupError):
        os.kill(server, number)
