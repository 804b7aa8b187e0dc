"""What bounds an attempt: its clocks, its memory, its budget, its output."""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mam_core.operations.shown import Showing
from mam_core.records import Reason, Status
from mam_core.work import activity
from mam_core.work.output import CAP_BYTES
from mam_core.work.traffic import Traffic
from tests.support.patience import eventually
from tests.support.recordings import SAMPLES
from tests.support.watching import running
from tests.support.working import LABEL, Workshop

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")


def warnings_of(shop: Workshop, job_id: str) -> list[str]:
    return [c["detail"] for c in shop.told(job_id) if c["data"].get("level") == "warning"]


def hints_of(shop: Workshop, job_id: str) -> list[dict[str, Any]]:
    """The limits that were told while it was silent."""
    told = [one["data"].get("limit") for one in shop.told(job_id) if one["event"] == "state"]
    return [limit for limit in told if limit]


class TestClocks:
    def test_an_agent_that_hangs_is_ended_when_it_was_silent_for_too_long(
        self, shop: Workshop
    ) -> None:
        """Decision 8; a warning comes before, once."""
        # Between the warning and the end a busy disk may take a second to keep the former.
        job = shop.run(shop.agent("stuck", "hangs"), idle_timeout_sec=6)
        assert (job.status, job.reason) == (Status.ERROR, Reason.IDLE_TIMEOUT)
        assert job.detail == "no output for 6 s (idle timeout)"
        assert warnings_of(shop, job.job_id) == ["idle timeout near: 6 s"]
        states = [one["data"] for one in shop.told(job.job_id) if one["event"] == "state"]
        # On a busy machine it may take so long to start that this is hinted at before.
        *_, silence = [one for one in states if "state" in one]
        assert {one["channel"] for one in states if "state" in one} == {"silence"}
        assert (silence["state"], silence["words"].split("; ")[1]) == (
            "working",
            "ends at 6 s (idle timeout)",
        )
        assert silence["limit"]["limit"] == "idle"
        assert shop.names(job.job_id)[-1] == "error"

    def test_a_quiet_tool_call_is_not_idle(self, shop: Workshop) -> None:
        """Decision 32: the stream told that it began, and has not told that it ended."""
        caller = shop.agent("caller", "calls_tool", 6, mode="stream", stream="stream-json")
        job_id = shop.add(caller, idle_timeout_sec=4)
        with shop.at_work():
            eventually(lambda: hints_of(shop, job_id), "its silence is told")
            shop.until_status(job_id, Status.COMPLETED, Status.ERROR)
        job = shop.job(job_id)
        assert (job.status, job.reason) == (Status.COMPLETED, None)
        hint, *_ = [one for one in hints_of(shop, job_id) if one["limit"] == "tool"]
        assert hint["words"] == "Bash pytest"
        assert warnings_of(shop, job_id) == []

    def test_a_tool_call_that_takes_too_long_ends_the_job_and_is_named(
        self, shop: Workshop
    ) -> None:
        shop.set(tool_timeout_sec=5)
        caller = shop.agent("caller", "calls_tool", 300, mode="stream", stream="stream-json")
        job = shop.run(caller, idle_timeout_sec=3)
        assert (job.status, job.reason) == (Status.ERROR, Reason.IDLE_TIMEOUT)
        assert job.detail == "tool call Bash pytest ran for 5 s (tool timeout)"
        assert warnings_of(shop, job.job_id) == ["tool timeout near: 5 s"]

    def test_a_call_whose_end_was_told_holds_nothing(self, shop: Workshop) -> None:
        caller = shop.agent("caller", "calls_tool", 0, 300, mode="stream", stream="stream-json")
        job = shop.run(caller, idle_timeout_sec=4)
        assert job.detail == "no output for 4 s (idle timeout)"

    def test_an_agent_that_says_nothing_from_the_start_is_told_of_early(
        self, shop: Workshop
    ) -> None:
        """A wrapper that waits for more input than it gets: it is no failure yet."""
        job_id = shop.add(shop.agent("mute", "/bin/sleep", "60"), idle_timeout_sec=20)
        with shop.at_work():
            (hint,) = eventually(lambda: hints_of(shop, job_id), "its silence is told")
            assert hint["limit"] == "idle"
            (said,) = [one["detail"] for one in shop.told(job_id) if one["event"] == "state"]
            assert re.fullmatch(r"no output since start \(\d s\); ends at 2\d s \(.*\)", said)
            shown = Showing(shop.registry).running()[job_id]
            assert shown.state == "working"
            assert shown.limit is not None
            assert shown.limit.limit == "idle"
            shop.registry.request_cancel(job_id)
            shop.until_status(job_id, Status.CANCELLED)

    def test_an_agent_that_takes_too_long_is_ended_though_it_speaks(self, shop: Workshop) -> None:
        """I6."""
        talker = shop.agent("talker", "/bin/sh", "-c", "while :; do echo on; sleep 0.1; done")
        job = shop.run(talker, timeout_sec=6)
        assert (job.status, job.reason) == (Status.ERROR, Reason.TIMEOUT)
        assert warnings_of(shop, job.job_id) == ["timeout near: 6 s"]

    def test_an_agent_that_works_in_silence_is_not_idle(
        self, shop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Issue: idle is no event, no output, no CPU and no traffic."""
        # Of a machine with fifty others at work it gets no more than this.
        monkeypatch.setattr(activity, "_BUSY_SHARE", 0.005)
        job = shop.run(shop.agent("mute", "busy_silent", 8), idle_timeout_sec=5)
        assert (job.status, job.reason) == (Status.COMPLETED, None)

    def test_an_agent_for_which_bytes_arrive_is_not_idle(self, shop: Workshop) -> None:
        """The last of those four alone: a model that thinks aloud to a client that sleeps."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            job_id = shop.add(shop.agent("fed", "waits_for_network", port, 10), idle_timeout_sec=7)
            with shop.at_work():
                connection, _ = server.accept()
                with connection:
                    if Traffic().sample([os.getpid()]) is None:
                        shop.registry.request_cancel(job_id)
                        pytest.skip("this kernel does not tell the bytes of a socket")
                    while shop.job(job_id).status is Status.RUNNING:
                        with suppress(ConnectionError):  # it has gone
                            connection.sendall(b"x" * 5000)
                        time.sleep(0.5)  # it reads none: all of them must find room
        job = shop.job(job_id)
        assert (job.status, job.reason) == (Status.COMPLETED, None)
        assert warnings_of(shop, job_id) == []

    def test_an_agent_that_waits_for_a_person_is_not_idle(self, shop: Workshop) -> None:
        """Decision 23: its stream says that it asks."""
        recording = shop.folder / "asks.jsonl"
        lines = (SAMPLES / "claude" / "permission.control.jsonl").read_bytes().splitlines(True)
        asks = next(n for n, line in enumerate(lines) if b'"can_use_tool"' in line)
        recording.write_bytes(b"".join(lines[: asks + 1]))
        asker = shop.agent("asker", "replays", recording, 7, mode="stream", stream="stream-json")
        job = shop.run(asker, idle_timeout_sec=4)
        assert job.reason is not Reason.IDLE_TIMEOUT
        assert "permission_required" in shop.names(job.job_id)

    def test_a_question_that_the_agent_publishes_itself_stops_the_clock_too(
        self, shop: Workshop
    ) -> None:
        """Decision 23: also when what it printed before is told after the question."""
        ask = f"'{sys.executable}' -m mam_core.cli.main publish --job $MAM_JOB_ID"
        ask = f"{ask} --event permission_required --detail 'may I?'"
        line = f"echo one; echo two; {ask} 2>/dev/null; exec sleep 11"
        # Longer than a busy machine takes to start the command that asks.
        job = shop.run(shop.agent("asker", "/bin/sh", "-c", line), idle_timeout_sec=8)
        assert (job.status, job.reason) == (Status.COMPLETED, None)
        assert "permission_required" in shop.names(job.job_id)
        assert warnings_of(shop, job.job_id) == []


class TestMemory:
    def test_an_agent_that_eats_too_much_ends_as_oom(self, shop: Workshop) -> None:
        """Decision 8."""
        job = shop.run(shop.agent("eater", "eats_memory", 200, 1), memory_max=64 << 20)
        assert (job.status, job.reason) == (Status.ERROR, Reason.OOM)
        assert "MiB" in (job.detail or "")


class TestBudgets:
    @pytest.mark.parametrize("limit", [{"max_cost": 0.000001}, {"max_tokens": 1}])
    def test_an_attempt_that_costs_too_much_is_ended(
        self, shop: Workshop, limit: dict[str, Any]
    ) -> None:
        recording = SAMPLES / "claude" / "plain.default.jsonl"
        spender = shop.agent(
            "spender", "replays", recording, 60, mode="stream", stream="stream-json"
        )
        job = shop.run(spender, **limit)
        assert (job.status, job.reason) == (Status.ERROR, Reason.BUDGET)
        assert " of " in (job.detail or "")

    def test_one_that_stays_below_its_budget_completes_and_its_cost_is_told(
        self, shop: Workshop
    ) -> None:
        recording = SAMPLES / "claude" / "plain.default.jsonl"
        spender = shop.agent("spender", "replays", recording, mode="stream", stream="stream-json")
        job = shop.run(spender, max_cost=100, max_tokens=10_000_000)
        assert (job.status, job.reason) == (Status.COMPLETED, None)
        last = shop.told(job.job_id)[-1]["data"]
        assert last["cost"] > 0
        assert last["tokens"]["output"] > 0
        assert job.agent_session_id


#: Runs a command of ours and says how large it ever was; not `getrusage`, which has its parent's.
#: It leaves as `mam` does, without waiting for its last supervisor.
_MEASURED = """
import os, sys
from mam_core.cli.main import main
main(sys.argv[1:])
with open("/proc/self/status") as file:
    print(next(line for line in file if line.startswith("VmHWM")).split()[1], file=sys.stderr)
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)
"""


class TestOutput:
    def test_an_agent_that_prints_without_end_fills_no_memory_and_stops_nobody(
        self, shop: Workshop
    ) -> None:
        _flood(shop, 20_000_000)

    @pytest.mark.release
    def test_of_a_hundred_megabytes_as_much_is_kept_as_the_log_may_hold(
        self, shop: Workshop
    ) -> None:
        """Decision 20."""
        folder = _flood(shop, 100_000_000)
        kept = sum(path.stat().st_size for path in folder.glob("output.log*"))
        assert CAP_BYTES // 2 <= kept <= CAP_BYTES + 4096


def _flood(shop: Workshop, size: int) -> Path:
    """One slot drowns in output, the other goes on; the folder of the attempt."""
    enough = shop.folder / "enough"
    flood = shop.add(shop.agent("flood", "prints_much", size, "until", enough), timeout_sec=300)
    others = [shop.add(shop.agent("good", "behaves")) for _ in range(2)]
    shop.settle()
    command = [sys.executable, "-c", _MEASURED, "work", "--label", LABEL, "--slots", "2", "--drain"]
    with running(command, shop.folder) as worker:
        for other in others:
            shop.until_status(other, Status.COMPLETED)
        enough.touch()
        assert worker.code() == 0
    assert {shop.job(one).status for one in (flood, *others)} == {Status.COMPLETED}
    ended = shop.audit(flood, "attempt_ended")[0]["timestamp"]
    assert all(shop.audit(one, "attempt_ended")[0]["timestamp"] < ended for one in others)
    assert int(worker.err[-1]) < 120 * 1024
    assert len(shop.told(flood)) < 100
    assert len(worker.out) > 100
    return shop.attempt_folder(flood)
