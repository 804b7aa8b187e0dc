"""``mam capacity``: how many jobs of each group fit on this host, and what decides that."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option
from mam_core.cli.sizes import size
from mam_core.cli.terminal import put, put_json, table_width
from mam_core.operations.capacity import Capacity, Room, capacity
from mam_core.table import Column, render

_MOST_OF_A_NAME = 24


def options(parser: argparse.ArgumentParser) -> None:
    json_option(parser)
    parser.epilog = (
        "min(available memory * 0.8 / memory of a job, cores * 0.8 / cores of a job), with memory "
        "and cpu of [groups.NAME]. Memory that running jobs hold is not available, so the figure "
        "is what fits beside them; ask while the host is idle to size a group."
    )


def run(args: argparse.Namespace, context: Context) -> int:
    found = capacity(context.registry, context.settings)
    if args.json:
        put_json(found.to_dict())
        return 0
    machine = found.machine
    free, total = size(machine.memory_free), size(machine.memory_total)
    put([f"{machine.cores} cores, load {machine.load:.2f}, memory {free} available of {total}"])
    put(render(_columns(found), table_width()))
    return 0


def _columns(found: Capacity) -> list[Column]:
    def cells(of: Callable[[Room], str]) -> list[str]:
        return [of(room) for room in found.rooms]

    return [
        Column("GROUP", cells(lambda room: room.group.name), flexible=True, most=_MOST_OF_A_NAME),
        Column("FITS", cells(lambda room: _or_dash(room.advice.fits))),
        Column("BY MEMORY", cells(lambda room: _or_dash(room.advice.by_memory)), leaves=3),
        Column("BY CPU", cells(lambda room: _or_dash(room.advice.by_cpu)), leaves=2),
        Column("MEMORY", cells(lambda room: size(room.group.memory)), leaves=5),
        Column("CPU", cells(lambda room: _or_dash(room.group.cpu)), leaves=4),
        Column("SLOTS", cells(lambda room: _slots(room))),
        Column("RUNS", cells(lambda room: str(room.group.running))),
        Column("WHY", cells(lambda room: room.advice.words), flexible=True, leaves=1),
    ]


def _slots(room: Room) -> str:
    return "any" if room.group.slots is None else str(room.group.slots)


def _or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
