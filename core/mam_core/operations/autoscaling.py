"""Every long-lived process takes part in the scaling of groups; one of them decides.

With ``[autoscale] enabled`` off, which is the default, nothing is scaled; a change
that a person makes is watched all the same, and what is seen is told.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mam_core.audit import warn
from mam_core.config import Config
from mam_core.machine import Gauge
from mam_core.operations.sweeping import SPREAD
from mam_core.registry import Registry
from mam_core.wiring import open_registry
from mam_core.work.check_command import objection
from mam_core.work.scaling import Check, Scaler


@contextmanager
def autoscaling(
    registry_path: str, config: Config, *, allow_network: bool = False, gauge: Gauge | None = None
) -> Iterator[None]:
    """While the block lasts; what hinders it is a warning, and tried again."""
    stop = threading.Event()

    def scale() -> None:
        try:
            opened = open_registry(registry_path, config=config, allow_network=allow_network)
            with opened as registry:
                _go_on(registry, config, gauge or Gauge(), stop)
        except Exception as problem:  # a thread has nobody else to tell
            warn(f"groups are not looked after: {problem}")

    thread = threading.Thread(target=scale, name="mam-autoscale", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _go_on(registry: Registry, config: Config, gauge: Gauge, stop: threading.Event) -> None:
    settings = config.autoscale
    scaler = Scaler(registry, settings, config.groups, gauge.look, _check(config, stop))
    gauge.look()  # what the first pass compares with
    said = ""
    while not stop.wait(settings.every_sec * random.uniform(1 - SPREAD, 1)):
        try:
            scaler.once()
            said = ""
        except Exception as problem:  # whatever it is, the next pass may not meet it
            if str(problem) != said:
                said = str(problem)
                warn(f"groups are not looked after: {said}")
    scaler.leave()


def _check(config: Config, stop: threading.Event) -> Check | None:
    argv = config.autoscale.check
    if argv is None:
        return None

    def check(group: str, slots: int) -> str:
        return objection(argv, {"MAM_GROUP": group, "MAM_SLOTS": str(slots)}, stop)

    return check
