"""Where the console finds itself: read-only, without tmux, in small windows, at a first run."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from mam_core.disk import Folder
from mam_core.operations.preferences import Preferences
from mam_core.records import Status
from mam_core.wiring import open_registry
from mam_tui.actions import ACTIONS
from mam_tui.screens.board import BoardScreen
from mam_tui.screens.confirm import Confirm
from mam_tui.screens.forms.job_form import JobForm
from mam_tui.screens.forms.spawn_form import SpawnForm
from mam_tui.screens.help import HelpScreen
from mam_tui.screens.job import JobScreen
from mam_tui.screens.sessions import SessionsScreen
from mam_tui.screens.view import View
from mam_tui.views import VIEWS
from tests.console.session_story import until_no_errand
from tests.console.staging import add, opened
from tests.support.brokers import nothing_left

#: Down to what nobody can work in; nothing may break there.
SIZES = ((20, 5), (60, 20))


@pytest.fixture(autouse=True)
def _nothing_of_the_persons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "jobs")


class TestReadOnly:
    async def test_every_act_that_changes_something_is_refused_with_a_reason(
        self, path: str
    ) -> None:
        """On every screen, by key, command and palette, which all come here."""
        with open_registry(path) as registry:
            job_id = add(registry)
            registry.claim("tmux:c")
            add(registry)
            before = registry.get(job_id)
            async with opened(path, read_only=True) as seen:
                assert "READ-ONLY" in seen.top()
                changing = [action.name for action in ACTIONS.values() if action.changes]
                assert len(changing) > 8
                for keys in (*(kind.key for kind in VIEWS.values()), "1 enter"):
                    await seen.press(*keys.split())
                    await seen.pilot.pause()
                    here: Any = seen.app.screen
                    at = VIEWS[here.NAME].key if isinstance(here, View) else "1 enter"
                    assert at == keys
                    known = {active.binding.id for active in here.active_bindings.values()}
                    refused = sorted(known.intersection(changing))
                    assert refused
                    for name in refused:
                        here.action_act(name)
                    for name in refused:
                        await seen.until_told(f"{ACTIONS[name].words}: this console is read-only")
                    assert seen.app.screen is here
                    seen.app.clear_notifications()
                await seen.press("escape")
                assert not seen.desk.deeds
                assert registry.get(job_id) == before

    async def test_it_is_switched_by_a_command_and_the_keys_come_back(self, path: str) -> None:
        with open_registry(path) as registry:
            add(registry)
        async with opened(path, read_only=True) as seen:
            assert "c cancel" not in seen.text()
            await seen.command("read-only")
            await seen.until_seen("c cancel")
            await seen.press("c")
            await seen.until_on(Confirm)
            await seen.press("escape")
            await seen.command("read-only")
            await seen.until(lambda: "READ-ONLY" in seen.top(), "back again")
            assert "c cancel" not in seen.text()

    async def test_nothing_is_made_or_sent_by_looking(self, path: str, tmp_path: Path) -> None:
        """No folder, no broker, no sweep; as soon as it may, the console serves as usual."""
        with nothing_left(tmp_path):
            async with opened(path, with_duties=True, read_only=True) as seen:
                await seen.until_seen("there are no jobs yet")
                assert not Path(path).exists()  # noqa: ASYNC240 — a look at a local disk holds nobody up
                await seen.command("read-only")
                await seen.until(lambda: Path(path, ".broker").is_dir(), "it is on duty")


class TestWithoutTmux:
    @pytest.fixture
    def _no_tmux(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        programs = tmp_path / "bin"
        programs.mkdir()
        for name in ("sh", "git", "env"):
            (programs / name).symlink_to(str(shutil.which(name)))
        monkeypatch.setenv("PATH", str(programs))

    @pytest.mark.usefixtures("_no_tmux")
    async def test_whoever_needs_it_says_so(self, path: str) -> None:
        with open_registry(path) as registry:
            add(registry)
            registry.claim("tmux:c")
            async with opened(path, (160, 40)) as seen:
                seen.app.board.panel.switch("pane")
                await seen.until_seen("tmux is not")
                await seen.press("a")
                await seen.until_told("tmux is not")
                await seen.press("2")
                await seen.until_seen("tmux is not here", "apt install tmux")
                await seen.press("s")
                form = await seen.until_on(SpawnForm)
                form.query_one("#agent").value = "shell"
                form.query_one("#label").value = "tmux:c"
                await seen.press("ctrl+s")
                await seen.until(lambda: seen.desk.deeds, "it was tried")
                assert "tmux" in seen.desk.deeds[-1].sentences[0]
                assert not seen.desk.deeds[-1].ok
                await seen.until_on(SpawnForm)
                await seen.press("escape", "1")
                await seen.until_on(BoardScreen)
        until_no_errand()


class TestSizes:
    async def test_every_screen_survives_every_size_while_it_is_open(self, path: str) -> None:
        with open_registry(path) as registry:
            for number in range(40):
                add(registry, f"Job {number} with a long prompt 한국어 " + "x" * 300)
            registry.claim("tmux:c")
        async with opened(path, kept=Preferences(hint_seen=True)) as seen:
            for keys, screen in (
                ("", BoardScreen),
                ("c", Confirm),
                ("escape n", JobForm),
                ("escape question_mark", HelpScreen),
                ("escape enter", JobScreen),
                ("escape 2", SessionsScreen),
            ):
                await seen.press(*keys.split())
                await seen.until_on(screen)
                for size in SIZES:
                    await seen.pilot.resize_terminal(*size)
                    await seen.pilot.pause()
                    lines = seen.text().split("\n")
                    assert (len(lines), seen.app.size.width) == (size[1], size[0])
                    assert isinstance(seen.app.screen, screen)
            await seen.press("1")
            await seen.pilot.resize_terminal(3, 2)
            await seen.pilot.resize_terminal(200, 50)
            await seen.until_seen("mam board", "Job 0", "PROMPT", "IDLE", "[timeline]")
            await seen.pilot.resize_terminal(60, 20)
            await seen.until_seen("mam board", "Job 0", "? keys", "enter open")
            await seen.pilot.resize_terminal(20, 5)
            await seen.until_seen("board", "queued")


class TestTexts:
    async def test_a_prompt_of_a_megabyte(self, path: str) -> None:
        """On the board, in the record, in the form; and what is copied is the id."""
        with open_registry(path) as registry:
            job_id = add(registry, "first line\n" + "x" * 500_000 + "\n" + "y " * 250_000)
            async with opened(path, (160, 40)) as seen:
                seen.app.board.panel.switch("record")
                await seen.until_seen("first line xxx", "agent_session")
                await seen.press("y")
                assert seen.app.clipboard == job_id
                await seen.press("enter")
                await seen.until_on(JobScreen)
                await seen.press("G", "escape", "E")
                form = await seen.until_on(JobForm)
                assert len(form.texts()["prompt"]) > 1_000_000
                await seen.press("escape")
                await seen.until_on(BoardScreen)
                assert registry.get(job_id).status is Status.PENDING

    async def test_records_that_cannot_be_read_are_lines_of_their_own(self, path: str) -> None:
        with open_registry(path) as registry:
            good = add(registry, "healthy")
            bad = add(registry, "soon torn")
            async with opened(path, (140, 40)) as seen:
                record = os.path.join(path, f"{bad}.json")
                with open(record, "w", encoding="utf-8") as torn:  # noqa: ASYNC230 — a local disk, one line
                    torn.write("{ torn")
                await seen.until_seen("unreadable", "it is not JSON", "healthy")
                await seen.press("g", "c")  # nothing can be done to it, and it says so
                assert isinstance(seen.app.screen, BoardScreen)
                await seen.press("enter")
                await seen.until_on(JobScreen)
                await seen.press("escape")
                os.unlink(record)
                await seen.until(lambda: list(seen.desk.board.rows) == [good], "it is gone")

    async def test_an_empty_filter_says_how_to_get_everything_back(self, path: str) -> None:
        with open_registry(path) as registry:
            add(registry)
        async with opened(path) as seen:
            await seen.press("slash", *"nothing", "enter")
            await seen.until_seen("no job fits the filter", "/nothing", "showing 0 of 1")
            await seen.press("escape")
            await seen.until_seen("Do it")


class TestWhatIsKept:
    async def test_a_full_disk_costs_the_choices_and_says_so_once(
        self, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with open_registry(path) as registry:
            add(registry)
        async with opened(path, kept=Preferences(hint_seen=True)) as seen:
            monkeypatch.setattr(Folder, "write", full)
            await seen.press("R", "R", "d")
            await seen.until_told("No space left on device")
            await seen.press("d")
            await seen.pilot.pause(0.1)
            assert sum("No space left" in one for one in seen.told()) == 1
            assert isinstance(seen.app.screen, BoardScreen)
