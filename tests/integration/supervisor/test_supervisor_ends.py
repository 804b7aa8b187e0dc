"""However an attempt is ended, by whomever, no process of it is left, and no other is touched."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from mam_core.process_mark import ProcessMark
from mam_core.work import kernel, tree
from mam_core.work.marks import is_gone
from mam_core.work.orders import Isolation, new_token
from mam_core.work.processes import send
from mam_core.work.reports import Exited, Started, Why
from mam_core.work.supervised import Supervised
from tests.support.patience import eventually
from tests.support.supervision import Run, Stage, Stranger, stage, start_worker

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

WAYS = pytest.mark.parametrize("way", [Isolation.AUTO, Isolation.OFF])
#: Promise 5: nothing is alive this long after a cancel.
GONE_SEC = 5.0

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def until_three_are_left(here: Stage) -> None:
    """The main process, the child that ignores, the daemon: the plain two have heard TERM."""
    eventually(lambda: len(here.survivors()) == 3, "the plain ones end")


def until_known_gone(run: Run) -> None:
    """Its last word comes a moment before the supervisor's own end."""
    eventually(lambda: is_gone(run.the_mark) is True, "that it is gone is known")


class TestStopping:
    @WAYS
    @pytest.mark.parametrize(
        "cancels",
        [5, pytest.param(50, marks=[pytest.mark.release, pytest.mark.timeout(1800)])],
    )
    def test_the_five_process_agent_is_cancelled_again_and_again(
        self, here: Stage, way: Isolation, cancels: int, stranger: Stranger
    ) -> None:
        """Fault 39, promise 5: in both ways together 10 times, 100 for a release."""
        slowest = 0.0
        for _ in range(cancels):
            run = here.hostile(way, grace_sec=10_000)
            asked = time.monotonic()
            run.supervised.stop()
            until_three_are_left(here)  # on a busy machine they may take longer than a short grace
            run.supervised.stop(0.3)
            ended = run.ended()
            assert here.survivors() == []
            slowest = max(slowest, time.monotonic() - asked)
            assert (ended.why, ended.signal) == (Why.STOPPED, signal.SIGKILL)
            assert (ended.told, ended.killed) == (5, 3)
            until_known_gone(run)
            run.finish()
        if cancels > 5:  # the gate runs on machines of all speeds
            assert slowest < GONE_SEC
        assert stranger.is_untouched

    @WAYS
    def test_one_that_listens_is_never_killed(self, here: Stage, way: Isolation) -> None:
        run = here.run("hangs", isolation=way, grace_sec=60)
        run.until_said("stand-in")
        run.supervised.stop()
        ended = run.ended()
        assert (ended.signal, ended.told, ended.killed) == (signal.SIGTERM, 1, 0)

    @WAYS
    def test_a_shorter_grace_may_be_asked_for_later(self, here: Stage, way: Isolation) -> None:
        run = here.hostile(way, grace_sec=10_000)
        run.supervised.stop()
        until_three_are_left(here)
        run.supervised.stop(0)
        assert run.ended().killed == 3
        assert here.survivors() == []

    @WAYS
    def test_a_stopped_agent_is_ended_too(self, here: Stage, way: Isolation) -> None:
        run = here.run("hangs", isolation=way, grace_sec=60)
        run.until_said("stand-in")
        started = run.until_told(Started)
        assert send(started.pid, started.started, signal.SIGSTOP)
        run.supervised.stop()
        assert run.ended().killed == 0, "it heard TERM after it was let go on"

    @WAYS
    def test_who_forks_on_and_on_is_caught(self, here: Stage, way: Isolation) -> None:
        run = here.run("forks_on", 3000, 0.005, isolation=way, grace_sec=0.2)
        run.until_said("ready")
        run.supervised.stop()
        assert run.ended().killed >= 1
        assert here.survivors() == []

    @WAYS
    def test_what_an_agent_leaves_behind_is_ended_with_it(
        self, here: Stage, way: Isolation
    ) -> None:
        """Tools outlive their agents."""
        program = (
            "import os, sys, time\n"
            "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    time.sleep(300)\n"
            "sys.exit(4)"
        )
        orders = here.orders("hangs", isolation=way, grace_sec=60)
        argv = (*orders.argv[:3], "-c", program, here.word)
        run = here.start(orders._replace(argv=argv))
        ended = run.ended()
        assert run.told(Exited) == [Exited(code=4, signal=None)]
        assert (ended.why, ended.code, ended.left, ended.killed) == (Why.AGENT_ENDED, 4, 1, 0)
        assert here.survivors() == []
        run.output_is_over()


class TestTheWorkerGoes:
    @WAYS
    def test_its_line_closes(self, here: Stage, way: Isolation) -> None:
        run = here.hostile(way)
        run.supervised.close()
        eventually(lambda: here.survivors() == [], "all have ended")
        until_known_gone(run)

    @WAYS
    def test_it_is_killed(self, here: Stage, way: Isolation, tmp_path: Path) -> None:
        """Promise 5, decision 26: kill -9 of the worker leaves nothing alive."""
        worker = start_worker(tmp_path, here.word, way)
        output = tmp_path / "output"
        eventually(lambda: output.exists() and b"ready" in output.read_bytes(), "all five run")
        worker.kill()
        worker.communicate()
        eventually(lambda: here.survivors() == [], "all have ended")

    def test_before_it_gave_its_orders(self, tmp_path: Path) -> None:
        """A supervisor that was told nothing does nothing, and goes."""
        with stage(tmp_path) as here:
            orders = here.orders("hangs")
            seen: list[ProcessMark] = []

            def die(mark: ProcessMark) -> None:
                seen.append(mark)
                raise KeyboardInterrupt

            nowhere = os.open(os.devnull, os.O_WRONLY)
            with pytest.raises(KeyboardInterrupt):
                Supervised.start(orders, stdout=nowhere, stderr=nowhere, remember=die)
            os.close(nowhere)
            eventually(lambda: not seen[0].is_alive, "the supervisor has gone")
            assert here.survivors() == []


class TestWithoutANamespace:
    """What happens where the kernel says no."""

    @needs_root
    def test_no_own_proc_no_namespace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """In a container the mount is often refused; then pids would not agree."""

        def refuse() -> None:
            raise PermissionError(1, "no")

        monkeypatch.setattr(kernel, "mount_own_proc", refuse)
        reading, writing = os.pipe()
        trouble, its_trouble = os.pipe()
        orders: dict[str, object] = {
            "argv": [b"/bin/sh", b"-c", b"echo $$"],
            "cwd": b"/",
            "environ": {},
            "token": new_token(),
            "stdin": None,
            "input": -1,
            "isolation": "auto",
            "limits": {},
            "door": -1,
        }
        made, lacking = in_a_child(orders, writing, its_trouble)
        for fd in (writing, its_trouble):
            os.close(fd)
        assert made == tree.SUBREAPER
        assert lacking == "proc 1"
        with open(reading, "rb") as output, open(trouble, "rb") as words:
            assert int(output.read()) > 2, "a pid of the machine"
            assert words.read() == b""


def in_a_child(orders: dict[str, object], writing: int, trouble: int) -> tuple[str, str]:
    """Plant a tree in a process of its own, as a supervisor does."""
    told, telling = os.pipe()
    line = os.open(os.devnull, os.O_RDONLY)
    child = os.fork()
    if child == 0:
        try:
            tree.prepare()
            made, lacking = tree.plant(orders, writing, writing, trouble, line)
            words = " ".join(f"{stage} {number}" for stage, number in lacking)
            os.write(telling, f"{made.isolation},{words}".encode())
            os.wait()
        finally:
            os._exit(0)
    os.close(telling)
    os.close(line)
    with open(told, encoding="ascii") as file:
        isolation, _, words = file.read().partition(",")
    os.waitpid(child, 0)
    return isolation, words
