"""Sessions are started, refused, found and replaced: on a real tmux server, with real workers."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from mam_core.operations import starting
from mam_core.operations.panes import pane_of
from mam_core.operations.sessions import SessionState
from mam_core.records import Status
from mam_core.tmux.deaths import Deaths
from mam_core.wiring import open_tmux
from tests.support.patience import eventually
from tests.support.sessions import SessionShop

HOSTILE = ["-x", "a;b", "../x", "a.b", "ä", "x" * 300, "a b", "$(reboot)", "=a", "a:0"]


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


class TestSpawned:
    def test_a_session_has_its_label_and_takes_jobs(self, shop: SessionShop) -> None:
        """H3, H4, O9: the label maps to the session, and there is never a twin."""
        agent = shop.agent("good", "behaves")
        said = shop.spawn("claude", agent)
        assert said.out == "claude\n"
        assert f"session claude is up, in {shop.folder}" in said.err
        assert shop.tmux("list-panes", "-a", "-F", "#{session_name} #{@session} #{@agent}") == (
            "claude tmux:claude good"
        )
        job_id = shop.add(agent, agent_session="tmux:claude")
        shop.until_status(job_id, Status.COMPLETED)
        row = shop.rows()[0]
        assert row["state"] == "alive"
        assert (row["pid"], row["node"]) == (shop.worker_in("claude").pid, shop.registry.node)
        assert row["memory"] > 1_000_000
        assert row["cpu_sec"] > 0
        twin = shop.say("spawn", "--agent-session", "tmux:claude", "--agent", agent)
        assert (twin.code, twin.out) == (1, "")
        assert "session claude serves tmux:claude already" in twin.err
        assert shop.in_tmux() == ["claude"]
        shop.ok("stop", "claude")
        assert shop.kept.all() == ([], [])
        shop.until_at_rest()

    def test_two_at_once_are_one_session(self, shop: SessionShop) -> None:
        """H4: whoever comes second finds the first, however close they are."""
        agent = shop.agent("good", "behaves")
        words = ["spawn", "--agent-session", "tmux:race", "--agent", agent]
        with shop.mam(*words) as one, shop.mam(*words) as two:
            codes = sorted([one.code(), two.code()])
        assert codes == [0, 1], (one.err, two.err)
        assert shop.in_tmux() == ["race"]
        assert shop.seen()["race"].state is SessionState.ALIVE

    def test_a_pool_serves_one_label_and_is_stopped_by_its_name(self, shop: SessionShop) -> None:
        agent = shop.agent("good", "behaves")
        said = shop.spawn("pool", agent, "--count", "2", "--slots", "3")
        assert said.out == "pool-1\npool-2\n"
        seen = shop.seen()
        assert {one.label for one in seen.values()} == {"tmux:pool"}
        assert {one.session.slots for one in seen.values() if one.session} == {3}
        single = shop.say("spawn", "--agent-session", "tmux:pool", "--agent", agent)
        assert single.code == 1
        assert shop.say("attach", "pool").err.endswith("is a pool: name one of pool-1, pool-2\n")
        # One that was stopped before, and kept on record for its worktree, is not the pool.
        past = seen["pool-1"].session
        assert past is not None
        shop.kept.put(past._replace(name="pool", stopped_at=past.created_at))
        assert shop.ok("stop", "pool").out == "pool\npool-1\npool-2\n"
        assert shop.in_tmux() == []

    def test_it_stands_in_its_folder_with_the_settings_of_where_it_was_spawned(
        self, shop: SessionShop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """N24, N29: a job that names no folder runs there; the spawner's variables are there."""
        monkeypatch.setenv("FROM_THE_SPAWNER", "a; $(b) 'c'")
        agent = shop.agent("shell-here", "/bin/sh", prompt="stdin")
        place = tmp_path / "work" / "a b; #(c)"
        place.mkdir()
        shop.spawn("one", agent, "--workdir", str(place))
        script = 'echo "in $PWD with $FROM_THE_SPAWNER"; env | grep -c ^PYTHONPATH='
        job_id = shop.add(agent, script, agent_session="tmux:one", workdir=None)
        shop.until_status(job_id, Status.COMPLETED, Status.ERROR)
        assert f"in {place} with a; $(b) 'c'" in shop.output(job_id)


class TestRefused:
    @pytest.mark.parametrize("name", HOSTILE)
    def test_a_name_that_is_no_plain_word(self, shop: SessionShop, name: str) -> None:
        shop.agent("good", "behaves")
        shop.settle()
        before = everything(shop.folder)
        for words in (
            ["spawn", "--agent", "good", f"--agent-session=tmux:{name}"],
            ["stop", "--", name],
            ["attach", "--", name],
        ):
            said = shop.say(*words)
            assert (said.code, said.out) == (2, ""), words
            assert said.err.startswith("mam: "), said.err
            assert len(said.err.splitlines()) == 1
        assert everything(shop.folder) == before
        assert shop.in_tmux() == []

    @pytest.mark.parametrize(
        ("words", "code", "why"),
        [
            (["--agent-session", "claude", "--agent", "good"], 2, "say tmux:NAME"),
            (["--agent-session", "tmux:a", "--agent", "nobody"], 1, "there is no agent 'nobody'"),
            (["--agent-session", "tmux:a", "--agent", "good", "--count", "0"], 2, "--count must"),
            (["--agent-session", "tmux:a", "--agent", "good", "--slots", "0"], 2, "--slots must"),
            (["--agent-session", "tmux:a", "--agent", "good", "--workdir", "no"], 2, "no folder"),
            (["--agent-session", "tmux:a", "--agent", "good", "--worktree"], 1, "no git repo"),
            (["--agent-session", "tmux:a", "--agent", "live", "--slots", "2"], 2, "say --count"),
            (["--agent", "good"], 2, "agent-session"),
        ],
    )
    def test_what_cannot_be_is_said_before_anything_is_made(
        self, shop: SessionShop, words: list[str], code: int, why: str
    ) -> None:
        shop.agent("good", "behaves")
        shop.agent("live", "behaves", mode="interactive")
        shop.settle()
        before = everything(shop.folder)
        said = shop.say("spawn", *words)
        assert said.code == code
        assert why in said.err
        assert everything(shop.folder) == before

    def test_an_agent_that_is_not_here_is_shown_and_leaves_nothing(self, shop: SessionShop) -> None:
        """H8"""
        agent = shop.agent("lost", "/no/such/agent", "--flag")
        shop.settle()
        before = everything(shop.folder)
        said = shop.say("spawn", "--agent-session", "tmux:a", "--agent", agent)
        assert said.code == 1
        assert said.err == "mam: the command /no/such/agent of agent lost is not here\n"
        assert "agent: /no/such/agent --flag" in said.out
        assert "--agent-session tmux:a --agents lost" in said.out
        assert everything(shop.folder) == before

    def test_without_tmux_it_says_what_it_would_run_and_leaves_nothing(
        self, shop: SessionShop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """H8: PATH without tmux."""
        agent = shop.agent("good", "behaves")
        shop.settle()
        before = everything(shop.folder)
        with monkeypatch.context() as poor:
            poor.setenv("PATH", str(shop.workdir))
            said = shop.say("spawn", "--agent-session", "tmux:a", "--agent", agent)
            assert said.code == 1
            assert "tmux is not installed" in said.err
            assert f"tmux -L {shop.socket} new-session -d -s a " in said.out
            assert everything(shop.folder) == before
            assert shop.say("sessions").code == 0
            assert shop.say("stop", "a").code == 1

    def test_a_dry_run_changes_nothing(self, shop: SessionShop) -> None:
        """H9"""
        agent = shop.agent("good", "behaves")
        shop.settle()
        before = everything(shop.folder)
        said = shop.ok("spawn", "--dry-run", "--agent-session", "tmux:a", "--agent", agent)
        assert "session: a, for jobs of tmux:a" in said.out
        assert everything(shop.folder) == before
        assert shop.in_tmux() == []

    def test_a_dry_run_is_refused_as_the_run_would_be(
        self, shop: SessionShop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """H9: a twin, a stranger's session, an agent and a tmux that are not here."""
        agent, lost = shop.agent("good", "behaves"), shop.agent("lost", "/no/such/agent")
        shop.spawn("twin", agent)
        shop.tmux("new-session", "-d", "-s", "mine", "sleep 300")
        refusals = {
            ("twin", agent): "session twin serves tmux:twin already",
            ("mine", agent): "tmux has a session mine that mam did not start",
            ("new", lost): "the command /no/such/agent of agent lost is not here",
        }
        for (name, who), why in refusals.items():
            words = ["--agent-session", f"tmux:{name}", "--agent", who]
            rehearsed, real = shop.say("spawn", "--dry-run", *words), shop.say("spawn", *words)
            assert rehearsed.code == real.code == 1
            assert why in rehearsed.err
            assert rehearsed.err == real.err
            assert f"session: {name}, for jobs of tmux:{name}" in rehearsed.out
        with monkeypatch.context() as poor:
            poor.setenv("PATH", str(shop.workdir))
            said = shop.say("spawn", "--dry-run", "--agent-session", "tmux:a", "--agent", agent)
            assert said.code == 1
            assert "tmux is not installed" in said.err
        assert [one.name for one in shop.kept.all()[0]] == ["twin"]
        assert sorted(shop.in_tmux()) == ["mine", "twin"]
        shop.ok("stop", "twin")

    def test_a_session_that_somebody_else_started_is_neither_taken_nor_ended(
        self, shop: SessionShop
    ) -> None:
        """H11"""
        agent = shop.agent("good", "behaves")
        shop.tmux("-f", "/dev/null", "new-session", "-d", "-s", "mine", "sleep 300")
        said = shop.say("spawn", "--agent-session", "tmux:mine", "--agent", agent)
        assert said.code == 1
        assert "tmux has a session mine that mam did not start" in said.err
        assert shop.kept.all() == ([], [])
        for words in (["stop", "mine"], ["stop", "mine", "--now"]):
            said = shop.say(*words)
            assert said.code == 1
            assert "did not start here: it stays" in said.err
        assert shop.rows() == []
        shop.spawn("ours", agent)
        shop.ok("stop", "ours")
        assert shop.in_tmux() == ["mine"]


class TestDied:
    def test_at_once_its_last_words_are_the_reason_and_nothing_is_left(
        self, shop: SessionShop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent = shop.agent("good", "behaves")
        program = ("/bin/sh", "-c", "echo no; echo 'the disk is \033[31mfull'; sleep 0.3; exit 3")
        monkeypatch.setattr(starting, "worker_argv", lambda start, path: program)
        said = shop.say("spawn", "--agent-session", "tmux:a", "--agent", agent)
        assert (said.code, said.out) == (1, "")
        assert said.err == "mam: session a did not come up: no / the disk is full\n"
        assert shop.in_tmux() == []
        assert shop.kept.all() == ([], [])

    @pytest.mark.parametrize(
        "times", [1, pytest.param(150, marks=[pytest.mark.release, pytest.mark.timeout(1800)])]
    )
    def test_a_worker_that_cannot_begin_is_heard(
        self, shop: SessionShop, monkeypatch: pytest.MonkeyPatch, times: int
    ) -> None:
        agent = shop.agent("good", "behaves")
        real = starting.worker_argv
        monkeypatch.setattr(
            starting, "worker_argv", lambda start, path: (*real(start, path), "--slots", "0")
        )
        for _ in range(times):
            said = shop.say("spawn", "--agent-session", "tmux:a", "--agent", agent)
            words = "mam: --slots must be between 1 and 256"
            assert said.err == f"mam: session a did not come up: {words}\n"

    def test_one_of_a_pool_takes_the_others_with_it(
        self, shop: SessionShop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent = shop.agent("good", "behaves")
        real = starting.worker_argv

        def argv(start: starting.Start, path: str) -> tuple[str, ...]:
            return ("/bin/false",) if start.session.name == "p-2" else real(start, path)

        monkeypatch.setattr(starting, "worker_argv", argv)
        words = ["--agent-session", "tmux:p", "--agent", agent, "--count", "2"]
        said = shop.say("spawn", *words)
        assert said.code == 1
        assert "session p-2 did not come up: its worker ended without a word" in said.err
        assert shop.in_tmux() == []
        assert shop.kept.all() == ([], [])
        shop.until_at_rest()

    def test_its_pane_is_replaced_and_that_is_said(self, shop: SessionShop) -> None:
        agent = shop.agent("good", "behaves")
        shop.spawn("a", agent)
        os.kill(shop.worker_in("a").pid, signal.SIGKILL)
        eventually(lambda: shop.seen()["a"].words == "dead (signal 9)", "tmux has seen it die")
        again = shop.spawn("a", agent)
        assert "the dead session a is replaced" in again.err
        assert shop.seen()["a"].state is SessionState.ALIVE


def written(shop: SessionShop) -> str:
    return shop.tmux("list-panes", "-a", "-F", "#{@job_id}|#{@attempt}")


class TestLabelled:
    """The pane of every worker says what is run in it, whatever way its agent runs."""

    def test_a_headless_job_stands_on_its_pane_also_when_its_worker_was_killed(
        self, shop: SessionShop
    ) -> None:
        """H3, H10: the pane that tmux keeps is the witness, and its death is on record."""
        stuck = shop.agent("stuck", "hangs")
        shop.spawn("a", stuck)
        assert written(shop) == "|"
        job_id = shop.add(stuck, agent_session="tmux:a")
        shop.until_said(job_id, "hangs")
        eventually(lambda: written(shop) == f"{job_id}|1", "its pane is labelled")
        deaths = Deaths(str(shop.path))
        os.kill(shop.worker_in("a").pid, signal.SIGKILL)
        eventually(lambda: shop.seen()["a"].words == "dead (signal 9)", "tmux has seen it die")
        said = shop.ok("why", job_id).out
        assert "the worker in its pane has ended, signal 9" in said
        assert "gone" not in said
        died = eventually(deaths.news, "its death is written down")
        deaths.close()
        assert [(one.job_id, one.attempt, one.exit_signal) for one in died] == [(job_id, 1, 9)]

    def test_a_job_whose_pane_has_no_label_is_found_by_its_worker(self, shop: SessionShop) -> None:
        """A label is the second witness; the lease names the process in the pane."""
        stuck = shop.agent("stuck", "hangs")
        shop.spawn("a", stuck)
        job_id = shop.add(stuck, agent_session="tmux:a")
        eventually(lambda: written(shop) == f"{job_id}|1", "its pane is labelled")
        shop.tmux("set-option", "-p", "-t", "=a:", "@job_id", "")
        os.kill(shop.worker_in("a").pid, signal.SIGKILL)
        eventually(lambda: shop.seen()["a"].words == "dead (signal 9)", "tmux has seen it die")
        assert "the worker in its pane has ended, signal 9" in shop.ok("why", job_id).out

    def test_all_jobs_of_its_slots_and_none_when_they_are_over(self, shop: SessionShop) -> None:
        stuck = shop.agent("stuck", "hangs")
        shop.spawn("a", stuck, "--slots", "2")
        ids = [shop.add(stuck, agent_session="tmux:a") for _ in range(2)]

        def is_labelled() -> bool:
            return {f"{job_id}/1" for job_id in ids} == set(written(shop).rstrip("|").split())

        eventually(is_labelled, "both are written on it")
        panes = open_tmux(str(shop.path), shop.config).panes()
        assert all(pane_of(shop.job(one), panes, shop.registry.node) for one in ids)
        shop.ok("cancel", ids[0])
        eventually(lambda: written(shop) == f"{ids[1]}|1", "what is over is taken off")
        shop.ok("cancel", ids[1])
        eventually(lambda: written(shop) == "|", "and so is the last")
        shop.ok("stop", "a")


class TestShown:
    def test_the_job_at_hand_and_those_that_wait(self, shop: SessionShop) -> None:
        stuck = shop.agent("stuck", "hangs")
        shop.spawn("a", stuck)
        ids = [shop.add(stuck, agent_session="tmux:a") for _ in range(3)]
        shop.until_said(ids[0], "hangs")
        row = shop.rows()[0]
        assert (row["jobs"], row["queued"]) == ([ids[0]], 2)
        table = shop.ok("sessions").out.splitlines()
        assert table[0].split()[:3] == ["SESSION", "STATE", "AGENT"]
        assert ids[0] in table[1]
        shop.ok("stop", "a", "--now")

    def test_a_damaged_file_is_a_row_and_stops_nobody(self, shop: SessionShop) -> None:
        agent = shop.agent("good", "behaves")
        shop.spawn("a", agent)
        Path(shop.kept.path, "b.json").write_text('{"name": "\033[2J')
        said = shop.ok("sessions")
        assert "\033" not in said.out + said.err
        states = {row["name"]: row["state"] for row in shop.rows()}
        assert states == {"a": "alive", "b": "damaged"}
        assert "the file of session b cannot be read" in shop.say("stop", "b").err
        shop.ok("stop", "a")
