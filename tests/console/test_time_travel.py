"""The console in the past: what is seen there, that nothing can be done there, and the way back."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.screen import ModalScreen

from mam_core.cli.main import main
from mam_core.clock import fine_stamp
from mam_core.operations.replay import Loading, Past, Progress, loading
from mam_core.operations.replay import replay as replayed
from mam_core.operations.sessions import Seen, SessionState
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.stores.base import Query
from mam_core.wiring import open_registry
from mam_tui.actions import ACTIONS, why_not
from mam_tui.columns import BY_URGENCY, sort_key
from mam_tui.commands import Command
from mam_tui.desk import THE_PAST
from mam_tui.graph.reading import Question
from mam_tui.graph.reading import read as graph_read
from mam_tui.graph.text import Facts
from mam_tui.model import Board, Order
from mam_tui.moments import day_and_time
from mam_tui.screens.job import JobScreen
from mam_tui.screens.sessions import SessionsScreen
from mam_tui.screens.timed import TimedView
from mam_tui.sessions.columns import sort_key as session_key
from mam_tui.sessions.reasons import why_not as session_why_not
from mam_tui.sessions.rows import SessionList, SessionRow
from mam_tui.sessions.watch import SessionLook, SessionWatch
from mam_tui.travel import reading_past
from mam_tui.travel.banner import Banner, Track
from mam_tui.travel.picture import Picture
from mam_tui.travel.reading_past import ReadingPast, Ready
from mam_tui.travel.traveller import SPEEDS, Traveller
from mam_tui.travel.wording import headline, progress, slider
from mam_tui.views import VIEWS
from mam_tui.widgets.gantt_chart import GanttChart
from mam_tui.widgets.session_table import SessionTable
from tests.console.detail_story import desk_on, registry_in, two_attempts
from tests.console.staging import Opened, add, opened
from tests.integration.replay.story import Story
from tests.support.clock import FakeClock
from tests.support.handles import close_later
from tests.support.patience import PATIENCE_SEC, eventually


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """One for all: what a test adds to it lies at its very end."""
    made = Story(tmp_path_factory.mktemp("story"), FakeClock(), seed=7)
    made.play(120)
    made.registry.store.close()
    return made


@pytest.fixture(scope="module")
def past(played: Story) -> Past:
    with played.registry as registry:
        return loading(registry).finish()


@pytest.fixture
def story(played: Story) -> Story:
    """Its registry opens again at its first use, and each test closes it for itself."""
    close_later(played.registry)
    return played


def picture_of(past: Past, at: float) -> Picture:
    board = Board(sort_key, Order(BY_URGENCY))
    return Picture(past, at, board, SessionList(session_key, Order("name")))


def told(capsys: pytest.CaptureFixture[str], path: str, at: float) -> dict[str, Any]:
    """What ``mam replay --at --json`` prints."""
    capsys.readouterr()
    assert main(["replay", "--at", fine_stamp(at), "--json", "--registry-dir", path]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def rows(board: Board) -> dict[str, tuple[str, int, str]]:
    return {
        row.job_id: (row.summary.status, row.summary.attempt, row.word)
        for row in board.rows.values()
        if row.summary is not None
    }


def as_rows(printed: dict[str, Any]) -> dict[str, tuple[str, int, str]]:
    jobs = printed["jobs"]
    assert isinstance(jobs, list)
    return {
        job["job_id"]: (
            job["status"],
            job["attempt"],
            job["status"] if job["shown"]["state"] == "ended" else job["shown"]["state"].split()[0],
        )
        for job in jobs
    }


class TestThePicture:
    def test_is_what_mam_replay_prints(
        self, story: Story, past: Past, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Wherever one comes from, forwards and backwards."""
        picture = picture_of(past, story.sights[0].at)
        dice = random.Random(3)
        for sight in dice.sample(story.sights, 12):
            at = int(sight.at * 1000) / 1000  # as it is printed
            picture.move(at)
            printed = told(capsys, story.path, at)
            assert rows(picture.board) == as_rows(printed)
            assert [
                (row.label, list(row.seen.jobs), row.seen.queued)
                for row in sorted(picture.seen_sessions(), key=lambda row: row.label)
            ] == [(one["label"], one["running"], one["queued"]) for one in printed["sessions"]]

    def test_moved_step_by_step_is_the_one_made_at_once(self, story: Story, past: Past) -> None:
        picture = picture_of(past, story.sights[-1].at)
        for sight in reversed(story.sights):
            picture.move(sight.at)
            anew = picture_of(past, sight.at)
            assert [row.job_id for row in picture.board.view()] == [
                row.job_id for row in anew.board.view()
            ]
            assert +picture.board.counts == +anew.board.counts
            assert {one: row.live for one, row in picture.board.rows.items()} == {
                one: row.live for one, row in anew.board.rows.items()
            }

    def test_a_step_touches_only_what_changed_and_what_waits_for_that(
        self, story: Story, past: Past
    ) -> None:
        traveller = Traveller(past, story.clock.now(), story.clock.now())
        picture = picture_of(past, traveller.at)
        for _ in range(20):
            before = traveller.at
            traveller.step(-1)
            changed = past.between(traveller.at, before)
            touched = picture.move(traveller.at).jobs
            assert touched >= changed
            for job_id in touched - changed:
                summary = picture.board.rows[job_id].summary
                assert summary is not None
                is_due = summary.not_before and traveller.at < summary.not_before <= before
                assert is_due or changed & set(summary.parents.split())


class TestTheTraveller:
    def test_steps_over_every_change_and_back(self, past: Past, story: Story) -> None:
        end = story.clock.now() + 5
        traveller = Traveller(past, end, end)
        seen = []
        while traveller.at > traveller.begin:
            traveller.step(-1)
            seen.append(traveller.at)
        assert len(seen) == len(set(past.line.when))
        for at in reversed(seen[:-1]):
            traveller.step(1)
            assert traveller.at == at
        traveller.step(1)
        assert traveller.at == traveller.last == seen[0]

    def test_stays_within_the_past(self, past: Past, story: Story) -> None:
        traveller = Traveller(past, 0.0, story.clock.now())
        assert (traveller.at, traveller.share) == (traveller.begin, 0.0)
        traveller.go(1e9)
        assert (traveller.at, traveller.share) == (story.clock.now(), 1.0)
        traveller.turn()
        assert not traveller.is_playing  # there is nothing to be played

    def test_plays_at_its_speed_until_the_end(self, past: Past, story: Story) -> None:
        traveller = Traveller(past, 0.0, story.clock.now())
        assert not traveller.pass_time(1.0)
        traveller.turn()
        for speed in SPEEDS:
            before = traveller.at
            assert traveller.pass_time(0.5)
            assert traveller.at - before == pytest.approx(0.5 * speed)
            traveller.change_speed(1)
        before = traveller.at
        traveller.pass_time(3600)  # another program had the terminal
        assert traveller.at - before == pytest.approx(60)
        while traveller.pass_time(1.0):
            pass
        assert (traveller.at, traveller.is_playing) == (traveller.last, False)


class TestTheBanner:
    @pytest.mark.parametrize("width", [5, 20, 36, 60, 80, 120, 200])
    @pytest.mark.parametrize("ascii_only", [False, True])
    def test_says_past_at_any_width(
        self, past: Past, story: Story, width: int, ascii_only: bool
    ) -> None:
        end = story.clock.now()
        traveller = Traveller(past, (past.line.when[0] + end) / 2, end)
        line = headline(traveller, end, width, "esc", ascii_only=ascii_only)
        place = slider(traveller, width, ascii_only=ascii_only)
        reading = progress(0.43, width, "esc", ascii_only=ascii_only)
        assert len(line) == len(place.before + place.mark + place.after) == len(reading) == width
        assert "PAST" in line or width < 6
        assert "esc" in line or width < 20
        if ascii_only:
            assert (line + place.before + place.after + place.mark + reading).isascii()

    def test_the_slider_shows_where_much_happened(self, past: Past, story: Story) -> None:
        traveller = Traveller(past, 0.0, story.clock.now())
        place = slider(traveller, 40, ascii_only=False)
        line = place.mark + place.after
        crowds = traveller.crowds(40)
        assert sum(crowds) == past.changes
        assert line[crowds.index(max(crowds))] in "█◆"
        assert all(
            (sign == "─") == (not crowd)
            for sign, crowd in zip(line, crowds, strict=True)
            if sign != "◆"
        )


@asynccontextmanager
async def travelling(
    story: Story, size: tuple[int, int] = (120, 34), **more: Any
) -> AsyncIterator[Opened]:
    async with opened(story.path, size, **more) as seen:
        await seen.press("t")
        await seen.until_seen("PAST")
        yield seen


def go_to(seen: Opened, at: float) -> None:
    seen.app.everywhere.obey(Command("at", fine_stamp(at)))


class TestOnTheBoard:
    async def test_every_step_shows_the_board_as_it_was(self, story: Story) -> None:
        async with travelling(story) as seen:
            registry = story.registry
            assert seen.desk.board.rows.keys() == seen.desk.live.rows.keys()
            for key in ("left", "h", "left", "shift+left", "right", "ctrl+left", "l", "home"):
                await seen.press(key)
                at = seen.desk.now()
                then = {job.job_id: job for job in replayed(registry, at).jobs}
                assert seen.desk.board.rows.keys() == then.keys()
                await seen.until_seen(f"PAST  {day_and_time(at)}")
            traveller = seen.app.travel.traveller
            assert traveller is not None
            assert traveller.at == traveller.begin
            await seen.press("end")
            assert traveller.at == traveller.last

    async def test_now_is_found_again_complete_and_as_it_was_left(self, story: Story) -> None:
        async with opened(story.path) as seen:
            seen.app.board.obey(Command("sort", "-id"))
            seen.app.board.obey(Command("filter", "-night"))
            await seen.press("down", "down")
            before = [row.job_id for row in seen.desk.board.view()], seen.desk.board.cursor
            await seen.press("t")
            await seen.until_seen("PAST")
            assert seen.desk.board.cursor == before[1]
            await seen.press("home", "S", "slash", "x", "enter", "down")
            new = add(story.registry, "Made while nobody looked", group=None)
            await seen.until(lambda: seen.app.bridge.waiting >= 1, "it was heard")
            assert new not in seen.desk.live.rows
            await seen.press("escape")
            await seen.until(lambda: not seen.app.screen.query(Banner), "the bar is gone")
            await seen.until(lambda: "PAST" not in seen.text(), "and not seen any more")
            await seen.until(lambda: new in seen.desk.board.rows, "the new job is there")
            shown = [row.job_id for row in seen.desk.board.view()]
            assert sorted({*shown} - {new}) == sorted(before[0])
            assert seen.desk.board.cursor == before[1]
            assert (seen.desk.board.filter.text, seen.desk.board.order) == (
                "-night",
                Order("id", reverse=True),
            )

    async def test_it_plays_stops_and_changes_its_speed(self, story: Story) -> None:
        async with travelling(story) as seen:
            traveller = seen.app.travel.traveller
            assert traveller is not None
            await seen.press("home", "greater_than_sign", "greater_than_sign", "space")
            await seen.until_seen("playing 5x")
            await seen.until(lambda: traveller.at > traveller.begin, "time goes on")
            await seen.press("space")
            at = traveller.at
            await seen.until_seen("stopped 5x")
            await seen.press("less_than_sign")
            await seen.until_seen("stopped 2x")
            assert traveller.at == at
            assert not seen.desk.board.marks  # space marks nothing here

    async def test_a_moment_by_its_name_and_by_a_click(self, story: Story) -> None:
        async with opened(story.path) as seen:
            seen.app.board.obey(Command("at", "yesterday"))
            await seen.until_told("is no moment")
            at = story.sights[50].at
            go_to(seen, at)
            await seen.until_seen("PAST")
            assert seen.desk.now() == pytest.approx(at, abs=0.001)
            traveller = seen.app.travel.traveller
            assert traveller is not None
            await seen.command("at -1d")
            await seen.until(lambda: traveller.at > story.clock.now(), "the past goes on")
            # Until then the key is the typed line's.
            await seen.until(lambda: seen.app.travel.hears("last-moment"), "the line is closed")
            await seen.press("end")
            await seen.until(lambda: traveller.at == traveller.last, "its last change")
            await seen.until(lambda: seen.app.screen.query_one(Track).size.width > 30, "a slider")
            await seen.pilot.click(Track, offset=(30, 0))
            # A click is a message to the slider, and its answer another one.
            await seen.until(lambda: traveller.at < traveller.last, "it was clicked")
            assert traveller.begin < traveller.at
            seen.app.board.obey(Command("now"))
            assert seen.desk.past is None

    async def test_an_empty_place_has_no_past(self, tmp_path: Path) -> None:
        async with opened(str(tmp_path / "jobs")) as seen:
            await seen.press("t")
            await seen.until_told("nothing was ever logged here")
            assert seen.desk.past is None
            assert not seen.app.screen.query(Banner)

    @pytest.mark.parametrize("size", [(60, 20), (20, 5)])
    async def test_at_every_size(self, story: Story, size: tuple[int, int]) -> None:
        async with travelling(story, size) as seen:
            await seen.press("left", "2", "1", "enter", "left", "q")
            await seen.until_seen("PAST")


class TestNothingCanBeDone:
    async def test_every_act_is_refused_with_the_reason(self, story: Story) -> None:
        async with travelling(story) as seen:
            view = seen.app.board
            acts = [action for action in ACTIONS.values() if action.changes or action.only_now]
            assert {"cancel", "new", "spawn", "undo", "clean", "export", "attach"} <= {
                action.name for action in acts
            }
            for action in acts:
                assert why_not(action, seen.desk) == THE_PAST
                assert session_why_not(action, seen.desk) == THE_PAST
                if action.place in view.PLACES:
                    assert view.lacks(action.name) == THE_PAST
            before = list(story.registry.store.find(Query())[0])
            await seen.press("c", "n", "s", "u", "e", "p")
            await seen.command("bulk x")
            assert not isinstance(seen.app.screen, ModalScreen)
            assert any(THE_PAST in words for words in seen.told())
            await seen.press("2", "x", "s")
            assert isinstance(seen.app.screen, SessionsScreen)
            await seen.press("1", "enter", "c")
            assert isinstance(seen.app.screen, JobScreen)
            assert list(story.registry.store.find(Query())[0]) == before
            assert not seen.desk.deeds

    async def test_nor_by_a_form_that_was_open_before(self, story: Story) -> None:
        """While it is read the console is as usable as ever; nobody is carried away from a form."""
        async with opened(story.path) as seen:
            add(story.registry)
            await seen.until_seen("Do it")
            await seen.press("n")
            await seen.until(lambda: isinstance(seen.app.screen, ModalScreen), "a form is open")
            seen.app.travel.toggle()
            await seen.until_told("the past has been read; t goes there")
            assert seen.desk.past is None
            await seen.press("escape", "t")
            await seen.until_seen("PAST")
            deed = seen.desk.do(["cancel", "x"], lambda registry: pytest.fail("it was done"))
            assert (deed.ok, deed.sentences) == (False, (THE_PAST,))

    async def test_views_that_show_only_now_cannot_be_entered(self, story: Story) -> None:
        async with travelling(story) as seen:
            for kind in VIEWS.values():
                seen.app.action_view(kind.name)
                await seen.until_seen("PAST")
                assert seen.app.views.blind_to_the_past is None
            blind = next(kind for kind in VIEWS.values() if not kind.shows_past)
            await seen.until_told(f"the view {blind.name} shows only what is now")
            await seen.press("escape", blind.key, "t")
            await seen.until_told("1 goes to the board")
            assert seen.desk.past is None


class TestReading:
    async def test_it_can_be_stopped_and_goes_on_later(
        self, story: Story, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gate, run = threading.Event(), Loading.run
        read: list[int] = []

        def slow(self: Loading, job_ids: Any = None) -> Iterator[Progress]:
            for one in run(self, job_ids):
                read.append(self.lines)
                yield one
                assert gate.wait(PATIENCE_SEC)

        monkeypatch.setattr(Loading, "run", slow)
        async with opened(story.path) as seen:
            await seen.press("t")
            await seen.until_seen("reading the past", "esc stops it")
            await seen.press("down", "S")  # as usable as ever
            assert seen.desk.past is None
            await seen.press("escape")
            await seen.until(lambda: not seen.app.screen.query(Banner), "the bar is gone")
            gate.set()
            await seen.press("t")
            await seen.until_seen("PAST")
            reading = seen.app.travel._reading._loading
            assert reading is not None
            # It went on where it was stopped: no line was read twice.
            assert read == sorted(read)
            afresh = loading(story.registry)
            afresh.finish()
            assert reading.lines == afresh.lines
            await seen.press("escape")
            new = add(story.registry, "Later")
            await seen.press("t")
            await seen.until_seen("PAST")
            assert new in seen.desk.board.rows

    async def test_what_goes_wrong_is_a_sentence(
        self, story: Story, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(self: Loading, job_ids: Any = None) -> Iterator[Progress]:
            raise OSError("the disk is gone")

        monkeypatch.setattr(Loading, "run", broken)
        async with opened(story.path) as seen:
            await seen.press("t")
            await seen.until_told("the disk is gone")
            assert not seen.app.screen.query(Banner)


class TestAJob:
    async def test_its_tabs_show_what_was_known(self, tmp_path: Path, clock: FakeClock) -> None:
        registry = registry_in(tmp_path, clock)
        began = clock.now()
        job_id = two_attempts(registry, clock, tmp_path)
        async with opened(str(tmp_path / "jobs"), (160, 40)) as seen:
            go_to(seen, began + 100)
            await seen.until_seen("PAST", "attempt 1", "1 started")
            await seen.until(lambda: "attempt 2" not in seen.text(), "nobody knew of the second")
            assert "the agent left with 3" not in seen.text()
            await seen.press("right_square_bracket")
            await seen.until_seen("[tail]", "started")
            assert "half of the sky" not in seen.text()
            await seen.press("end")
            await seen.until_seen("half of the sky")
            await seen.press("home")
            await seen.until(lambda: "half of the sky" not in seen.text(), "it is not known yet")
            await seen.press("end", "right_square_bracket")
            await seen.until_seen("[pane]", "of this only now is kept")
            await seen.press("enter")
            await seen.until_on(JobScreen)
            await seen.until_seen("PAST", f"board > {job_id}")
            await seen.press("home", "left_square_bracket", "left_square_bracket")
            await seen.until_seen("[timeline]", "before the first attempt")
            assert "attempt 1" not in seen.text()
            await seen.press("escape")
            await seen.until_seen("attempt 2", "counting")
            await seen.until(lambda: "PAST" not in seen.text(), "the bar is gone")


class TestSessions:
    async def test_what_jobs_say_of_them_and_nothing_of_tmux(self, story: Story) -> None:
        sight = next(
            one
            for one in story.sights
            if any(j.status is Status.RUNNING for j in one.jobs.values())
        )
        async with opened(story.path) as seen:
            go_to(seen, sight.at + 0.001)
            await seen.until_seen("PAST")
            await seen.press("2")
            await seen.until_on(SessionsScreen)
            await seen.until_seen("PAST", "kept nowhere")
            running = {
                job.agent_session for job in sight.jobs.values() if job.status is Status.RUNNING
            }
            assert {row.label for row in seen.desk.sessions.rows if row.seen.jobs} == running
            view = seen.app.screen
            assert isinstance(view, SessionsScreen)
            assert not view.watch_sessions.rounds._is_watched
            await seen.press("escape")
            await seen.until_seen("there are no agent sessions yet")


def sessions_shown(seen: Opened) -> list[Any]:
    table = seen.app.screen.query_one(SessionTable)
    if not table.display:  # a sentence stands there, that there are none
        return []
    return [(row.name, row.word, row.job_id) for row in table.listed.rows]


def gantt_shown(seen: Opened) -> list[Any]:
    rows = seen.app.screen.query_one(GanttChart)._rows
    return [(rows[line].lane, rows[line].bars) for line in range(len(rows))]


#: What a view shows, as the widgets have it that draw it.
_SHOWN: dict[str, Callable[[Opened], list[Any]]] = {
    "board": lambda seen: [(row.job_id, row.word) for row in seen.app.board.table.board.view()],
    "sessions": sessions_shown,
    "gantt": gantt_shown,
}


class TestWhicheverWayOneCame:
    """A view that was left for a while shows the moment that the console is at, and no other."""

    @pytest.fixture(autouse=True)
    def _live(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Sessions of now that the past knows nothing of."""
        look = SessionLook(tuple(SessionRow(Seen(name, SessionState.ALIVE)) for name in "pq"))
        monkeypatch.setattr(SessionWatch, "_look", lambda self: self._deliver(look))

    async def test_it_was_seen_live_before(self, story: Story) -> None:
        moments = [story.sights[at].at + 0.001 for at in (80, 20)]
        async with opened(story.path, clock=story.clock.now) as seen:
            expected = [await self._all_at(seen, at) for at in moments]
        async with opened(story.path, clock=story.clock.now) as seen:
            live = await self._all(seen)
            assert all(live.values())
            assert all(live[name] != then[name] for then in expected for name in _SHOWN)
            assert [await self._all_at(seen, at) for at in moments] == expected
            await seen.press("escape")
            assert await self._all(seen) == live
            # Left while a page or a job lies over it, or on another view.
            await seen.press("t")
            await seen.until_seen("PAST")
            await seen.press("5", "question_mark", "escape", "2", "enter", "escape")
            assert await self._all(seen) == live

    async def _all_at(self, seen: Opened, at: float) -> dict[str, list[Any]]:
        go_to(seen, at)
        await seen.until_seen("PAST")
        return await self._all(seen)

    async def _all(self, seen: Opened) -> dict[str, list[Any]]:
        """What each view shows; the board is seen in the end."""
        shown = {}
        for name in (*(kind.name for kind in VIEWS.values() if kind.shows_past), "board"):
            await seen.press(VIEWS[name].key)
            await self._at_rest(seen)
            shown[name] = _SHOWN[name](seen)
        return shown

    async def _at_rest(self, seen: Opened) -> None:
        await seen.pilot.pause()
        screen = seen.app.screen
        if isinstance(screen, TimedView):
            await seen.until(lambda: not screen.is_waiting, "all bars are there")
        if isinstance(screen, SessionsScreen) and seen.desk.past is None:
            await seen.until(lambda: seen.desk.sessions.rows, "the sessions are there")


async def test_at_most_ten_frames_a_second_however_fast_it_plays(
    story: Story, frames: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frame for each tick at most, and ticks are a tenth of a second apart."""
    async with travelling(story, (100, 24)) as seen:  # too low for the panel
        await seen.press("home", *["greater_than_sign"] * 5)
        await seen.until_seen("NO BROKER")  # which is said a second later, and is a frame, too
        await seen.pilot.pause()
        travel = seen.app.travel
        assert travel.traveller is not None
        travel.traveller.turn()
        for _ in range(5):
            before = len(frames)
            travel._ticked_at -= 0.1
            travel._tick()
            assert travel._timer is not None
            travel._timer.pause()
            await seen.pilot.pause()
            assert len(frames) - before <= 1


class TestWhatRunningJobsHadUsed:
    async def test_is_as_it_was(self, tmp_path: Path, clock: FakeClock) -> None:
        """Live, the board has it from the events; so it has in the past, at each moment."""
        path = str(tmp_path / "jobs")
        with open_registry(path) as registry:
            registry.clock = clock
            job_id = add(registry, "Count as you go")
            registry.claim("tmux:c")
            moments = []
            async with opened(path, clock=clock.now) as seen:
                row = seen.desk.live.rows[job_id]
                for tokens in (1000, 2500):
                    clock.pass_time(60)
                    used = {"tokens": {"input": tokens, "output": 500}, "cost": tokens / 1000}
                    used |= {"peak_memory": tokens * 2**20, "memory": 2**20}
                    registry.publish(job_id, "progress", data=used, attempt=1)
                    registry.publish(job_id, "progress", detail="and on it goes", attempt=1)
                    clock.pass_time(10)
                    moments.append(clock.now())
                clock.pass_time(60)
                await seen.until(lambda: row.live.tokens == 3000, "it is known live")
                await seen.press("t")
                await seen.until(lambda: seen.desk.past is not None, "we are in the past")
                expected = ((1500, 1.0, 1000), (3000, 2.5, 2500))
                for at, (tokens, cost, peak) in zip(moments, expected, strict=True):
                    go_to(seen, at)
                    assert abs(seen.desk.now() - at) < 1
                    then = seen.desk.board.rows[job_id]
                    assert (then.live.tokens, then.live.cost) == (tokens, cost)
                    assert (then.live.peak_memory, then.live.memory) == (peak * 2**20, 2**20)
                    assert {"tokens", "memory"} <= seen.desk.board.used
                    (told,) = [one.to_dict(at) for one in replayed(registry, at).jobs]
                    assert (told["tokens"], told["cost"]) == (tokens, cost)
                    assert told["shown"]["memory"] == {"peak": peak * 2**20, "now": 2**20}

    def test_of_an_earlier_attempt_is_none_of_a_later_one(
        self, tmp_path: Path, clock: FakeClock
    ) -> None:
        with open_registry(str(tmp_path / "jobs")) as registry:
            registry.clock = clock
            job_id = add(registry, "Try twice", max_attempts=2)
            registry.claim("tmux:c")
            clock.pass_time(60)
            registry.publish(job_id, "progress", data={"tokens": 700}, attempt=1)
            clock.pass_time(60)
            registry.publish(job_id, "error", attempt=1)
            registry.retry(job_id)
            registry.claim("tmux:c")
            clock.pass_time(60)
            (then,) = replayed(registry, clock.now()).jobs
            assert then.stand.attempt == 2
            assert then.used.tokens is None


def test_the_moment_that_was_asked_for_last_is_entered(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when another one was asked for while the logs are read."""
    with registry_in(tmp_path, clock) as registry:
        for name in ("one", "two"):
            add(registry, name)
            clock.pass_time(60)
    begun, go_on, entered = threading.Event(), threading.Event(), list[Ready]()

    def slow(registry: Registry) -> Loading:
        begun.set()
        go_on.wait()
        return loading(registry)

    monkeypatch.setattr(reading_past, "loading", slow)
    reading = ReadingPast(desk_on(tmp_path, clock), lambda _: None, entered.append, pytest.fail)
    first, last = clock.now() - 100, clock.now() - 50
    reading.start(first)
    assert begun.wait(PATIENCE_SEC)
    reading.start(last)
    go_on.set()
    eventually(lambda: not reading.is_busy, "both are over")
    reading.close()
    assert [ready.traveller.at for ready in entered] == [last]


#: First, second, third and later, at each moment.
_HELD = {
    "registered": ("queued", "blocked", "blocked", "blocked"),
    "first runs": ("starting", "blocked", "blocked", "blocked"),
    "first failed": ("error", "blocked", "blocked", "queued"),
    "first completed": ("completed", "queued", "blocked", "queued"),
    "later waits": ("completed", "queued", "blocked", "blocked"),
    "second cancelled": ("completed", "cancelled", "blocked", "queued"),
}


class TestWhatHeldJobsBack:
    """One answer in the past, too: the board, the panel, `mam replay` and what the graph asks."""

    @pytest.fixture
    def moments(self, tmp_path: Path, clock: FakeClock) -> dict[str, float]:
        """Two jobs, one after the other; and one that is tried again later."""
        registry = registry_in(tmp_path, clock)
        with registry:
            found: dict[str, float] = {}

            def note(name: str) -> None:
                clock.pass_time(1)
                found[name] = clock.now()
                clock.pass_time(9)

            first = add(registry, "first", agent_session="tmux:a")
            second = add(registry, "second", agent_session="tmux:b", after=[first])
            third = add(registry, "third", agent_session="tmux:b", after=[second])
            later = add(registry, "later", agent_session="tmux:c", not_before="+15s")
            self.ids = {"first": first, "second": second, "third": third, "later": later}
            note("registered")
            registry.claim("tmux:a")
            note("first runs")
            registry.finish(first, Status.ERROR, attempt=1, reason=Reason.EXIT)
            note("first failed")  # and the start time of the last has come
            registry.retry(first)
            registry.claim("tmux:a")
            registry.finish(first, Status.COMPLETED, attempt=2)
            note("first completed")
            registry.claim("tmux:c")
            registry.requeue(
                later, Reason.QUOTA, attempt=1, not_before=clock.now() + 15, detail="limit"
            )
            note("later waits")
            clock.pass_time(20)
            registry.request_cancel(second, "enough")
            note("second cancelled")
        return found

    def test_is_the_same_everywhere_and_whichever_way_one_came(
        self, tmp_path: Path, clock: FakeClock, moments: dict[str, float]
    ) -> None:
        with registry_in(tmp_path, clock) as registry:
            past = loading(registry).finish()
            picture = picture_of(past, clock.now())
            names = list(moments)
            for name in (*names, *reversed(names), *names[::2], *reversed(names[1::2])):
                at, step = moments[name], picture.move(moments[name])
                expected = _HELD[name]
                found = picture.board.rows
                words = tuple(found[job_id].word for job_id in self.ids.values())
                assert words == expected, name
                counted = {word: expected.count(word) for word in expected}
                assert +picture.board.counts == counted
                assert {row.job_id for row in picture.board.view()} == set(self.ids.values())
                assert step.jobs <= found.keys()
                for row in found.values():
                    assert row.face.word == row.word
                printed = replayed(registry, at)
                held = {job_id for job_id, row in found.items() if row.word == "blocked"}
                assert set(printed.holds) == held
                made = graph_read(
                    Question(
                        [row.summary for row in found.values() if row.summary is not None],
                        *(frozenset(), at, picture.board.reasons),
                    )
                )
                facts = Facts(found, made.drawing.graph, made.reasons, at)
                assert {job_id for job_id in found if facts.why(job_id).holds} == held
            picture.move(moments["first failed"])
            third = picture.board.rows[self.ids["third"]]
            assert third.why(picture.at) == f"after {self.ids['second']} cannot run"

    async def test_is_seen_on_the_board_and_in_the_panel(
        self, tmp_path: Path, clock: FakeClock, moments: dict[str, float]
    ) -> None:
        first, second = self.ids["first"], self.ids["second"]
        async with opened(str(tmp_path / "jobs"), (240, 40), clock=clock.now) as seen:
            go_to(seen, moments["first failed"])
            await seen.until_seen("PAST", "⊘ blocked", f"after {first} failed")
            seen.desk.board.cursor = second
            seen.app.board.table.moved()
            seen.app.board.settle()
            seen.app.board.panel.switch("why")
            await seen.until_seen("[why]", f'blocked: after {first} "first", which failed')
            await seen.until_seen("not in the history: pauses, full groups")
            assert "mam retry" not in seen.text()
            go_to(seen, moments["first completed"])
            await seen.until_seen("queued: no other job and no start time held it back")
