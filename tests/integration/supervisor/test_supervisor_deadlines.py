"""A supervisor ends its attempt when a deadline passes, and waits for nobody to tell it so."""

from __future__ import annotations

import os

import pytest

from mam_core.clock import SystemClock
from mam_core.work.orders import FOREVER, Deadlines, Isolation
from mam_core.work.reports import Ended, Started, Why
from tests.support.patience import eventually
from tests.support.supervision import Stage

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

WAYS = pytest.mark.parametrize("way", [Isolation.AUTO, Isolation.OFF])
#: A grace that no test waits for.
_ENDLESS_SEC = 10_000


def in_sec(seconds: float) -> float:
    return SystemClock().since_boot() + seconds


def pass_by(moment: float) -> None:
    eventually(lambda: SystemClock().since_boot() > moment, "the moment passes")


class TestTheLease:
    @WAYS
    def test_that_is_over_ends_who_does_not_want_to_end(self, here: Stage, way: Isolation) -> None:
        """However long a grace the settings allow: another host may start the job."""
        run = here.hostile(way, grace_sec=_ENDLESS_SEC)
        run.supervised.allow(Deadlines(lease=in_sec(-10)))
        ended = run.ended()
        assert here.survivors() == []
        assert (ended.why, ended.killed) == (Why.LEASE_OVER, 5), "nothing is left of the grace"

    def test_leaves_a_grace_of_some_seconds(self, here: Stage) -> None:
        run = here.run("hangs", grace_sec=_ENDLESS_SEC)
        run.until_said("stand-in")
        run.supervised.allow(Deadlines(lease=in_sec(0.1)))
        ended = run.ended()
        assert (ended.why, ended.told, ended.killed) == (Why.LEASE_OVER, 1, 0)

    def test_hurries_an_ending_that_takes_longer(self, here: Stage) -> None:
        run = here.hostile(Isolation.AUTO, grace_sec=_ENDLESS_SEC)
        run.supervised.stop()
        eventually(lambda: len(here.survivors()) == 3, "the plain ones end")
        run.supervised.allow(Deadlines(lease=in_sec(-10)))
        assert run.ended().why is Why.STOPPED, "the first reason is the reason"
        assert here.survivors() == []

    @pytest.mark.parametrize("later", [FOREVER, Deadlines(lease=float(2**40))])
    def test_that_is_renewed_ends_nobody(self, here: Stage, later: Deadlines) -> None:
        moment = in_sec(0.5)
        run = here.start(here.orders("hangs"), Deadlines(lease=moment))
        run.supervised.allow(later)
        run.until_said("stand-in")
        pass_by(moment + 0.2)
        assert run.told(Ended) == []
        assert here.survivors()

    def test_that_is_over_before_the_start_starts_nothing(self, here: Stage) -> None:
        """Its worker was stopped between its last renewal and the orders."""
        run = here.start(here.orders("hangs"), Deadlines(lease=in_sec(-0.001)))
        assert run.ended() == Ended(Why.LEASE_OVER)
        assert run.told(Started) == []
        assert run.output_is_over() == b""


class TestTheTimeOfAJob:
    @WAYS
    def test_that_is_over_ends_it_with_the_usual_grace(self, here: Stage, way: Isolation) -> None:
        run = here.start(here.orders("hangs", isolation=way, grace_sec=60))
        run.until_said("stand-in")
        run.supervised.allow(Deadlines(wall=in_sec(-10)))
        ended = run.ended()
        assert (ended.why, ended.told, ended.killed) == (Why.TIMEOUT, 1, 0)

    def test_is_heard_while_nobody_speaks(self, here: Stage) -> None:
        run = here.start(here.orders("hangs"), Deadlines(wall=in_sec(0.5)))
        assert run.ended().why is Why.TIMEOUT
        assert here.survivors() == []
