"""A clock that stands still until a test moves it."""

from __future__ import annotations

from dataclasses import dataclass

#: 2026-06-19T09:30:00Z, the documents' own example.
NOON = 1781861400.0


@dataclass
class FakeClock:
    """Wall time and boot time, moved together by `pass_time` and apart by setting them."""

    wall: float = NOON
    up: float = 1000.0
    boot: str = "boot-one"
    asleep: float = 0.0

    def now(self) -> float:
        return self.wall

    def since_boot(self) -> float:
        return self.up

    def suspended(self) -> float:
        return self.asleep

    def boot_id(self) -> str:
        return self.boot

    def pass_time(self, seconds: float) -> None:
        self.wall += seconds
        self.up += seconds

    def suspend(self, seconds: float) -> None:
        """The laptop is closed for so long."""
        self.pass_time(seconds)
        self.asleep += seconds

    def reboot(self, name: str = "boot-two") -> None:
        self.boot = name
        self.up = 1.0
        self.asleep = 0.0
