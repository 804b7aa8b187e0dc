"""A program of the user's as a process: bounded in time, and in what is kept of its words.

It runs in a session of its own, so that at the end of its time, or when a person has had enough
of it, it goes with all that it started.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, NamedTuple

from mam_core.pace import PARTING_SEC, paced

#: The end of its output that is kept.
TAIL_BYTES = 4096

_GRACE_SEC = 2.0
_LOOK_SEC = 0.05


class Ended(NamedTuple):
    """How it ended: a negative code is a signal, None means that its time was over first."""

    code: int | None
    output: str

    @property
    def words(self) -> str:
        """What goes with "it": ended with 3, was ended by SIGKILL, did not end in time."""
        if self.code is None:
            return "did not end in time"
        if self.code < 0:
            return f"was ended by {signal_name(-self.code)}"
        return f"ended with {self.code}"


def run_bounded(
    argv: Sequence[str],
    workdir: str,
    environ: Mapping[str, str],
    timeout_sec: float,
    *,
    holding: Sequence[int] = (),
) -> Ended:
    """Run it and wait. Raises OSError where it cannot be started.

    `holding` are open files that it has as well: a lock lasts until it has ended, should we be
    killed before.
    """
    interrupts = _HeldInterrupts()
    try:
        process = subprocess.Popen(
            argv,
            cwd=workdir,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=holding,
        )
    except BaseException:
        interrupts.release()
        raise
    assert process.stdout is not None
    with process.stdout as pipe:
        try:
            interrupts.release()
            output, in_time = _listen(process, pipe.fileno(), time.monotonic() + timeout_sec)
        finally:  # also when a person has had enough of it
            _end_group(process)
    return Ended(process.returncode if in_time else None, output.decode("utf-8", "replace"))


def signal_name(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else str(number)


def last_line(output: str) -> str:
    """``: its last words``, for the end of a sentence; nothing where it said none."""
    lines = output.strip().splitlines()
    return f": {lines[-1].strip()[:200]}" if lines else ""


class _HeldInterrupts:
    """^C waits until what was just started can also be ended.

    By a handler and not by the signal mask, which the check would inherit.
    """

    def __init__(self) -> None:
        self._before: Any = None
        self._came: tuple[int, FrameType | None] | None = None
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                self._before = handler
                signal.signal(signal.SIGINT, self._note)

    def release(self) -> None:
        before, self._before = self._before, None
        if before is None:
            return
        signal.signal(signal.SIGINT, before)
        if self._came is not None:
            before(*self._came)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came = number, frame


def _listen(process: subprocess.Popen[bytes], pipe: int, deadline: float) -> tuple[bytes, bool]:
    """What it printed last, until it ended; False when its time was over first.

    Its end is what counts: a child of it that lives on may hold the pipe open for ever.
    """
    os.set_blocking(pipe, False)
    tail = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            over = _has_ended(process)
            if selector.get_map():
                for _ in selector.select(0 if over else paced(_LOOK_SEC)):
                    data = _read(pipe)
                    tail = (tail + data)[-TAIL_BYTES:]
                    if not data:
                        selector.unregister(pipe)
            elif not over:
                time.sleep(paced(_LOOK_SEC))
            if over:
                return tail, True
            if time.monotonic() > deadline:
                return tail, False


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Looks and leaves it unreaped, so that its number still names its group and nobody else's."""
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, flags) is not None


def _read(pipe: int) -> bytes:
    try:
        return os.read(pipe, 65536)
    except BlockingIOError:
        return b""


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Whatever it left running was part of a check that is over."""
    if not _has_ended(process):
        _signal(process, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE_SEC
        while not _has_ended(process) and time.monotonic() < deadline:
            time.sleep(paced(_LOOK_SEC))
    _signal(process, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):  # of another user (sudo), or held by a dead disk
        process.wait(PARTING_SEC)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
