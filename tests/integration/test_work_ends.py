"""A worker runs jobs to every end there is, and says which one it was."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from mam_core.clock import parse_stamp, stamp
from mam_core.records import Job, Reason, Status
from mam_core.stores.base import GateKind
from mam_core.work.decision import QUOTA_BACK_OFF
from mam_core.work.worker import Until
from tests.support.patience import eventually
from tests.support.working import LABEL, Workshop

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")


def end_of(job: Job) -> tuple[Status, Reason | None]:
    return job.status, job.reason


class TestCompleted:
    def test_a_job_that_leaves_its_artifact_is_completed(self, shop: Workshop) -> None:
        """Decision 7: it is there, not empty and new."""
        job = shop.run(shop.agent("good", "behaves", "out.txt"), expected_artifacts=["out.txt"])
        assert end_of(job) == (Status.COMPLETED, None)
        assert (shop.workdir / "out.txt").read_text()
        assert (job.failures, job.attempt, job.lease, job.pid) == (0, 1, None, None)

    def test_its_history_tells_of_every_step_in_order(self, shop: Workshop) -> None:
        """G3, G12: events are numbered from 1, and each says of which attempt it is."""
        job = shop.run(shop.agent("good", "behaves", "out.txt"), expected_artifacts=["out.txt"])
        lines = [line["event"] for line in shop.audit(job.job_id)]
        assert [name for name in lines if name != "published"] == [
            *("registered", "status_changed", "attempt_started", "attempt_ended", "status_changed"),
        ]
        told = shop.told(job.job_id)
        assert [content["seq"] for content in told] == list(range(1, job.last_seq + 1))
        assert {content["attempt"] for content in told} == {1}
        assert (told[0]["event"], told[-1]["event"]) == ("started", "completed")
        assert told[0]["data"] == {"agent": "good"}
        assert told[-1]["data"]["exit_code"] == 0
        ended = shop.audit(job.job_id, "attempt_ended")[0]
        assert ended["checks"] == [
            {"what": "out.txt", "passed": True, "words": "artifact out.txt is there"}
        ]
        assert ended["peak_memory"] > 0

    def test_a_new_attempt_takes_away_what_a_killed_one_left(self, shop: Workshop) -> None:
        """Nobody swept it: its host was another, or a person set the status by hand."""
        job_id = shop.add(shop.agent("good", "behaves"))
        assert shop.registry.claim(LABEL) is not None
        shop.registry.set_status(job_id, Status.ERROR)
        left = Path(shop.registry.store.audit.path) / job_id / "attempts" / "1"
        left.mkdir(parents=True, mode=0o700)
        (left / "prompt").write_text("a secret")
        (left / "output.log").write_text("kept")
        shop.registry.retry(job_id)
        shop.drain()
        assert shop.job(job_id).status is Status.COMPLETED
        assert [path.name for path in left.iterdir()] == ["output.log"]

    def test_its_output_is_kept_and_its_prompt_is_not(self, shop: Workshop) -> None:
        """Decision 20: 0600, in the folder of its attempt."""
        job = shop.run(shop.agent("good", "behaves"))
        assert "this one behaves" in shop.output(job.job_id)
        folder = shop.attempt_folder(job.job_id)
        assert sorted(path.name for path in folder.iterdir()) == ["output.log", "process.json"]
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}

    def test_a_validate_command_has_the_last_word(self, shop: Workshop) -> None:
        good = shop.agent("good", "behaves")
        passed = shop.add(good, validate='test "$MAM_JOB_ID" && test "$MAM_ATTEMPT" = 1')
        failed = shop.add(good, validate="echo two tests fail; exit 1")
        shop.drain()
        assert end_of(shop.job(passed)) == (Status.COMPLETED, None)
        assert end_of(shop.job(failed)) == (Status.ERROR, Reason.VALIDATION)
        assert "two tests fail" in (shop.job(failed).detail or "")


class TestFailed:
    def test_an_agent_that_only_says_so_is_not_done(self, shop: Workshop) -> None:
        """J4: the artifact that is missing is named."""
        job = shop.run(shop.agent("boaster", "says_done"), expected_artifacts=["report.md"])
        assert end_of(job) == (Status.ERROR, Reason.VALIDATION)
        assert job.detail == "artifact report.md is missing"
        assert shop.names(job.job_id)[-1] == "error"

    def test_an_exit_code_is_told(self, shop: Workshop) -> None:
        job = shop.run(shop.agent("three", "exits_three", 3))
        assert end_of(job) == (Status.ERROR, Reason.EXIT)
        assert "exit code 3" in (job.detail or "")
        assert shop.told(job.job_id)[-1]["data"]["exit_code"] == 3

    def test_a_signal_is_told(self, shop: Workshop) -> None:
        job = shop.run(shop.agent("dies", "dies_by_signal", "SEGV"))
        assert end_of(job) == (Status.ERROR, Reason.SIGNAL)
        assert "SIGSEGV" in (job.detail or "")

    def test_a_command_that_is_not_there_is_told(self, shop: Workshop) -> None:
        """H12, N13: before anything is started; a script's 127 says the same."""
        absent = shop.add(shop.agent("absent", "/no/such/agent", "x"))
        shell = shop.add(shop.agent("shelly", "/bin/sh", "-c", "no-such-command"))
        shop.drain()
        for job_id in (absent, shell):
            assert end_of(shop.job(job_id)) == (Status.ERROR, Reason.NOT_FOUND)
        assert "/no/such/agent" in (shop.job(absent).detail or "")
        assert shop.audit(absent, "attempt_started") == []

    def test_a_folder_that_is_not_there_is_told(self, shop: Workshop) -> None:
        """N24."""
        gone = shop.folder / "gone"
        gone.mkdir()
        job_id = shop.add(shop.agent("good", "behaves"), workdir=str(gone))
        gone.rmdir()
        shop.drain()
        assert end_of(shop.job(job_id)) == (Status.ERROR, Reason.NOT_FOUND)
        assert "folder" in (shop.job(job_id).detail or "")

    def test_a_command_is_looked_for_where_it_will_be_started(self, shop: Workshop) -> None:
        script = shop.workdir / "agent.sh"
        script.write_text("#!/bin/sh\necho found\n")
        script.chmod(0o755)
        assert shop.run(shop.agent("near", "./agent.sh")).status is Status.COMPLETED

    def test_a_failed_job_is_tried_again_later_while_its_budget_lasts(self, shop: Workshop) -> None:
        """Decision 17: with back-off; N31: no storm."""
        job_id = shop.add(shop.agent("three", "exits_three", 3), max_attempts=3)
        for failures in (1, 2):
            assert shop.drain(until=Until.ONCE).ran == 1
            assert shop.drain(until=Until.ONCE).ran == 0  # it is not yet time
            job = shop.job(job_id)
            assert (job.status, job.reason, job.failures) == (Status.PENDING, Reason.EXIT, failures)
            assert job.not_before is not None
            pause = parse_stamp(job.not_before) - parse_stamp(job.updated_at)
            assert 4 * 2 ** (failures - 1) <= pause <= 11 * 2 ** (failures - 1)
            shop.registry.edit(job_id, {"not_before": None})
        shop.drain()
        job = shop.job(job_id)
        assert (job.status, job.failures, job.attempt) == (Status.ERROR, 3, 3)
        assert shop.drain().ran == 0
        events = [(c["attempt"], c["event"]) for c in shop.told(job_id)]
        assert [e for e in events if e[1] not in ("progress", "log")] == [
            *((1, "started"), (1, "queued"), (2, "started"), (2, "queued")),
            *((3, "started"), (3, "error")),
        ]


class TestSettings:
    def test_the_first_pause_is_as_long_as_the_settings_say(self, shop: Workshop) -> None:
        """Decision 17: here so short that all tries are made at once."""
        shop.set(retry_sec=0.01, retry_max_sec=0.02)
        job_id = shop.add(shop.agent("bad", "exits_three"), max_attempts=3)
        with shop.at_work():
            job = shop.until_status(job_id, Status.ERROR)
        assert (job.attempt, job.failures) == (3, 3)

    def test_of_the_output_as_much_is_kept_as_the_settings_say(self, shop: Workshop) -> None:
        """Decision 20."""
        shop.set(output_max=4096)
        line = "n=0; while [ $n -lt 2000 ]; do echo line $n; n=$((n+1)); done"
        job = shop.run(shop.agent("talker", "/bin/sh", "-c", line))
        folder = shop.attempt_folder(job.job_id)
        kept = [(folder / name).read_bytes() for name in ("output.log.1", "output.log")]
        assert sum(map(len, kept)) <= 4096 + 200
        assert kept[1].endswith(b"line 1999\n")


class TestWhatItNeeds:
    """N29: the environment is looked at before anything is started."""

    def test_a_variable_that_is_not_set_is_named(
        self, shop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("STAND_IN_EMPTY", "")
        needs = ["PATH", "STAND_IN_KEY", "STAND_IN_EMPTY"]
        job = shop.run(shop.agent("keyed", "behaves", needs=needs), max_attempts=3)
        assert end_of(job) == (Status.ERROR, Reason.NOT_FOUND)
        said = "agent keyed needs the variables STAND_IN_KEY, STAND_IN_EMPTY: not set here"
        assert job.detail == said
        assert job.attempt == 1, "the next try would find no more"
        assert shop.audit(job.job_id, "attempt_started") == []

    def test_one_that_is_set_here_or_by_its_profile_will_do(
        self, shop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("STAND_IN_KEY", "k")
        shop.agent("keyed", "behaves", needs=["STAND_IN_KEY", "MINE"], env={"MINE": "m"})
        assert end_of(shop.run("keyed")) == (Status.COMPLETED, None)

    def test_a_submission_is_refused_before_it_is_registered(self, shop: Workshop) -> None:
        shop.agent("keyed", "behaves", needs=["STAND_IN_KEY"])
        with shop.mam("submit", "--agent", "keyed", "--prompt", "x") as submitted:
            assert submitted.code() == 1
        assert submitted.says("agent keyed needs the variable STAND_IN_KEY: not set here")
        assert not shop.path.parent.exists()


class TestQuota:
    def test_a_usage_limit_holds_back_the_agent_and_blames_nobody(self, shop: Workshop) -> None:
        """Decision 17, issue: blocked until it ends, and so are the agent's other jobs."""
        reset = int(time.time()) + 3600
        limited = shop.agent("limited", "hits_quota", reset)
        first, second = shop.add(limited), shop.add(limited)
        other = shop.add(shop.agent("good", "behaves"))
        assert shop.drain().ran == 2
        job = shop.job(first)
        assert (job.status, job.reason, job.failures) == (Status.PENDING, Reason.QUOTA, 0)
        assert job.not_before == stamp(reset)
        waiting = shop.job(second)
        assert (waiting.status, waiting.attempt) == (Status.PENDING, 0)
        assert shop.job(other).status is Status.COMPLETED
        refused = " ".join(refusal.message for refusal in shop.registry.refusals(second))
        assert f"agent limited is paused until {stamp(reset)}: quota" in refused
        assert shop.names(first)[-1] == "queued"

    @pytest.mark.parametrize("ahead", [-600, 1])
    def test_a_reset_that_is_over_does_not_let_the_job_go_round(
        self, shop: Workshop, ahead: int
    ) -> None:
        """N31: nothing is counted as a failure here, so a wait is all that stops it."""
        limited = shop.agent("limited", "hits_quota", int(time.time()) + ahead)
        job_id = shop.add(limited)
        began = time.time()
        assert shop.drain(until=Until.ONCE).ran == 1
        job = shop.job(job_id)
        assert (job.status, job.reason) == (Status.PENDING, Reason.QUOTA)
        assert (job.failures, job.quota_hits) == (0, 1)
        least = QUOTA_BACK_OFF.pause(0, 0.0) - 1  # a stamp has whole seconds
        gate = shop.registry.store.facts().gates().find(GateKind.AGENT, limited)
        assert gate is not None
        assert gate.until is not None
        assert job.not_before is not None
        assert parse_stamp(job.not_before) >= began + least
        assert parse_stamp(gate.until) >= began + least

    def test_a_pause_that_a_person_made_stays(self, shop: Workshop) -> None:
        """Whoever paused the agent meanwhile did not mean until the limit ends."""
        line = "touch asked; while [ ! -e go ]; do sleep 0.02; done; echo 'usage limit reached'"
        limited = shop.agent("limited", "/bin/sh", "-c", f"{line}; exit 1")
        job_id = shop.add(limited)
        with shop.at_work():
            eventually((shop.workdir / "asked").exists, "the agent runs")
            shop.registry.pause(GateKind.AGENT, limited, why="for good")
            (shop.workdir / "go").touch()
            shop.until_status(job_id, Status.PENDING)
        assert shop.job(job_id).reason is Reason.QUOTA
        gate = shop.registry.store.facts().gates().find(GateKind.AGENT, limited)
        assert gate is not None
        assert (gate.why, gate.until) == ("for good", None)


class TestWhatIsServed:
    def test_a_job_of_an_unknown_agent_stays_pending(self, shop: Workshop) -> None:
        """Decision 26."""
        shop.agent("good", "behaves")
        job_id = shop.add("somebody")
        assert shop.drain().ran == 0
        assert shop.job(job_id).status is Status.PENDING

    def test_shell_runs_only_where_it_is_named(self, shop: Workshop) -> None:
        shop.agent("good", "behaves")
        job_id = shop.add("shell", "echo hello from a script")
        with shop.mam_work("--drain") as unnamed:
            assert unnamed.code() == 0
        assert shop.job(job_id).status is Status.PENDING
        with shop.mam_work("--drain", "--agents", "shell") as named:
            assert named.code() == 0
        assert shop.job(job_id).status is Status.COMPLETED
        assert any("hello from a script" in line for line in named.out)

    def test_an_agent_that_nobody_knows_is_said_before_anything_is_claimed(
        self, shop: Workshop
    ) -> None:
        with shop.mam_work("--drain", "--agents", "nobody") as refused:
            assert refused.code() == 1
        assert refused.says("there is no agent 'nobody'")

    def test_once_runs_one_job(self, shop: Workshop) -> None:
        good = shop.agent("good", "behaves")
        ids = [shop.add(good) for _ in range(3)]
        assert shop.drain(until=Until.ONCE).ran == 1
        assert [shop.job(job_id).status for job_id in ids] == [
            *(Status.COMPLETED, Status.PENDING, Status.PENDING),
        ]
        shop.drain()
        assert shop.drain(until=Until.ONCE).ran == 0

    def test_four_slots_run_four_jobs_at_once(self, shop: Workshop) -> None:
        """Each waits for the others: one by one they would never end."""
        line = "touch $MAM_JOB_ID.here; while [ $(ls | wc -l) -lt 4 ]; do sleep 0.02; done"
        meet = shop.agent("meets", "/bin/sh", "-c", line)
        ids = [shop.add(meet, timeout_sec=60) for _ in range(4)]
        shop.drain(slots=4)
        assert {shop.job(job_id).status for job_id in ids} == {Status.COMPLETED}

    def test_a_drain_waits_for_what_may_come_after_a_running_job(self, shop: Workshop) -> None:
        """N19: children are run by all slots, not only by the one that ran their parent."""
        line = "touch $MAM_JOB_ID.here; while [ $(ls | wc -l) -lt 3 ]; do sleep 0.02; done"
        meet = shop.agent("meets", "/bin/sh", "-c", line)
        parent = shop.add(shop.agent("slow", "/bin/sh", "-c", "sleep 0.7; touch parent"))
        children = [shop.add(meet, after=[parent], timeout_sec=60) for _ in range(2)]
        shop.drain(slots=2)
        assert {shop.job(job_id).status for job_id in children} == {Status.COMPLETED}


class TestGit:
    def test_commit_and_dirt_are_recorded_before_and_after(self, shop: Workshop) -> None:
        """Issue: git commit and dirty state at start and end of each attempt."""
        _git(shop.workdir, "init", "-q")
        (shop.workdir / "a").write_text("a")
        _git(shop.workdir, "add", "a")
        _git(shop.workdir, "commit", "-qm", "one")
        job = shop.run(shop.agent("good", "behaves", "out.txt"))
        started = shop.audit(job.job_id, "attempt_started")[0]["git"]
        ended = shop.audit(job.job_id, "attempt_ended")[0]["git"]
        assert started == {"commit": _git(shop.workdir, "rev-parse", "HEAD"), "dirty": False}
        branch = _git(shop.workdir, "branch", "--show-current")
        left = {"branch": branch, "changed": 1}
        assert ended == {**started, "dirty": True, "tree": ended["tree"], **left}

    def test_a_repository_cannot_make_the_worker_run_its_programs(self, shop: Workshop) -> None:
        _git(shop.workdir, "init", "-q")
        trap = shop.folder / "trap.sh"
        trap.write_text(f"#!/bin/sh\ntouch {shop.folder}/sprung\n")
        trap.chmod(0o755)
        _git(shop.workdir, "config", "core.fsmonitor", str(trap))
        job = shop.run(shop.agent("good", "behaves"))
        assert shop.audit(job.job_id, "attempt_ended")[0]["git"]["commit"] is None
        assert not (shop.folder / "sprung").exists()


def _git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"]
    done = subprocess.run(
        ["git", *who, "-C", str(folder), *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()
