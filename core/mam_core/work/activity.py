"""What an attempt does and what it uses: is it at work, and is it over its budget?"""

from __future__ import annotations

from mam_core.agents.streams.base import Happening, Kind
from mam_core.records import Job
from mam_core.work.reports import Usage

#: So much of a sample's time on a processor, or so many bytes, is work; less is a clock ticking.
_BUSY_SHARE = 0.05
_BUSY_BYTES = 4096
#: Memory that is worth no word, and the growth that is.
_SMALL_BYTES = 64 * 1024 * 1024
_GROWTH = 1.25


class Activity:
    """Work that nobody sees is work: a build prints nothing for minutes."""

    def __init__(self) -> None:
        self._last: tuple[float, Usage] | None = None

    def is_busy(self, usage: Usage, now: float) -> bool:
        """Since the sample before."""
        before, self._last = self._last, (now, usage)
        if before is None:
            return False
        then, old = before
        return (
            usage.cpu_sec - old.cpu_sec > _BUSY_SHARE * (now - then)
            or usage.io_bytes - old.io_bytes > _BUSY_BYTES
            or (usage.net_bytes or 0) - (old.net_bytes or 0) > _BUSY_BYTES
        )


class MemoryNews:
    """When an attempt's memory is worth an event: each time that its peak has grown by a quarter,
    so that a few tell of any size, and none of a small command."""

    def __init__(self) -> None:
        self._peak = 0
        self._told = _SMALL_BYTES

    def of(self, usage: Usage) -> dict[str, int] | None:
        """What is to be told after this sample."""
        self._peak = max(self._peak, usage.memory)
        if self._peak < self._told * _GROWTH:
            return None
        self._told = self._peak
        return {"memory": usage.memory, "peak_memory": self._peak}


def over_budget(job: Job, happening: Happening) -> str:
    """What was overspent, as a sentence; empty when nothing was. Agents tell totals."""
    if happening.kind is Kind.TOKENS and job.max_tokens is not None:
        used = int(happening.data.get("input", 0)) + int(happening.data.get("output", 0))
        if used > job.max_tokens:
            return f"it used {used:,} tokens of {job.max_tokens:,}"
    if happening.kind is Kind.COST and job.max_cost is not None:
        cost = float(happening.data.get("cost") or 0.0)
        if cost > job.max_cost:
            return f"it cost ${cost:.2f} of ${job.max_cost:.2f}"
    return ""
