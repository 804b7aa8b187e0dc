"""``mam register``: the id alone on stdout, and the record that was asked for on disk."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.conftest import Mam, is_one_sentence
from tests.support.clock import FakeClock
from tests.support.rows import each_row

JR_KEYS = {
    "schema_version",
    "job_id",
    "status",
    "created_at",
    "updated_at",
    "prompt",
    "agent",
    "agent_session",
    "broker",
    "topic_prefix",
    "timeout_sec",
    "idle_timeout_sec",
    "expected_artifacts",
    "last_seq",
    "auth_token",
}


def stdin_of(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


class TestOneJob:
    def test_prints_the_id_alone(self, mam: Mam) -> None:
        """E1, A1, A3"""
        answer = mam.ok(
            *("register", "--prompt", "p", "--agent", "claude-code", "--agent-session", "tmux:a"),
            *("--timeout", "600", "--idle-timeout", "60"),
        )
        assert re.fullmatch(r"[a-z0-9]{8}\n", answer.out)
        assert answer.err == ""
        record = mam.record(answer.out.strip())
        assert (record["timeout_sec"], record["idle_timeout_sec"]) == (600, 60)

    def test_has_the_documents_keys_and_defaults(self, mam: Mam) -> None:
        """E2, A6, A8, A13, I1, I2, K1"""
        record = mam.record(mam.register())
        assert record.keys() >= JR_KEYS
        assert (record["timeout_sec"], record["idle_timeout_sec"]) == (3600, 120)
        assert record["status"] == "pending"
        assert record["expected_artifacts"] == []
        assert record["last_seq"] == 0
        assert record["auth_token"] is None

    def test_takes_every_field_as_an_option(self, mam: Mam, frozen: FakeClock) -> None:
        """E3"""
        parent = mam.register("first")
        (mam.folder / "sub").mkdir()
        secret = mam.folder / "secret"
        secret.write_text("pass word \nsecond line\n")
        job_id = mam.register(
            "second",
            *("--model", "big", "--workdir", "sub", "--artifact", "a.txt", "--artifact", "b/c.md"),
            *("--validate", "test -s a.txt", "--after", parent, "--group", "night"),
            *("--priority", "-5", "--key", "nightly", "--max-attempts", "3"),
            *("--memory-max", "8G", "--not-before", "+10m", "--token"),
            *("--max-cost", "2.50", "--max-tokens", "200000"),
            *("--topic-prefix", "jobs/mine", "--broker-host", "broker.lan"),
            *("--broker-port", "8883", "--broker-tls", "--broker-username", "u"),
            *("--broker-password-file", secret),
        )
        record = mam.record(job_id)
        assert record["model"] == "big"
        assert record["workdir"] == str(mam.folder / "sub")
        assert record["expected_artifacts"] == ["a.txt", "b/c.md"]
        assert record["validate"] == "test -s a.txt"
        assert record["after"] == [parent]
        assert (record["group"], record["priority"], record["key"]) == ("night", -5, "nightly")
        assert (record["max_attempts"], record["memory_max"]) == (3, 8 * 2**30)
        assert (record["max_cost"], record["max_tokens"]) == (2.5, 200_000)
        assert record["not_before"] == "2026-06-19T09:40:00Z"
        assert len(record["auth_token"]) == 43
        assert record["topic_prefix"] == "jobs/mine"
        assert record["broker"] == {
            "host": "broker.lan",
            "port": 8883,
            "tls": True,
            "username": "u",
            "password": "pass word ",
        }

    def test_works_where_it_was_registered(self, mam: Mam) -> None:
        """N24"""
        assert mam.record(mam.register())["workdir"] == str(mam.folder)

    @pytest.mark.parametrize("text", ["한국어 … \"quoted\" 'so'", "two\r\nlines\n", "-", " x "])
    def test_keeps_a_prompt_from_a_file_to_the_byte(self, mam: Mam, text: str) -> None:
        """A14"""
        file = mam.folder / "prompt"
        file.write_bytes(text.encode())
        answer = mam.ok("register", "--prompt-file", file, "--agent", "shell", "--label", "l")
        assert mam.record(answer.out.strip())["prompt"] == text

    def test_takes_a_prompt_from_stdin(self, mam: Mam, monkeypatch: pytest.MonkeyPatch) -> None:
        stdin_of(monkeypatch, "별\n".encode())
        answer = mam.ok("register", "--prompt-file", "-", "--agent", "shell", "--label", "l")
        assert mam.record(answer.out.strip())["prompt"] == "별\n"

    def test_with_the_key_of_a_live_job_answers_with_that_job(self, mam: Mam) -> None:
        """N2, decision 22"""
        first = mam.register("one", "--key", "k")
        given = ("--prompt", "two", "--agent", "shell", "--label", "tmux:a", "--key", "k")
        again = mam.ok("register", *given)
        assert again.out == first + "\n"
        assert "nothing was registered" in again.err
        mam.ok("cancel", first)
        assert mam.ok("register", *given).out.strip() != first

    def test_warns_of_a_twin_and_registers_it(self, mam: Mam) -> None:
        """N2, decision 22"""
        first = mam.register("same")
        answer = mam.ok("register", "--prompt", "same", "--agent", "b", "--label", "tmux:a")
        assert answer.out.strip() != first
        assert f"mam: warning: job {answer.out.strip()} has the label" in answer.err
        assert first in answer.err

    def test_takes_what_it_is_not_told_from_the_settings(self, mam: Mam) -> None:
        """I4: flag over settings over default"""
        (mam.folder / "mam.toml").write_text(
            '[defaults]\nagent = "codex"\nagent_session = "tmux:c"\ntimeout_sec = 77\n'
            '[broker]\nhost = "broker.lan"\nport = 2000\n'
        )
        plain = mam.record(mam.ok("register", "--prompt", "p").out.strip())
        assert (plain["agent"], plain["agent_session"]) == ("codex", "tmux:c")
        assert (plain["timeout_sec"], plain["idle_timeout_sec"]) == (77, 120)
        flags = ("--prompt", "q", "--timeout", "5", "--agent", "x", "--broker-port", "3")
        record = mam.record(mam.ok("register", *flags).out.strip())
        assert (record["agent"], record["timeout_sec"]) == ("x", 5)
        assert (record["broker"]["host"], record["broker"]["port"]) == ("broker.lan", 3)


class TestNotBefore:
    """Decision 29: the moment that was understood is said, for a zone is easily forgotten."""

    @pytest.mark.parametrize(
        ("text", "moment"),
        [
            ("2026-06-19T12:00", "2026-06-19T12:00:00Z"),
            ("2026-06-19T12:00+02:00", "2026-06-19T10:00:00Z"),
            ("+10m", "2026-06-19T09:40:00Z"),
        ],
    )
    def test_is_said(self, mam: Mam, frozen: FakeClock, text: str, moment: str) -> None:
        given = ("--prompt", "p", "--agent", "shell", "--label", "l", "--not-before", text)
        answer = mam.ok("register", *given)
        assert answer.err == f"mam: not claimed before {moment}\n"
        assert mam.record(answer.out.strip())["not_before"] == moment
        edited = mam.ok("edit", answer.out.strip(), "--not-before", "+1h")
        assert "mam: not claimed before 2026-06-19T10:30:00Z\n" in edited.err

    def test_in_the_past_is_warned_of(self, mam: Mam) -> None:
        given = ("--prompt", "p", "--agent", "shell", "--label", "l", "--not-before", "2020-01-01")
        answer = mam.ok("register", *given)
        assert answer.err.startswith("mam: warning: 2020-01-01T00:00:00Z is already past")

    def test_is_utc_by_the_help(self, mam: Mam) -> None:
        assert "UTC without a zone" in " ".join(mam.ok("register", "--help").out.split())


class TestRefusals:
    @each_row(
        ("flags", "word"),
        [
            (["--timeout", "0"], "--timeout"),
            (["--timeout", "-1"], "--timeout"),
            (["--timeout", "soon"], "--timeout"),
            (["--timeout", "nan"], "--timeout"),
            (["--idle-timeout", "0"], "--idle-timeout"),
            (["--priority", "high"], "--priority"),
            (["--priority", "9999999999"], "priority"),
            (["--memory-max", "lots"], "--memory-max"),
            (["--max-attempts", "0"], "--max-attempts"),
            (["--not-before", "tomorrow"], "--not-before"),
            (["--workdir", "nowhere"], "nowhere"),
            (["--artifact", "../up"], "--artifact"),
            (["--artifact", "/etc/passwd"], "--artifact"),
            (["--after", "nobody99"], "nobody99"),
            (["--after", "../x"], "after"),
            (["--topic-prefix", "a/#"], "--topic-prefix"),
            (["--broker-port", "70000"], "--broker-port"),
            (["--broker-port", "0"], "--broker-port: it must be between 1 and 65535, not 0"),
            (["--broker-username", "a\x1b[2J"], "--broker-username: it must not hold control"),
            (["--timeout", "9" * 100], "the largest is 9999999999 seconds"),
            (["--memory-max", "9" * 100], "the largest is 4194304T"),
            (["--broker-password-file", "nowhere"], "nowhere"),
            (["--agent-session", ""], "--agent-session"),
            (["--agent", "a\x1b[2J"], "agent"),
            (["--nonsense"], "--nonsense"),
            (["--prompt-file", "x"], "--prompt"),
        ],
    )
    def test_are_one_sentence_and_change_nothing(
        self, mam: Mam, flags: list[str], word: str
    ) -> None:
        """I5, E14, E15"""
        base = ["--prompt", "p", "--agent", "shell", "--agent-session", "tmux:a"]
        answer = mam("register", *base, *flags)
        assert answer.code == 2
        assert answer.out == ""
        assert is_one_sentence(answer.err)
        assert word in answer.err
        assert not list(mam.registry.glob("*.json"))

    def test_name_what_is_missing(self, mam: Mam) -> None:
        hint = "(see `mam register --help`)"
        answer = mam("register", "--prompt", "p", "--agent", "shell")
        assert (answer.code, answer.err) == (2, f"mam: missing: --agent-session {hint}\n")
        answer = mam("register")
        assert answer.err == f"mam: missing: --prompt, --agent, --agent-session {hint}\n"

    @pytest.mark.parametrize("prompt", [" ", "\n\t \u2003"])
    def test_of_a_prompt_that_says_nothing(self, mam: Mam, prompt: str) -> None:
        answer = mam("register", "--prompt", prompt, "--agent", "shell", "--label", "l")
        assert answer.code == 2
        assert answer.err == "mam: --prompt: it holds nothing but blanks\n"
        (mam.folder / "prompt").write_text(prompt)
        answer = mam("register", "--prompt-file", "prompt", "--agent", "shell", "--label", "l")
        assert answer.err == "mam: --prompt-file: it holds nothing but blanks\n"

    @pytest.mark.parametrize(
        ("data", "word"),
        [(b"", "empty"), (b"\xff\xfe", "UTF-8"), (b"x" * (1024 * 1024 + 1), "1 MiB")],
    )
    def test_of_a_prompt_file_name_the_reason(self, mam: Mam, data: bytes, word: str) -> None:
        file = mam.folder / "prompt"
        file.write_bytes(data)
        answer = mam("register", "--prompt-file", file, "--agent", "shell", "--label", "l")
        assert answer.code == 2
        assert is_one_sentence(answer.err)
        assert word in answer.err

    @pytest.mark.parametrize("name", ["absent", ".", "a\0b"])
    def test_of_a_file_that_is_none(self, mam: Mam, name: str) -> None:
        for option in ("--prompt-file", "--bulk"):
            answer = mam("register", option, name, "--agent", "shell", "--label", "l")
            assert answer.code == 2
            assert is_one_sentence(answer.err)


class TestManyJobs:
    def lines(self, *jobs: object) -> bytes:
        return b"".join(json.dumps(job).encode() + b"\n" for job in jobs)

    def write(self, mam: Mam, data: bytes) -> Path:
        file = mam.folder / "jobs.jsonl"
        file.write_bytes(data)
        return file

    def test_are_registered_in_order(self, mam: Mam) -> None:
        """N22, N25"""
        jobs = [{"prompt": f"part {n}", "agent": "shell", "agent_session": "l"} for n in range(50)]
        answer = mam.ok("register", "--bulk", self.write(mam, self.lines(*jobs)))
        assert [mam.record(job_id)["prompt"] for job_id in answer.lines] == [
            f"part {n}" for n in range(50)
        ]
        picked = [mam.ok("pick", "--agent-session", "l").out.strip() for _ in range(50)]
        assert picked == answer.lines

    def test_come_from_stdin_and_take_the_options_for_what_they_leave_out(
        self, mam: Mam, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stdin_of(monkeypatch, self.lines({"prompt": "1"}, {"prompt": "2", "agent": "own"}) + b"\n")
        answer = mam.ok(
            "register", "--bulk", "-", "--agent", "shell", "--label", "l", "--timeout", "9"
        )
        one, two = map(mam.record, answer.lines)
        assert (one["agent"], two["agent"]) == ("shell", "own")
        assert (one["timeout_sec"], two["timeout_sec"]) == (9, 9)
        assert one["workdir"] == str(mam.folder)

    @each_row(
        ("line", "word"),
        [
            (b"{not json", "line 3: it is not JSON: Expecting property name enclosed in double "),
            (b'{"a": }', "Expecting value (column 7)\n"),
            (b'{"a": 1', "delimiter (column 8)\n"),
            (b"[]", "object"),
            (b"\xff", "UTF-8"),
            (b"[" * 100_000, "nested"),
            (b'{"prompt": "p", "prompt": "q"}', "twice"),
            (b'{"agent": "shell", "agent_session": "l"}', "line 3: missing: prompt\n"),
            (
                b'{"prompt": "p", "agent": "shell", "agent_session": "l", "status": "running"}',
                "status",
            ),
            (
                b'{"prompt": "p", "agent": "shell", "agent_session": "l", "timeout_sec": 0}',
                "timeout",
            ),
            (
                b'{"prompt": "p", "agent": "shell", "agent_session": "l", "after": ["nobody9"]}',
                "nobody",
            ),
            (b'{"prompt": "p", "agent": "shell", "agent_session": "l", "after": 3}', "after"),
        ],
    )
    def test_with_one_bad_line_are_all_refused_and_the_line_is_named(
        self, mam: Mam, line: bytes, word: str
    ) -> None:
        good = self.lines({"prompt": "p", "agent": "shell", "agent_session": "l"})
        answer = mam("register", "--bulk", self.write(mam, good + b"\n" + line + b"\n" + good))
        assert answer.code == 2
        assert answer.out == ""
        assert is_one_sentence(answer.err)
        assert "line 3:" in answer.err
        assert word in answer.err
        assert not list(mam.registry.glob("*.json"))

    def test_of_an_empty_file_are_none(self, mam: Mam) -> None:
        file = self.write(mam, b"\n\n")
        answer = mam.ok("register", "--bulk", file)
        assert (answer.out, answer.err) == ("", f"mam: nothing to register: {file} holds no job\n")

    def test_may_begin_with_a_byte_order_mark(self, mam: Mam) -> None:
        """As editors on Windows write them."""
        line = self.lines({"prompt": "p", "agent": "shell", "agent_session": "l"})
        answer = mam.ok("register", "--bulk", self.write(mam, b"\xef\xbb\xbf" + line))
        assert mam.record(answer.out.strip())["prompt"] == "p"

    def test_with_a_bad_option_blame_the_option(self, mam: Mam) -> None:
        line = self.lines({"prompt": "p", "agent": "shell", "agent_session": "l"})
        answer = mam("register", "--bulk", self.write(mam, line), "--max-attempts", "0")
        assert answer.code == 2
        assert answer.err.startswith("mam: --max-attempts: ")

    def test_that_are_twins_are_a_few_warnings_and_a_count(self, mam: Mam) -> None:
        line = self.lines({"prompt": "p", "agent": "shell", "agent_session": "l"})
        answer = mam.ok("register", "--bulk", self.write(mam, line * 20))
        assert len(answer.lines) == 20
        assert len(answer.err.splitlines()) == 6
        assert "… and 14 more like this: job " in answer.err

    def test_share_no_prompt(self, mam: Mam) -> None:
        assert mam("register", "--bulk", "x", "--prompt", "p").code == 2


def test_a_template_says_what_is_not_said(mam: Mam) -> None:
    (mam.folder / "mam.toml").write_text(
        '[templates.review]\nagent = "codex"\nagent_session = "tmux:r"\ntimeout_sec = 60\n'
        'not_before = "+1h"\nauth_token = true\n[defaults]\ntimeout_sec = 90\n'
    )
    job_id = mam.ok("register", "--template", "review", "--prompt", "p", "--timeout", "9").out
    record = mam.record(job_id.strip())
    assert (record["agent"], record["timeout_sec"]) == ("codex", 9)
    assert record["not_before"] is not None
    assert record["auth_token"]
    (mam.folder / "many").write_text('{"prompt": "1"}\n{"prompt": "2", "agent": "own"}\n')
    one, two = map(mam.record, mam.ok("register", "--bulk", "many", "--template", "review").lines)
    assert (one["agent"], two["agent"], one["timeout_sec"]) == ("codex", "own", 60)
    answer = mam("register", "--template", "nope", "--prompt", "p")
    assert answer.code == 1
    assert answer.err == "mam: there is no template 'nope'; templates: review\n"


def test_a_new_registry_is_named_to_a_person(folder: Path) -> None:
    """Who expected another one sees at once where this one is; a program reads ids alone."""
    words = [
        sys.executable,
        "-m",
        "mam_core.cli.main",
        "register",
        "--agent",
        "shell",
        "--label",
        "l",
    ]
    said = []
    for prompt in ("first", "second"):
        leader, follower = pty.openpty()
        command = [*words, "--prompt", prompt]
        done = subprocess.run(command, cwd=folder, stderr=follower, stdout=subprocess.PIPE)
        os.close(follower)
        with suppress(OSError):  # nothing was said, and nobody holds the other end
            said.append(os.read(leader, 4096).decode())
        os.close(leader)
        assert done.returncode == 0
    assert said == [f"mam: new registry: {folder}/.mam/jobs\r\n"]
