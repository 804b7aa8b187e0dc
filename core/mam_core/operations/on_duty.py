"""What every long-lived command does on the side: broker, relay, sweep, schedules, slots."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from mam_core.config import Config
from mam_core.errors import MamError
from mam_core.pace import PARTING_SEC
from mam_core.wiring import open_registry

#: Look once more for what may bring a job, and return when that is done or not wanted any more.
LookAgain = Callable[[Callable[[], bool]], None]


@contextmanager
def on_duty(
    registry_path: str,
    config: Config,
    *,
    config_path: str | None = None,
    allow_network: bool = False,
) -> Iterator[LookAgain]:
    """While the block lasts the embedded broker runs, the outbox is drained, lost jobs are found,
    and schedules register theirs. `config` is renewed when its files change.

    All of it begins at once, so that a command which lives for a second does its part. What is
    yielded makes one more pass of whatever may bring a job: the sweep and the schedules.
    None of it has to succeed: what cannot be had is a warning, and the registry tells the rest.
    """
    # Here, on whichever thread serves: the console draws its first frame without them.
    from mam_core.audit import warn
    from mam_core.operations.autoscaling import autoscaling
    from mam_core.operations.broker import keep_broker
    from mam_core.operations.relay import leave_behind, new_relay
    from mam_core.operations.schedule import scheduling
    from mam_core.operations.sweeping import sweeping

    stop = threading.Event()

    def relay() -> None:
        try:
            with open_registry(registry_path, config=config, allow_network=allow_network) as mine:
                new_relay(mine, registry_path, config).run(stop)
        except Exception as problem:  # a thread has nobody else to tell
            warn(f"events are not sent on: {problem}")

    sweeps = sweeping(registry_path, config, allow_network=allow_network)
    scales = autoscaling(registry_path, config, allow_network=allow_network)
    schedules = scheduling(
        registry_path, config, config_path=config_path, allow_network=allow_network
    )
    with keep_broker(registry_path, config), sweeps as sweep, scales, schedules as schedule:

        def look_again(is_stopped: Callable[[], bool]) -> None:
            for duty in (sweep, schedule):
                duty.once_more(is_stopped)

        thread = threading.Thread(target=relay, name="mam-relay", daemon=True)
        thread.start()
        try:
            yield look_again
        finally:
            stop.set()
            with open_registry(registry_path, config=config, allow_network=allow_network) as ours:
                outbox = ours.store.outbox
                with suppress(OSError, MamError):
                    outbox.ring()  # or it would look at `stop` half a second later
                thread.join(PARTING_SEC)
                with suppress(OSError, MamError):
                    if outbox.posts(1):  # whoever posted it saw a relay that has just gone
                        leave_behind(registry_path, config_path=config_path)
