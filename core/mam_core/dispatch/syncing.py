"""Sync again and again while others work: pulled at intervals, pushed after what they change.

Off-line nothing waits: after a sync that failed the next is due at its time, until
then everybody works on the copy here, and what they did goes out when it can.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self

from mam_core.dispatch.sync import TIMEOUT_SEC, Remote, Synced
from mam_core.dispatch.tasks_file import TasksFile
from mam_core.errors import MamError
from mam_core.pace import PARTING_SEC


class Syncing:
    """One copy and one remote, for as long as the block lasts."""

    def __init__(
        self,
        file: TasksFile,
        remote: Remote,
        every_sec: float,
        told: Callable[[str], None],
        timeout_sec: float = TIMEOUT_SEC,
    ) -> None:
        """`told` hears of trouble once, and of its end."""
        self._file = file
        self._remote = remote
        self._every_sec = every_sec
        self._told = told
        self._timeout_sec = timeout_sec
        self._turn = threading.Lock()
        self._wish = threading.Event()
        self._is_over = False
        self._trouble = ""
        self._again_at = 0.0
        self._thread = threading.Thread(target=self._run, name="mam-dispatch-sync", daemon=True)

    def __enter__(self) -> Self:
        self.now()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._is_over = True
        self._wish.set()
        # For the sync under way and the last one. Of a folder that hangs neither ever returns.
        self._thread.join(2 * self._timeout_sec + PARTING_SEC)
        if self._thread.is_alive():
            self._told("not synced at the end: the sync does not return")

    def soon(self) -> None:
        """Something changed here."""
        self._wish.set()

    def now(self) -> Synced | None:
        """Before it returns, unless the remote cannot be reached; None then."""
        with self._turn:
            if self._trouble and time.monotonic() < self._again_at:
                return None
            return self._try()

    def _try(self) -> Synced | None:
        try:
            done = self._remote.sync(self._file, self._timeout_sec)
        except (MamError, OSError) as problem:
            words = str(problem)
            if words != self._trouble:
                self._told(f"not synced, work goes on here: {words}")
            self._trouble = words
            self._again_at = time.monotonic() + self._every_sec
            return None
        if self._trouble:
            self._told(f"synced again: {done.words}")
            self._trouble = ""
        return done

    def _run(self) -> None:
        while not self._is_over:
            self._wish.wait(self._every_sec)
            self._wish.clear()
            if not self._is_over:
                self.now()
        self.now()
