"""The same faults on registries in databases: players die, and so does the server itself.

One workload, one checker, three stores (promises 1, 2 and 4).
"""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.conftest import Figures
from tests.faults.figures import listed
from tests.faults.kills import campaign
from tests.faults.nursery import Nursery
from tests.support.postgres import NoPostgres, new_schema, own_server

ROUNDS = [20, pytest.param(1000, marks=[pytest.mark.release, pytest.mark.timeout(1800)])]


@pytest.mark.parametrize("rounds", ROUNDS)
def test_kills_at_random_moments_on_sqlite(
    rounds: int, nursery: Nursery, place: Path, show_figures: Figures
) -> None:
    """L2, L4."""
    tally = campaign(
        nursery,
        place,
        random.randrange(10**6),
        rounds,
        store_url=lambda root: f"sqlite:{root / '.mam' / 'jobs.sqlite'}",
    )
    show_figures("kill -9 at random, SQLite", tally.figures())
    assert not tally.violations, listed(tally.violations)
    assert tally.kills == rounds
    assert tally.claims > rounds / 4, "the cast hardly played: the kills have hit nothing"


@pytest.mark.parametrize("rounds", ROUNDS)
def test_kills_at_random_moments_on_postgres_and_of_postgres(
    rounds: int, nursery: Nursery, place: Path, show_figures: Figures
) -> None:
    with ExitStack() as stack:
        try:
            server = stack.enter_context(own_server())
        except NoPostgres as problem:  # before the first kill only: later, it is a failure
            pytest.skip(str(problem))

        def restart() -> None:
            server.kill()
            server.start()

        tally = campaign(
            nursery,
            place,
            random.randrange(10**6),
            rounds,
            store_url=lambda _: new_schema(server.uri),
            disturb=restart,
        )
    show_figures("kill -9 at random, PostgreSQL", tally.figures())
    assert not tally.violations, listed(tally.violations)
    assert tally.kills == rounds
    assert tally.claims > rounds / 4, "the cast hardly played: the kills have hit nothing"
