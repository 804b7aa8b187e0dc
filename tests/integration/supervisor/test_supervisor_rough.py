"""The supervisor itself is stopped, signalled and killed: the second net catches what is left."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from mam_core.process_mark import ProcessMark
from mam_core.work.marks import AttemptMark, end_leftovers, is_gone
from mam_core.work.orders import Isolation, new_token
from mam_core.work.reports import Ended, Started, Why
from mam_core.work.tree import NAMESPACE
from tests.support.patience import eventually
from tests.support.supervision import Stage, Stranger

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

WAYS = pytest.mark.parametrize("way", [Isolation.AUTO, Isolation.OFF])


class TestTheSupervisorIsHandledRoughly:
    @WAYS
    @pytest.mark.parametrize("name", ["TERM", "INT", "HUP"])
    def test_a_signal_asks_it_to_end_the_attempt(
        self, here: Stage, way: Isolation, name: str
    ) -> None:
        run = here.hostile(way)
        assert run.the_mark.supervisor.send(signal.Signals[f"SIG{name}"])
        assert run.ended().why is Why.SIGNALLED
        assert here.survivors() == []

    @WAYS
    def test_stopped_and_continued_it_goes_on(self, here: Stage, way: Isolation) -> None:
        words = ("/bin/sh", "-c", "while [ ! -e go ]; do sleep 0.05; done", here.word)
        run = here.start(here.orders("hangs", isolation=way)._replace(argv=words))
        run.until_told(Started)
        supervisor = run.the_mark.supervisor
        for _ in range(3):
            assert supervisor.send(signal.SIGSTOP)
            time.sleep(0.1)
            assert supervisor.send(signal.SIGCONT)
        (here.folder / "go").touch()
        assert run.ended().code == 0

    @WAYS
    def test_asked_to_stop_while_it_is_stopped_it_does_so_later(
        self, here: Stage, way: Isolation
    ) -> None:
        run = here.hostile(way, grace_sec=10_000)
        supervisor = run.the_mark.supervisor
        supervisor.send(signal.SIGSTOP)
        run.supervised.stop()
        assert run.supervised.wait(0.3) is None
        assert here.survivors() != []
        supervisor.send(signal.SIGCONT)
        eventually(lambda: len(here.survivors()) == 3, "the plain ones end")
        run.supervised.stop(0)
        assert run.ended().killed == 3
        assert here.survivors() == []

    @WAYS
    def test_killed_it_leaves_nothing_that_the_second_net_does_not_catch(
        self, here: Stage, way: Isolation, stranger: Stranger
    ) -> None:
        """Fault 40."""
        run = here.hostile(way)
        mark = run.the_mark
        assert is_gone(mark) is False
        run.supervised.kill()
        assert run.ended() == Ended(Why.LOST)
        if run.told(Started)[-1].isolation == NAMESPACE:
            eventually(lambda: here.survivors() == [], "the kernel has ended the namespace")
        end_leftovers(mark, 0.2)
        assert here.survivors() == []
        assert is_gone(mark) is True
        assert stranger.is_untouched

    @WAYS
    def test_killed_while_the_agent_is_only_just_starting(
        self, here: Stage, way: Isolation
    ) -> None:
        """There is no moment at which a process of the attempt carries no mark and lives on."""
        for round_number in range(20):
            run = here.run("hostile", isolation=way)
            time.sleep(0.002 * round_number)
            run.supervised.kill()
            assert not run.ended().tree_empty
            if is_gone(run.the_mark) is not True:
                end_leftovers(run.the_mark, 0)
            assert is_gone(run.the_mark) is True
            eventually(lambda: here.survivors() == [], "nobody")
            run.finish()

    def test_an_agent_that_covered_its_tracks_is_caught_as_well(
        self, here: Stage, stranger: Stranger
    ) -> None:
        """E3's last line: it scrubs its environment. The mark in a limit stays."""
        run = here.run("scrubs", isolation=Isolation.OFF)
        run.until_said("ready")
        run.supervised.kill()
        eventually(lambda: len(here.survivors()) == 1, "the daemon alone is left")
        assert is_gone(run.the_mark) is False
        assert end_leftovers(run.the_mark, 0.1) == 1
        assert here.survivors() == []
        assert stranger.is_untouched

    @WAYS
    def test_one_that_never_answers_is_ended_with_its_attempt(
        self, here: Stage, way: Isolation
    ) -> None:
        """A sweep finds a supervisor that is stopped: it is let go on, and told to end."""
        run = here.hostile(way)
        run.the_mark.supervisor.send(signal.SIGSTOP)
        assert is_gone(run.the_mark) is False
        assert end_leftovers(run.the_mark, 0.3) >= 1
        assert is_gone(run.the_mark) is True
        assert here.survivors() == []

    def test_two_sweepers_at_once_do_what_one_does(self, here: Stage, stranger: Stranger) -> None:
        """Fault 8."""
        run = here.hostile(Isolation.OFF)
        run.supervised.kill()
        run.ended()
        sweepers = [
            threading.Thread(target=end_leftovers, args=(run.the_mark, 0.2)) for _ in range(3)
        ]
        for sweeper in sweepers:
            sweeper.start()
        for sweeper in sweepers:
            sweeper.join()
        assert here.survivors() == []
        assert is_gone(run.the_mark) is True
        assert stranger.is_untouched


class TestStrangers:
    """Fault 41: a recorded pid that belongs to somebody else is not signalled."""

    def test_a_mark_whose_pid_was_taken_over(self, stranger: Stranger) -> None:
        now = ProcessMark.of(stranger.pid)
        assert now is not None
        forged = AttemptMark.of(new_token(), ProcessMark(now.pid, "1", now.boot_id))
        assert is_gone(forged) is True
        assert end_leftovers(forged, 0) == 0
        assert stranger.is_untouched

    def test_a_mark_of_another_boot(self, stranger: Stranger) -> None:
        """Fault 6."""
        now = ProcessMark.of(stranger.pid)
        assert now is not None
        forged = AttemptMark.of(new_token(), ProcessMark(now.pid, now.started, "another"))
        assert is_gone(forged) is True
        assert end_leftovers(forged, 0) == 0
        assert stranger.is_untouched
