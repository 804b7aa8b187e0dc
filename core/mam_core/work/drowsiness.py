"""A sweep that slept was not alone in it: whoever else slept gets time to wake up.

A laptop is closed, a group of processes is stopped: afterwards every lease has
expired, though nobody is lost. A lease that expired while we did not look
ourselves is believed only when it is still not renewed half of its time later,
which is longer than a worker takes between two heartbeats. A process that has
just begun did not look before: all that the machine ever slept may have been just now.
"""

from __future__ import annotations

from collections.abc import Hashable, Set

from mam_core.clock import Clock
from mam_core.record_parts import Lease


class Drowsiness:
    """How long we slept before this pass, and whom we forgive for it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._dozed_at: float | None = None
        self._nap_sec = 0.0
        self._forgiven: dict[Hashable, tuple[Lease, float]] = {}

    def doze(self) -> None:
        """A pass is over."""
        self._dozed_at = self._clock.since_boot()

    def wake(self, running: Set[Hashable]) -> None:
        """A pass begins, over these."""
        if self._dozed_at is None:
            self._nap_sec = self._clock.suspended()
        else:
            self._nap_sec = self._clock.since_boot() - self._dozed_at
        self._forgiven = {name: it for name, it in self._forgiven.items() if name in running}

    def forgives(self, name: Hashable, lease: Lease, age: float | None) -> bool:
        """This lease, renewed `age` seconds ago, has expired, and its holder may have slept as we
        did."""
        now = self._clock.since_boot()
        known, since = self._forgiven.get(name, (None, 0.0))
        if known == lease:
            return now - since < lease.ttl_sec / 2
        if self._nap_sec < lease.ttl_sec or (age or 0.0) - self._nap_sec > lease.ttl_sec:
            return False
        self._forgiven[name] = lease, now
        return True
