"""Sessions are stopped by people, and come back when something else has ended them."""

from __future__ import annotations

import json
import os
import shlex
import signal
import threading
from functools import partial
from pathlib import Path

import pytest

from mam_core.operations.sessions import SessionState
from mam_core.process_mark import ProcessMark
from mam_core.records import Status
from tests.support.patience import eventually
from tests.support.repositories import git
from tests.support.sessions import SessionShop, repository
from tests.support.watching import MAM


def as_of_the_boot_before(shop: SessionShop, name: str, job_id: str) -> None:
    """What is on disk of a session and its job, from another boot, with pids that are ours now."""
    us = ProcessMark.of(os.getpid())
    assert us is not None
    mark = us.to_dict() | {"boot_id": "the boot before"}
    announced = Path(shop.kept.path, f"{name}.worker")
    announced.write_text(json.dumps(json.loads(announced.read_text()) | mark))
    record = shop.path / f"{job_id}.json"
    data = json.loads(record.read_text())
    assert data["status"] == "running"
    data["lease"]["boot_id"] = "the boot before"
    data["lease"]["owner"] = f"{shop.registry.node}:{us.pid}:{us.started}:0"
    record.write_text(json.dumps(data))
    attempt = shop.attempt_folder(job_id) / "process.json"
    attempt.write_text(json.dumps(json.loads(attempt.read_text()) | {"supervisor": mark}))


class TestStopped:
    def test_when_its_job_is_done(self, shop: SessionShop) -> None:
        agent = shop.agent("slow", "/bin/sh", prompt="stdin")
        shop.spawn("a", agent)
        go = shop.workdir / "go"
        script = f"echo begun; while [ ! -e {go} ]; do sleep 0.05; done; echo over"
        job_id = shop.add(agent, script, agent_session="tmux:a")
        later = shop.add(agent, "echo later", agent_session="tmux:a")
        shop.until_said(job_id, "begun")
        with shop.mam("stop", "a") as first, shop.mam("stop", "a") as second:
            for one in (first, second):  # the second wish is no more than the first
                one.until(partial(one.says, f"finishes {job_id} first"), "it waits")
            assert shop.seen()["a"].state is SessionState.STOPPING
            twin = shop.say("spawn", "--agent-session", "tmux:a", "--agent", agent)
            assert twin.code == 1
            go.touch()
            assert (first.code(), second.code()) == (0, 0), (first.err, second.err)
        assert shop.job(job_id).status is Status.COMPLETED
        assert shop.job(later).status is Status.PENDING
        assert shop.in_tmux() == []
        assert shop.kept.all() == ([], [])

    def test_now_its_job_waits_for_another(self, shop: SessionShop) -> None:
        stuck = shop.agent("stuck", "hangs")
        shop.spawn("a", stuck)
        job_id = shop.add(stuck, agent_session="tmux:a")
        shop.until_said(job_id, "hangs")
        assert shop.ok("stop", "a", "--now").out == "a\n"
        assert shop.job(job_id).status is Status.PENDING
        assert not shop.survivors()
        assert shop.in_tmux() == []
        shop.until_at_rest()

    def test_an_interrupt_ends_only_the_waiting(self, shop: SessionShop) -> None:
        stuck = shop.agent("stuck", "hangs")
        shop.spawn("a", stuck)
        job_id = shop.add(stuck, agent_session="tmux:a")
        shop.until_said(job_id, "hangs")
        with shop.mam("stop", "a") as stop:
            stop.until(lambda: stop.says("finishes"), "it waits")
            stop.send(signal.SIGINT)
            assert stop.code() == 130
            assert stop.says("was asked to end")
        assert shop.job(job_id).status is Status.RUNNING
        assert shop.ok("restore").err == "mam: session a is stopping\n"
        shop.ok("stop", "a", "--now")
        assert shop.job(job_id).status is Status.PENDING

    def test_not_by_an_agent_that_cannot_see_its_worker(self, shop: SessionShop) -> None:
        """In a PID namespace of its own every worker outside looks dead; it may start one."""
        agent = shop.agent("slow", "/bin/sh", prompt="stdin")
        for name in ("a", "b"):
            shop.spawn(name, agent)
        spawn = [*MAM, "spawn", "--agent-session", "tmux:c", "--agent", agent]
        stop = ["env", "-u", "MAM_JOB_ID", *MAM, "stop", "b", "--now"]  # else it may not at all
        script = f"readlink /proc/self/ns/pid; {shlex.join(spawn)}; {shlex.join(stop)}"
        workdir = str(shop.folder)
        job_id = shop.add(agent, script, agent_session="tmux:a", workdir=workdir)
        shop.until_status(job_id, Status.COMPLETED, Status.ERROR)
        said = shop.output(job_id)
        assert "session c is up" in said
        assert shop.words()["c"] == "alive"
        if os.readlink("/proc/self/ns/pid") not in said:  # else agents have none of their own here
            assert "whether the worker of session b lives cannot be seen from here" in said
            assert shop.words()["b"] == "alive"

    def test_what_is_not_there_is_said(self, shop: SessionShop) -> None:
        said = shop.say("stop", "nobody")
        assert said.code == 1
        assert said.err == "mam: there is no session nobody, and no pool of that name\n"


class TestRestored:
    def test_after_the_tmux_server_died(self, shop: SessionShop) -> None:
        """Issue: the sessions that were there come back; a stopped one does not."""
        repository(shop.folder / "repo")
        agent = shop.agent("good", "behaves")
        stuck = shop.agent("stuck", "hangs")
        shop.spawn("plain", stuck, "--slots", "2")
        shop.spawn("tree", agent, "--worktree", "--workdir", str(shop.folder / "repo" / "src"))
        tree = shop.seen()["tree"].session
        assert tree is not None
        assert tree.worktree is not None
        (Path(tree.worktree) / "draft").write_text("half done")
        shop.spawn("over", agent)
        shop.ok("stop", "over")
        job_id = shop.add(stuck, agent_session="tmux:plain")
        shop.until_said(job_id, "hangs")
        os.kill(shop.server_pid(), signal.SIGKILL)
        eventually(lambda: shop.in_tmux() == [], "the server is gone")
        said = shop.ok("restore")
        assert said.out == "plain\ntree\n"
        assert sorted(shop.in_tmux()) == ["plain", "tree"]
        again = shop.seen()
        assert {one.state for one in again.values()} == {SessionState.ALIVE}
        assert again["tree"].session == tree
        assert again["plain"].session is not None
        assert again["plain"].session.slots == 2
        # What it had at hand was handed back, and it takes it up again.
        shop.until_said(job_id, "hangs", attempt=2)
        quiet = shop.ok("restore")
        assert quiet.out == ""
        assert "session plain is alive" in quiet.err
        shop.ok("stop", "plain", "--now")
        kept = shop.ok("stop", "tree")
        assert "the worktree" in kept.err
        assert "stays: it has 1 untracked file" in kept.err
        assert (Path(tree.worktree) / "draft").read_text() == "half done"
        assert shop.seen()["tree"].state is SessionState.STOPPED
        assert shop.ok("restore").err == "mam: session tree was stopped by a person\n"

    @pytest.mark.parametrize("rounds", [3, pytest.param(20, marks=pytest.mark.release)])
    def test_again_and_again_while_everybody_looks(self, shop: SessionShop, rounds: int) -> None:
        """Issue: the server is killed; right after it every command says what is so."""
        stuck = shop.agent("stuck", "hangs")
        shop.spawn("a", stuck)
        shop.spawn("b", stuck)
        job_id = shop.add(stuck, agent_session="tmux:a")
        for attempt in range(1, rounds + 1):
            shop.until_said(job_id, "hangs", attempt=attempt)
            os.kill(shop.server_pid(), signal.SIGKILL)
            # Its workers may still be handing back what they had: that is no life in tmux.
            states = {row["name"]: row["state"] for row in shop.rows()}
            assert states.keys() == {"a", "b"}
            assert set(states.values()) <= {"gone", "stopping"}, states
            said = shop.ok("why", job_id).out
            assert "Traceback" not in said
            assert shop.ok("restore").out == "a\nb\n"
            assert {row["state"] for row in shop.rows()} == {"alive"}
        assert shop.job(job_id).status is Status.RUNNING
        for name in ("a", "b"):
            shop.ok("stop", name, "--now")
        shop.until_at_rest()

    def test_after_a_reboot_when_its_pids_are_those_of_others(self, shop: SessionShop) -> None:
        """N16: the marks on disk name living processes; only the boot tells that they are not
        meant."""
        stuck = shop.agent("stuck", "hangs")
        shop.spawn("a", stuck)
        job_id = shop.add(stuck, agent_session="tmux:a")
        shop.until_said(job_id, "hangs")
        worker = shop.worker_in("a")
        os.kill(shop.server_pid(), signal.SIGKILL)
        worker.send(signal.SIGKILL)
        shop.until_at_rest()
        shop.until_nobody_lives()
        as_of_the_boot_before(shop, "a", job_id)
        assert shop.words() == {"a": "gone"}
        assert "lost" in shop.ok("why", job_id).out
        assert shop.ok("restore").out == "a\n"
        shop.until_said(job_id, "hangs", attempt=2)
        shop.ok("stop", "a", "--now")

    def test_one_that_cannot_come_back_keeps_nobody_from_it(self, shop: SessionShop) -> None:
        agent = shop.agent("good", "behaves")
        place = shop.folder / "elsewhere"
        place.mkdir()
        shop.spawn("a", agent, "--workdir", str(place))
        shop.spawn("b", agent)
        os.kill(shop.server_pid(), signal.SIGKILL)
        place.rmdir()
        said = shop.say("restore")
        assert (said.code, said.out) == (1, "b\n")
        assert f"session a is not restored: its folder is not there: {place}" in said.err
        assert shop.seen()["a"].state is SessionState.GONE  # still on record

    def test_one_whose_worker_broke_but_not_one_that_ended_in_order(
        self, shop: SessionShop
    ) -> None:
        agent = shop.agent("good", "behaves")
        for name in ("broke", "ended"):
            shop.spawn(name, agent)
        os.kill(shop.worker_in("broke").pid, signal.SIGKILL)
        os.kill(shop.worker_in("ended").pid, signal.SIGINT)
        wanted = {"broke": "dead (signal 9)", "ended": "dead (0)"}
        eventually(lambda: shop.words() == wanted, "tmux has seen both")
        said = shop.ok("restore")
        assert said.out == "broke\n"
        assert "session ended ended in order" in said.err

    def test_nothing_on_record_is_no_trouble(self, shop: SessionShop) -> None:
        said = shop.ok("restore")
        assert said.err == "mam: there are no sessions on record\n"


class TestWorktree:
    @pytest.fixture
    def repo(self, shop: SessionShop) -> Path:
        return repository(shop.folder / "repo")

    def test_a_job_runs_at_the_same_place_inside_it(self, shop: SessionShop, repo: Path) -> None:
        agent = shop.agent("sh", "/bin/sh", prompt="stdin")
        shop.spawn("a", agent, "--worktree", "--workdir", str(repo))
        tree = shop.folder / ".mam" / "worktrees" / "a"
        script = "pwd; echo $MAM_WORKDIR; echo made > result; echo better > main"
        job_id = shop.add(
            agent,
            script,
            agent_session="tmux:a",
            workdir=str(repo / "src"),
            expected_artifacts=["result"],
            validate="grep -q better main",
        )
        outside = shop.add(agent, "pwd", agent_session="tmux:a")
        assert shop.until_status(job_id, Status.COMPLETED, Status.ERROR).status is Status.COMPLETED
        place = tree / "src"
        assert shop.output(job_id).splitlines() == [str(place), str(place)]
        assert shop.audit(job_id, "attempt_started")[0]["workdir"] == str(place)
        assert (repo / "src" / "main").read_text() == "main\n"
        assert "keeps what it promised" in shop.ok("verify", job_id).err
        shop.until_status(outside, Status.COMPLETED)
        assert shop.output(outside).strip() == str(shop.workdir)
        said = shop.ok("stop", "a")
        assert "stays: it has 1 uncommitted change, and 1 untracked file" in said.err
        git(tree, "add", ".")
        git(tree, "commit", "-qm", "better")
        assert "1 commit that no other branch has" in shop.ok("stop", "a").err
        git(repo, "merge", "-q", "mam/a")
        assert shop.ok("stop", "a").err == "mam: session a is stopped\n"
        assert not tree.exists()
        assert git(repo, "branch", "--list", "mam/*") == ""
        assert shop.kept.all() == ([], [])

    def test_a_pool_has_one_each_and_a_failed_start_leaves_none(
        self, shop: SessionShop, repo: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent = shop.agent("good", "behaves")
        words = ["--agent-session", "tmux:p", "--agent", agent, "--count", "2", "--worktree"]
        words += ["--workdir", str(repo)]
        dry = shop.ok("spawn", *words, "--dry-run")
        assert "on branch mam/p-2 (new, from " in dry.out
        with monkeypatch.context() as broken:
            broken.setattr("mam_core.operations.starting.worker_argv", lambda *_: ("/bin/false",))
            assert shop.say("spawn", *words).code == 1
        assert git(repo, "branch", "--list", "mam/*") == ""
        assert len(git(repo, "worktree", "list").splitlines()) == 1
        shop.ok("spawn", *words)
        assert len(git(repo, "worktree", "list").splitlines()) == 3
        shop.ok("stop", "p")
        assert len(git(repo, "worktree", "list").splitlines()) == 1


def test_a_record_that_somebody_edited_removes_no_other_worktree_and_no_other_branch(
    shop: SessionShop,
) -> None:
    repo = repository(shop.folder / "repo")
    agent = shop.agent("good", "behaves")
    shop.spawn("a", agent, "--worktree", "--workdir", str(repo))
    session = shop.kept.get("a")
    other = shop.folder / "other"
    git(repo, "worktree", "add", "-q", "-b", "side", str(other))
    shop.kept.put(session._replace(worktree=str(other), branch="side"))
    assert "is not where mam makes worktrees: it stays" in shop.ok("stop", "a").err
    shop.kept.put(shop.kept.get("a")._replace(worktree=session.worktree))
    shop.ok("stop", "a")
    assert other.exists()
    assert git(repo, "branch", "--list", "side", "mam/*").split()[-1] == "side"


@pytest.mark.release
def test_many_who_spawn_and_stop_at_once_leave_nothing(shop: SessionShop) -> None:
    agent = shop.agent("good", "behaves")
    shop.settle()

    def once(name: str) -> None:
        with shop.mam("spawn", "--agent-session", f"tmux:{name}", "--agent", agent) as one:
            one.code()
        with shop.mam("stop", name) as one:
            one.code()

    threads = [threading.Thread(target=once, args=(name,)) for name in ("a", "a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shop.in_tmux() == []
    assert shop.kept.all() == ([], [])
    shop.until_at_rest()
