"""Every long-lived process sweeps: lost and late jobs are looked for in a thread of its own.

A pass reads the running records and no others, so that many may do it at once;
each comes at a moment of its own, and what one has done the others find done.
"""

from __future__ import annotations

import random
from contextlib import AbstractContextManager

from mam_core.config import Config
from mam_core.operations.side_duty import Duty, Once, side_duty
from mam_core.registry import Registry
from mam_core.work.submissions import cancel_abandoned
from mam_core.work.sweep import Sweep

#: A pause is so much shorter or longer than the setting says: whoever began together parts.
SPREAD = 0.2


_HINDERED = "lost jobs are not looked for"


def sweeping(
    registry_path: str, config: Config, *, allow_network: bool = False
) -> AbstractContextManager[Duty]:
    """While the block lasts; what hinders it is a warning, and tried again."""

    def serve(registry: Registry, duty: Duty) -> None:
        swept = Sweep(registry, grace_sec=config.defaults.grace_sec, is_stopped=duty.stop.is_set)

        def sweep() -> None:
            swept.once()
            cancel_abandoned(registry, registry_path)

        def pause_sec() -> float:
            return config.defaults.sweep_sec * random.uniform(1 - SPREAD, 1 + SPREAD)

        duty.rounds(pause_sec, sweep, Once(_HINDERED))

    return side_duty(
        "mam-sweep", _HINDERED, serve, registry_path, config, allow_network=allow_network
    )
