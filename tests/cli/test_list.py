"""``mam list``: a table for people, whole records for programs."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from mam_core.safe_text import cell_width
from tests.cli.conftest import Mam, is_one_sentence
from tests.support.clock import FakeClock
from tests.support.rows import each_row


@pytest.fixture
def some(mam: Mam, frozen: FakeClock) -> Mam:
    """One job of each kind, as a foreign tool and we would leave them."""
    mam.write("aaaa1111", created_at="2026-06-19T09:29:57Z")
    mam.write(
        "bbbb2222",
        status="running",
        agent="claude-code",
        agent_session="tmux:claude",
        created_at="2026-06-19T09:00:00Z",
        started_at="2026-06-19T09:26:00Z",
        attempt=2,
        group="night",
        prompt="밤하늘의 별을\n세어라 " + "x" * 100,
    )
    mam.write(
        "cccc3333",
        status="error",
        reason="timeout",
        created_at="2026-06-19T08:00:00Z",
        ended_at="2026-06-19T07:30:00Z",
    )
    mam.write(
        "dddd4444",
        status="running",
        created_at="2026-06-14T09:00:00Z",
        cancel_requested_at="2026-06-19T09:00:00Z",
        prompt="\x1b[2Jwipe \u202eme",
    )
    return mam


def test_golden_table(some: Mam) -> None:
    """E4, N16, N38"""
    assert some.ok("list").out == (
        "JOB ID    STATUS      AGE  AGENT        SESSION      GROUP  TRY  REASON   PROMPT\n"
        "dddd4444  cancelling  5d   shell        tmux:a              0             "
        "\\x1b[2Jwipe \\u202eme\n"
        "cccc3333  error       2h   shell        tmux:a              0    timeout  "
        "count the stars\n"
        "bbbb2222  running     4m   claude-code  tmux:claude  night  2             "
        "밤하늘의 별을 세어라 xxxx…\n"
        "aaaa1111  pending     3s   shell        tmux:a              0             "
        "count the stars\n"
    )


@pytest.mark.parametrize("width", [200, 80, 61, 40, 10])
def test_it_fits_the_terminal(some: Mam, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    answer = some.ok("list")
    assert len(answer.lines) == 5
    assert max(map(cell_width, answer.lines)) <= width


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (120, "JOB ID STATUS AGE AGENT SESSION GROUP TRY REASON PROMPT"),
        (80, "JOB ID STATUS AGE AGENT SESSION GROUP TRY PROMPT"),
        (72, "JOB ID STATUS AGE AGENT SESSION TRY PROMPT"),
        (62, "JOB ID STATUS AGE AGENT TRY PROMPT"),
        (52, "JOB ID STATUS AGE TRY PROMPT"),
        (40, "JOB ID STATUS AGE TRY PROMPT"),
    ],
)
def test_the_prompt_stays_readable_and_other_columns_go(
    some: Mam, monkeypatch: pytest.MonkeyPatch, width: int, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    heading, *rows = some.ok("list").lines
    assert " ".join(heading.split()) == columns
    room = width - heading.index("PROMPT")
    assert room >= 20 or width == 40
    assert "count" in rows[-1]


def test_a_long_label_leaves_room_for_the_prompt(mam: Mam, monkeypatch: pytest.MonkeyPatch) -> None:
    mam.register("x" * 200, "--agent-session", "s" * 100, "--agent", "a" * 100, "--group", "g" * 50)
    monkeypatch.setenv("COLUMNS", "200")
    (row,) = mam.ok("list").lines[1:]
    assert [len(cell) for cell in row.split()[3:6]] == [24, 24, 24]
    assert len(row) == 200


def test_ids_alone_can_be_cut_from_it(some: Mam, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    ids = [line.split()[0] for line in some.ok("list").lines[1:]]
    assert ids == ["dddd4444", "cccc3333", "bbbb2222", "aaaa1111"]


@each_row(
    ("flags", "ids"),
    [
        (["--status", "running"], ["dddd4444", "bbbb2222"]),
        (["--status", "error,pending"], ["cccc3333", "aaaa1111"]),
        (["--status", "error", "--status", "pending"], ["cccc3333", "aaaa1111"]),
        (["--label", "tmux:claude"], ["bbbb2222"]),
        (["--agent-session", "tmux:cl"], []),
        (["--agent", "claude-code"], ["bbbb2222"]),
        (["--group", "night"], ["bbbb2222"]),
        (["--text", "STARS"], ["cccc3333", "aaaa1111"]),
        (["--text", "별을"], ["bbbb2222"]),
        (["--text", "stars", "--status", "error"], ["cccc3333"]),
    ],
)
def test_filters(some: Mam, flags: list[str], ids: list[str]) -> None:
    """N38"""
    assert [line.split()[0] for line in some.ok("list", *flags).lines[1:]] == ids
    assert [record["job_id"] for record in some.ok("list", "--json", *flags).json] == ids


def test_json_holds_the_whole_records(mam: Mam) -> None:
    """E5"""
    ids = [mam.register("a\nprompt …", "--token"), mam.register("b")]
    records = mam.ok("list", "--json").json
    assert records == [mam.record(job_id) for job_id in ids]


def test_json_keeps_what_another_tool_added(mam: Mam) -> None:
    mam.write("aaaa1111", future={"deep": [1, None]})
    assert mam.ok("list", "--json").json[0]["future"] == {"deep": [1, None]}


def test_an_absent_and_an_empty_registry_are_empty_tables(mam: Mam) -> None:
    """E16"""
    for _ in range(2):
        table = mam.ok("list")
        assert len(table.lines) == 1
        assert table.err == ""
        assert mam.ok("list", "--json").json == []
        mam.registry.mkdir(parents=True, exist_ok=True)
        mam.registry.chmod(0o700)


def test_listing_an_absent_registry_makes_none(mam: Mam) -> None:
    mam.ok("list")
    assert list(mam.folder.iterdir()) == []


def test_no_secret_is_in_the_table(mam: Mam, tmp_path: Path) -> None:
    """K5"""
    secret = tmp_path / "password"
    secret.write_text("swordfish\n")
    job_id = mam.register("p", "--token", "--broker-password-file", secret)
    mam.ok("cancel", job_id)
    shown = "".join(
        mam.ok(*words).out
        for words in (["list"], ["logs", job_id], ["logs", job_id, "--json"], ["why", job_id])
    )
    assert "swordfish" not in shown
    assert mam.record(job_id)["auth_token"] not in shown


class TestColour:
    @pytest.fixture
    def terminal(self, some: Mam, monkeypatch: pytest.MonkeyPatch) -> Mam:
        monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True, raising=False)
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm-256color")
        return some

    def test_stands_beside_the_word_on_a_terminal(self, terminal: Mam) -> None:
        table = terminal.ok("list").out
        assert "\x1b[31merror     \x1b[0m" in table
        assert "\x1b[36mrunning   \x1b[0m" in table

    @pytest.mark.parametrize("width", [40, 20, 14])
    def test_stays_when_it_is_narrow(
        self, terminal: Mam, monkeypatch: pytest.MonkeyPatch, width: int
    ) -> None:
        monkeypatch.setenv("COLUMNS", str(width))
        table = terminal.ok("list").out
        assert table.count("\x1b[31merr") == 1
        assert table.count("\x1b[0m") == 4
        plain = re.sub(r"\x1b\[\d*m", "", table)
        assert max(map(cell_width, plain.splitlines())) <= width

    def test_is_for_terminals_only(self, some: Mam) -> None:
        assert "\x1b" not in some.ok("list").out

    @pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
    def test_can_be_declined(
        self, terminal: Mam, monkeypatch: pytest.MonkeyPatch, name: str, value: str
    ) -> None:
        monkeypatch.setenv(name, value)
        assert "\x1b" not in terminal.ok("list").out


class TestBlocked:
    """Decision 4: shown, never a status on disk."""

    def shown(self, mam: Mam, *flags: str) -> dict[str, str]:
        rows = map(str.split, mam.ok("list", *flags).lines[1:])
        return {job_id: status for job_id, status, *_ in rows}

    def test_is_a_pending_job_behind_a_pause(self, mam: Mam, frozen: FakeClock) -> None:
        held = mam.register("1", "--group", "night")
        codex, free = mam.register("2", "--agent", "codex"), mam.register("3")
        mam.ok("pause", "--group", "night", "--until", "+10m")
        mam.ok("pause", "--agent", "codex")
        assert self.shown(mam) == {held: "blocked", codex: "blocked", free: "pending"}
        frozen.pass_time(601)
        assert self.shown(mam) == {held: "pending", codex: "blocked", free: "pending"}

    def test_is_a_pending_job_of_a_full_group(self, mam: Mam) -> None:
        (mam.folder / "mam.toml").write_text("[groups.night]\nslots = 1\n")
        first, second = mam.register("1", "--group", "night"), mam.register("2", "--group", "night")
        assert self.shown(mam) == {first: "pending", second: "pending"}
        mam.ok("pick", "--label", "tmux:a")
        assert self.shown(mam) == {first: "running", second: "blocked"}

    def test_is_everything_when_everything_is_paused(self, mam: Mam, frozen: FakeClock) -> None:
        running, held = mam.register("1"), mam.register("2")
        mam.ok("pick", "--label", "tmux:a")
        mam.ok("pause", "--all")
        answer = mam.ok("list")
        assert answer.err == "mam: everything is paused since 2026-06-19T09:30:00Z\n"
        assert self.shown(mam) == {running: "running", held: "blocked"}

    def test_is_pending_to_filters_and_programs(self, mam: Mam) -> None:
        job_id = mam.register()
        mam.ok("pause", "--all")
        assert self.shown(mam, "--status", "pending") == {job_id: "blocked"}
        assert mam.ok("list", "--json").json[0]["status"] == "pending"
        assert mam("list", "--status", "blocked").code == 1
        assert mam.record(job_id)["status"] == "pending"


class TestARegistryAbove:
    @pytest.fixture
    def below(self, mam: Mam, monkeypatch: pytest.MonkeyPatch) -> Mam:
        mam.register()
        (mam.folder / "src" / "deep").mkdir(parents=True)
        monkeypatch.chdir(mam.folder / "src" / "deep")
        return mam

    def test_is_the_one_in_use(self, below: Mam) -> None:
        [job_id] = [row["job_id"] for row in below.ok("list", "--json").json]
        second = below.register()
        assert {job_id, second} == {row["job_id"] for row in below.ok("list", "--json").json}
        assert below.path(second).exists()
        assert below.ok("list").err == ""
        assert list(Path.cwd().iterdir()) == []

    def test_is_hinted_at_where_it_is_beyond_the_home_folder(
        self, below: Mam, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", str(below.folder / "src"))
        answer = below.ok("list")
        assert len(answer.lines) == 1
        assert is_one_sentence(answer.err)
        assert str(below.registry) in answer.err
        assert list(Path.cwd().iterdir()) == []

    def test_is_nobodys_business_where_a_registry_was_named(self, below: Mam) -> None:
        assert below.ok("list", "--registry-dir", "mine").err == ""


class TestUnreadableFiles:
    """A18: each is one row and one warning, and the others are listed."""

    def test_are_rows(self, mam: Mam) -> None:
        good = mam.register()
        mam.path("broken").write_text("{")
        mam.write("version2", schema_version=2)
        answer = mam.ok("list")
        rows = {line.split()[0]: line.split()[1] for line in answer.lines[1:]}
        assert rows == {good: "pending", "broken": "unreadable", "version2": "unreadable"}
        assert answer.err.count("mam: warning: ") == 2
        assert "broken.json cannot be read: it is not JSON" in answer.err

    def test_are_objects_in_json(self, mam: Mam) -> None:
        """Decision 29"""
        mam.register()
        mam.path("broken").write_bytes(b"")
        rows = mam.ok("list", "--json").json
        assert rows[1] == {"job_id": "broken", "status": "unreadable", "error": "it is empty"}

    def test_fit_no_filter_but_are_warned_of(self, mam: Mam) -> None:
        good = mam.register()
        mam.path("broken").write_bytes(b"")
        for form in ([], ["--json"]):
            answer = mam.ok("list", "--status", "pending", *form)
            assert "broken" not in answer.out
            assert good in answer.out
            assert answer.err == "mam: warning: broken.json cannot be read: it is empty\n"

    def test_with_evil_names_are_shown_harmless(self, mam: Mam) -> None:
        mam.register()
        (mam.registry / "a\x1b]0;title\x07 b.json").write_text("x")
        answer = mam.ok("list")
        assert "\x1b" not in answer.out + answer.err
        assert r"a\x1b]0;title\x07 b" in answer.out
        assert json.loads(mam.ok("list", "--json").out)[1]["job_id"] == "a\x1b]0;title\x07 b"
