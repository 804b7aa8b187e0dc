"""A supervisor's bounds and signs of life, and how it is started."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from mam_core.errors import InvalidField
from mam_core.process_mark import ProcessMark
from mam_core.work.orders import Isolation, Orders
from mam_core.work.reports import Ended, NotStarted, Started, Usage, Why
from mam_core.work.supervised import Supervised
from tests.support.patience import eventually
from tests.support.supervision import Stage

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

#: For root the two ways differ; for others both are the second.
WAYS = pytest.mark.parametrize("way", [Isolation.AUTO, Isolation.OFF])


class TestLimits:
    @WAYS
    @pytest.mark.parametrize("processes", [1, 4])
    def test_a_tree_over_its_memory_is_ended_as_such(
        self, here: Stage, way: Isolation, processes: int
    ) -> None:
        """Fault 45: the sum counts, so that many small ones are no way round it."""
        run = here.run(
            "eats_memory", 240 // processes, processes, memory_max=160 << 20, isolation=way
        )
        ended = run.ended()
        assert ended.why is Why.OVER_MEMORY
        assert ended.was_oom
        assert ended.peak > 160 << 20
        assert here.survivors() == []

    def test_memory_that_several_share_is_counted_once(self, here: Stage) -> None:
        run = here.run("eats_memory", 60, 4, "shared", memory_max=200 << 20, sample_sec=0.2)
        eventually(lambda: run.lines.count("eaten") == 4, "all have eaten")
        eventually(lambda: any(u.memory > 200 << 20 for u in run.told(Usage)), "and were weighed")
        assert run.told(Ended) == []

    def test_an_asked_for_limit_is_set(self, here: Stage) -> None:
        """E1: never unasked."""
        argv = ("/bin/sh", "-c", "ulimit -n; ulimit -c; ulimit -d")
        orders = here.orders("behaves", limits={"nofile": 77, "core": 0})
        run = here.start(orders._replace(argv=argv))
        assert run.ended().code == 0
        assert run.output_is_over().split() == [b"77", b"0", b"unlimited"]

    def test_a_limit_that_cannot_be_set_starts_nothing(self, here: Stage) -> None:
        run = here.run("behaves", limits={"nofile": 1 << 40})
        assert run.until_told(NotStarted).stage == "limits"

    def test_an_unknown_limit_is_refused(self, here: Stage) -> None:
        with pytest.raises(InvalidField, match="no limit called rss"):
            here.run("behaves", limits={"rss": 1})

    def test_a_nul_is_refused_before_anything_starts(self, here: Stage) -> None:
        with pytest.raises(InvalidField, match="NUL"):
            here.run("behaves", "a\0b")


class TestSignsOfLife:
    """I: what the worker judges idleness by."""

    @WAYS
    def test_a_silent_agent_that_works_hard_is_seen_to_work(
        self, here: Stage, way: Isolation
    ) -> None:
        run = here.run("busy_silent", 60, sample_sec=0.1, isolation=way)
        eventually(lambda: len(run.told(Usage)) > 1, "two samples")
        first = run.told(Usage)[0]
        eventually(lambda: run.told(Usage)[-1].cpu_sec > first.cpu_sec + 0.1, "CPU grows")
        run.supervised.stop()
        assert run.ended().cpu_sec >= first.cpu_sec

    def test_one_that_hangs_is_seen_to_do_nothing(self, here: Stage) -> None:
        run = here.run("hangs", sample_sec=0.1)
        run.until_said("stand-in")

        def is_settled() -> Usage | None:
            """It goes to sleep some time after its last word, and is alike from then on."""
            last = run.told(Usage)[-6:]
            return last[0] if len(last) == 6 and len(set(last)) == 1 else None

        settled: Usage = eventually(is_settled, "six samples that are alike")
        assert settled.processes == 1
        assert settled.memory > 1 << 20

    def test_bytes_over_the_network_count(self, here: Stage) -> None:
        """Some agents only wait for a model that speaks slowly."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            program = (
                "import socket, sys\n"
                "line = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
                "while line.recv(10): pass"
            )
            orders = here.orders("hangs", sample_sec=0.1)
            argv = (orders.argv[0], "-I", "-c", program, str(port), here.word)
            run = here.start(orders._replace(argv=argv))
            connection, _ = server.accept()
            with connection:
                eventually(lambda: bool(run.told(Usage)), "a sample")
                before = run.told(Usage)[-1].net_bytes
                if before is None:
                    pytest.skip("this kernel does not tell the bytes of a socket")
                connection.sendall(b"x" * 7)
                eventually(
                    lambda: (run.told(Usage)[-1].net_bytes or 0) >= before + 7, "seven bytes more"
                )
            assert run.ended().code == 0

    def test_a_worker_that_does_not_listen_holds_up_nothing(self, here: Stage) -> None:
        """Fault 21: a stopped worker; reports that matter wait for it, the others are left out."""
        run = here.run("busy_silent", 3, sample_sec=0.0005)
        run.until_told(Started)
        pid = run.supervised.pid
        eventually(lambda: here.survivors() == [], "the agent has ended and is buried")
        reports = run.ended()
        assert (reports.why, reports.code) == (Why.AGENT_ENDED, 0)
        eventually(lambda: ProcessMark.of(pid) is None, "the supervisor has ended too")


class TestStarting:
    def test_nothing_is_started_before_it_is_written_down(self, here: Stage) -> None:
        def refuse(_mark: ProcessMark) -> None:
            raise OSError("the disk is full")

        reading, writing = os.pipe()
        with open(reading, "rb") as output:
            with pytest.raises(OSError, match="the disk is full"):
                Supervised.start(
                    here.orders("behaves"), stdout=writing, stderr=writing, remember=refuse
                )
            os.close(writing)
            assert output.read() == b""

    def test_what_is_written_down_is_the_supervisor(self, here: Stage) -> None:
        seen: list[ProcessMark] = []
        nowhere = os.open(os.devnull, os.O_WRONLY)
        supervised = Supervised.start(
            here.orders("behaves"), stdout=nowhere, stderr=nowhere, remember=seen.append
        )
        os.close(nowhere)
        assert [mark.pid for mark in seen] == [supervised.pid]
        assert supervised.wait(60) is not None
        supervised.close()

    def test_no_secret_is_in_anybodys_command_line(self, here: Stage) -> None:
        """N29, fault 62."""
        run = here.run("hangs", environ={"API_KEY": "canary-4711"}, label="job x attempt 1")
        run.until_told(Started)
        line = Path(f"/proc/{run.supervised.pid}/cmdline").read_bytes()
        assert b"canary" not in line
        assert run.orders.token.encode() not in line
        assert b"job x attempt 1" in line
        assert "canary" not in repr(run.orders)

    def test_many_at_once_from_several_threads_keep_their_lines_apart(self, here: Stage) -> None:
        """The line of one must not be held open by the supervisor of another."""
        runs: list[Any] = []
        threads = [
            threading.Thread(target=lambda: runs.append(here.run("hangs"))) for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for run in runs:
            run.until_told(Started)
        runs[0].supervised.close()
        eventually(lambda: len(here.survivors()) == 5, "one has ended, the others live")
        for run in runs[1:]:
            run.supervised.stop()
            assert run.ended().why is Why.STOPPED

    def test_orders_show_nothing_of_themselves(self) -> None:
        orders = Orders(("x",), "/", {"A": "secret"}, "00" * 16)
        assert repr(orders) == "<Orders >"
