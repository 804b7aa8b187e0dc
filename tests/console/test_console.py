"""The console as a whole, on a real registry: what arrives is seen, what is pressed is done."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, TextArea

from mam_core.config import load
from mam_core.operations.preferences import Preferences
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.wiring import open_registry
from mam_tui.app import Console
from mam_tui.bridge import Bridge
from mam_tui.desk import Desk
from mam_tui.screens.board import BoardScreen
from mam_tui.screens.confirm import Confirm
from mam_tui.screens.deeds import DeedsScreen
from mam_tui.screens.forms.job_form import JobForm
from mam_tui.screens.forms.line_form import LineForm
from mam_tui.screens.help import HelpScreen
from mam_tui.screens.job import JobScreen
from mam_tui.screens.sessions import SessionsScreen
from mam_tui.widgets.filter_line import FilterLine
from tests.support.patience import until


@pytest.fixture(autouse=True)
def _no_place_of_the_persons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "jobs")


@asynccontextmanager
async def console(path: str, size: tuple[int, int] = (140, 30), **more: Any) -> AsyncIterator[Any]:
    """Without a broker of its own, which nothing here needs."""
    config = load()
    desk = Desk(path, config, read_only=more.pop("read_only", False))

    def bridge(ring: Callable[[], None]) -> Bridge:
        return Bridge(path, config, ring, with_duties=False)

    app = Console(desk, bridge=bridge, **more)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: not app.standing().loading)
        yield pilot


def add(registry: Registry, prompt: str = "Do it", **more: Any) -> str:
    request = {"prompt": prompt, "agent": "codex", "agent_session": "tmux:c", **more}
    return registry.register([request])[0].job_id


class TestWhatArrives:
    async def test_a_job_that_another_program_registers_is_seen(self, path: str) -> None:
        """O4."""
        async with console(path) as pilot:
            board = pilot.app.desk.board
            with open_registry(path) as registry:
                job_id = add(registry, "From outside")
                await until(pilot, lambda: job_id in board.rows)
                registry.claim("tmux:c")
                await until(pilot, lambda: board.rows[job_id].is_running)
                registry.publish(job_id, "progress", detail="reading", attempt=1)
                await until(pilot, lambda: board.rows[job_id].live.detail == "reading")

    async def test_while_the_picture_is_held_nothing_moves_and_all_of_it_comes_after(
        self, path: str
    ) -> None:
        async with console(path) as pilot:
            app = pilot.app
            await pilot.press("p")
            with open_registry(path) as registry:
                job_id = add(registry)
            await until(pilot, lambda: bool(app.standing().paused))
            assert job_id not in app.desk.board.rows
            await pilot.press("p")
            await until(pilot, lambda: job_id in app.desk.board.rows)

    async def test_a_paused_agent_is_shown_as_blocked(self, path: str) -> None:
        from mam_core.stores.base import GateKind

        with open_registry(path) as registry:
            job_id = add(registry)
            async with console(path) as pilot:
                board = pilot.app.desk.board
                assert board.rows[job_id].word == "queued"
                registry.pause(GateKind.AGENT, "codex", why="lunch")
                await until(pilot, lambda: board.rows[job_id].word == "blocked")


class TestWhatIsPressed:
    async def test_cancel_asks_and_only_y_confirms(self, path: str) -> None:
        """O11: the key that asks is not the key that confirms."""
        with open_registry(path) as registry:
            job_id = add(registry)
            async with console(path) as pilot:
                await pilot.press("c")
                assert isinstance(pilot.app.screen, Confirm)
                await pilot.press("c", "enter")  # Enter is on the button that keeps
                assert registry.get(job_id).status is Status.PENDING
                await pilot.press("c", "y")
                await until(pilot, lambda: registry.get(job_id).status is Status.CANCELLED)
                row = pilot.app.desk.board.rows[job_id]
                await until(pilot, lambda: row.word == "cancelled")
                assert pilot.app.desk.deeds[-1].command == f"mam cancel {job_id}"
                await pilot.press("r", "y")  # O12
                await until(pilot, lambda: registry.get(job_id).status is Status.PENDING)

    async def test_marked_jobs_are_acted_on_together(self, path: str) -> None:
        with open_registry(path) as registry:
            ids = [add(registry, f"Job {number}") for number in range(3)]
            async with console(path) as pilot:
                await pilot.press("space", "space", "c", "y")
                await until(pilot, lambda: registry.get(ids[1]).status is Status.CANCELLED)
                assert registry.get(ids[0]).status is Status.CANCELLED
                assert registry.get(ids[2]).status is Status.PENDING
                await until(pilot, lambda: not pilot.app.desk.board.marks)

    async def test_what_cannot_be_done_says_why(self, path: str) -> None:
        with open_registry(path) as registry:
            job_id = add(registry)
            async with console(path, read_only=True) as pilot:
                for key in ("c", "n", "s"):
                    await pilot.press(key)
                    assert isinstance(pilot.app.screen, BoardScreen)
                assert registry.get(job_id).status is Status.PENDING
                await pilot.press("colon", *"read-only", "enter")
                await until(pilot, lambda: not pilot.app.desk.read_only)

    async def test_a_new_job_is_filled_in_and_registered(self, path: str, tmp_path: Path) -> None:
        """O10."""
        async with console(path, kept=Preferences()) as pilot:
            await pilot.press("n")
            await until(pilot, lambda: isinstance(pilot.app.screen, JobForm))
            form = pilot.app.screen
            form.query_one("#prompt", TextArea).text = "Write\nboth lines"
            await pilot.press("ctrl+s")
            assert isinstance(pilot.app.screen, JobForm)  # agent and session are missing
            form.query_one("#agent", Input).value = "codex"
            form.query_one("#agent_session", Input).value = "tmux:new"
            form.query_one("#timeout_sec", Input).value = "10m"
            await pilot.press("ctrl+s")
            await until(pilot, lambda: bool(pilot.app.desk.board.rows))
            (job_id,) = pilot.app.desk.board.rows
            with open_registry(path) as registry:
                job = registry.get(job_id)
            assert (job.prompt, job.timeout_sec) == ("Write\nboth lines", 600)
            shown = "mam register --prompt-file=- --agent=codex --agent-session=tmux:new"
            assert pilot.app.desk.deeds[-1].command == f"{shown} --timeout=10m"
            await until(pilot, lambda: Preferences.load().last_job.get("agent") == "codex")

    async def test_a_pending_job_is_changed(self, path: str) -> None:
        with open_registry(path) as registry:
            job_id = add(registry)
            async with console(path) as pilot:
                await pilot.press("E")
                await until(pilot, lambda: isinstance(pilot.app.screen, JobForm))
                pilot.app.screen.query_one("#priority", Input).value = "7"
                await pilot.press("ctrl+s")
                await until(pilot, lambda: registry.get(job_id).priority == 7)

    async def test_what_is_shown_is_exported_and_an_id_is_copied(
        self, path: str, tmp_path: Path
    ) -> None:
        with open_registry(path) as registry:
            kept = add(registry, "=apples")
            add(registry, "pears")
            async with console(path) as pilot:
                app = pilot.app
                await pilot.press("slash", *"apples", "enter", "y")
                assert app.clipboard == kept
                await pilot.press("e")
                await until(pilot, lambda: isinstance(app.screen, LineForm))
                app.screen.query_one(Input).value = str(tmp_path / "out.csv")
                await pilot.press("enter")
                await until(pilot, lambda: bool(app.desk.deeds))
                _, row = (tmp_path / "out.csv").read_text().splitlines()
                assert row.startswith(f"{kept},pending,")
                assert row.endswith(",'=apples")
                assert app.desk.deeds[-1].command.startswith(f"mam export {kept} --output ")

    async def test_the_filter_narrows_while_it_is_typed_and_escape_takes_it_back(
        self, path: str
    ) -> None:
        with open_registry(path) as registry:
            add(registry, "apples")
            add(registry, "pears")
            async with console(path) as pilot:
                board = pilot.app.desk.board
                await pilot.press("slash", *"pear")
                await until(pilot, lambda: len(board) == 1)
                await pilot.press("enter")
                assert not pilot.app.screen.query_one(FilterLine).has_class("-open")
                assert len(board) == 1
                await pilot.press("escape")
                await until(pilot, lambda: len(board) == 2)

    async def test_commands_do_what_keys_do(self, path: str) -> None:
        with open_registry(path) as registry:
            add(registry, "apples")
            async with console(path) as pilot:
                app = pilot.app
                for line in ("sort -age", "columns state,id,prompt", "filter nothing-fits"):
                    await pilot.press("colon")
                    for letter in line:
                        await pilot.press("space" if letter == " " else letter)
                    await pilot.press("enter")
                    await pilot.pause()
                assert app.desk.board.order == ("age", True)
                assert list(app.board.table.headings) == ["state", "id", "prompt"]
                await until(pilot, lambda: len(app.desk.board) == 0)

    async def test_every_screen_has_its_keys_on_a_page(self, path: str) -> None:
        with open_registry(path) as registry:
            add(registry)
            async with console(path) as pilot:
                await pilot.press("question_mark")
                await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
                await pilot.press("escape", "2")
                await until(pilot, lambda: isinstance(pilot.app.screen, SessionsScreen))
                await pilot.press("question_mark")
                await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
                await pilot.press("escape", "1", "enter")
                await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen))
                await pilot.press("question_mark")
                await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
                await pilot.press("escape", "escape", "at")
                await until(pilot, lambda: isinstance(pilot.app.screen, DeedsScreen))
                await pilot.press("escape")
                assert isinstance(pilot.app.screen, BoardScreen)


class TestWhatIsKept:
    async def test_order_columns_and_theme_are_there_the_next_time(self, path: str) -> None:
        with open_registry(path) as registry:
            add(registry)
        chosen = Preferences(columns=("id", "state"), sort="age", reverse=True, theme="nord")
        async with console(path, kept=chosen) as pilot:
            app = pilot.app
            assert app.theme == "nord"
            assert app.desk.board.order == ("age", True)
            await until(pilot, lambda: list(app.board.table.headings) == ["id", "state"])

    async def test_a_theme_that_is_chosen_anywhere_is_kept(self, path: str) -> None:
        """The palette sets it without asking us."""
        async with console(path, kept=Preferences(hint_seen=True)) as pilot:
            assert Preferences.load().theme == ""  # what the terminal suggests is no choice
            pilot.app.theme = "nord"
            await until(pilot, lambda: Preferences.load().theme == "nord")

    async def test_a_first_run_gives_one_hint_and_no_key_waits_for_it(self, path: str) -> None:
        async with console(path, kept=Preferences()) as pilot:
            await until(pilot, lambda: Preferences.load().hint_seen)
            await pilot.press("2")
            await until(pilot, lambda: isinstance(pilot.app.screen, SessionsScreen))

    async def test_an_odd_choice_is_no_harm(self, path: str) -> None:
        chosen = Preferences(columns=("nonsense",), sort="nonsense", theme="nonsense")
        async with console(path, kept=chosen, view="nonsense") as pilot:
            assert isinstance(pilot.app.screen, BoardScreen)
