"""What a process tree has used: memory, CPU, bytes read and written, bytes over TCP.

Every count only ever grows, also when processes come and go, so that whoever
judges idleness needs to compare two numbers and no more. What the kernel does not
tell (the bytes of a process of another user, UDP) is simply not in the count; the
bytes over TCP are None where they cannot be had at all.
"""

from __future__ import annotations

from mam_core.work.processes import HAS_PROC, Process, read_fact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam_core.work.traffic import Traffic


class Meter:
    """The running counts of one tree."""

    def __init__(self) -> None:
        self.memory = 0  #: resident now; pages that several share are counted for each
        self.peak = 0
        self.cpu_sec = 0.0
        self.io_bytes = 0
        self.net_bytes: int | None = None
        self._io: dict[tuple[int, str], int] = {}
        self._traffic: Traffic | None = None

    def sample(self, members: list[Process], waited_sec: float) -> None:
        """`waited_sec` is the CPU time of those who have ended and lost their parents."""
        self.weigh(members)
        self.count_cpu(members, waited_sec)
        if HAS_PROC:
            self._sample_io(members)
            self._sample_traffic(members)

    def count_cpu(self, members: list[Process], waited_sec: float) -> None:
        running = sum(process.cpu_sec for process in members)
        self.cpu_sec = max(self.cpu_sec, running + waited_sec)

    def weigh(self, members: list[Process]) -> None:
        self.memory = sum(process.memory for process in members)
        self.peak = max(self.peak, self.memory)

    def exceeds(self, members: list[Process], limit: int) -> bool:
        """More memory than `limit`, with shared pages shared out fairly.

        That count is costly, so it is made only when the plain one is over the limit.
        """
        return self.memory > limit and _fair_share(members) > limit

    def _sample_io(self, members: list[Process]) -> None:
        now = {}
        for process in members:
            lines = read_fact(process.pid, "io").split(None, 4)
            if len(lines) > 3:  # rchar: N wchar: N
                now[process.name] = int(lines[1]) + int(lines[3])
        for name, count in now.items():
            self.io_bytes += max(0, count - self._io.get(name, 0))
        self._io = now

    def _sample_traffic(self, members: list[Process]) -> None:
        if self._traffic is None:
            from mam_core.work.traffic import Traffic  # not before the first second is over

            self._traffic = Traffic()
        self.net_bytes = self._traffic.sample([process.pid for process in members])


def _fair_share(members: list[Process]) -> int:
    total = 0
    for process in members:
        _, found, rest = read_fact(process.pid, "smaps_rollup").partition(b"\nPss:")
        kilobytes = rest.split(None, 1)[0] if found else b""
        total += int(kilobytes) * 1024 if kilobytes.isdigit() else process.memory
    return total
