"""What is taken along: jobs as a table, as records or as pages, and the screen as a picture."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from mam_core.operations.listing import listing, query
from mam_core.operations.sessions import Seen, SessionState
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_tui.screens.forms.line_form import LineForm
from mam_tui.screens.help import HelpScreen
from mam_tui.screens.job import JobScreen
from mam_tui.screens.sessions import SessionsScreen
from mam_tui.sessions.rows import SessionRow
from mam_tui.sessions.watch import SessionLook, SessionWatch
from mam_tui.widgets.gantt_chart import GanttChart
from tests.console.board_story import Told, told
from tests.console.detail_story import HOSTILE
from tests.console.staging import Opened, opened


@pytest.fixture
def ids(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Three jobs; the console works in the folder beside them."""
    monkeypatch.chdir(tmp_path)
    prompts = ["Count the stars", "=1+1", HOSTILE]
    wanted = [{"prompt": one, "agent": "codex", "agent_session": "tmux:a"} for one in prompts]
    return [made.job_id for made in registry.register(wanted)]


@asynccontextmanager
async def board(registry: Registry, folder: Path, **more: Any) -> AsyncIterator[Told]:
    async with told(folder, listing(registry, query()).jobs, (100, 24), **more) as console:
        yield console


async def named(console: Opened, path: str = "") -> Any:
    """The file's name is asked for, and given; the deed that comes of it."""
    form = console.app.screen
    assert isinstance(form, LineForm)
    if path:
        form.query_one(Input).value = path
    before = len(console.app.desk.deeds)
    await console.press("enter")
    while len(console.app.desk.deeds) == before:
        await console.pilot.pause(0.02)
    return console.app.desk.deeds[-1]


def text_of(name: str) -> str:
    return Path(name).read_text()


def only(pattern: str) -> Path:
    """The one file of the folder that we are in that is named like this."""
    (found,) = Path.cwd().glob(pattern)
    return found


async def until_told(console: Told, words: str) -> None:
    await console.until_told(words)


async def test_what_is_shown_becomes_a_table_or_records(
    registry: Registry, ids: list[str], tmp_path: Path
) -> None:
    """All fields that people read, whatever columns are shown; where it is, is said in full."""
    async with board(registry, tmp_path) as console:
        await console.press("e")
        await console.pilot.pause()
        assert "Write 3 jobs to a new file: .csv a table" in console.text()
        deed = await named(console)
        table = only("jobs-*.csv")
        assert deed.sentences == (f"3 jobs are in {table}",)
        assert deed.command == f"mam export {' '.join(ids)} --output {table.name}"
        assert len(table.read_text().splitlines()) >= 4
        assert stat.S_IMODE(table.stat().st_mode) == 0o600
        await console.press("slash", *"stars", "enter", "e")
        deed = await named(console, "some.json")
        assert [one["job_id"] for one in json.loads(text_of("some.json"))] == [ids[0]]
        await console.press("e")
        deed = await named(console, "some.json")
        assert (deed.ok, "is there already" in deed.sentences[0]) == (False, True)
        # What went wrong stays until it is put away, wherever one goes meanwhile.
        await console.until_seen("name another file", "esc puts this away")
        await console.press("2")
        await console.until_seen("name another file")
        await console.press("escape")
        assert console.is_on(SessionsScreen)
        assert "name another file" not in console.text()
        await console.press("escape")
        assert "name another file" not in console.text()


async def test_marked_jobs_and_the_opened_one_become_pages(
    registry: Registry, ids: list[str], tmp_path: Path
) -> None:
    async with board(registry, tmp_path) as console:
        await console.press("g", "space", "space", "e")
        await named(console, "two.md")
        pages = text_of("two.md")
        assert [pages.count(f"# Job {job_id}\n") for job_id in ids] == [1, 1, 0]
        await console.press("ctrl+backslash", "G", "enter")
        assert console.is_on(JobScreen)
        await console.press("e")
        deed = await named(console)
        page = only(f"{ids[2]}-*.md")
        assert deed.sentences == (f"1 job is in {page}",)
        assert "\x1b" not in page.read_text()


def bars_of(console: Opened) -> list[str]:
    return console.app.screen.query_one(GanttChart).jobs()


async def test_every_list_can_be_taken_along(
    registry: Registry, ids: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What needs a person, what ran, what comes after what, sessions, and what is no more."""
    look = SessionLook((SessionRow(Seen("alpha", SessionState.ALIVE, queued=2)),))
    monkeypatch.setattr(SessionWatch, "_look", lambda self: self._deliver(look))
    failed, gone, waits = ids
    registry.edit(waits, {"after": [failed]})
    for job_id in (failed, gone):
        assert registry.claim("tmux:a")
        registry.finish(job_id, Status.ERROR, attempt=1, reason=Reason.EXIT, detail="it left")
    registry.archive([gone])
    async with opened(str(tmp_path / "jobs"), clock=registry.clock.now) as console:
        await console.until(lambda: len(console.desk.needing) == 2, "both needs are known")
        for key, shown, expected in (
            ("4", failed, [failed, waits]),  # which can run only after it is tried again
            ("7", "history 3 jobs", [waits, gone, failed]),
            ("5", "by session", [failed, gone]),
            ("8", "graph 2", [failed, waits]),
        ):
            await console.press(key)
            await console.until_seen(shown, failed)
            if key == "5":  # its jobs are read one after the other
                await console.until(lambda: len(bars_of(console)) == 2, "both are read")
            await console.press("e")
            await console.until_on(LineForm)
            deed = await named(console, f"{key}.json")
            assert deed.ok, deed
            found = {one["job_id"]: one for one in json.loads(text_of(f"{key}.json"))}
            assert sorted(found) == sorted(expected), key
            assert found.get(gone, {"detail": "it left"})["detail"] == "it left"
        await console.press("7", "slash", *"stars", "enter")
        await console.until_seen("showing 1 of 3")
        await console.press("e")
        await console.until_on(LineForm)
        await named(console, "found.csv")
        assert len(text_of("found.csv").splitlines()) == 2
        await console.press("o", "e")
        await console.until_told("jobs can be exported, and acts cannot")
        await console.press("2")
        await console.until_seen("alpha")
        await console.press("e")
        deed = await named(console, "sessions.json")
        assert deed.command == "mam sessions --json"
        (row,) = json.loads(text_of("sessions.json"))
        assert (row["session"], row["state"], row["queued"]) == ("alpha", "free", 2)
        await console.press("6", "e")  # where nothing is listed, that is said
        await console.until_told("e means nothing here: export what is shown (board)")


async def test_the_screen_becomes_a_picture_on_every_view(
    registry: Registry, ids: list[str], tmp_path: Path
) -> None:
    """By name or by date, never over another file, for its owner, and with nothing to fetch."""
    async with board(registry, tmp_path) as console:
        await console.press("colon", *"screenshot", "enter")
        await until_told(console, "the screen is in")
        picture = only("mam-board-*.svg")
        drawn = picture.read_text()
        assert "Count&#160;the&#160;stars" in drawn
        assert ":screenshot" not in drawn.replace("&#160;", "")
        assert not set(drawn) & set("\x1b\x07\u202e")
        assert "url(http" not in drawn
        assert stat.S_IMODE(picture.stat().st_mode) == 0o600
        await console.press("2")
        assert console.is_on(SessionsScreen)
        await console.press("colon", *"screenshot mine", "enter")
        await until_told(console, f"the screen is in {tmp_path / 'mine.svg'}")
        await console.press("1", "colon", *"screenshot mine.svg", "enter")
        await until_told(console, "mine.svg is there already")
        assert "sessions" in text_of("mine.svg")


async def test_the_palette_has_it_where_there_is_no_command_line(
    registry: Registry, ids: list[str], tmp_path: Path
) -> None:
    async with board(registry, tmp_path) as console:
        for keys, kind in ((("g", "enter"), JobScreen), (("question_mark",), HelpScreen)):
            await console.press(*keys)
            assert console.is_on(kind)
            found = list(console.app.get_system_commands(console.app.screen))
            assert [one.help for one in found].count(":screenshot") == 1
        console.app.act("screenshot")
        await until_told(console, "the screen is in")
        picture = only("mam-board-*.svg")
        assert "Keys&#160;that&#160;are&#160;valid" in picture.read_text()


async def test_a_page_about_the_chosen_jobs(
    registry: Registry, ids: list[str], tmp_path: Path
) -> None:
    """``:report`` asks for a name, ``:report FILE`` does not; without a choice it is the day."""
    async with board(registry, tmp_path) as console:
        await console.press("space", ":", *"report", "enter")
        await console.pilot.pause()
        assert "Write a page about 1 job to a new file: .html or .md" in console.text()
        deed = await named(console)
        page = only("*.html")
        assert deed.sentences == (f"a report about 1 job is in {page}",)
        assert deed.command == f"mam report {page.name[:8]} --output {page.name}"
        assert f"<h1>Job {page.name[:8]} " in page.read_text()
        before = len(console.app.desk.deeds)
        await console.press(":", *"report mine.md", "enter")
        while len(console.app.desk.deeds) == before:
            await console.pilot.pause(0.02)
        assert text_of("mine.md").startswith("# Job ")
        await console.press("6", ":", *"report day.html", "enter")
        while len(console.app.desk.deeds) == before + 1:
            await console.pilot.pause(0.02)
        # These jobs are of another day than the console's own clock says.
        (said,) = console.app.desk.deeds[-1].sentences
        assert "nothing happened to any job since" in said
