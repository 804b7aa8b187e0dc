"""Sessions on record against a real tmux server: each mismatch is made, found and mended."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from mam_core.operations.doctor import Area, Severity, examine
from mam_core.operations.sessions import SessionState
from mam_core.records import Status
from tests.support.clinic import Clinic
from tests.support.patience import eventually
from tests.support.sessions import repository


def kill_server(shop: Clinic) -> None:
    os.kill(shop.server_pid(), signal.SIGKILL)
    eventually(lambda: shop.in_tmux() == [], "the server is gone")
    shop.until_at_rest()


class TestNothingIsWrong:
    def test_where_jobs_run_in_sessions_with_worktrees(self, shop: Clinic) -> None:
        repository(shop.folder / "repo")
        agent, stuck = shop.agent("good", "behaves"), shop.agent("stuck", "hangs")
        shop.spawn("a", stuck)
        shop.spawn("b", agent, "--worktree", "--workdir", str(shop.folder / "repo"))
        busy = shop.add(stuck, agent_session="tmux:a")
        shop.until_said(busy, "hangs")
        done = shop.add(agent, agent_session="tmux:b")
        shop.until_status(done, Status.COMPLETED)
        assert shop.findings() == []
        said = shop.ok("doctor")
        assert "problem" not in said.out
        assert "records and panes: nothing is wrong" in said.out
        shop.ok("stop", "a", "--now")

    def test_in_a_folder_without_a_registry(self, shop: Clinic) -> None:
        said = shop.ok("doctor")
        assert "there is no registry" in said.out
        assert not shop.path.exists()


class TestGone:
    """Issue 6: a session on record whose pane is gone."""

    def test_it_is_restored(self, shop: Clinic) -> None:
        agent = shop.agent("good", "behaves")
        shop.spawn("a", agent)
        shop.spawn("b", agent)
        kill_server(shop)
        found = shop.findings()
        assert [one.what for one in found] == ["session a", "session b"]
        assert {one.severity for one in found} == {Severity.PROBLEM}
        assert shop.in_tmux() == [], "looking mends nothing"
        assert "session a is back" in shop.mended(found[0])
        assert shop.in_tmux() == ["a"], "one by one"
        assert shop.only("session b").name == found[1].name
        assert shop.say("doctor", "--fix", "--yes").code == 0
        assert shop.findings() == []
        assert shop.mended_already(found[0])

    def test_or_forgotten(self, shop: Clinic) -> None:
        shop.lose("a")
        finding = shop.only("session a")
        assert "session a is stopped" in shop.mended(finding, choice=1)
        assert shop.kept.all() == ([], [])
        assert shop.findings() == []

    def test_one_that_cannot_come_back_says_why(self, shop: Clinic) -> None:
        shop.lose("a")
        shop.workdir.rmdir()
        done = shop.mend(shop.only("session a"))
        assert not done.is_done
        assert "its folder is not there" in done.words
        assert shop.say("doctor", "--fix", "--yes").code == 1


class TestDead:
    """Issue 6: a dead pane that is left."""

    def test_one_that_ended_in_order_is_removed_alone(self, shop: Clinic) -> None:
        agent = shop.agent("good", "behaves")
        shop.spawn("a", agent)
        shop.spawn("b", agent)
        shop.worker_in("a").send(signal.SIGUSR1)
        finding = shop.until_found("session a")
        assert finding.severity is Severity.WARNING
        shop.mended(finding)
        assert shop.in_tmux() == ["b"]
        assert shop.findings() == []

    def test_one_that_broke_comes_back(self, shop: Clinic) -> None:
        shop.spawn("a", shop.agent("good", "behaves"))
        shop.worker_in("a").send(signal.SIGKILL)
        finding = shop.until_found("session a")
        assert finding.severity is Severity.PROBLEM
        assert "dead (signal 9)" in finding.words
        shop.mended(finding)
        assert shop.seen()["a"].state is SessionState.ALIVE
        assert shop.findings() == []


class TestNotOnRecord:
    """Issue 6: a session of ours that lives, and there is no record of it."""

    def test_it_is_put_on_record_as_it_was(self, shop: Clinic) -> None:
        repository(shop.folder / "repo")
        agent = shop.agent("good", "behaves")
        place = str(shop.folder / "repo" / "src")
        shop.spawn("a", agent, "--worktree", "--workdir", place, "--slots", "2")
        before = shop.kept.get("a")
        shop.kept.remove("a")
        shop.mended(shop.until_found("session a"))
        after = shop.kept.get("a")
        assert after._replace(created_at="", created_by="", base=None) == before._replace(
            created_at="", created_by="", base=None
        )
        assert shop.findings() == []

        record = Path(shop.kept.path) / "a.json"
        record.write_text("{")
        finding = shop.only("session a")
        assert "cannot be read" in finding.words
        shop.mended(finding)
        assert shop.kept.get("a") == after
        assert shop.findings() == []

        record.unlink()
        shop.mended(shop.only("session a"), choice=1)
        assert shop.in_tmux() == [], "or stopped, as a person chose"
        assert shop.findings() == []

    def test_sessions_of_another_registry_are_not_looked_at(self, shop: Clinic) -> None:
        """H11: two registries may share a tmux server."""
        shop.share_server()
        shop.spawn("a", shop.agent("good", "behaves"))
        other = str(shop.folder / "other")
        job = ("register", "--registry-dir", other, "--prompt", "x", "--agent", "good")
        shop.ok(*job, "--agent-session", "bench")
        assert shop.ok("doctor", "--registry-dir", other, "--fix", "--yes").code == 0
        assert shop.in_tmux() == ["a"]

    def test_what_merely_has_our_mark_is_ended_by_a_persons_yes_only(self, shop: Clinic) -> None:
        shop.spawn("a", shop.agent("good", "behaves"))
        shop.tmux("new-session", "-d", "-s", "odd", "sleep", "300")
        shop.tmux("set-option", "-t", "=odd:", "@mam", "tmux:odd")
        shop.tmux("set-option", "-p", "-t", "=odd:", "@session", "tmux:odd")
        shop.tmux("new-session", "-d", "-s", "mine", "sleep", "300")
        finding = shop.only("session odd")
        assert finding.fix is not None
        assert not finding.fix.is_safe
        assert "not done without a question" in shop.say("doctor", "--fix", "--yes").err
        assert sorted(shop.in_tmux()) == ["a", "mine", "odd"]
        shop.mended(finding)
        assert sorted(shop.in_tmux()) == ["a", "mine"]
        assert shop.findings() == []


class TestUnknown:
    """A tmux that cannot be asked is unknown, and no verdict."""

    def test_without_tmux(self, shop: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
        """H8"""
        shop.lose("a")
        shop.add("good", agent_session="tmux:a")
        empty = shop.folder / "bin"
        empty.mkdir()
        with monkeypatch.context() as patch:
            patch.setenv("PATH", str(empty))
            findings = [one for answer in examine(shop.ground) for one in answer.findings]
            told = {one.what: one for one in findings if one.severity is Severity.PROBLEM}
            assert list(told) == ["tmux"]
            assert "how the 1 on record stand is unknown" in told["tmux"].words
            assert not [one for one in findings if one.fix is not None]
            assert shop.say("doctor", "--fix", "--yes").code == 1
        shop.until_found("session a")

    def test_a_tmux_that_fails(self, shop: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
        shop.lose("a")
        place = shop.folder / "bin"
        place.mkdir()
        broken = place / "tmux"
        broken.write_text(
            '#!/bin/sh\n[ "$1" = -V ] && echo tmux 3.3a && exit\necho boom >&2\nexit 1\n'
        )
        broken.chmod(0o755)
        with monkeypatch.context() as patch:
            patch.setenv("PATH", f"{place}:{os.environ['PATH']}")
            areas = {one.area for one in shop.findings()}
            assert Area.SESSIONS not in areas
        shop.only("session a")

    def test_what_is_there_for_a_moment_only_is_not_told(self, shop: Clinic) -> None:
        shop.lose("a")
        answers = examine(shop.ground, pause=lambda _: shop.kept.remove("a"))
        found = [one for answer in answers for one in answer.findings]
        assert not [one for one in found if one.area is Area.SESSIONS and one.fix]


def test_hostile_names_reach_the_terminal_harmless(shop: Clinic) -> None:
    shop.lose("a")
    evil = "\x1b]0;own\x07\x1b[2Jx\n\u202e"
    (Path(shop.kept.path) / f"{evil}.json").write_text("{}")
    said = shop.say("doctor")
    assert said.code == 1
    assert not {"\x1b", "\x07", "\u202e"} & {*said.out, *said.err}
    assert "\\x1b]0;own" in said.out
    assert not {"\x1b", "\x07", "\u202e"} & {*shop.say("doctor", "--json").out}
