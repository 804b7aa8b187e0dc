"""The sizing formula: ``min(avail_mem * 0.8 / job_mem, cores * 0.8 / job_cpu)``."""

from __future__ import annotations

from typing import Any, NamedTuple

from mam_core.machine import Machine

#: A fifth is left to the system and whatever else runs there.
MARGIN = 0.8


class Advice(NamedTuple):
    """How many jobs fit, by each of the two; None where nothing is known of it."""

    by_memory: float | None
    by_cpu: float | None

    @property
    def fits(self) -> int | None:
        """The smaller one, in whole jobs; None when neither is known."""
        known = [one for one in (self.by_memory, self.by_cpu) if one is not None]
        return int(min(known)) if known else None

    @property
    def words(self) -> str:
        if self.fits is None:
            return "unknown: the group says neither memory nor cpu"
        return "memory decides" if self._memory_decides else "the cores decide"

    @property
    def _memory_decides(self) -> bool:
        if self.by_memory is None or self.by_cpu is None:
            return self.by_cpu is None
        return self.by_memory <= self.by_cpu

    def to_dict(self) -> dict[str, Any]:
        return {
            "by_memory": None if self.by_memory is None else round(self.by_memory, 2),
            "by_cpu": None if self.by_cpu is None else round(self.by_cpu, 2),
            "fits": self.fits,
        }


def advice(machine: Machine, *, memory: int | None, cpu: float | None) -> Advice:
    """`memory` in bytes and `cpu` in cores are what one job needs."""
    free = machine.memory_free
    return Advice(
        None if free is None or not memory else free * MARGIN / memory,
        None if not cpu else machine.cores * MARGIN / cpu,
    )
