"""Processes die at any moment; the registry does not (promises 1, 2, 4; faults 1, 2, 10, 20).

A full cast plays on one registry and is killed, stopped and put back at random.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.conftest import Figures
from tests.faults.figures import listed
from tests.faults.kills import campaign
from tests.faults.nursery import Nursery


@pytest.mark.parametrize(
    "rounds",
    [60, pytest.param(1000, marks=[pytest.mark.release, pytest.mark.timeout(1800)])],
)
def test_kills_at_random_moments_lose_nothing_and_leave_nothing(
    rounds: int, nursery: Nursery, place: Path, show_figures: Figures
) -> None:
    """B3 C3 D3 D4, faults 1 2 10 20: the rules hold after every act of 20 kills."""
    tally = campaign(nursery, place, random.randrange(10**6), rounds)
    show_figures("kill -9 at random", tally.figures())
    assert not tally.violations, listed(tally.violations)
    assert tally.kills == rounds
    assert tally.claims > rounds / 4, "the cast hardly played: the kills have hit nothing"
