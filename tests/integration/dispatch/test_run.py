"""``mam dispatch run``: a task is claimed, becomes a job, and is written back as it goes."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from mam_core.dispatch import tasks
from mam_core.dispatch.tasks import Task, TaskStatus
from tests.support.dispatching import Node

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")


def jobs(node: Node, *words: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(node.mam("list", "--json", *words).stdout)
    return found


def test_a_task_from_its_spec_to_its_log(node: Node) -> None:
    """M7, M11, M12, M13: one engine, two views."""
    node.init(S01='echo "mode $API_MODE"; echo aside >&2', S02="echo no; exit 3")
    done = node.dispatch("run", code=1, API_MODE="zai")
    assert "node mac1, API_MODE zai" in done.stderr
    assert done.stdout.splitlines()[0] == "S01 completed"
    assert done.stdout.splitlines()[1].startswith("S02 failed: exit: ended with exit code 3")
    good, bad = node.tasks["S01"], node.tasks["S02"]
    assert (good["status"], good["node"], good["attempt"]) == ("completed", "mac1", 1)
    assert good["started_at"] <= good["completed_at"]
    assert sorted(Path(good["log"]).read_text().split("\n")) == ["", "aside", "mode zai"]
    assert (bad["status"], "completed_at" in bad) == ("failed", False)
    assert "exit code 3" in bad["error"]
    listed = {job["job_id"]: job for job in jobs(node, "--group", "dispatch")}
    assert listed[good["job"]]["status"] == "completed"
    assert (listed[bad["job"]]["status"], listed[bad["job"]]["reason"]) == ("error", "exit")
    assert listed[good["job"]]["agent"] == "claude-code"
    logs = node.mam("logs", str(good["job"])).stdout
    assert "zai" in logs
    retried_in_the_console(node, bad["job"])


def retried_in_the_console(node: Node, job_id: str) -> None:
    """M9, M31: a job that a person retried is run by the next bare run, as its next attempt."""
    node.spec("S02-x.md", "echo better")
    assert node.dispatch("run").stdout == ""
    node.mam("retry", job_id)
    assert node.dispatch("run").stdout == "S02 completed\n"
    task = node.tasks["S02"]
    assert (task["job"], task["attempt"]) == (job_id, 2)
    assert task["log"].endswith("/attempts/2/output.log")
    assert "error" not in task


def test_failed_ones_are_run_again_when_named_or_asked_for(node: Node) -> None:
    """M8, M9, X6, decision 11."""
    node.init(S01="exit 1", S02="exit 1", S03="echo three")
    node.dispatch("run", "S01", "S02", code=1)
    assert node.statuses() == {"S01": "failed", "S02": "failed", "S03": "pending"}
    assert node.dispatch("run").stdout == "S03 completed\n"
    assert node.dispatch("run", "S02", code=1).stdout.startswith("S02 failed")
    assert [node.tasks[name]["attempt"] for name in ("S01", "S02")] == [1, 2]
    node.spec("S01-x.md", "echo one")
    node.spec("S02-x.md", "echo two")
    assert node.dispatch("run", "--retry-failed").stdout == "S01 completed\nS02 completed\n"
    assert [node.tasks[name]["attempt"] for name in ("S01", "S02")] == [2, 3]


class TestRefused:
    @pytest.fixture(autouse=True)
    def made(self, node: Node) -> None:
        """One task for each status."""
        pending = Task(TaskStatus.PENDING, spec="S01-x.md")
        claimed = tasks.claimed(pending, "mac2", 7, "job", 1e9)
        running = tasks.started(claimed, 8, "/log")
        done = tasks.completed(running, 1e9)
        node.spec("S01-x.md")
        node.write(S01=pending, S02=claimed, S03=running, S04=done)

    def test_what_somebody_has_or_did_is_refused_with_the_reason(self, node: Node) -> None:
        """M5, M28."""
        before = node.path.read_bytes()
        done = node.dispatch("run", "S02", "S03", "S04", code=1)
        assert "task S02 is claimed by mac2 since 2001" in done.stderr
        assert "task S03 is running by mac2" in done.stderr
        assert "task S04 is completed by mac2: it is not run again" in done.stderr
        assert node.path.read_bytes() == before
        assert not jobs(node)

    def test_an_unknown_task_writes_nothing_at_all(self, node: Node) -> None:
        """M30: not even those beside it that are known."""
        before = node.path.read_bytes()
        assert (
            "there is no task S98, S99 in"
            in node.dispatch("run", "S98", "S01", "S99", code=1).stderr
        )
        assert node.path.read_bytes() == before

    @pytest.mark.parametrize(
        ("environ", "words"),
        [
            ({"API_MODE": "cheap"}, "API_MODE is 'cheap': say direct or zai"),
            ({"NODE_NAME": "a\nb"}, "NODE_NAME is"),
        ],
    )
    def test_a_variable_that_makes_no_sense_is_a_sentence(
        self, node: Node, environ: dict[str, str], words: str
    ) -> None:
        """M10, M11."""
        assert words in node.dispatch("run", code=2, **environ).stderr

    def test_a_spec_that_is_not_here_is_told_and_nothing_is_claimed(self, node: Node) -> None:
        (node.specs / "S01-x.md").unlink()
        assert "its spec" in node.dispatch("run", code=1).stderr
        assert node.statuses()["S01"] == "pending"


def test_a_job_whose_task_another_node_took_is_not_run(node: Node, other: Node) -> None:
    """M5: also where an ordinary worker claims a job that was handed in."""
    node.init(S01="echo one", S02="echo two")
    said = node.dispatch("import")
    label = said.stderr.split()[-3].rstrip(":")
    ids = dict(line.split() for line in said.stdout.splitlines())
    assert node.statuses() == {"S01": "pending", "S02": "pending"}
    assert "S02 completed" in other.dispatch("run", "S02", "--specs", str(node.specs)).stdout
    node.mam("work", "--label", label, "--drain")
    assert node.statuses() == {"S01": "completed", "S02": "completed"}
    found = {job["job_id"]: job for job in jobs(node)}
    assert found[ids["S01"]]["status"] == "completed"
    left = found[ids["S02"]]
    assert (left["status"], left["detail"]) == (
        "cancelled",
        "task S02 is completed by mac2: it is not run again",
    )


def test_cancelled_is_failed_with_that_word(node: Node) -> None:
    """X4."""
    node.init(S01="echo begun; sleep 60")
    with node.dispatching("run") as run:
        run.until(lambda: node.statuses()["S01"] == "running", "it runs")
        assert os.path.exists(f"/proc/{node.tasks['S01']['pid']}")
        node.mam("cancel", node.tasks["S01"]["job"], "--why", "too slow")
        assert run.code() == 1
    assert node.tasks["S01"]["status"] == "failed"
    assert node.tasks["S01"]["error"].startswith("cancelled by")


def test_a_run_that_is_asked_to_end_gives_back_what_it_has(node: Node) -> None:
    """M29: and the next one takes it up, as the same job."""
    node.init(S01="test -e go && exit; echo begun; sleep 60", S02="echo two")
    with node.dispatching("run") as run:
        run.until(lambda: node.statuses()["S01"] == "running", "it runs")
        run.send(signal.SIGTERM)
        assert run.code() == 1
    task = node.tasks["S01"]
    assert (task["status"], task["released"]["node"], "pid" in task) == ("pending", "mac1", False)
    (node.folder / "go").touch()
    assert node.dispatch("run").stdout == "S01 completed\nS02 completed\n"
    assert node.tasks["S01"]["attempt"] == 2
    assert len(jobs(node)) == 2


class TestKilled:
    def test_a_dead_runner_is_found_and_released_by_a_verb(self, node: Node) -> None:
        """M29: found by its process, never by guess; changed only when that is said."""
        node.init(S01="test -e go && exit; echo begun; sleep 60", S02="echo two")
        with node.dispatching("run", "S01") as run:
            run.until(lambda: node.statuses()["S01"] == "running", "it runs")
            alive = node.dispatch("release")
            assert "held by somebody" in alive.stderr
            assert "runs here, as process" in node.dispatch("release", "S01", code=1).stderr
            run.send(signal.SIGKILL)
            supervisor = node.tasks["S01"]["pid"]
            run.until(lambda: not os.path.exists(f"/proc/{supervisor}"), "its supervisor ends")
        found = node.dispatch("release")
        assert f"S01 is running by mac1, and its process {supervisor} is gone" in found.stdout
        assert "nothing was changed" in found.stderr
        assert node.statuses()["S01"] == "running"
        assert "S01 is running by mac1 since" in node.dispatch("run", "S01", code=1).stderr
        assert "now pending" in node.dispatch("release", "--yes").stdout
        assert node.tasks["S01"]["released"]["node"] == "mac1"
        (node.folder / "go").touch()
        # The sweep has to find the dead worker's job first, so the other task comes before it.
        ran = node.dispatch("run").stdout
        assert sorted(ran.splitlines()) == ["S01 completed", "S02 completed"]
        assert node.tasks["S01"]["attempt"] == 2

    def test_of_another_node_only_the_age_is_known(self, node: Node) -> None:
        """M29."""
        node.init(S01="echo one", S02="echo two")
        held = tasks.claimed(Task(TaskStatus.PENDING), "mac9", 1, "job", 1e9)
        node.write(S01=held, S02=held)
        assert "held by somebody" in node.dispatch("release").stderr
        old = node.dispatch("release", "--older-than", "2h", "--json")
        assert [one["task"] for one in json.loads(old.stdout)] == ["S01", "S02"]
        assert node.statuses()["S01"] == "claimed"
        node.dispatch("release", "S01")
        assert node.statuses() == {"S01": "pending", "S02": "claimed"}
        said = node.dispatch("release", "S01", code=1).stderr
        assert "task S01 is pending: there is nothing to release" in said
