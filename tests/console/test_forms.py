"""The form of a job: everything can be said, nothing is lost, and a mistake stands at its box."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, TextArea

from mam_core.operations.preferences import Preferences
from mam_core.records import Job
from mam_core.wiring import open_registry
from mam_tui.screens.board import BoardScreen
from mam_tui.screens.forms.chooser import Chooser
from mam_tui.screens.forms.job_form import JobForm
from mam_tui.screens.forms.safe_boxes import SafeArea
from mam_tui.widgets.typed_line import TypedLine, drawn
from tests.console.detail_story import HOSTILE
from tests.console.staging import Opened, add, opened

TEMPLATES = """
[templates.review]
agent = "codex"
agent_session = "tmux:review"
prompt = "Review the last commit"
expected_artifacts = ["review.md"]
timeout_sec = 600
auth_token = true

[templates.docs]
agent = "gemini"

[defaults]
idle_timeout_sec = 45
"""


@pytest.fixture(autouse=True)
def _no_place_of_the_persons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "jobs")


@asynccontextmanager
async def new_job(
    path: str, size: tuple[int, int] = (80, 24), **more: Any
) -> AsyncIterator[tuple[Opened, JobForm]]:
    async with opened(path, size, **more) as console:
        await console.press("n")
        yield console, await console.until_on(JobForm)


def fill(form: JobForm, **texts: str) -> None:
    for name, text in texts.items():
        box = form.query_one(f"#{name}")
        if isinstance(box, TextArea):
            box.text = text
        else:
            assert isinstance(box, Input)
            box.value = text


def is_wrong(form: JobForm, name: str) -> Callable[[], bool]:
    box = next(one for one in form.boxes() if one.field.name == name)
    return lambda: box.is_wrong


async def until_in(console: Opened, form: JobForm, name: str) -> None:
    """The cursor goes there by a message of its own, after what is said about the box."""
    await console.until(lambda: form.focused is not None and form.focused.id == name, name)


def jobs(path: str) -> list[Job]:
    with open_registry(path) as registry:
        return [registry.get(file.stem) for file in Path(path).glob("*.json")]


async def test_no_cursor_blinks(path: str) -> None:
    async with new_job(path) as (_, form):
        boxes = [*form.query(Input), *form.query(TextArea)]
        assert boxes
        assert not any(box.cursor_blink for box in boxes)


class TestMistakes:
    async def test_stand_at_their_boxes_and_the_cursor_is_in_the_first(self, path: str) -> None:
        async with new_job(path, (60, 20)) as (console, form):
            fill(form, prompt="Do it", agent="codex", timeout_sec="soon", max_tokens="many")
            await console.press("ctrl+s")
            await console.pilot.pause()
            wrong = [one.field.name for one in form.boxes() if one.is_wrong]
            assert wrong == ["agent_session", "timeout_sec", "max_tokens"]
            await until_in(console, form, "agent_session")
            await console.until_seen("it must not stay empty", "look at session, timeout, max")
            fill(form, agent_session="tmux:c", timeout_sec="1m")
            await console.press("ctrl+s")
            await console.until_seen("'many' is no whole number")  # far below, and in sight
            await until_in(console, form, "max_tokens")

    async def test_that_only_the_registry_sees_leave_the_form_as_it_was(self, path: str) -> None:
        async with new_job(path) as (console, form):
            fill(form, prompt="Do it", agent="codex", agent_session="tmux:c")
            for name, text, words in (
                ("workdir", "absent", "is not a"),
                ("broker_port", "0", "it must be between 1 and 65535"),
                ("broker_password_file", "absent", "no such file"),
            ):
                fill(form, **{name: text})
                await console.press("ctrl+s")
                await console.until(is_wrong(form, name), words)
                await until_in(console, form, name)
                await console.until_seen(words)
                assert form.texts()["prompt"] == "Do it"
                fill(form, **{name: ""})
            await console.press("ctrl+s", "ctrl+s", "ctrl+s")  # one job, however often
            await console.until_on(BoardScreen)
            await console.until_told("is registered")
            assert len(jobs(path)) == 1


class TestTemplates:
    async def test_fill_what_nobody_has_written_in(self, path: str, tmp_path: Path) -> None:
        (tmp_path / "mam.toml").write_text(TEMPLATES)
        last = Preferences(last_job={"agent": "claude-code", "model": "best"})
        async with new_job(path, kept=last) as (console, form):
            fill(form, agent_session="tmux:mine")
            form.query_one(Chooser).focus()
            await console.press("r")
            await console.until(lambda: form.texts()["agent"] == "codex", "it is filled")
            texts = form.texts()
            assert texts["agent_session"] == "tmux:mine"
            assert (texts["model"], texts["prompt"]) == ("best", "Review the last commit")
            assert (texts["expected_artifacts"], texts["auth_token"]) == ("review.md", "yes")
            await console.press("left")
            await console.until(lambda: not form.texts()["prompt"], "it is taken back")
            assert form.texts()["agent"] == "claude-code"
            await console.press("r", "ctrl+s")
            await console.until_told("is registered")
            command = console.desk.deeds[-1].command
            assert command.startswith(
                "mam register '--prompt=Review the last commit' --agent=codex"
            )
            assert command.endswith(" --timeout=600 --token")
            (job,) = jobs(path)
            assert (job.idle_timeout_sec, job.agent_session) == (45, "tmux:mine")
            assert job.auth_token
            await console.until(
                lambda: Preferences.load().last_job.get("agent_session") == "tmux:mine", "kept"
            )


class TestForeignText:
    async def test_is_drawn_harmless_and_changed_by_nobody(self, path: str) -> None:
        with open_registry(path) as registry:
            prompt = f"{HOSTILE}\nsecond"
            job_id = add(registry, prompt, validate="echo \x07\x1b[31m")
            async with opened(path, (100, 30)) as console:
                await console.press("E")
                form = await console.until_on(JobForm)
                await console.until_seen("second")
                assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(console.text())
                assert "?[31mred" in console.text()
                line = form.query_one("#validate", TypedLine)
                assert line.content_width == len("echo ??[31m") + 1  # and one for the cursor
                assert not form.query("#key")  # what is settled stays
                form.query_one("#priority", Input).value = "7"
                await console.press("ctrl+s")
                await console.until(lambda: registry.get(job_id).priority == 7, "it is changed")
                assert registry.get(job_id).prompt == prompt
                assert console.desk.deeds[-1].command == f"mam edit {job_id} --priority=7"

    def test_takes_as_much_room_as_it_has_characters(self) -> None:
        assert len(drawn(HOSTILE)) == len(HOSTILE)
        assert drawn("plain\ttext") == "plain\ttext"

    async def test_of_a_megabyte_is_seen_by_its_beginning_and_kept_whole(
        self, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from mam_tui.screens.forms import job_form

        with open_registry(path) as registry:
            job_id = add(registry, "x" * 1_000_000)
            async with opened(path, (80, 24)) as console:
                await console.press("E")
                form = await console.until_on(JobForm)
                await console.until_seen("the beginning of 1,000,000 characters: ^e writes them")
                area = form.query_one("#prompt", SafeArea)
                assert (len(area.text), len(form.texts()["prompt"])) == (2000, 1_000_000)
                monkeypatch.setattr(job_form, "_edited", lambda text: ("short now", ""))
                monkeypatch.setattr(console.app, "suspend", nullcontext)
                await console.press("ctrl+e")
                await console.until(lambda: area.text == "short now", "the editor's words")
                await console.press("ctrl+s")
                await console.until(
                    lambda: registry.get(job_id).prompt == "short now", "it is changed"
                )


async def test_a_prompt_is_written_in_the_persons_editor_and_trouble_is_a_sentence(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with new_job(path) as (console, form):
        monkeypatch.setattr(console.app, "suspend", nullcontext)
        monkeypatch.setenv("VISUAL", 'sh -c \'printf "%s" "from outside" > "$0"\'')
        await console.press(*"abc", "ctrl+e")
        await console.until(lambda: form.texts()["prompt"] == "from outside", "it is taken over")
        monkeypatch.setenv("VISUAL", "/no/such/editor")
        await console.press("ctrl+e")
        await console.until_seen("the editor '/no/such/editor' cannot be started")
        assert form.texts()["prompt"] == "from outside"
        await console.press("escape")  # what was written is not left by one key
        await console.until_seen("esc again leaves")
        await console.press("x", "escape")  # written on: asked anew
        assert console.app.screen is form
        await console.press("escape")
        await console.until_on(BoardScreen)
