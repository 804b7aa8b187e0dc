"""Many jobs from a file: seen before they are registered, all of them or none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from mam_core.records import Job
from mam_core.wiring import open_registry
from mam_tui.screens.board import BoardScreen
from mam_tui.screens.forms.bulk_form import BulkForm
from mam_tui.screens.forms.chooser import Chooser
from tests.console.detail_story import HOSTILE
from tests.console.staging import opened

JOB = {"prompt": "Do it", "agent": "codex", "agent_session": "tmux:c"}


@pytest.fixture(autouse=True)
def _no_place_of_the_persons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "jobs")


def write(name: str, *lines: dict[str, Any] | str) -> None:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    Path(name).write_text("\n".join(texts) + "\n")


def jobs(path: str) -> list[Job]:
    with open_registry(path) as registry:
        return [registry.get(file.stem) for file in Path(path).glob("*.json")]


def registered(path: str) -> int:
    return len(jobs(path))


async def test_a_file_is_looked_at_and_then_registered(path: str) -> None:
    write(
        "many.jsonl", JOB, {**JOB, "prompt": HOSTILE}, {**JOB, "prompt": "Else", "agent": "gemini"}
    )
    async with opened(path, (80, 20)) as console:
        await console.press("N")
        form = await console.until_on(BulkForm)
        form.query_one("#path", Input).value = "many.jsonl"
        await console.press("enter")
        await console.until_seen("3 jobs would be registered", "2  codex   tmux:c", "1  gemini")
        assert "\x1b" not in console.text()
        assert registered(path) == 0  # the look registers nothing
        await console.press("ctrl+s", "ctrl+s")
        await console.until_on(BoardScreen)
        await console.until_told("3 jobs registered\n$ mam register --bulk many.jsonl")
        assert registered(path) == 3


async def test_bad_lines_keep_the_whole_file_out(path: str) -> None:
    write("bad.jsonl", JOB, "{nope", {"prompt": "p"}, JOB)
    async with opened(path, (60, 20)) as console:
        await console.command("bulk bad.jsonl")
        form = await console.until_on(BulkForm)
        await console.until_seen("2  it is not JSON", "3  missing: agent, agent_session")
        await console.until_seen("2 jobs, and 2 bad lines: all or nothing")
        await console.press("ctrl+s")
        await console.until_seen("2 lines are bad, the first is line 2")
        assert registered(path) == 0
        write("bad.jsonl", JOB)  # mended, and changed behind the preview
        form.look()
        await console.until_seen("1 job would be registered")
        write("bad.jsonl", JOB, {**JOB, "prompt": "sneaked in"})
        await console.press("ctrl+s")
        await console.until_seen("it was changed after the preview")
        assert registered(path) == 0


async def test_what_cannot_be_read_is_one_sentence(path: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "wide.jsonl").write_text("héllo", encoding="utf-16")
    async with opened(path, (80, 20)) as console:
        await console.press("N")
        form = await console.until_on(BulkForm)
        await console.press("enter")
        await console.until_seen("which file?")
        for name, words in {
            "absent": "absent: no such file or directory",
            "folder": "folder: it is a folder",
            "wide.jsonl": "1  it is not UTF-8",
        }.items():
            form.query_one("#path", Input).value = name
            await console.press("enter")
            await console.until_seen(words)
        await console.press("escape")
        await console.until_on(BoardScreen)


async def test_a_template_fills_what_the_lines_leave_out(path: str, tmp_path: Path) -> None:
    (tmp_path / "mam.toml").write_text(
        '[templates.review]\nagent = "codex"\nagent_session = "tmux:r"\n'
    )
    write("short.jsonl", {"prompt": "one"}, {"prompt": "two"})
    async with opened(path, (80, 20)) as console:
        console.app.jobs.bulk("short.jsonl")
        form = await console.until_on(BulkForm)
        await console.until_seen("2 bad lines")
        form.query_one(Chooser).focus()
        await console.press("right")
        await console.until_seen("2 jobs would be registered", "tmux:r")
        await console.press("ctrl+s")
        await console.until_told("$ mam register --bulk short.jsonl --template review")
        assert [job.agent_session for job in jobs(path)] == ["tmux:r", "tmux:r"]


async def test_a_read_only_console_has_no_such_form(path: str) -> None:
    async with opened(path, read_only=True) as console:
        await console.press("N")
        await console.command("bulk x")
        await console.pilot.pause()
        assert isinstance(console.app.screen, BoardScreen)
        assert len([told for told in console.told() if "read-only" in told]) == 2


async def test_a_long_file_leaves_the_console_answering(path: str) -> None:
    """20,000 lines: read on a thread, seen by their beginning, and left by one key."""
    write("long.jsonl", *[JOB] * 20_000, "{")
    async with opened(path, (80, 20)) as console:
        console.app.jobs.bulk("long.jsonl")
        form = await console.until_on(BulkForm)
        await console.press("tab")  # answered while it reads
        await console.until_seen("20,001  it is not JSON", "20,000 jobs, and 1 bad line")
        await console.press("G")
        await console.until_seen("… and 19,800 more")
        assert len(form.query("*")) < 20
