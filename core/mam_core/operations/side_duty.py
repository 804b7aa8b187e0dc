"""What a long-lived command does on the side: on a thread, with a registry of its own.

One mechanism for the sweep, the schedules and the slots of groups, so that all of them begin and
end with their block, and none is ended for good by a trouble that the next round may not meet.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mam_core.audit import warn
from mam_core.config import Config
from mam_core.pace import PARTING_SEC
from mam_core.registry import Registry
from mam_core.wiring import open_registry

Serve = Callable[[Registry, threading.Event], None]


@contextmanager
def side_duty(
    name: str,
    hindered: str,
    serve: Serve,
    registry_path: str,
    config: Config,
    *,
    allow_network: bool = False,
) -> Iterator[None]:
    """`serve` runs while the block lasts; `hindered` says in a warning what is not done."""
    stop = threading.Event()

    def go() -> None:
        try:
            opened = open_registry(registry_path, config=config, allow_network=allow_network)
            with opened as registry:
                serve(registry, stop)
        except Exception as problem:  # a thread has nobody else to tell
            warn(f"{hindered}: {problem}")

    thread = threading.Thread(target=go, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PARTING_SEC)


class Once:
    """Tells a trouble when it is a new one; it is new again after a round without."""

    def __init__(self, hindered: str) -> None:
        self._hindered = hindered
        self._said = ""

    def tell(self, problem: Exception) -> None:
        if str(problem) != self._said:
            self._said = str(problem)
            warn(f"{self._hindered}: {self._said}")

    def over(self) -> None:
        self._said = ""


def rounds(
    stop: threading.Event, pause_sec: Callable[[], float], act: Callable[[], object], trouble: Once
) -> None:
    """`act` again and again until `stop`, with a pause before each."""
    while not stop.wait(pause_sec()):
        try:
            act()
            trouble.over()
        except Exception as problem:  # whatever it is, the next round may not meet it
            trouble.tell(problem)
