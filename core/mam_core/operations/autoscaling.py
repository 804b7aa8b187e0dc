"""Every long-lived process takes part in the scaling of groups; one of them decides.

With ``[autoscale] enabled`` off, which is the default, nothing is scaled; a change
that a person makes is watched all the same, and what is seen is told.
"""

from __future__ import annotations

import random
import threading
from contextlib import AbstractContextManager

from mam_core.config import Config
from mam_core.machine import Gauge
from mam_core.operations.side_duty import Duty, Once, side_duty
from mam_core.operations.sweeping import SPREAD
from mam_core.registry import Registry
from mam_core.work.check_command import objection
from mam_core.work.scaling import Check, Scaler

_HINDERED = "groups are not looked after"


def autoscaling(
    registry_path: str, config: Config, *, allow_network: bool = False, gauge: Gauge | None = None
) -> AbstractContextManager[Duty]:
    """While the block lasts; what hinders it is a warning, and tried again."""
    eye = gauge or Gauge()

    def serve(registry: Registry, duty: Duty) -> None:
        check = _check(config, duty.stop)
        scaler = Scaler(registry, config.autoscale, config.groups, eye.look, check)
        eye.look()  # what the first pass compares with

        def once() -> None:
            scaler.go_by(config.autoscale, config.groups)
            scaler.once()

        def pause_sec() -> float:
            return config.autoscale.every_sec * random.uniform(1 - SPREAD, 1)

        # Figures are those of a while: a pass at once would have none to go by.
        if not duty.stop.wait(pause_sec()):
            duty.rounds(pause_sec, once, Once(_HINDERED))
        scaler.leave()

    return side_duty(
        "mam-autoscale", _HINDERED, serve, registry_path, config, allow_network=allow_network
    )


def _check(config: Config, stop: threading.Event) -> Check:
    def check(group: str, slots: int) -> str:
        argv = config.autoscale.check
        if argv is None:
            return ""
        return objection(argv, {"MAM_GROUP": group, "MAM_SLOTS": str(slots)}, stop)

    return check
