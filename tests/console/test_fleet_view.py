"""The fleet: many screens at once, by few looks and few lines, and one word for all marked."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from mam_core.agents.states import ShownState
from mam_core.operations.panes import Panes
from mam_core.operations.sessions import Seen, SessionState
from mam_core.operations.shown import Shown
from mam_core.safe_text import safe
from mam_tui.panes import PaneWatch
from mam_tui.screens import talk
from mam_tui.screens.confirm import Confirm
from mam_tui.screens.forms.say_form import SayForm
from mam_tui.screens.job import JobScreen
from mam_tui.widgets.detail.sgr import parse
from tests.console.detail_story import HOSTILE
from tests.console.fleet_story import Screens, fleet, rows, session
from tests.console.session_story import looking, talker
from tests.console.test_sessions_view import processes_started
from tests.support.patience import eventually
from tests.support.sessions import SessionShop


class TestWhatIsSeen:
    async def test_a_page_of_screens_with_what_each_waits_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asking = Shown(ShownState.WAITING, "May I write stars.txt?", "stream", "turn", None)
        gone = session(2)._replace(seen=Seen("s02", SessionState.GONE))
        crew = [session(1, "job0001")._replace(shown=asking), gone, *rows(12)[2:]]
        async with fleet(tmp_path, monkeypatch, crew) as stage:
            await stage.until("◆ waiting  s01  job0001  May I", "s01 line c", "s09 line c")
            await stage.until("✗ gone  s02", "it is gone: tmux shows nothing", "page 1/2")
            press = stage.console.press
            await press("plus")
            await stage.until("s12 line c")
            assert "page" not in stage.console.text()
            await press("underscore", "underscore", "underscore")
            await stage.until("page 1/12", "s01 line a")
            assert "s02" not in stage.console.text()
            await press("right", "j", "l", "underscore")
            await stage.until("page 4/12", "s04 line c", "» ▶ running  s04")
            await press("f")
            await stage.until("fleet > group odd", "page 1/6")
            await press("slash", *"job0003", "enter")
            await stage.until("fleet > by filter", "/job0003", "» ▶ running  s03")
            await press("slash", "escape", "escape")
            await stage.until("all sessions")

    async def test_the_same_job_is_found_on_the_board_and_back(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with fleet(tmp_path, monkeypatch, rows(5)) as stage:
            await stage.until("s05 line c")
            press, console = stage.console.press, stage.console
            await press("G", "enter")
            assert console.is_on(JobScreen)
            assert console.cursor == "job0005"
            await press("K", "escape")
            assert (console.cursor, stage.focused) == ("job0004", "s04")
            await press("escape")
            assert console.is_on(type(console.app.board))
            await press("k", "3")
            await stage.until("» ▶ running  s03")
            await press("2")
            await stage.until("sessions 5")
            assert console.app.desk.sessions.line == 2

    async def test_any_size_any_terminal_any_text(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        crew = [*rows(5), session(6, note=HOSTILE)]
        async with fleet(tmp_path, monkeypatch, crew, ascii_only=True) as stage:
            words = HOSTILE.replace("\n", "").replace("\r", "")
            stage.screens.texts["%1"] = [words, "\x1b]0;title\x07\x1b[2J\x1b[31mred", "日本語" * 90]
            await stage.until("[@click=app.quit]", "red")
            text = stage.console.text()
            assert safe(text, keep="\n") == text
            for size in ((20, 5), (1, 1), (200, 50), (60, 20)):
                await stage.console.pilot.resize_terminal(*size)
                await stage.console.press("plus", "right", "underscore")
            await stage.until("s05 line c", "> > s05 running")


class TestWhatItCosts:
    async def test_lines_parsed_and_drawn_are_lines_that_changed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Sixteen screens, all of them looked at again; three lines of two of them are new."""
        async with fleet(tmp_path, monkeypatch, rows(16)) as stage:
            await stage.console.press("plus")
            await stage.until(*(f"s{number:02} line c" for number in range(1, 17)))
            await stage.console.pilot.pause()  # and all of it is drawn
            parsed, drawn = parse.cache_info().misses, stage.view.grid.lines_drawn
            stage.screens.texts["%7"][1] = "one is new"
            stage.screens.texts["%9"][1:] = ["two are new", "\x1b[1mand bold"]
            await stage.until("one is new", "and bold")
            assert parse.cache_info().misses - parsed == 3
            assert stage.view.grid.lines_drawn - drawn == 3
            assert max(map(len, stage.screens.looks)) == 16  # in one round trip

    async def test_nothing_while_it_is_not_seen_or_held(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with fleet(tmp_path, monkeypatch, rows(2)) as stage:
            await stage.until("s02 line c")
            for away, back in (("1", "3"), ("p", "p"), ("question_mark", "escape")):
                await stage.console.press(away)
                looks = -1
                while looks != len(stage.screens.looks):  # the last one may be on its way
                    looks = len(stage.screens.looks)
                    await stage.console.pilot.pause(0.3)
                await stage.console.press(back)
                await stage.until_looked(looks + 1)

    def test_the_focused_one_is_looked_at_five_times_as_often(self) -> None:
        screens = Screens()
        screens.texts = {"%1": ["a"], "%2": ["b"], "%3": ["c"]}
        watch = PaneWatch(cast(Panes, screens), lambda news: None, pace_sec=0.001)
        try:
            watch.look_at(["%1"], ["%2", "%3"])
            eventually(lambda: len(screens.looks) > 20, "many looks")
            watch.look_at(["%2"], ["%1", "%3"])  # all are known: nothing more is asked for that
        finally:
            watch.close()
        seen = Counter(one for look in screens.looks[:20] for one in look)
        assert seen == {"%1": 20, "%2": 4, "%3": 4}


class TestWhatIsDone:
    async def test_real_sessions_are_seen_and_the_marked_ones_are_told_something(
        self, shop: SessionShop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No process is started for a look; count and sample are shown before anything is said."""
        monkeypatch.setattr(talk, "RECEIPT_SEC", 0.5)  # they wait for an answer, and take nothing
        agent = talker(shop)
        for name in ("one", "two", "free"):
            shop.spawn(name, agent)
        ids = [shop.add(agent, "permission", agent_session=f"tmux:{n}") for n in ("one", "two")]
        async with looking(shop) as sight:
            await sight.until(lambda: list(sight.states().values()).count("waiting") == 2, "both")
            await sight.pilot.press("3")
            await sight.until_seen("◆ waiting  one", "○ free  free", "this one speaks")
            view: Any = sight.app.screen
            started, looks = processes_started(), view.watch_panes.rounds.looks
            await sight.until(lambda: view.watch_panes.rounds.looks > looks + 5, "many looks")
            assert started == processes_started()
            await sight.pilot.press("b")
            await sight.until_told("mark some first: space")
            await sight.pilot.press("ctrl+a", "b")
            await sight.until(lambda: isinstance(sight.app.screen, SayForm), "the form")
            await sight.pilot.press(*"stop", "enter")
            await sight.until(lambda: isinstance(sight.app.screen, Confirm), "the question")
            await sight.until_seen(
                "Say this to the agents of 2 sessions?", "> stop", ids[0], "there: 1 of the marked"
            )
            await sight.pilot.press("b", "enter")
            assert not sight.desk.deeds
            await sight.pilot.press("b")
            await sight.until(lambda: isinstance(sight.app.screen, SayForm), "the form again")
            await sight.pilot.press(*"stop", "enter")
            await sight.until(lambda: isinstance(sight.app.screen, Confirm), "and the question")
            await sight.pilot.press("y")
            deed = await sight.until_deed()
            assert deed.command == f"mam broadcast --job {ids[0]} --job {ids[1]} stop"
            assert [words.partition(":")[0] for words in deed.sentences] == ["one", "two"]
            for job_id in ids:
                assert [message.text for message in shop.job(job_id).messages] == ["stop"]

    async def test_a_console_that_only_looks_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with fleet(tmp_path, monkeypatch, rows(2)) as stage:
            await stage.until("s02 line c")
            stage.console.app.desk.read_only = True
            await stage.console.press("space", "b", "m", "A", "a")
            assert stage.console.app.screen is stage.view
            assert stage.view.lacks("broadcast") == "this console is read-only"
            assert "1 marked" in stage.console.text()

    async def test_without_sessions_or_tmux_it_says_what_to_do(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with fleet(tmp_path, monkeypatch, [], (60, 20)) as stage:
            await stage.until("there are no agent sessions yet", "s  starts one")
            await stage.console.press("a", "m", "enter", "space", "b", "j", "G", "f", "plus")
            assert stage.console.app.screen is stage.view
        async with fleet(tmp_path, monkeypatch, [], (60, 20), has_tmux=False) as stage:
            await stage.until("tmux is not here", "apt install tmux")
