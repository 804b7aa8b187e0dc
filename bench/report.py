"""The figures for people, for machines, and for the README."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from bench.figures import Figure, Measure, Unit
from bench.rounds import Spread
from mam_core.table import Column, render

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "README.md")

_BEGIN = "<!-- results: written by `python -m bench --write-readme` -->"
_END = "<!-- end of results -->"

HEADINGS = ("FIGURE", "AGAINST", "GOAL", "MEASURED", "SPREAD", "REACHED", "OURS", "THEIRS")

#: Wide enough for every column: a cut figure is worse than a broken line.
_WIDTH = 250


def table(figures: Sequence[Figure]) -> str:
    columns = zip(*map(_cells, figures), strict=True) if figures else [()] * len(HEADINGS)
    made = [Column(name, cells) for name, cells in zip(HEADINGS, columns, strict=True)]
    return "\n".join(render(made, _WIDTH))


def as_json(
    figures: Sequence[Figure], wrong: Sequence[str], machine: Mapping[str, str], **more: Any
) -> str:
    return json.dumps(
        {
            "machine": dict(machine),
            **more,
            "figures": [_facts(figure) for figure in figures],
            "wrong": list(wrong),
        },
        indent=2,
    )


def about(machine: Mapping[str, str]) -> str:
    return (
        f"{machine['date']}, {machine['cores']} cores (load {machine['load']} at the start), "
        f"{machine['system']}, {machine['file system']}, Python {machine['python']}, "
        f"SQLite {machine['sqlite']}, huey {machine['huey']}"
    )


def write_readme(figures: Sequence[Figure], machine: Mapping[str, str], path: str = README) -> None:
    """Replace the results, and nothing else."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    head, _, rest = text.partition(_BEGIN)
    _, found, tail = rest.partition(_END)
    if not found:
        raise ValueError(f"{path} has no place for results")
    rows = [HEADINGS, ("---",) * len(HEADINGS), *map(_cells, figures)]
    lines = [_BEGIN, f"{about(machine)}.", "", *(f"| {' | '.join(row)} |" for row in rows), _END]
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + "\n".join(lines) + tail)


def _cells(figure: Figure) -> tuple[str, ...]:
    ratio = figure.ratio
    return (
        figure.what,
        figure.against,
        _goal(figure),
        f"{_times(ratio.median)} {_WORDS[figure.measure]}",
        f"{_times(ratio.low)}..{_times(ratio.high)} of {len(figure.ours)}",
        _reached(figure),
        _AMOUNTS[figure.unit](Spread.of(figure.ours).median),
        _AMOUNTS[figure.unit](Spread.of(figure.theirs).median),
    )


_WORDS = {Measure.SPEED: "as fast", Measure.COST: "the time", Measure.AMOUNT: "as much"}
_BOUNDS = {Measure.SPEED: "at least", Measure.COST: "at most", Measure.AMOUNT: "at most"}


def _goal(figure: Figure) -> str:
    if figure.goal is None:
        return "-"
    words = f"{_BOUNDS[figure.measure]} {figure.goal:g}x"
    return words if figure.stretch is None else f"{words} ({figure.stretch:g}x)"


def _reached(figure: Figure) -> str:
    if figure.is_reached is None:
        return "-"
    if not figure.is_reached:
        return "no"
    return "yes, and the stretch" if figure.is_stretch_reached else "yes"


def _times(ratio: float) -> str:
    return f"{ratio:.0f}x" if abs(ratio) >= 20 else f"{ratio:.2f}x"


def _duration(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if abs(seconds) >= 0.01 else f"{seconds * 1e6:.0f} us"


def _size(count: float) -> str:
    return f"{count / 1e6:.1f} MB" if abs(count) >= 1e5 else f"{count:,.0f} B"


_AMOUNTS = {Unit.SECONDS: _duration, Unit.BYTES: _size, Unit.COUNT: "{:.3g}".format}


def _facts(figure: Figure) -> dict[str, Any]:
    return {
        "name": figure.name,
        "what": figure.what,
        "against": figure.against,
        "measure": figure.measure,
        "goal": figure.goal,
        "stretch": figure.stretch,
        "reached": figure.is_reached,
        "stretch_reached": figure.is_stretch_reached,
        "rounds": len(figure.ours),
        "ratio": figure.ratio._asdict(),
        "seconds": Spread.of(figure.ours)._asdict(),
        "yardstick_seconds": Spread.of(figure.theirs)._asdict(),
    }
