"""``mam cancel``, ``retry``, ``edit``, ``clean``, ``pause``, ``resume``, ``heartbeat``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Mam, is_one_sentence
from tests.support.clock import FakeClock
from tests.support.rows import each_row


def ended(mam: Mam, status: str = "error", *more: str) -> str:
    job_id = mam.register("done with", *more)
    mam.ok("status", job_id, "--set", status)
    return job_id


class TestCancel:
    def test_reaches_the_registry(self, mam: Mam) -> None:
        """E19, O14"""
        job_id = mam.register()
        answer = mam.ok("cancel", "--job", job_id, "--why", "not needed")
        assert answer.out == job_id + "\n"
        assert answer.err == f"mam: job {job_id} is cancelled\n"
        record = mam.ok("get", job_id).json
        assert (record["status"], record["detail"]) == ("cancelled", "not needed")

    def test_ends_an_unsupervised_job_at_once_and_asks_the_worker_of_another(
        self, mam: Mam
    ) -> None:
        job_id, leased = mam.register("1"), mam.register("2")
        mam.ok("pick", "--label", "tmux:a")
        mam.ok("pick", "--label", "tmux:a")
        mam.ok("heartbeat", leased, "--owner", "worker-7")
        answer = mam.ok("cancel", job_id, leased)
        assert answer.lines == [job_id, leased]
        assert "worker-7" in answer.err
        assert mam.record(job_id)["status"] == "cancelled"
        assert mam.record(leased)["status"] == "running"
        assert mam.record(leased)["cancel_requested_by"] == "ann"

    def test_gives_each_of_many_an_outcome(self, mam: Mam) -> None:
        good, over = mam.register(), ended(mam, "completed")
        answer = mam("cancel", "nobody99", over, good, "../x", good)
        assert answer.code == 1
        assert answer.lines == [good]
        assert len(answer.err.splitlines()) == 4
        assert mam.record(over)["status"] == "completed"

    def test_twice_is_once(self, mam: Mam) -> None:
        job_id = mam.register()
        mam.ok("cancel", job_id)
        before = mam.path(job_id).read_bytes()
        assert mam.ok("cancel", job_id).out == job_id + "\n"
        assert mam.path(job_id).read_bytes() == before

    def test_answers_programs(self, mam: Mam) -> None:
        job_id = mam.register()
        answer = mam("cancel", job_id, "nobody99", "--json")
        assert answer.code == 1
        assert [(row["job_id"], row["ok"], row["status"]) for row in answer.json] == [
            (job_id, True, "cancelled"),
            ("nobody99", False, None),
        ]

    def test_wants_a_job(self, mam: Mam) -> None:
        assert mam("cancel").code == 2

    def test_is_told_why_in_a_few_words(self, mam: Mam) -> None:
        job_id = mam.register()
        answer = mam("cancel", job_id, "--why", "x" * 65537)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err == "mam: why: it has 65537 characters; the limit is 65536\n"
        assert mam.record(job_id)["status"] == "pending"


class TestRetry:
    @pytest.mark.parametrize("status", ["error", "cancelled"])
    def test_makes_it_pending_again(self, mam: Mam, status: str) -> None:
        """E19, O15, N31, decision 6"""
        job_id = ended(mam, status)
        answer = mam.ok("retry", "--job", job_id)
        assert answer.out == job_id + "\n"
        assert f"before, it was {status}" in answer.err
        assert mam.ok("get", job_id).json["status"] == "pending"

    @pytest.mark.parametrize("status", ["pending", "running", "completed"])
    def test_is_refused_otherwise(self, mam: Mam, status: str) -> None:
        job_id = mam.register()
        mam.ok("status", job_id, "--set", status)
        answer = mam("retry", job_id)
        assert (answer.code, answer.out) == (1, "")
        assert is_one_sentence(answer.err)
        assert mam.record(job_id)["status"] == status

    def test_takes_many(self, mam: Mam) -> None:
        one, two = ended(mam), ended(mam)
        answer = mam("retry", one, "nobody99", two)
        assert (answer.code, answer.lines) == (1, [one, two])

    def test_renews_the_token(self, mam: Mam) -> None:
        """K6"""
        job_id = ended(mam, "error", "--token")
        before = mam.record(job_id)["auth_token"]
        mam.ok("retry", job_id)
        assert mam.record(job_id)["auth_token"] not in (None, before)


class TestEdit:
    def test_changes_a_pending_job(self, mam: Mam) -> None:
        """N5"""
        job_id = mam.register("old", "--group", "g", "--artifact", "a.txt", "--timeout", "5")
        answer = mam.ok(
            *("edit", job_id, "--prompt", "new", "--priority", "7"),
            *("--clear", "group", "--clear", "artifact", "--clear", "timeout"),
        )
        assert answer.out == job_id + "\n"
        record = mam.record(job_id)
        assert (record["prompt"], record["priority"], record["group"]) == ("new", 7, None)
        assert (record["expected_artifacts"], record["timeout_sec"]) == ([], 3600)
        assert "changed prompt, timeout_sec, expected_artifacts, group, priority" in answer.err

    def test_that_changes_nothing_writes_nothing(self, mam: Mam) -> None:
        job_id = mam.register("old")
        before = mam.path(job_id).read_bytes()
        assert "already like that" in mam.ok("edit", job_id, "--prompt", "old").err
        assert mam.path(job_id).read_bytes() == before

    def test_of_a_job_that_is_not_pending_is_refused(self, mam: Mam) -> None:
        """N5"""
        job_id = mam.register()
        mam.ok("pick", "--label", "tmux:a")
        answer = mam("edit", job_id, "--prompt", "new")
        assert (answer.code, answer.out) == (1, "")
        assert is_one_sentence(answer.err)

    @each_row(
        "flags",
        [
            [],
            ["--timeout", "0"],
            ["--clear", "prompt"],
            ["--clear", "status"],
            ["--clear", "nonsense"],
            ["--group", "g", "--clear", "group"],
            ["--key", "k"],
            ["--token"],
            ["--after", "nobody99"],
        ],
    )
    def test_refuses_what_makes_no_sense(self, mam: Mam, flags: list[str]) -> None:
        job_id = mam.register()
        before = mam.path(job_id).read_bytes()
        answer = mam("edit", job_id, *flags)
        assert (answer.code, answer.out) == (2, "")
        assert is_one_sentence(answer.err)
        assert mam.path(job_id).read_bytes() == before

    def test_refuses_a_circle(self, mam: Mam) -> None:
        one = mam.register("1")
        two = mam.register("2", "--after", one)
        answer = mam("edit", one, "--after", two)
        assert answer.code == 2
        assert "after itself" in answer.err


class TestClean:
    def test_takes_ended_jobs_out_and_brings_them_back(self, mam: Mam) -> None:
        """N23, N28"""
        over, live = ended(mam), mam.register()
        before = mam.path(over).read_bytes()
        answer = mam.ok("clean")
        assert answer.out == over + "\n"
        assert "--undo" in answer.err
        assert not mam.path(over).exists()
        assert mam.path(live).exists()
        assert mam.ok("clean", "--undo").out == over + "\n"
        assert mam.path(over).read_bytes() == before

    def test_brings_a_named_batch_back(self, mam: Mam) -> None:
        one = ended(mam)
        batch = mam.ok("clean", "--json").json["batch"]
        two = ended(mam)
        mam.ok("clean")
        assert mam.ok("clean", "--undo", batch, "--json").json == {"restored": [one]}
        assert mam.ok("clean", "--undo").out == two + "\n"
        for words in ([], [batch], ["../.."], ["nonsense"]):
            answer = mam("clean", "--undo", *words)
            assert (answer.code, answer.out) == (1, "")

    def test_goes_by_status_group_and_age(self, mam: Mam, frozen: FakeClock) -> None:
        old = ended(mam, "error", "--group", "g")
        frozen.pass_time(8 * 86400)
        error, done = ended(mam, "error", "--group", "g"), ended(mam, "completed", "--group", "h")
        dry = ("clean", "--dry-run")
        assert mam.ok(*dry).lines == [old, error, done]
        assert mam.ok(*dry, "--older-than", "7d").lines == [old]
        assert mam.ok(*dry, "--status", "completed").lines == [done]
        assert mam.ok(*dry, "--status", "error,completed", "--group", "g").lines == [old, error]
        assert mam.ok(*dry, "--group", "nobody").err == (
            "mam: there is nothing to clean\nmam: warning: unknown group 'nobody' (known: g, h)\n"
        )
        assert mam.ok(*dry, old, "--older-than", "7d").lines == [old]
        assert len(list(mam.registry.glob("*.json"))) == 3

    def test_keeps_what_a_live_job_still_comes_after(self, mam: Mam) -> None:
        parent = ended(mam, "completed")
        child = mam.register("next", "--after", parent)
        answer = mam.ok("clean")
        assert answer.out == ""
        assert f"job {parent} is kept" in answer.err
        mam.ok("cancel", child)
        assert mam.ok("clean").lines == [parent, child]

    def test_never_touches_a_job_with_a_longer_id(self, mam: Mam) -> None:
        """N30"""
        mam.write("ab1", status="error")
        mam.write("ab12", status="error")
        assert mam.ok("clean", "ab1").lines == ["ab1"]
        assert mam.path("ab12").exists()

    def test_of_named_jobs_tells_each_that_stays(self, mam: Mam) -> None:
        live, over = mam.register(), ended(mam)
        answer = mam("clean", live, over, "nobody99")
        assert (answer.code, answer.lines) == (1, [over])
        assert f"job {live} is kept: it is pending" in answer.err
        data = json.loads(mam("clean", live, "--json").out)
        assert data["batch"] is None
        assert [row["ok"] for row in data["jobs"]] == [False]

    def test_of_an_absent_registry_is_nothing(self, mam: Mam) -> None:
        assert mam.ok("clean").err == "mam: there is nothing to clean\n"
        assert mam("clean", "nobody99").code == 1
        assert mam("clean", "--undo").code == 1
        assert list(mam.folder.iterdir()) == []

    @each_row(
        ("flags", "code"),
        [
            (["--older-than", "0"], 2),
            (["--older-than", "long"], 2),
            (["--undo", "--status", "error"], 2),
            (["--undo", "--dry-run"], 2),
            (["--status", "nonsense"], 1),
            (["--status", "pending"], 2),
            (["--status", "error,running"], 2),
        ],
    )
    def test_refuses_what_makes_no_sense(self, mam: Mam, flags: list[str], code: int) -> None:
        over = ended(mam)
        answer = mam("clean", *flags)
        assert (answer.code, answer.out) == (code, "")
        assert is_one_sentence(answer.err)
        assert mam.path(over).exists()


class TestPauseAndResume:
    @pytest.mark.parametrize("gate", [["--all"], ["--group", "night"], ["--agent", "shell"]])
    def test_hold_back_and_let_go(self, mam: Mam, gate: list[str]) -> None:
        job_id = mam.register("p", "--group", "night")
        answer = mam.ok("pause", *gate, "--why", "lunch")
        assert answer.out == ""
        assert is_one_sentence(answer.err)
        assert mam("pick", "--label", "tmux:a").code == 3
        assert "lunch" in mam.ok("why", job_id).out
        assert mam.ok("resume", *gate).out == ""
        assert mam.ok("pick", "--label", "tmux:a").out == job_id + "\n"

    def test_a_pause_ends_by_itself(self, mam: Mam, frozen: FakeClock) -> None:
        mam.register()
        mam.ok("pause", "--all", "--until", "+10m")
        assert mam("pick", "--label", "tmux:a").code == 3
        frozen.pass_time(601)
        assert mam("pick", "--label", "tmux:a").code == 0

    def test_to_resume_what_goes_on_is_no_error(self, mam: Mam) -> None:
        assert mam.ok("resume", "--all").err == "mam: there was no pause of everything\n"
        assert mam.ok("resume", "--group", "g").err == "mam: group g was not paused\n"
        mam.ok("pause", "--agent", "shell")
        mam.ok("pause", "--all")
        said = "mam: everything goes on; still paused: agent shell\n"
        assert mam.ok("resume", "--all").err == said

    def test_a_group_that_nobody_knows_is_noted(self, mam: Mam) -> None:
        """A misspelt pause holds nothing back."""
        (mam.folder / "mam.toml").write_text("[groups.day]\nslots = 1\n")
        mam.register("p", "--group", "night")
        for known in ("night", "day"):
            assert is_one_sentence(mam.ok("pause", "--group", known).err)
        said = mam.ok("pause", "--group", "nigth").err
        assert said.startswith("mam: warning: unknown group 'nigth'. Did you mean night?\n")

    def test_a_moment_without_a_zone_is_utc_and_said(self, mam: Mam, frozen: FakeClock) -> None:
        answer = mam.ok("pause", "--all", "--until", "2026-06-19T23:00")
        assert "until 2026-06-19T23:00:00Z" in answer.err
        assert "UTC" in mam.ok("pause", "--help").out

    @each_row(
        "flags",
        [
            [],
            ["--all", "--group", "g"],
            ["--group", ""],
            ["--agent", "a\x1b"],
            ["--all", "--until", "soon"],
            ["--all", "--until", "2020-01-01"],
            ["--all", "--why", "x" * 65537],
        ],
    )
    def test_refuse_what_makes_no_sense(self, mam: Mam, flags: list[str]) -> None:
        mam.register()
        answer = mam("pause", *flags)
        assert (answer.code, answer.out) == (2, "")
        assert is_one_sentence(answer.err)
        mam.ok("pick", "--label", "tmux:a")


class TestHeartbeat:
    @pytest.fixture
    def job_id(self, mam: Mam) -> str:
        mam.register()
        return mam.ok("pick", "--label", "tmux:a").out.strip()

    def test_takes_and_renews_a_lease(self, mam: Mam, job_id: str) -> None:
        """Decision 14"""
        answer = mam.ok("heartbeat", "--job", job_id)
        assert (answer.out, answer.err) == ("", "")
        assert mam.record(job_id)["lease"]["ttl_sec"] == 30
        lease = mam.ok("heartbeat", job_id, "--ttl", "90", "--json").json["lease"]
        assert (lease["ttl_sec"], lease["renewals"]) == (90, 1)

    def test_lasts_as_long_as_the_settings_say(self, mam: Mam, job_id: str) -> None:
        (mam.folder / "mam.toml").write_text("[defaults]\nlease_sec = 7\n")
        mam.ok("heartbeat", job_id)
        assert mam.record(job_id)["lease"]["ttl_sec"] == 7

    def test_says_that_a_cancel_was_requested(self, mam: Mam, job_id: str) -> None:
        mam.ok("heartbeat", job_id)
        mam.ok("cancel", job_id)
        assert mam.ok("heartbeat", job_id).out == "cancel requested\n"
        assert mam.ok("heartbeat", job_id, "--json").json["cancel_requested"] is True

    def test_is_refused_to_another_owner_and_to_an_old_attempt(self, mam: Mam, job_id: str) -> None:
        mam.ok("heartbeat", job_id, "--owner", "one", "--attempt", "1")
        for words in (["--owner", "two"], ["--owner", "one", "--attempt", "7"]):
            answer = mam("heartbeat", job_id, *words)
            assert (answer.code, answer.out) == (1, "")
            assert is_one_sentence(answer.err)

    def test_is_for_running_jobs(self, mam: Mam) -> None:
        assert mam("heartbeat", mam.register()).code == 1
        assert mam("heartbeat", "nobody99").code == 1

    @pytest.mark.parametrize("owner", ["x" * 201, "a\x1b[2J"])
    def test_knows_its_owner_by_a_name(self, mam: Mam, job_id: str, owner: str) -> None:
        answer = mam("heartbeat", job_id, "--owner", owner)
        assert answer.code == 2
        assert is_one_sentence(answer.err)
        assert mam.record(job_id)["lease"] is None

    @pytest.mark.parametrize("ttl", ["0", "-3", "x"])
    def test_lasts_some_time(self, mam: Mam, job_id: str, ttl: str) -> None:
        assert mam("heartbeat", job_id, "--ttl", ttl).code == 2


class TestExport:
    def test_all_jobs_or_those_that_are_named(self, mam: Mam, tmp_path: Path) -> None:
        first, second = (mam.register(words) for words in ("one", "two"))
        mam.ok("export", "-o", str(tmp_path / "all.csv"))
        assert len((tmp_path / "all.csv").read_text().splitlines()) == 3
        said = mam.ok("export", second, "--output", str(tmp_path / "one.json"))
        assert (said.out, first in (tmp_path / "one.json").read_text()) == ("", False)
        again = mam("export", "-o", str(tmp_path / "all.csv"))
        assert (again.code, "is there already" in again.err) == (1, True)
