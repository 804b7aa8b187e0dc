"""The history: every job that ever was, who did what, and two attempts beside each other."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.replay import chronicle
from mam_tui.history import reading as history_reading
from mam_tui.history.reading import HistoryReader
from mam_tui.screens.compare import CompareScreen
from mam_tui.screens.history import HistoryScreen
from mam_tui.screens.job import JobScreen
from mam_tui.widgets import paged_table
from tests.console.at_rest import is_asleep
from tests.console.detail_story import HOSTILE, desk_on, output_of, two_attempts
from tests.console.staging import Opened, opened
from tests.support.clock import FakeClock
from tests.support.jobs import WORKER, add, running
from tests.support.patience import eventually

_WINDOW = 60


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def ended(registry: Registry, clock: FakeClock, prompt: str, status: Status) -> str:
    """A job that was tried once."""
    job_id = running(registry, prompt=prompt, group="night", lease=WORKER).job_id
    output_of(registry, job_id, 1).write_bytes(b"the same line\nonly " + prompt.encode() + b"\n")
    clock.pass_time(65)
    reason = Reason.EXIT if status is Status.ERROR else None
    registry.finish(job_id, status, attempt=1, reason=reason)
    return job_id


def gone(registry: Registry, clock: FakeClock, prompt: str = "count the birds") -> str:
    job_id = ended(registry, clock, prompt, Status.ERROR)
    registry.archive([job_id])
    clock.pass_time(10)
    return job_id


async def looked_at(console: Opened) -> HistoryScreen:
    """The view, when all of it was read."""
    await console.press("7")
    view: HistoryScreen = await console.until_on(HistoryScreen)
    await console.until(lambda: view.reader.is_idle, "the log was read")
    await console.pilot.pause()
    return view


async def until_asleep(console: Opened, view: HistoryScreen) -> None:
    """A look that was under way is over, and what it found is shown."""
    await console.until(lambda: is_asleep(view.reader), "the last look is over")
    await console.pilot.pause()


def line_with(console: Opened, words: str) -> str:
    return next((line for line in console.text().split("\n") if words in line), "")


async def test_a_job_whose_record_is_gone_is_there_and_can_be_opened(
    registry: Registry, clock: FakeClock, tmp_path: Path, workdir: Path
) -> None:
    lost = gone(registry, clock)
    here = two_attempts(registry, clock, workdir)
    async with opened(str(tmp_path / "jobs"), (180, 24)) as console:
        view = await looked_at(console)
        first, second = view.jobs.row_at(0), view.jobs.row_at(1)
        rows = [row.entry.job_id for row in (first, second) if row is not None]
        assert rows == [here, lost]  # the newest first
        assert "history 2 jobs" in console.top()
        assert "◌ cleaned" in line_with(console, lost)
        assert "cleaned" not in line_with(console, here)
        for words in ("✖ error", "shell", "night", "1m05", "count the birds", "exit"):
            assert words in line_with(console, lost)
        for words in ("▶ running", "1.5k", "$0.25"):
            assert words in line_with(console, here)
        assert console.desk.board.cursor == here  # the board's cursor goes along
        await console.press("j", "enter")
        await console.until_on(JobScreen)
        await console.until_seen("its record is gone or cannot be read", "✖ error")
        for words in (
            "no event of this job",
            "no screen shows it any more",
            "as it was registered, from the audit log",
            "what is left is in timeline",
            "only count the birds",
            "nothing was changed",
            "what is left is in timeline",
        ):
            await console.press("right_square_bracket")
            await console.until_seen(words)
        await console.press("escape")
        await console.until_on(HistoryScreen)
        assert view.job_id == lost
        await console.press("m")  # nobody is talked to who is not seen here
        await console.until_told("its record is gone")


async def test_a_pending_job_stands_there_as_on_the_board(
    registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    first = ended(registry, clock, "count the birds", Status.ERROR)
    held = add(registry, "tell about the birds", after=[first])
    free = add(registry, "count the trees")
    async with opened(str(tmp_path / "jobs"), (180, 24)) as console:
        await looked_at(console)
        await console.until(lambda: "⊘ blocked" in line_with(console, held), "it is blocked")
        assert "queued" in line_with(console, free)
        assert "1 blocked" in console.top()
        registry.set_status(first, Status.COMPLETED)
        await console.until(lambda: "queued" in line_with(console, held), "nothing holds it")


async def test_what_is_typed_is_searched_for_and_the_newest_question_wins(
    registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    birds = gone(registry, clock)
    stars = ended(registry, clock, "count the stars", Status.COMPLETED)
    async with opened(str(tmp_path / "jobs")) as console:
        view = await looked_at(console)
        await console.press("slash", *"bird")
        await console.until_seen("/bird", "showing 1 of 2")
        assert (birds in console.text(), stars in console.text()) == (True, False)
        await console.press(*"zzz")
        await console.until_seen("none of 2 jobs has 'birdzzz' in it")
        await console.press("escape", "escape")
        await console.until_seen(birds, stars)
        await console.press("slash", *"COMPLETED", "enter")  # entered before the pause is over
        await console.until(lambda: view.jobs.rows == 1, "one is left")
        assert view.table.has_focus
        await console.press("escape")
        await console.until(lambda: view.jobs.rows == 2, "all are shown again")
        await console.press("escape")
        await console.until(lambda: console.app.screen is console.app.board, "back on the board")


async def test_the_log_of_acts_says_who_did_what_and_leads_to_the_job(
    registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    job_id = gone(registry, clock)
    other = add(registry, "count the fish")
    async with opened(str(tmp_path / "jobs")) as console:
        view = await looked_at(console)
        await console.press("o")
        await console.until_seen("history 3 acts", "[acts]", "clean ", "register")
        acts = [act for line in range(3) if (act := view.table.row_at(line)) is not None]
        assert [(act.verb, act.job_id) for act in acts] == [
            *(("register", other), ("clean", job_id), ("register", job_id)),
        ]
        assert all(act.by and act.by in console.text() for act in acts)
        await console.press("slash", *"clean", "enter")
        await console.until_seen("showing 1 of 3")
        await console.press("space", "equals_sign")
        await console.until_told("jobs can be compared, and acts cannot")
        await console.press("enter")
        await console.until_on(JobScreen)
        await console.until_seen(job_id, "its record is gone")


async def test_two_attempts_of_one_job_beside_each_other(
    registry: Registry, clock: FakeClock, tmp_path: Path, workdir: Path
) -> None:
    job_id = two_attempts(registry, clock, workdir)
    async with opened(str(tmp_path / "jobs")) as console:
        await looked_at(console)
        await console.press("equals_sign")
        screen: CompareScreen = await console.until_on(CompareScreen)
        await console.until_seen(f"{job_id} attempt 1 of 2", f"{job_id} attempt 2 of 2", "≠")
        outcome = line_with(console, "✖ error")
        assert "≠ outcome    ▶ running" in outcome
        await console.press("tab")
        await console.until_seen("agent ended", "May I write stars.txt?")
        assert not {"≠", "▸"} & set(line_with(console, "claimed"))
        await console.press("tab")
        await console.until_seen("first try", "≠ second try", "▸ still green")
        await console.press("tab")
        await console.until_seen("nothing is known of attempt 1", "nothing is known of attempt 2")
        await console.press("tab", "less_than_sign")
        await console.until_seen(f"▸ {job_id} attempt 1 of 2")
        await console.until(lambda: not screen.is_waiting, "it was read")
        await console.until_seen("exit code")
        assert "≠" not in console.text()  # it is the same attempt twice
        await console.pilot.resize_terminal(60, 20)
        await console.press("full_stop")
        await console.until_seen("◂ outcome    ▶ running", "▸ outcome    ✖ error")
        await console.pilot.resize_terminal(20, 5)
        await console.press("tab", "l", "j", "question_mark", "escape", "escape")
        await console.until_on(HistoryScreen)


async def test_two_marked_jobs_are_compared_and_what_cannot_be_is_said(
    registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    add(registry, "never tried", agent="none", agent_session="nowhere")
    clock.pass_time(1)
    birds, stars = gone(registry, clock), ended(registry, clock, "stars", Status.COMPLETED)
    async with opened(str(tmp_path / "jobs")) as console:
        view = await looked_at(console)
        await console.press("equals_sign")
        await console.until_told("it has not been tried twice: mark two jobs")
        await console.press("space", "space")
        await console.until_seen("2 marked")
        assert list(view.jobs.marks) == [stars, birds]
        await console.press("equals_sign")
        await console.until_on(CompareScreen)
        await console.until_seen(f"◂ {stars} attempt 1", f"▸ {birds} attempt 1", "✔ completed")
        await console.press("tab", "tab")
        await console.until_seen("the same line", "only stars", "≠ only count the birds")
        await console.press("q", "space", "equals_sign")
        await console.until_told("mark one or two jobs")
        await console.press("ctrl+backslash")
        assert not view.jobs.marks


async def test_of_many_only_those_around_the_eye_are_held(
    registry: Registry, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, value in (
        (history_reading, "WINDOW", _WINDOW),
        (paged_table, "WINDOW", _WINDOW),
        (paged_table, "_MARGIN", 10),
        (history_reading, "_PACE_SEC", 0.05),
    ):
        monkeypatch.setattr(module, name, value)
    wanted = {"agent": "codex", "agent_session": "c"}
    registry.register([{"prompt": f"part {n}", **wanted} for n in range(300)])
    async with opened(str(tmp_path / "jobs"), (100, 20)) as console:
        view = await looked_at(console)
        await console.until_seen("history 300 jobs")
        for key, line in (("G", 299), ("pageup", 284), ("g", 0), ("pagedown", 15)):
            await console.press(key)
            await console.until(lambda: view.table.row is not None, f"{key}: the row has come")
            assert view.table.cursor_line == line
            assert len(view.table._known) <= _WINDOW
            await console.until_seen(view.job_id)
        here = view.job_id
        clock.pass_time(5)
        add(registry, "the newest")
        await console.until_seen("history 301 jobs")
        assert (view.job_id, view.table.cursor_line) == (here, 16)  # it stays on its job
        await console.press("p")
        await until_asleep(console, view)
        add(registry, "not while the picture is held")
        looks = view.reader.looks
        await console.pilot.pause(0.3)
        assert view.reader.looks == looks
        assert "history 301 jobs" in console.top()
        await console.press("p", "g")
        await console.until_seen("history 302 jobs")
        await console.press("1")
        await console.until(lambda: console.app.screen is console.app.board, "it was left")
        await until_asleep(console, view)
        looks = view.reader.looks
        await console.pilot.pause(0.3)
        assert view.reader.looks == looks  # nobody sees it: nothing is read


def test_a_first_reading_that_takes_long_makes_nobody_wait_for_the_next(
    registry: Registry, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A minute for a hundred thousand jobs would have meant twenty minutes without news."""
    gone(registry, clock)
    monkeypatch.setattr(history_reading, "_SHARE", 1e6)  # each look counts as one of hours
    monkeypatch.setattr(history_reading, "_LONGEST_SEC", 0.05)
    reader = HistoryReader(desk_on(tmp_path, clock), lambda _: None)
    try:
        reader.watch()
        eventually(lambda: reader.looks >= 3, "it looks again and again")
    finally:
        reader.close()
        eventually(lambda: not (reader._thread and reader._thread.is_alive()), "it is over")


def make_a_file_of(folder: Path) -> None:
    """Nothing can be written into it any more, also by root."""
    shutil.rmtree(folder)
    folder.write_text("no folder")


async def test_a_folder_that_cannot_be_written_and_another_console_at_it(
    registry: Registry, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_reading, "_PACE_SEC", 0.05)
    monkeypatch.setattr(chronicle, "_BUSY_SEC", 0.05)
    job_id = gone(registry, clock)
    index = Path(registry.store.audit.path, chronicle.FOLDER)
    async with opened(str(tmp_path / "jobs"), read_only=True) as console:
        await looked_at(console)
        await console.until_seen(job_id, "READ-ONLY")
        other = sqlite3.connect(
            index / f"{registry.store.audit.kept_as}{chronicle.ENDING}", isolation_level=None
        )
        try:
            other.execute("BEGIN IMMEDIATE")
            await console.until_seen("another process is reading the audit log", job_id)
            other.execute("ROLLBACK")
        finally:
            other.close()
        await console.until(lambda: "another process" not in console.text(), "it goes on")
    make_a_file_of(index)
    async with opened(str(tmp_path / "jobs")) as console:
        await looked_at(console)
        await console.until_seen(job_id, "the audit folder cannot be written")


async def test_nothing_and_nasty_things(
    registry: Registry, clock: FakeClock, tmp_path: Path, workdir: Path
) -> None:
    async with opened(str(tmp_path / "jobs"), (80, 20), ascii_only=True) as console:
        view = await looked_at(console)
        await console.until_seen("nothing was ever registered here")
        await console.press("enter", "space", "equals_sign", "o", "G")
        await console.until_seen("nobody has done anything here yet")
        await console.press("o")
        job_id = two_attempts(registry, clock, workdir, prompt=HOSTILE)
        output_of(registry, job_id, 1).write_bytes(HOSTILE.encode() * 500)
        view.reader.soon()
        await console.until_seen(job_id, "running")
        for keys in ("equals_sign", "tab", "tab", "l", "escape", "slash", "\x07", "escape", "o"):
            await console.press(keys)
            await console.pilot.pause(0.05)
            shown = console.text()
            assert not any(sign in shown for sign in "\x1b\x07\x9b\u202e\u200b\r\t")
            assert not {"▌", "≠"} & set(shown)
        for size in ((20, 5), (200, 50)):
            await console.pilot.resize_terminal(*size)
            await console.press("o", "G", "g")
