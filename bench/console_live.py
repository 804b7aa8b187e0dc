"""The figures of a console that is open: what changes cost, how soon they are seen, and idling.

Seen is what tmux has got: a change is on the screen when its words were printed. Marks are
counted in the status line, so the answer to each key has words that no other answer has.
"""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.console_ground import Source, open_console, registry, source, until_shown
from bench.console_stage import Show, stage
from bench.feed import replace
from bench.figures import Figure, Measure, Unit, Wrong
from bench.ground import Ground
from bench.machine import REPOSITORY
from bench.processes import python
from bench.rounds import in_turn
from mam_core.records import Status
from mam_core.wiring import embedded_broker, open_registry

_SECONDS = 4.0
_TABLE_SEC = 2.5
_SLOW, _FAST = 100, 1_000
_HEARD_OF = 200  #: jobs that events tell of; a fifth of them are seen
_KEYS_A_TURN = 30
_KEY_GOAL_SEC = _DISK_GOAL_SEC = 0.1
_CHANGES = 100
_STILL_SEC, _IDLE_SEC = 10.0, 30.0
_MOST_FRAMES = 30
#: The same key in an app that does nothing else: what tmux, Textual and the machine take.
_COUNTING = """
from textual.app import App
from textual.widgets import Static
class Counting(App):
    marked = 0
    def compose(self):
        yield Static(" 0 marked")
    def on_key(self):
        self.marked += 1
        self.query_one(Static).update(f" {self.marked} marked")
Counting().run()
"""
_AN_ID = re.compile(rb"far\d{8}")


def tables(ground: Ground) -> list[Figure]:
    """The table alone, against Textual's, and a full one against a small one."""
    effort = ground.effort
    many, few, large = effort.pending, effort.claimable, effort.large
    kinds = {"ours": many, "theirs": many, "small": few, "large": large}
    spent: dict[str, list[float]] = {kind: [] for kind in kinds}
    with stage() as on:
        shows = {}
        for kind, rows in kinds.items():
            name = "theirs" if kind == "theirs" else "ours"
            program = [sys.executable, "-m", "bench.console_tables", name, str(rows)]
            shows[kind], _ = on.start(program, PYTHONPATH=REPOSITORY)
            shows[kind].wait_for("turn 1")
            shows[kind].stop()
        for turn in range(effort.bulk_rounds):
            for kind in in_turn(list(kinds), turn):  # one at a time: the others are stopped
                shows[kind].go_on()
                time.sleep(0.3)
                spent[kind].append(_cpu_per_update(shows[kind], effort.seconds(_TABLE_SEC)))
                shows[kind].stop()
    most = "processor time of one update of a table"
    return [
        Figure(
            "tables", f"{most} with {many:,} rows, at 100/s", "DataTable", Measure.SPEED,
            spent["ours"], spent["theirs"], 10,
        ),
        Figure(
            "tables", f"{most} with {large:,} rows", f"with {few:,}", Measure.COST,
            spent["large"], spent["small"], 1.5,
        ),
    ]  # fmt: skip


def load(ground: Ground) -> list[Figure]:
    """A hundred and a thousand events a second, with keys all the while."""
    effort = ground.effort
    seconds, keys = effort.seconds(_SECONDS), effort.some(_KEYS_A_TURN)
    spent: dict[int, list[float]] = {_SLOW: [], _FAST: []}
    frames: list[float] = []
    waits: list[float] = []
    bare_waits: list[float] = []
    with _open(ground) as (show, news):
        bare, _ = show.stage.start(python(_COUNTING))
        bare.wait_for(" 0 marked")
        seen = _in_sight(show)
        show.count_frames()
        some = [f"far{number:08d}" for number in range(_HEARD_OF)]
        marked = 0
        for turn in range(effort.bulk_rounds):
            for rate in in_turn([_SLOW, _FAST], turn):
                news.begin("events", some, int(rate * (seconds + 1)), rate)
                time.sleep(0.5)
                began, before, printed = time.monotonic(), show.cpu(), show.printed
                time.sleep(seconds)
                spent[rate].append((show.cpu() - before) / (time.monotonic() - began))
                if rate == _FAST:
                    frames.append(show.frames(printed) / (time.monotonic() - began))
                news.end()
            news.begin("events", some, int(_FAST * (0.1 * keys + 1)), _FAST)
            time.sleep(0.5)
            for _ in range(keys):
                marked += 1
                waits.append(_mark(show, marked))
                bare_waits.append(_mark(bare, marked))
                time.sleep(0.07)
            news.end()
        if len(seen) < 20:
            raise Wrong(f"only {len(seen)} jobs are seen")
    late, bare_late = _p95(waits), _p95(bare_waits)
    quick, slowest = statistics.median(waits), max(waits)
    goal = [_KEY_GOAL_SEC]
    what = f"a key answered at {_FAST:,} events/s"
    return [
        Figure(
            "load", f"processor time at {_FAST:,} events/s", f"at {_SLOW}/s", Measure.COST,
            spent[_FAST], spent[_SLOW], 4,
        ),
        Figure("load", f"{what}, median", "100 ms", Measure.COST, [quick], goal, 1),
        Figure("load", f"{what}, 95th percentile", "100 ms", Measure.COST, [late], goal, 1),
        Figure(
            "load", f"{what}, slowest of {len(waits)}", "100 ms", Measure.COST, [slowest], goal, 1
        ),
        Figure(
            "load", f"{what}, 95th percentile", "a bare app without events", Measure.COST,
            [late], [bare_late],
        ),
        Figure(
            "load", f"frames a second at {_FAST:,} events/s", str(_MOST_FRAMES), Measure.AMOUNT,
            frames, [float(_MOST_FRAMES)] * len(frames), 1, unit=Unit.COUNT,
        ),
    ]  # fmt: skip


def disk(ground: Ground) -> list[Figure]:
    """From the rename of a record to its words on the screen."""
    ages = []
    path = registry(ground, ground.effort.pending)
    with _open(ground) as (show, _), open_registry(path) as opened:
        seen = _in_sight(show)
        for number in range(ground.effort.some(_CHANGES)):
            words = f"changed {number:04}."
            job = opened.get(seen[number % len(seen)])
            at = show.printed
            began = time.monotonic()
            replace(path, job.evolve(prompt=words))
            ages.append(show.wait_for(words, at) - began)
            time.sleep(0.02 + 0.001 * (number * 37 % 80))
    what = (
        f"a change on disk until it is seen, with {ground.effort.pending:,} jobs, 95th percentile"
    )
    return [Figure("disk", what, "100 ms", Measure.COST, [_p95(ages)], [_DISK_GOAL_SEC], 1)]


def burst(ground: Ground) -> list[Figure]:
    """A thousand records at once: all of them counted in the end, at a bounded rate of frames."""
    rates = []
    took = []
    all_jobs, count = ground.effort.pending, ground.effort.claimable
    with _open(ground) as (show, news):
        show.count_frames()
        jobs = [f"far{number:08d}" for number in range(all_jobs - count, all_jobs)]
        for turn in range(2 * (ground.effort.bulk_rounds // 2 + 1)):  # all wait again at the end
            status = Status.PENDING if turn % 2 else Status.CANCELLED
            words = f"{all_jobs} queued" if turn % 2 else f"{count} cancelled"
            at, began = show.printed, time.monotonic()
            news.begin("records", jobs, count, 0, changes={"status": status.value})
            ended = show.wait_for(words, at)  # raises when one was lost
            took.append(ended - began)
            rates.append(show.frames(at) / took[-1])
            news.end()
            show.rest()
    theirs = [float(_MOST_FRAMES)] * len(rates)
    what = f"frames a second while {count:,} records change at once, and none is lost"
    return [
        Figure("burst", what, str(_MOST_FRAMES), Measure.AMOUNT, rates, theirs, 1, unit=Unit.COUNT)
    ]


def idle(ground: Ground) -> list[Figure]:
    """Nothing happens: nothing is drawn, and next to nothing is computed."""
    all_jobs, still = ground.effort.pending, ground.effort.seconds(_STILL_SEC)
    with _open(ground) as (show, _):
        show.rest(2)
        printed = show.printed
        time.sleep(still)
        drawn = show.printed - printed
        began, before = time.monotonic(), show.cpu()
        time.sleep(ground.effort.seconds(_IDLE_SEC))
        spent, passed = show.cpu() - before, time.monotonic() - began
    what = f"bytes printed in {still:.0f} s in which nothing happens"
    return [
        Figure(
            "idle", what, "one", Measure.AMOUNT, [float(drawn)], [1.0], 0, unit=Unit.COUNT
        ),
        Figure(
            "idle", f"processor time of an idle console with {all_jobs:,} jobs, watch and broker",
            "one core", Measure.COST, [spent], [passed], 0.02,
        ),
    ]  # fmt: skip


@contextmanager
def _open(ground: Ground) -> Iterator[tuple[Show, Source]]:
    """A console on the crowded registry with its broker, and somebody who makes news."""
    path = registry(ground, ground.effort.pending)
    with embedded_broker(path).ensure_running(), stage() as on, source(path) as news:
        show, _ = open_console(ground, on, path)
        until_shown(show, ground.effort.pending)
        show.rest(1)
        yield show, news


def _in_sight(show: Show) -> list[str]:
    found = dict.fromkeys(_AN_ID.findall(show.screen()))
    return [one.decode() for one in found]


def _mark(show: Show, number: int) -> float:
    at = show.printed
    pressed = show.press("Space")
    return show.wait_for(f" {number} marked", at) - pressed


def _cpu_per_update(show: Show, seconds: float) -> float:
    """What the numbers of the turns say was done, not what was asked for."""
    first, before = _turns(show), show.cpu()
    time.sleep(seconds)
    done = _turns(show) - first
    return (show.cpu() - before) / done


def _p95(waits: list[float]) -> float:
    return statistics.quantiles(waits, n=20)[-1]


def _turns(show: Show) -> int:
    return max(map(int, re.findall(rb"turn (\d+)", show.screen())))
