"""Kills in bad weather: the clock leaps by hours and lines are torn while everybody plays.

Faults 15, 16 and 65 with a workload, on each store (in a database no line can be torn).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import Figures
from tests.faults.figures import listed
from tests.faults.kills import campaign
from tests.faults.nursery import Nursery
from tests.support.postgres import new_schema

ROUNDS = [20, pytest.param(1000, marks=[pytest.mark.release, pytest.mark.timeout(1800)])]

Place = Callable[[Path], str]


@pytest.fixture(params=["files", "sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest) -> Iterator[Place | None]:
    if request.param == "files":
        yield None
    elif request.param == "sqlite":
        yield lambda root: f"sqlite:{root / '.mam' / 'jobs.sqlite'}"
    else:
        server: str = request.getfixturevalue("postgres_server")
        yield lambda _: new_schema(server)


@pytest.mark.parametrize("rounds", ROUNDS)
def test_a_clock_that_leaps_and_torn_lines_cost_nothing(
    rounds: int, store_url: Place | None, nursery: Nursery, place: Path, show_figures: Figures
) -> None:
    seed = random.randrange(10**6)
    tally = campaign(nursery, place, seed, rounds, store_url=store_url, bad_weather=True)
    kind = "files" if store_url is None else store_url(place).partition(":")[0]
    show_figures(f"bad weather, {kind}", tally.figures())
    assert not tally.violations, listed(tally.violations)
    assert tally.kills == rounds
    assert tally.leaps
    assert tally.torn or kind != "files"
