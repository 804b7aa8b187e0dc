"""A machine of the test's own: a /proc whose figures it sets."""

from __future__ import annotations

from pathlib import Path

from mam_core.machine import Figures, Gauge

TOTAL = 100 << 30


class FakeProc:
    """Between two looks of a gauge, exactly so much happened."""

    def __init__(self, folder: Path, cores: int = 10) -> None:
        self._folder = folder
        self._idle = self._busy = 1000
        self._swapped = 7
        folder.mkdir()
        self.set()
        self.gauge = Gauge(str(folder), cores)
        self.gauge.look()

    def set(
        self,
        cpu: int = 50,
        memory: float = 70,
        *,
        load: float = 1.0,
        swapped: int = 0,
        ticks: int = 1000,
    ) -> FakeProc:
        """`cpu` in percent of `ticks`, `memory` in percent of 100 GiB."""
        self._busy += cpu * ticks // 100
        self._idle += ticks - cpu * ticks // 100
        self._swapped += swapped
        # The first four are busy, idle and waiting for a disk are not.
        stat = f"cpu  {self._busy - 30} 10 20 {self._idle - 40} 40 0 0 0 5 5\ncpu0 1 2 3 4 5 6 7\n"
        self._put("stat", stat)
        free = round(TOTAL * (100 - memory) / 100) // 1024
        words = f"MemTotal: {TOTAL // 1024} kB\nMemFree: 1 kB\nMemAvailable: {free} kB\n"
        self._put("meminfo", words)
        self._put("loadavg", f"{load} 1.00 1.00 1/100 99\n")
        self._put("vmstat", f"nr_free_pages 5\npswpin 7\npswpout {self._swapped}\noom_kill 0\n")
        return self

    def _put(self, name: str, text: str) -> None:
        """At once, as the kernel does it: a gauge on another thread may be reading."""
        made = self._folder / f"{name}.new"
        made.write_text(text)
        made.rename(self._folder / name)

    def look(self) -> Figures | None:
        return self.gauge.look()
