"""How many jobs of each group fit on this host, by the formula of the job-safety document."""

from __future__ import annotations

from typing import Any, NamedTuple

from mam_core.config import Config
from mam_core.machine import Machine, look
from mam_core.operations.groups import Group, groups
from mam_core.registry import Registry
from mam_core.work.capacity import Advice, advice

__all__ = ["Advice", "Capacity", "Machine", "Room", "capacity"]


class Room(NamedTuple):
    """One group, and how many of it fit."""

    group: Group
    advice: Advice

    def to_dict(self) -> dict[str, Any]:
        return {
            "group": self.group.name,
            "slots": self.group.slots,
            "running": self.group.running,
            "waiting": self.group.waiting,
            "memory": self.group.memory,
            "cpu": self.group.cpu,
            **self.advice.to_dict(),
        }


class Capacity(NamedTuple):
    """This host, and the groups."""

    machine: Machine
    rooms: tuple[Room, ...]

    def to_dict(self) -> dict[str, Any]:
        return {**self.machine._asdict(), "groups": [room.to_dict() for room in self.rooms]}


def capacity(registry: Registry, config: Config, machine: Machine | None = None) -> Capacity:
    """By what this host has to give right now."""
    seen = machine or look()
    rooms = tuple(
        Room(one, advice(seen, memory=one.memory, cpu=one.cpu)) for one in groups(registry, config)
    )
    return Capacity(seen, rooms)
