"""``mam get``, ``status``, ``pick``, ``why``: one job, asked for or claimed."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mam_core.cli.main import load, parser_of
from mam_core.presence import Presence
from mam_core.sessions import Session, SessionFolder
from tests.cli.conftest import Mam, environment, is_one_sentence
from tests.support.clock import FakeClock
from tests.support.patience import eventually
from tests.support.rows import each_row

STATUSES = ["pending", "running", "completed", "error", "cancelled"]


class TestGet:
    def test_prints_the_record(self, mam: Mam) -> None:
        """E6, A14"""
        job_id = mam.register('별 "quoted" \n \x1b[31m \u202e')
        for words in (["--job", job_id], [job_id]):
            answer = mam.ok("get", *words)
            assert answer.json == mam.record(job_id)
            assert answer.err == ""
            assert "\x1b" not in answer.out
            assert "별" in answer.out

    def test_of_an_unknown_job_exits_1(self, mam: Mam) -> None:
        """E6"""
        for _ in range(2):
            answer = mam("get", "--job", "nobody99")
            assert (answer.code, answer.out) == (1, "")
            assert is_one_sentence(answer.err)
            mam.register()

    def test_wants_exactly_one(self, mam: Mam) -> None:
        assert mam("get").code == 2
        assert mam("get", "one", "two").code == 2

    def test_of_another_version_prints_it_as_it_is(self, mam: Mam) -> None:
        """A7"""
        path = mam.write("aaaa1111", schema_version=2, odd=[1])
        path.write_text(path.read_text() + "\n\n")
        before = path.read_bytes()
        answer = mam.ok("get", "aaaa1111")
        assert answer.out.encode() == before
        assert is_one_sentence(answer.err)
        assert "schema_version" in answer.err
        for words in (
            ["status", "--set", "error"],
            ["cancel"],
            ["retry"],
            ["edit", "--group", "g"],
        ):
            assert mam(*words, "--job", "aaaa1111").code == 1
        assert path.read_bytes() == before

    @each_row(
        "data",
        [b"", b"{", b"[]", b"[" * 100_000, b"\xff\xfe{}", b'{"schema_version": 1}', b"nonsense"],
    )
    def test_of_an_unreadable_record_says_so_and_exits_1(self, mam: Mam, data: bytes) -> None:
        mam.register()
        mam.path("aaaa1111").write_bytes(data)
        answer = mam("get", "aaaa1111")
        assert (answer.code, answer.out) == (1, "")
        assert is_one_sentence(answer.err)
        assert "aaaa1111 cannot be read" in answer.err


class TestStatus:
    def test_prints_it(self, mam: Mam) -> None:
        assert mam.ok("status", mam.register()).out == "pending\n"

    @pytest.mark.parametrize("status", STATUSES)
    def test_sets_any(self, mam: Mam, status: str) -> None:
        """E7, A8, decision 15"""
        job_id = mam.register()
        answer = mam.ok("status", "--job", job_id, "--set", status)
        assert (answer.out, answer.err) == ("", "")
        assert mam.record(job_id)["status"] == status

    @pytest.mark.parametrize("status", ["done", "", "PENDING", "failed", "\x1b[2J"])
    def test_refuses_what_is_none(self, mam: Mam, status: str) -> None:
        """E7, A8"""
        job_id = mam.register()
        before = mam.path(job_id).read_bytes()
        answer = mam("status", "--job", job_id, "--set", status)
        assert (answer.code, answer.out) == (1, "")
        assert is_one_sentence(answer.err)
        assert "\x1b" not in answer.err
        assert mam.path(job_id).read_bytes() == before

    def test_of_an_unknown_job_exits_1(self, mam: Mam) -> None:
        """E7"""
        for words in ([], ["--set", "error"]):
            answer = mam("status", "--job", "nobody99", *words)
            assert (answer.code, answer.out) == (1, "")
            assert is_one_sentence(answer.err)


class TestPick:
    def test_prints_the_id_and_claims(self, mam: Mam) -> None:
        """E8, C1, C7"""
        first, second = mam.register("1"), mam.register("2")
        assert mam.ok("pick", "--agent-session", "tmux:a").out == first + "\n"
        assert mam.ok("pick", "--agent-session", "tmux:a").out == second + "\n"
        record = mam.record(first)
        assert (record["status"], record["attempt"], record["lease"]) == ("running", 1, None)

    def test_without_a_job_prints_nothing_and_exits_3(self, mam: Mam) -> None:
        """E8, E14, H1"""
        for _ in range(2):
            answer = mam("pick", "--agent-session", "tmux:clau")
            assert (answer.code, answer.out, answer.err) == (3, "", "")
            mam.register("x", "--agent-session", "tmux:claude")
        assert not mam.folder.joinpath("nothing").exists()

    def test_takes_only_agents_that_are_served(self, mam: Mam) -> None:
        mam.register("1", "--agent", "codex")
        wanted = mam.register("2", "--agent", "shell")
        assert mam("pick", "--label", "tmux:a", "--agents", "aider,gemini").code == 3
        assert mam.ok("pick", "--label", "tmux:a", "--agents", "aider,shell").out.strip() == wanted
        assert mam("pick", "--label", "tmux:a", "--agents", ",").code == 2

    def test_obeys_the_slots_of_the_settings(self, mam: Mam) -> None:
        (mam.folder / "mam.toml").write_text("[groups.night]\nslots = 1\n")
        mam.register("1", "--group", "night")
        mam.register("2", "--group", "night")
        assert mam("pick", "--label", "tmux:a").code == 0
        assert mam("pick", "--label", "tmux:a").code == 3

    def test_wants_a_label(self, mam: Mam) -> None:
        answer = mam("pick")
        assert answer.code == 2
        assert is_one_sentence(answer.err)

    def test_goes_on_among_files_that_are_no_records(self, mam: Mam) -> None:
        """A18"""
        good = mam.register()
        mam.path("broken").write_text("{")
        mam.write("version2", schema_version=2)
        assert mam.ok("pick", "--label", "tmux:a").out == good + "\n"


class TestWhy:
    def test_says_who_will_claim_it(self, mam: Mam) -> None:
        job_id = mam.register()
        with a_session(mam):
            answer = mam.ok("why", job_id)
            assert answer.out == "queued: next in line; a worker of label tmux:a will claim it\n"
            assert mam.ok("why", job_id, "--json").json["served"] is True

    def test_says_that_nobody_will_and_the_line_that_changes_that(self, mam: Mam) -> None:
        job_id = mam.register()
        spawn = "mam spawn --agent-session tmux:a --agent shell"
        assert mam.ok("why", job_id).lines == [
            "nobody serves label tmux:a with agent shell",
            f"to start a session: press s in the console, or run {spawn}",
        ]
        data = mam.ok("why", job_id, "--json").json
        assert (data["served"], data["can_run"], data["claimable"]) == (False, True, True)
        assert [help["command"] for help in data["help"]] == [spawn]
        with a_session(mam, agent="codex"):
            (first, *_) = mam.ok("why", job_id).lines
        nobody = "nobody serves label tmux:a with agent shell (its workers serve codex)"
        assert first == f"blocked: {nobody}"

    def test_names_only_commands_that_mam_takes(self, mam: Mam) -> None:
        """Whatever holds the job; the last word of some stands for what a person chooses."""
        (mam.folder / "mam.toml").write_text("[groups]\nnight.slots = 0\n-day.slots = 0\n")
        failed = mam.register("first")
        held = [
            mam.register("mistyped", "--agent", "shel"),
            mam.register("other label", "--agent-session", "w"),
            mam.register("held", "--after", failed, "--after", mam.register(), "--group", "night"),
            mam.register("not served"),
            mam.register("dashed", "--agent-session=-w", "--agent=-shell", "--group=-day"),
        ]
        mam.ok("status", failed, "--set", "error")
        for gate in (["--all"], ["--agent", "shell"], ["--agent=-shell"], ["--group", "night"]):
            mam.ok("pause", *gate)
        named = _helps(mam, held)
        with a_session(mam, agent="codex"):
            named |= _helps(mam, held)
        with a_session(mam):
            mam.ok("node", "drain", socket.gethostname())
            named |= _helps(mam, held)
        verbs = {words[1] for words in named}
        assert verbs == {"doctor", "edit", "group", "node", "resume", "retry", "spawn", "work"}
        for words in named:
            verb = load(words[1])
            assert verb is not None
            parser_of(words[1], verb).read(["1" if word == "N" else word for word in words[2:]])

    def test_a_worker_that_is_stopped_claims_nothing(self, mam: Mam) -> None:
        """As by ctrl+z in its terminal: it is named, and what lets it go on."""
        job_id = mam.register("waits")
        mam.ok("pause", "--all")
        words = ("work", "--agent-session", "tmux:a", "--agents", "shell")
        command = [sys.executable, "-m", "mam_core.cli.main", *words]
        with subprocess.Popen(
            command, cwd=mam.folder, env=environment(), stderr=subprocess.DEVNULL
        ) as worker:
            try:
                eventually(lambda: "nobody serves" not in mam.ok("why", job_id).out, "it is served")
                worker.send_signal(signal.SIGSTOP)
                said = eventually(
                    lambda: "is stopped" in (out := mam.ok("why", job_id).out) and out, "it is said"
                )
                assert f"its worker, process {worker.pid}, is stopped" in said
                assert f"to let it go on: run kill -CONT {worker.pid}" in said
            finally:
                worker.kill()

    def test_says_how_many_come_first(self, mam: Mam) -> None:
        """C1: the more urgent, then the older; those of other labels and the paused do not count"""
        mam.register("older")
        mam.register("elsewhere", "--agent-session", "tmux:b")
        mam.register("held back", "--group", "night")
        job_id = mam.register("this")
        mam.register("younger")
        mam.ok("pause", "--group", "night")
        then = "a worker of label tmux:a will claim it"
        with a_session(mam):
            assert mam.ok("why", job_id).out == f"queued: 1 job is ahead of it; {then}\n"
            mam.register("urgent", "--priority", "1")
            assert mam.ok("why", job_id).out == f"queued: 2 jobs are ahead of it; {then}\n"
            assert mam.ok("why", job_id, "--json").json["ahead"] == 2

    def test_says_that_a_lease_has_expired(self, mam: Mam, frozen: FakeClock) -> None:
        job_id = mam.register()
        mam.ok("pick", "--label", "tmux:a")
        mam.ok("heartbeat", job_id, "--owner", "w1")
        assert mam.ok("why", job_id, "--json").json["lease_expired"] is False
        frozen.pass_time(31)
        expired = "the lease of w1 has expired, last renewed at 2026-06-19T09:30:00Z"
        assert expired in mam.ok("why", job_id).out
        assert mam.ok("why", job_id, "--json").json["lease_expired"] is True

    def test_names_every_refusal(self, mam: Mam, frozen: FakeClock) -> None:
        (mam.folder / "mam.toml").write_text("[groups.night]\nslots = 0\n")
        parent = mam.register("first")
        job_id = mam.register("p", "--after", parent, "--group", "night", "--not-before", "+10m")
        mam.ok("pause", "--group", "night", "--why", "too\nloud \x1b[2J", "--until", "+1h")
        mam.ok("status", parent, "--set", "error")
        answer = mam.ok("why", job_id)
        assert answer.lines[:4] == [
            f'blocked: after {parent} "first", which failed just now',
            "also: group night is full: 0 of 0 running",
            "also: group night is paused until 2026-06-19T10:30:00Z: too\\nloud \\x1b[2J",
            "also: not before 2026-06-19T09:40:00Z",
        ]
        retry = f"press r on {parent} in the console, or run mam retry {parent}"
        assert f"cannot run unless {parent} is retried: {retry}" in answer.lines
        data = mam.ok("why", job_id, "--json").json
        assert data["claimable"] is False
        assert [refusal["rule"] for refusal in data["refusals"]] == [
            "paused",
            "not yet",
            "parent failed",
            "group full",
        ]

    @pytest.mark.parametrize(
        ("status", "sentence"),
        [
            ("running", "it is running as attempt 1"),
            ("completed", "it is completed (override) since 2026-06-19T09:30:00Z"),
            ("error", "it is error (override) since 2026-06-19T09:30:00Z"),
            ("cancelled", "it is cancelled (override) since 2026-06-19T09:30:00Z"),
        ],
    )
    def test_tells_where_other_jobs_stand(
        self, mam: Mam, frozen: FakeClock, status: str, sentence: str
    ) -> None:
        job_id = mam.register()
        mam.ok("status", job_id, "--set", status)
        assert mam.ok("why", job_id).out.startswith(sentence)
        assert mam.ok("why", job_id, "--json").json["status"] == status

    def test_tells_that_a_cancel_is_on_its_way(self, mam: Mam, frozen: FakeClock) -> None:
        job_id = mam.register()
        mam.ok("pick", "--label", "tmux:a")
        mam.ok("heartbeat", job_id, "--owner", "w1")
        mam.ok("cancel", job_id)
        assert "leased to w1" in mam.ok("why", job_id).out
        assert "asked to end at 2026-06-19T09:30:00Z by ann" in mam.ok("why", job_id).out

    def test_of_an_unknown_job_exits_1(self, mam: Mam) -> None:
        assert mam("why", "nobody99").code == 1


def test_json_of_get_is_json_for_others(mam: Mam) -> None:
    assert json.loads(mam.ok("get", mam.register("p"), "--json").out)["prompt"] == "p"


def test_config_shows_the_folders_that_are_used(mam: Mam) -> None:
    """A1: also where nobody named them"""
    shown = {row["key"]: row["value"] for row in mam.ok("config", "store", "--json").json}
    assert shown["store.registry_dir"] == str(mam.registry)
    assert shown["store.logs_dir"] == str(mam.folder / ".mam" / "delegate_job_logs")
    elsewhere = mam.ok("config", "store.logs_dir", "--json", "--registry-dir", "x/jobs").json
    assert elsewhere[0]["value"] == str(mam.folder / "x" / "delegate_job_logs")


def _helps(mam: Mam, job_ids: list[str]) -> set[tuple[str, ...]]:
    told = (mam.ok("why", job_id, "--json").json for job_id in job_ids)
    return {tuple(shlex.split(help["command"])) for one in told for help in one["help"]}


@contextmanager
def a_session(mam: Mam, agent: str = "shell") -> Iterator[None]:
    """Label `tmux:a` has a session on record, whose worker lives: that is us."""
    folder = SessionFolder(str(mam.path("x").parent))
    known = ("a", "tmux:a", agent, "exec", "/", "/", "2026-06-19T09:00:00Z", "ann")
    folder.put(Session(*known, socket.gethostname()))
    with Presence.announce(folder, "a"):
        yield
    folder.remove("a")
