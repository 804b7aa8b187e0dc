"""Every long-lived process sweeps: lost and late jobs are looked for in a thread of its own.

A pass reads the running records and no others, so that many may do it at once;
each comes at a moment of its own, and what one has done the others find done.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mam_core.audit import warn
from mam_core.config import Config
from mam_core.registry import Registry
from mam_core.wiring import open_registry
from mam_core.work.submissions import cancel_abandoned
from mam_core.work.sweep import Sweep

#: A pause is so much shorter or longer than the setting says: whoever began together parts.
SPREAD = 0.2


@contextmanager
def sweeping(registry_path: str, config: Config, *, allow_network: bool = False) -> Iterator[None]:
    """While the block lasts; what hinders it is a warning, and tried again."""
    stop = threading.Event()

    def sweep() -> None:
        try:
            opened = open_registry(registry_path, config=config, allow_network=allow_network)
            with opened as registry:
                _go_on(registry, registry_path, config, stop)
        except Exception as problem:  # a thread has nobody else to tell
            warn(f"lost jobs are not looked for: {problem}")

    thread = threading.Thread(target=sweep, name="mam-sweep", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _go_on(registry: Registry, registry_path: str, config: Config, stop: threading.Event) -> None:
    defaults = config.defaults
    swept = Sweep(registry, grace_sec=defaults.grace_sec, is_stopped=stop.is_set)
    said = ""
    while not stop.wait(defaults.sweep_sec * random.uniform(1 - SPREAD, 1 + SPREAD)):
        try:
            swept.once()
            cancel_abandoned(registry, registry_path)
            said = ""
        except Exception as problem:  # whatever it is, the next pass may not meet it
            if str(problem) != said:
                said = str(problem)
                warn(f"lost jobs are not looked for: {said}")
