"""Whoever wants the embedded broker to live keeps it: the lock that says so, and the looking after.

A keeper tries the broker's own lock twice a second (one system call). Got it:
the broker died, and is started again on its port with its store. Nothing is
signalled unless pid, start time and boot id are those that the watcher wrote
down. Where the registry is replaced by another one, the keeper changes over.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from mam_core.disk import explain
from mam_core.errors import MamError
from mam_core.events.embedded import HOST, BrokerFailed, BrokerFolder, Login, Role
from mam_core.events.handshake import ACCEPTED, connack
from mam_core.events.listeners import is_ours
from mam_core.events.running import read_running
from mam_core.events.servers import SERVER_LOG, NoBroker
from mam_core.events.watcher import ENDED, KEEP, LOCK, START_LOG
from mam_core.pace import PARTING_SEC, paced, paced_retry

_LOOK_SEC = 0.5
_STARTS = 3
_PAUSES_SEC = (0.0, 1.0, 5.0, 30.0)  # between restarts of a broker that dies again and again
_LASTED_SEC = 60.0
_LOG_LIMIT = 4 * 1024 * 1024

_log = logging.getLogger("mam")


class Keeper:
    """Keeps the broker alive, and restarts it, until it is closed or its process ends.

    The lock that does it is closed by an exec; a child that is only forked would go on keeping.
    """

    def __init__(
        self, launch: Callable[[BrokerFolder, int], None], home: BrokerFolder, timeout: float
    ) -> None:
        self._launch = launch
        self._home = home
        self._former: list[BrokerFolder] = []  #: another thread may still read in them
        self._timeout = timeout
        self._keep = -1
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self.trouble: MamError | None = None  #: why there was none at the beginning

    @property
    def port(self) -> int:
        """Where it listens now."""
        return self._home.address().port

    def login(self, role: Role) -> Login:
        return self._home.login(role)

    def begin(self, *, or_later: bool) -> None:
        deadline = time.monotonic() + self._timeout
        self._keep = self._take(KEEP, fcntl.LOCK_SH, deadline)
        try:
            self._await_broker(deadline)
        except (BrokerFailed, NoBroker) as problem:
            if not or_later:
                raise
            self.trouble = problem
        self._thread = threading.Thread(target=self._look_after, name="mam-broker", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Keep it no longer: it ends when no other keeper is left."""
        self._closing.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(PARTING_SEC)
        if self._keep >= 0:
            os.close(self._keep)
            self._keep = -1
        for home in (self._home, *self._former):
            home.close()

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- starting --------------------------------------------------------------------------

    def _await_broker(self, deadline: float) -> None:
        """Until it answers; started if nobody else does it."""
        starts = 0
        pause = 0.005
        while not self._closing.is_set():
            if (lock := self._try(LOCK, fcntl.LOCK_EX)) is not None:
                if starts == _STARTS:
                    os.close(lock)
                    raise BrokerFailed(f"the embedded broker does not start: {self._last_words()}")
                starts += 1
                try:
                    self._launch(self._home, lock)
                finally:
                    os.close(lock)
            elif self._answers():
                return
            else:
                self._end_orphan()
            if time.monotonic() > deadline:
                raise BrokerFailed(
                    f"the embedded broker does not answer within {self._timeout:g} s: "
                    f"{self._last_words()}"
                )
            self._closing.wait(paced(pause))
            pause = min(pause * 1.5, 0.1)

    def _answers(self) -> bool:
        running = read_running(self._home)
        # Ours by the kernel's word: a password is not shown to a stranger that took the port.
        if running is None or not running.watcher_may_live or not is_ours(running.port):
            return False
        login = self._home.login(Role.OPERATOR)
        try:
            return connack(HOST, running.port, login.username, login.password) == ACCEPTED
        except OSError:
            return False

    def _end_orphan(self) -> None:
        """A broker whose watcher was killed would outlive us all: end it, and start another."""
        running = read_running(self._home)
        if running is not None and not running.watcher_may_live:
            running.server.send(signal.SIGTERM)

    def _last_words(self) -> str:
        """The last line that the program wrote; safe_text is the terminal's business."""
        lines: list[str] = []
        for name in (SERVER_LOG, START_LOG):
            with suppress(OSError, MamError):
                data, _ = self._home.folder.read(name, _LOG_LIMIT)
                lines += [line for line in data.decode("utf-8", "replace").splitlines() if line]
        telling = [line for line in lines if not line.startswith(ENDED)]
        return (telling or lines or ["it said nothing"])[-1][:300]

    # -- keeping ---------------------------------------------------------------------------

    def _look_after(self) -> None:
        failures = 1 if self.trouble else 0
        said = str(self.trouble or "")
        since = time.monotonic()
        while not self._closing.wait(paced(_LOOK_SEC)):
            try:
                if not self._is_down():
                    continue
                if time.monotonic() - since > _LASTED_SEC:
                    failures = 0
                pause = _PAUSES_SEC[min(failures, len(_PAUSES_SEC) - 1)]
                if self._closing.wait(paced_retry(pause)):
                    return
                failures += 1
                self._await_broker(time.monotonic() + self._timeout)
                since = time.monotonic()
                if self._closing.is_set():
                    return
                done = (
                    "could not be started and now runs"
                    if said
                    else "had ended and was started again"
                )
                _log.warning("the embedded broker %s", done)
                said = ""
            except (MamError, OSError) as problem:
                if str(problem) != said:  # not twice a second
                    said = str(problem)
                    _log.warning("%s", said)

    def _move_along(self) -> None:
        """Another registry stands where ours stood: keep its broker, and let go of the old one.

        While there is none, ours was moved and may come back: its broker goes on.
        """
        before = self._home
        registry = os.path.dirname(before.folder.path)
        if before.folder.is_present() or not os.path.isdir(registry):
            return
        self._home = made = BrokerFolder.make(registry)
        try:
            keep = self._take(KEEP, fcntl.LOCK_SH, time.monotonic() + self._timeout)
        except BaseException:
            self._home = before
            made.close()
            raise
        self._former.append(before)
        os.close(self._keep)
        self._keep = keep

    def _is_down(self) -> bool:
        self._move_along()
        lock = self._try(LOCK, fcntl.LOCK_EX)
        if lock is None:
            self._end_orphan()
            return False
        os.close(lock)
        return True

    # -- locks -----------------------------------------------------------------------------

    def _try(self, name: str, kind: int) -> int | None:
        """The lock on a file, as an open file; None when others have it."""
        try:
            fd = self._home.folder.open_in_place(name, os.O_RDWR)
        except OSError as problem:
            raise explain(problem, f"cannot use {self._home.folder.path}") from problem
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
        except OSError as problem:
            os.close(fd)
            if problem.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return None
            raise
        return fd

    def _take(self, name: str, kind: int, deadline: float) -> int:
        while (fd := self._try(name, kind)) is None:
            if time.monotonic() > deadline:
                raise BrokerFailed("the embedded broker is being ended, and does not end")
            time.sleep(0.02)
        return fd
