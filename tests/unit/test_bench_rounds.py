"""The benchmark's arithmetic, on numbers that everybody can check, and one real start of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from bench.figures import Figure, Measure
from bench.report import table, write_readme
from bench.rounds import Runner, Spread, in_turn, less, ratios, run
from tests.support.rows import each_row

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Stopwatch:
    """Time that passes only when somebody works."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def figure(
    measure: Measure, ours: list[float], theirs: list[float], goal: float | None = None
) -> Figure:
    return Figure("claim", "claim", "the scan", measure, ours, theirs, goal)


def test_each_round_begins_with_another_side() -> None:
    orders = ["".join(in_turn("abc", turn)) for turn in range(4)]
    assert orders == ["abc", "bca", "cab", "abc"]


def test_sides_take_turns_and_what_comes_before_a_turn_is_not_timed() -> None:
    watch = Stopwatch()
    seen: list[str] = []

    def side(name: str, seconds: float, operations: int) -> Runner:
        def work() -> int:
            seen.append(name)
            watch.now += seconds
            return operations

        def before() -> None:
            seen.append(f"before {name}")
            watch.now += 1000

        return Runner(name, work, before)

    samples = run([side("ours", 3.0, 2), side("huey", 8.0, 4)], 2, watch)
    assert seen == [
        *("before ours", "ours", "before huey", "huey"),
        *("before huey", "huey", "before ours", "ours"),
    ]
    assert samples == {"ours": [1.5, 1.5], "huey": [2.0, 2.0]}


def test_the_ratio_is_taken_within_a_round_and_then_the_median() -> None:
    # The disk got ten times slower for all in round two; the medians alone would say 20 : 2.
    ours, theirs = [1.0, 10.0, 2.0], [2.0, 30.0, 20.0]
    assert ratios(theirs, ours) == [2.0, 3.0, 10.0]
    assert figure(Measure.SPEED, ours, theirs).ratio == Spread(3.0, 2.0, 10.0)


def test_rounds_of_different_length_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="longer"):
        ratios([1.0], [1.0, 2.0])


def test_the_median_of_an_even_number_lies_between_the_middle_two() -> None:
    assert Spread.of([4.0, 1.0, 3.0, 2.0]) == Spread(2.5, 1.0, 4.0)


def test_what_everybody_pays_is_taken_off_round_by_round() -> None:
    assert less([5.0, 7.0], [1.0, 2.0]) == [4.0, 5.0]


@each_row(
    ("measure", "goal", "reached"),
    [
        (Measure.SPEED, 2.0, True),
        (Measure.SPEED, 2.1, False),
        (Measure.COST, 0.5, True),
        (Measure.COST, 0.4, False),
        (Measure.COST, None, None),
    ],
)
def test_speed_has_a_least_and_cost_a_most(
    measure: Measure, goal: float | None, reached: bool | None
) -> None:
    assert figure(measure, [1.0], [2.0], goal).is_reached is reached


def test_the_table_shows_goal_median_spread_and_verdict() -> None:
    heading, line = table([figure(Measure.SPEED, [0.001] * 3, [0.3, 0.25, 0.4], 200)]).splitlines()
    assert heading.split()[:4] == ["FIGURE", "AGAINST", "GOAL", "MEASURED"]
    assert "at least 200x" in line
    assert "300x as fast" in line
    assert "250x..400x of 3" in line
    assert " yes " in line


def test_only_the_results_of_the_readme_are_replaced(tmp_path: os.PathLike[str]) -> None:
    readme = os.path.join(tmp_path, "README.md")
    mark = "<!-- results: written by `python -m bench --write-readme` -->"
    with open(readme, "w", encoding="utf-8") as file:
        file.write(f"before\n{mark}\nold\n<!-- end of results -->\nafter\n")
    names = ("date", "cores", "load", "system", "file system", "python", "sqlite", "huey")
    write_readme([figure(Measure.COST, [1.0], [2.0], 3)], dict.fromkeys(names, "?"), readme)
    with open(readme, encoding="utf-8") as file:
        text = file.read()
    assert text.startswith(f"before\n{mark}\n")
    assert text.endswith("|\n<!-- end of results -->\nafter\n")
    assert "| claim | the scan | at most 3x | 0.50x the time |" in text
    assert "old" not in text


def test_one_command_prints_json_for_machines(tmp_path: os.PathLike[str]) -> None:
    command = [sys.executable, "-m", "bench", "registry", "--quick", "--json", "--only", "help"]
    done = subprocess.run(
        [*command, "--dir", str(tmp_path)], cwd=REPOSITORY, capture_output=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["wrong"] == []
    assert {one["name"] for one in told["figures"]} == {"help"}
    assert told["figures"][0]["ratio"]["median"] > 0
    assert os.listdir(tmp_path) == []  # nothing is left behind
