"""What a command does on the side, on a thread with a registry of its own.

One mechanism for the sweep, the schedules and the slots of groups, so that all of them begin and
end with their block, and none is ended for good by a trouble that the next pass may not meet. The
first pass comes at once: a command that lives for a second does its part as well. A command that
is about to end for want of work asks for one more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mam_core.audit import warn
from mam_core.config import Config
from mam_core.pace import PARTING_SEC, paced
from mam_core.registry import Registry
from mam_core.wiring import open_registry

#: How soon a caller that waits for a pass notices that it should stop waiting.
_LOOK_SEC = 0.1


class Duty:
    """Passes that follow each other on one thread until the duty ends."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._turn = threading.Condition()
        self._begun = 0
        self._done = 0
        self._wanted = 0
        self._is_over = False

    def once_more(self, is_stopped: Callable[[], bool] = lambda: False) -> None:
        """Make a whole pass that begins after this call, and return when it is over.

        Returns early when the duty has ended, or when `is_stopped`.
        """
        with self._turn:
            mine = self._wanted = self._begun + 1
            self._turn.notify_all()
            while self._done < mine and not self._is_over and not is_stopped():
                self._turn.wait(paced(_LOOK_SEC))

    def rounds(
        self, pause_sec: Callable[[], float], act: Callable[[], object], trouble: Once
    ) -> None:
        """For the duty's thread: `act` at once, and again after each pause, until it is to end."""
        while not self.stop.is_set():
            with self._turn:
                self._begun += 1
            try:
                act()
                trouble.over()
            except Exception as problem:  # whatever it is, the next pass may not meet it
                trouble.tell(problem)
            with self._turn:
                self._done = self._begun
                self._turn.notify_all()
                self._turn.wait_for(self._is_due, pause_sec())

    def end(self) -> None:
        self.stop.set()
        with self._turn:
            self._turn.notify_all()

    def over(self) -> None:
        """No pass comes any more: the thread ends."""
        with self._turn:
            self._is_over = True
            self._turn.notify_all()

    def _is_due(self) -> bool:
        return self.stop.is_set() or self._wanted > self._begun


Serve = Callable[[Registry, Duty], None]


@contextmanager
def side_duty(
    name: str,
    hindered: str,
    serve: Serve,
    registry_path: str,
    config: Config,
    *,
    allow_network: bool = False,
) -> Iterator[Duty]:
    """`serve` runs while the block lasts; `hindered` says in a warning what is not done."""
    duty = Duty()

    def go() -> None:
        try:
            opened = open_registry(registry_path, config=config, allow_network=allow_network)
            with opened as registry:
                serve(registry, duty)
        except Exception as problem:  # a thread has nobody else to tell
            warn(f"{hindered}: {problem}")
        finally:
            duty.over()

    thread = threading.Thread(target=go, name=name, daemon=True)
    thread.start()
    try:
        yield duty
    finally:
        duty.end()
        thread.join(PARTING_SEC)


class Once:
    """Tells a trouble when it is a new one; it is new again after a pass without."""

    def __init__(self, hindered: str) -> None:
        self._hindered = hindered
        self._said = ""

    def tell(self, problem: Exception) -> None:
        if str(problem) != self._said:
            self._said = str(problem)
            warn(f"{self._hindered}: {self._said}")

    def over(self) -> None:
        self._said = ""
