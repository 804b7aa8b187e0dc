"""``mam.toml`` changes while the console is open: what it says counts, without a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from mam_core.wiring import open_registry
from mam_tui.screens.confirm import Confirm
from mam_tui.screens.forms.job_form import JobForm
from tests.console.staging import Opened, add, opened


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mam.toml"
    path.write_text('[groups.night]\nslots = 2\n[notify]\nmin = "low"\n')
    with open_registry(str(tmp_path / "jobs")) as registry:
        add(registry, "Wait for settings")
    return path


def says(file: Path, text: str) -> None:
    file.write_text(text)


def the_path(file: Path) -> str:
    return str(file.parent / "jobs")


async def test_templates_groups_keys_and_notices_follow_the_file(file: Path) -> None:
    async with opened(the_path(file)) as seen:
        says(
            file,
            '[groups.night]\nslots = 7\n[templates.fix]\nagent = "codex"\n'
            '[keys]\ncancel = "ctrl+x"\n[notify]\nmin = "high"\ndebounce_sec = 3\n',
        )
        await seen.until_told("settings reloaded: groups.night.slots, keys.cancel")
        await seen.press("n")
        form: JobForm = await seen.until_on(JobForm)
        assert "fix" in form._suggested.templates
        await seen.press("escape", "ctrl+x")
        await seen.until_on(Confirm)
        assert seen.desk.config.notify.min == "high"
        with seen.desk.open_registry() as registry:
            assert registry.slots == {"night": 7}


async def test_the_key_that_reads_everything_again_does_not_wait(file: Path) -> None:
    """For the second look, which makes sure that nobody is still writing."""
    async with opened(the_path(file)) as seen:
        await seen.until(lambda: seen.app.settings._rounds.looks, "it has looked")
        says(file, '[console]\ntheme = "nord"\n')
        await seen.press("ctrl+r")
        await seen.until_told("settings reloaded: console.theme")
        assert seen.app.theme == "nord"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[groups.night]\nslots = none", "line 2"),
        ('[keys]\ncancel = "nokey"\n', "keys.cancel"),
        ('[console]\ntheme = "nobody\'s"\n', "console.theme"),
    ],
)
async def test_a_mistake_keeps_the_settings_and_is_said(file: Path, text: str, words: str) -> None:
    async with opened(the_path(file)) as seen:
        theme = seen.app.theme
        says(file, text)
        await seen.until_told("settings not reloaded: ")
        assert words in " ".join(seen.told())
        assert seen.desk.config.slots() == {"night": 2}
        assert seen.app.theme == theme


async def test_a_schedule_that_is_added_runs(file: Path) -> None:
    async with opened(the_path(file), with_duties=True) as seen:
        says(
            file,
            '[templates.tidy]\nprompt = "Tidy up"\nagent = "codex"\nagent_session = "tmux:c"\n'
            '[schedules.often]\nevery = "1s"\ntemplate = "tidy"\n',
        )
        await seen.until(lambda: made(seen), "the schedule has made a job")


def made(seen: Opened) -> list[str]:
    rows = seen.desk.board.rows.values()
    return [row.key for row in rows if row.summary and row.summary.head.startswith("Tidy up")]
