"""The figures of the console: how soon it is there, what a change costs, and how it bears load.

Everything happens in a real tmux with the installed command; `console_stage` says how it is seen.
Shares of a core and waiting times are held against a yardstick of that length: two per cent of a
core stand as 0.02 times the time that passed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from bench.console_ground import open_console, registry, until_shown
from bench.console_live import burst, disk, idle, load, tables
from bench.console_stage import Show, Stage, stage
from bench.figures import Figure, Measure, Unit
from bench.ground import Ground
from bench.processes import MAM, process, python
from bench.rounds import in_turn, run

_BARE = """
from textual.app import App
from textual.widgets import Static
class Bare(App):
    def compose(self):
        yield Static("bare app")
Bare().run()
"""
#: Starts that are not counted: the index reads files again that were new when it first saw them.
_FOR_THE_INDEX = 2


def first(ground: Ground) -> list[Figure]:
    """From the start to the first frame."""
    path = registry(ground, 0)
    found: dict[str, list[float]] = {"ours": [], "bare": []}

    def ours(on: Stage) -> tuple[Show, float]:
        show, began = open_console(ground, on, path)
        took = show.wait_for(" mam") - began
        until_shown(show, 0)  # else it would be ended in the middle of its start
        return show, took

    def bare(on: Stage) -> tuple[Show, float]:
        show, began = on.start(python(_BARE))
        return show, show.wait_for("bare app") - began

    sides: dict[str, Callable[[Stage], tuple[Show, float]]] = {"ours": ours, "bare": bare}
    with stage() as on:
        if ground.effort.starts > 1:
            for side in sides.values():  # once for the disk and for the byte code
                side(on)[0].end()
        for turn in range(ground.effort.starts):
            for name in in_turn(list(sides), turn):
                show, took = sides[name](on)
                found[name].append(took)
                show.end()
    what = "start to first frame"
    against = "a bare Textual app"
    return [Figure("first", what, against, Measure.COST, found["ours"], found["bare"], 1.5)]


def jobs(ground: Ground) -> list[Figure]:
    """From the start until all jobs are shown, and what they take in memory."""
    # A quick run has no second size.
    sizes = list(dict.fromkeys([0, ground.effort.pending, ground.effort.large]))
    took: dict[int, list[float]] = {size: [] for size in sizes}
    memory: dict[int, list[float]] = {size: [] for size in sizes}
    paths = {size: registry(ground, size) for size in sizes}
    uncounted = min(_FOR_THE_INDEX, ground.effort.bulk_rounds - 1)
    with stage() as on:
        for turn in range(uncounted + ground.effort.bulk_rounds):
            for size in in_turn(sizes, turn):
                show, began = open_console(ground, on, paths[size])
                shown = until_shown(show, size) - began
                show.rest()
                if turn >= uncounted:
                    took[size].append(shown)
                    memory[size].append(show.memory())
                show.end()
    most = sizes[-1]
    over = [(full - empty) / most for full, empty in zip(memory[most], memory[0], strict=True)]
    goals = {ground.effort.pending: 2.0, most: 5.0}
    return [
        Figure(
            "jobs", f"start to {size:,} jobs shown", "with none", Measure.COST, took[size], took[0],
            goals[size],
        )
        for size in sizes[1:]
    ] + [
        Figure(
            "jobs", f"memory over the empty console, each of {most:,} jobs", "1 KB",
            Measure.AMOUNT, over, [1000.0] * len(over), 2, unit=Unit.BYTES,
        )
    ]  # fmt: skip


def words(ground: Ground) -> list[Figure]:
    sides = [process("help", [MAM, "--help"]), process("pass", [sys.executable, "-c", "pass"])]
    took = run(sides, ground.effort.starts)
    ours, theirs = took["help"], took["pass"]
    return [Figure("help", "mam --help", "python -c pass", Measure.COST, ours, theirs, 3)]


FIGURES: Mapping[str, Callable[[Ground], list[Figure]]] = {
    "help": words,
    "first": first,
    "jobs": jobs,
    "tables": tables,
    "load": load,
    "disk": disk,
    "burst": burst,
    "idle": idle,
}
