"""The operator's own program that is run when a job needs a person.

It gets its facts by the environment, never by a shell; what it prints is dropped, it is
ended when it takes too long, and whoever calls it waits for nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from mam_core.locations import ATTEMPT_VARIABLES
from mam_core.operations.notifier import Call
from mam_core.pace import PARTING_SEC, paced
from mam_core.safe_text import clip, one_line

PATIENCE_SEC = 10.0
#: So many may run at once: a program that hangs must not fill the machine.
MOST_AT_ONCE = 3
_VALUE_CELLS = 4000


class NotifyCommand:
    """For any thread; `trouble` is told, on a thread of ours, what went wrong."""

    def __init__(
        self,
        argv: Sequence[str],
        trouble: Callable[[str], None],
        *,
        patience_sec: float = PATIENCE_SEC,
    ) -> None:
        self._argv = tuple(argv)
        self._trouble = trouble
        self._patience_sec = patience_sec
        self._free = threading.Semaphore(MOST_AT_ONCE)
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()

    def run(self, call: Call, environ: Mapping[str, str] | None = None) -> bool:
        """Start it; False when as many run already as may."""
        if self._closing.is_set() or not self._free.acquire(blocking=False):
            return False
        given = variables(call, os.environ if environ is None else environ)
        thread = threading.Thread(
            target=self._tend, args=(given,), name="mam-notify-command", daemon=True
        )
        with self._lock:
            self._threads.add(thread)
        thread.start()
        return True

    def close(self) -> None:
        """End what still runs, and wait until it has ended."""
        self._closing.set()
        with self._lock:
            threads = list(self._threads)
        deadline = time.monotonic() + PARTING_SEC
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _tend(self, environ: Mapping[str, str]) -> None:
        try:
            problem = self._ran(environ)
            if problem and not self._closing.is_set():
                self._trouble(f"[notify] command {self._argv[0]}: {problem}")
        finally:
            self._free.release()
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _ran(self, environ: Mapping[str, str]) -> str:
        """Why it was of no use; empty when it was."""
        try:
            process = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environ,
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            known = isinstance(problem, OSError) and problem.strerror
            return known.lower() if known else str(problem)
        waited, step = 0.0, paced(0.05)
        while process.poll() is None and waited < self._patience_sec:
            if self._closing.wait(step):
                break
            waited += step
        if process.poll() is None:
            # It is its group's leader and not waited for yet: the number is nobody else's.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"it did not end within {self._patience_sec:g} s, and was ended"
        return f"it ended with {process.returncode}" if process.returncode else ""


def variables(call: Call, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment: what there is, and which job of which session needs whom, in safe words."""
    first = call.first
    kept = {name: value for name, value in environ.items() if name not in ATTEMPT_VARIABLES}
    return kept | {
        "MAM_NOTIFY_KIND": str(first.kind),
        "MAM_NOTIFY_URGENCY": str(first.urgency),
        "MAM_NOTIFY_JOB": first.job_id,
        "MAM_NOTIFY_SESSION": _value(first.session),
        "MAM_NOTIFY_AGENT": _value(first.agent),
        "MAM_NOTIFY_TEXT": _value(call.text),
        "MAM_NOTIFY_WORDS": _value(first.words),
        "MAM_NOTIFY_COUNT": str(len(call.needs)),
        "MAM_NOTIFY_JOBS": _value(" ".join(need.job_id for need in call.needs)),
    }


def _value(text: str) -> str:
    return clip(one_line(text), _VALUE_CELLS)
