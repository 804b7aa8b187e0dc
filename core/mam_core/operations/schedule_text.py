"""Schedules as a person reads them: on a terminal and in the console alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mam_core.operations.schedule import Standing
from mam_core.schedules.due import in_words
from mam_core.schedules.firing import missed_in_words
from mam_core.table import Column, render


def table_lines(found: Sequence[Standing], width: int | None) -> Iterator[str]:
    return render(_columns(found), width)


def remarks(found: Sequence[Standing]) -> Iterator[str]:
    """A sentence for each that cannot be made, or has missed something: how often, and why."""
    for one in found:
        if one.trouble:
            yield one.trouble
        if remark := missed_in_words(one.schedule.name, one.missed, one.missed_count):
            yield remark


def _columns(found: Sequence[Standing]) -> list[Column]:
    memories = [one.memory for one in found]
    return [
        Column("NAME", [one.schedule.name for one in found]),
        Column("RULE", [one.schedule.rule for one in found], flexible=True),
        Column("TEMPLATE", [one.schedule.template for one in found], flexible=True),
        Column("NEXT", [_next(one) for one in found]),
        Column("LAST", [memory.at if memory and memory.at else "-" for memory in memories]),
        Column("JOB", [memory.job_id if memory and memory.job_id else "-" for memory in memories]),
        Column("MISSED", [in_words(one.missed_count) for one in found]),
    ]


def _next(one: Standing) -> str:
    if one.pause is not None:
        return f"paused until {one.pause.until}" if one.pause.until else "paused"
    return one.next or "never"
