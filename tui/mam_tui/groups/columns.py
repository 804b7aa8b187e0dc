"""The columns of the groups' table. Names and reasons come from outside, and leave harmless."""

from __future__ import annotations

from collections.abc import Mapping

from mam_core.clock import parse_stamp
from mam_core.operations.groups import Act, Group
from mam_core.safe_text import one_line
from mam_tui.laying import Column, Columns, Look
from mam_tui.moments import size, span

_MOST_OF_THE_WORDS = 300


def _slots(group: Group, look: Look) -> str:
    return "any" if group.slots is None else str(group.slots)


def _waiting(group: Group, look: Look) -> str:
    return f"{group.waiting} held" if group.is_paused and group.waiting else str(group.waiting)


def _when(group: Group, look: Look) -> str:
    if group.last is None:
        return ""
    try:
        return span(max(0.0, look.now - parse_stamp(group.last.at)))
    except ValueError:
        return "?"


def _decision(group: Group, look: Look) -> str:
    return "" if group.last is None else one_line(decision_words(group.last)[:_MOST_OF_THE_WORDS])


def decision_words(act: Act) -> str:
    """``up 2 > 3: CPU below 40 % …``; what was left as it is says so once."""
    slots = ["any" if one is None else str(one) for one in (act.before, act.after)]
    what = f"{act.deed} {slots[0]} > {slots[1]}" if act.deed.is_change else str(act.deed)
    times = f" x{act.times}" if act.times > 1 else ""
    return f"{what}{times}{f': {act.why}' if act.why else ''}"


def _figures(group: Group, look: Look) -> str:
    return "" if group.last is None else one_line(figure_words(group.last))


def figure_words(act: Act) -> str:
    """``cpu 12 % mem 34 % load 0.5/8``, as the decision was made by them."""
    said = act.figures
    if not said:
        return ""
    swapped = f" swapped {said['swapped']}" if said.get("swapped") else ""
    return (
        f"cpu {said.get('cpu', '?')} % mem {said.get('memory', '?')} % "
        f"load {said.get('load', '?')}/{said.get('cores', '?')}{swapped}"
    )


_ALL: tuple[Column[Group], ...] = (
    Column("group", "GROUP", 14, 100, lambda one, _: one_line(one.name), lambda one: one.name),
    Column("slots", "SLOTS", 5, 95, _slots, lambda one: one.slots, right=True),
    Column("bounds", "MIN-MAX", 7, 60, lambda one, _: one.bounds, lambda one: one.high),
    Column("runs", "RUNS", 4, 90, lambda one, _: str(one.running), lambda one: one.running, True),
    Column("waits", "WAITS", 7, 85, _waiting, lambda one: one.waiting, right=True),
    Column(
        "memory", "MEMORY", 8, 40, lambda one, _: size(one.memory), lambda one: one.memory, True
    ),
    Column("origin", "SAID BY", 22, 50, lambda one, _: one_line(one.origin), lambda one: one.name),
    Column("when", "AGO", 5, 65, _when, lambda one: one.name, right=True, by_clock=True),
    Column("figures", "FIGURES", 34, 55, _figures, lambda one: one.name),
    Column("last", "LAST DECISION", 24, 70, _decision, lambda one: one.name),
)
COLUMNS: Mapping[str, Column[Group]] = {column.name: column for column in _ALL}
GROUP_COLUMNS = Columns(COLUMNS, last="last", seldom_used=("memory", "when", "figures", "last"))


def used_by(group: Group) -> set[str]:
    used = {"memory"} if group.memory is not None else set()
    if group.last is not None:
        used |= {"when", "last"}
        used |= {"figures"} if group.last.figures else set()
    return used
