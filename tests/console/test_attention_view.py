"""What needs a person: the list, what is done in it, the badge, and the board's own filter."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual import events

from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.agents.states import Shown, ShownState
from mam_core.operations.listing import Listing
from mam_core.presence import Presence
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.safe_text import safe
from mam_core.sessions import Session, SessionFolder
from mam_core.summaries import Summary
from mam_core.wiring import open_registry
from mam_tui.arrivals import Arrival, Loaded
from mam_tui.attention.needing import Needing
from mam_tui.folding import fold
from mam_tui.screens.attention import AttentionScreen
from mam_tui.screens.confirm import Confirm
from mam_tui.screens.forms.answer_form import AnswerForm
from mam_tui.screens.forms.job_form import JobForm
from mam_tui.screens.forms.spawn_form import SpawnForm
from mam_tui.screens.graph import GraphScreen
from mam_tui.screens.job import JobScreen
from mam_tui.state_watch import States
from tests.console.board_story import Told, told
from tests.console.detail_story import HOSTILE, WORKER
from tests.console.staging import Opened, add, opened
from tests.console.story import NOW, summary
from tests.support.clock import FakeClock

ERROR, RUNNING = Status.ERROR, Status.RUNNING


@pytest.fixture(autouse=True)
def _nothing_of_the_persons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def asks(words: str = "May I?", rule: str = "PermissionRequest", at: float = NOW - 9) -> Shown:
    return Shown(ShownState.WAITING, words, "hook", rule, at)


def works() -> Shown:
    return Shown(ShownState.WORKING, "", "hook", "turn", NOW)


async def happens(console: Told, *arrivals: Arrival) -> None:
    console.app._show(fold(arrivals))
    await console.pilot.pause()


@asynccontextmanager
async def attending(
    folder: Path, jobs: list[Summary], shown: dict[str, Shown], *keys: str, **more: Any
) -> AsyncIterator[Told]:
    """A console that was told this, on the view, or where other keys lead."""
    async with told(folder, jobs, **more) as console:
        while not console.app.desk.needing.has_begun:
            await console.pilot.pause(0.02)
        await happens(console, States(shown, None))
        await console.press(*(keys or ("4",)))
        await console.pilot.pause()
        yield console


def listed(needing: Needing) -> list[tuple[str, str]]:
    return [(str(need.kind), need.job_id) for need in needing]


class TestTheStory:
    async def test_of_three_who_need_me(self, tmp_path: Path) -> None:
        """One asks, one failed, one failed its checks; each is dealt with where it stands."""
        path = str(tmp_path / "jobs")
        with open_registry(path) as registry:
            asking = self._asking(registry)
            failed = self._failed(registry, Reason.EXIT, "the agent left with 3")
            checked = self._failed(registry, Reason.VALIDATION, "test -s stars.txt failed")
            async with opened(path, (120, 40)) as seen:
                await seen.until(lambda: len(seen.desk.needing) == 3, "all needs are known")
                await seen.until_seen("! 3 need you")
                await seen.command("attention")
                view = await seen.until_on(AttentionScreen)
                assert [job_id for _, job_id in listed(seen.desk.needing)] == [
                    asking,
                    checked,
                    failed,
                ]
                await seen.until_seen("◆ permission", "Bash: touch granted", "tmux:a", "attempt 1")
                await seen.until_seen("exit: the agent left with 3")  # its record was read
                await seen.until_seen("enter answers, a shows its screen")
                await seen.press("enter")
                await seen.until_on(AnswerForm)
                await seen.press("escape", "down", "enter")
                await seen.until_on(JobScreen)
                await seen.press("escape")
                await seen.until_on(AttentionScreen)
                await seen.until_seen("test -s stars.txt failed", "shows what it left behind")
                await seen.press("r")
                await seen.until_on(Confirm)
                await seen.press("y")
                await seen.until(lambda: seen.desk.needing.get(checked) is None, "tried again")
                assert registry.get(checked).status is Status.PENDING
                assert seen.desk.deeds[-1].command == f"mam retry {checked}"
                await seen.until(lambda: view.table.need.job_id == failed, "the next is there")
                await seen.press("x")
                assert listed(seen.desk.needing) == [("permission", asking)]
                await seen.press("escape")
                await seen.until(lambda: seen.app.screen is seen.app.board, "back on the board")
                assert seen.desk.board.cursor == asking

    async def test_a_key_from_before_a_question_is_shown_is_no_answer(self, tmp_path: Path) -> None:
        path = str(tmp_path / "jobs")
        with open_registry(path) as registry:
            self._asking(registry)
            async with opened(path, (120, 40)) as seen:
                await seen.until(lambda: len(seen.desk.needing) == 1, "it is known")
                await seen.press("4")
                await seen.until_on(AttentionScreen)
                for key in ("enter", "y"):
                    seen.app.post_message(events.Key(key, key if key == "y" else None))
                await seen.until_on(AnswerForm)
                await seen.until(lambda: seen.app.key_queue.is_free, "all keys are done")
                await seen.pilot.pause()
                assert isinstance(seen.app.screen, AnswerForm)
                assert not seen.desk.deeds

    def _asking(self, registry: Registry) -> str:
        job_id = add(registry, "Ask me", agent_session="tmux:a")
        assert registry.claim("tmux:a", lease=WORKER) is not None
        sign = Sign(
            AgentState.WAITING,
            Channel.STREAM,
            "can_use_tool",
            registry.clock.now(),
            "Bash: touch granted",
        )
        registry.publish(job_id, "state", detail="Bash: touch granted", data=sign.to_dict())
        return job_id

    def _failed(self, registry: Registry, reason: Reason, detail: str) -> str:
        job_id = add(registry, f"Fail by {reason}", max_attempts=1)
        assert registry.claim("tmux:c") is not None
        registry.finish(job_id, ERROR, attempt=1, reason=reason, detail=detail)
        return job_id


class TestTheList:
    async def test_nobody(self, tmp_path: Path) -> None:
        jobs = [summary(1, RUNNING), summary(2), summary(3)]
        async with attending(tmp_path, jobs, {"job0001": works()}) as console:
            assert "nobody needs you" in console.text()
            assert "1 working, 2 queued" in console.text()
            assert "need you" not in console.text().split("\n")[0]
            for key in ("enter", "x", "A", "m", "a", "r", "c", "o"):
                await console.press(key)
                assert console.is_on(AttentionScreen)
            await console.press("escape")
            assert console.app.screen is console.app.board

    async def test_is_live_and_its_cursor_stays_with_the_job(self, tmp_path: Path) -> None:
        jobs = [summary(number, RUNNING) for number in range(1, 4)]
        shown = {"job0002": asks("Which colour?", "question v3", NOW - 30)}
        async with attending(tmp_path, jobs, shown) as console:
            needing, view = console.app.desk.needing, console.app.screen
            assert isinstance(view, AttentionScreen)
            assert "◇ question" in console.text()
            await happens(console, States({"job0003": asks(at=NOW - 5)}, None))
            assert listed(needing) == [("permission", "job0003"), ("question", "job0002")]
            assert view.table.need == needing.get("job0002")
            await happens(console, States({"job0002": works()}, None))
            assert listed(needing) == [("permission", "job0003")]
            assert view.table.need == needing.get("job0003")
            await console.happens(summary(3, Status.COMPLETED), gone=["job0001"])
            assert "nobody needs you" in console.text()

    async def test_the_one_under_the_cursor_has_more_lines(self, tmp_path: Path) -> None:
        words = " ".join(f"word{number}" for number in range(100))
        jobs = [summary(number, RUNNING) for number in range(1, 30)]
        shown = {job.job_id: asks(words, at=NOW - 600 + job.order) for job in jobs}
        async with attending(tmp_path, jobs, shown, size=(100, 30)) as console:
            assert isinstance(console.app.screen, AttentionScreen)
            table = console.app.screen.table
            lines = console.text().split("\n")
            assert "job0001" in lines[2]
            assert "word0" in lines[2]
            assert all("word" in line and "job" not in line for line in lines[3:6])
            assert "job0002" in lines[6]
            await console.press("down")
            lines = console.text().split("\n")
            assert "job0002" in lines[3]
            assert "job0003" in lines[7]
            await console.press("up", "G")
            assert table.need is not None
            assert table.need.job_id == "job0029"
            await console.press("pageup", "g")
            assert table.need.job_id == "job0001"
            await console.pilot.click(table, offset=(30, 3))  # one of its further lines
            assert table.need.job_id == "job0001"
            await console.pilot.click(table, offset=(30, 6))
            await console.until(
                lambda: table.need is not None and table.need.job_id == "job0003", "it is selected"
            )

    async def test_one_put_aside_comes_back_when_it_asks_something_else(
        self, tmp_path: Path
    ) -> None:
        async with attending(tmp_path, [summary(1, RUNNING)], {"job0001": asks()}) as console:
            needing = console.app.desk.needing
            await console.press("x")
            await happens(console, States({"job0001": asks()}, None))
            assert not listed(needing)
            await happens(console, States({"job0001": asks("And this?", at=NOW - 1)}, None))
            assert listed(needing) == [("permission", "job0001")]
            await happens(console, Loaded(Listing([], [])))
            assert not listed(needing)

    async def test_hostile_words_at_every_size(self, tmp_path: Path) -> None:
        jobs = [summary(1, RUNNING, agent_session=HOSTILE), summary(2, ERROR, head=HOSTILE)]
        shown = {"job0001": asks(HOSTILE * 20)}
        async with attending(tmp_path, jobs, shown) as console:
            for size in ((20, 5), (60, 20), (200, 50)):
                await console.pilot.resize_terminal(*size)
                for key in ("down", "up"):
                    await console.press(key)
                    text = console.text()
                    assert safe(text, keep="\n") == text
                assert size[0] < 60 or "◆ permission" in console.text()

    async def test_while_nothing_happens_nothing_is_drawn(
        self, tmp_path: Path, frames: list[str]
    ) -> None:
        """The console's clock stands still, so no age looks different."""
        jobs = [summary(1, RUNNING), summary(2, ERROR)]
        async with attending(tmp_path, jobs, {"job0001": asks()}) as console:
            view = console.app.screen
            assert isinstance(view, AttentionScreen)
            reading = view._reading
            await console.until(lambda: not view._rest and not reading.is_reading, "it was read")
            view._tick()
            await console.pilot.pause()
            before = len(frames)
            for _ in range(3):
                view._tick()
                console.app._tick()
                console.app._show(console.app.bridge.take())
                await console.pilot.pause()
            assert len(frames) == before
            await console.happens(summary(3, head="Only the board shows this"))
            await console.pilot.pause(0.1)
            assert len(frames) == before + 1  # the bar counts one more
            await console.happens(summary(3, head="Other words"))
            await console.pilot.pause(0.1)
            assert len(frames) == before + 1
            await console.press("1")
            await console.pilot.pause()
            assert "Other words" in console.text()
            assert view._clock is not None
            assert not view._clock._active.is_set()  # hidden, it does not even look at ages


class TestTheBoard:
    async def test_w_shows_only_those_and_brings_back_the_filter(self, tmp_path: Path) -> None:
        jobs = [summary(1, RUNNING), summary(2, ERROR), summary(3), summary(4, RUNNING)]
        shown = {"job0001": asks(), "job0004": works()}
        async with attending(tmp_path, jobs, shown, "w") as console:
            board = console.app.desk.board
            assert board.filter.text == "needs:any"
            assert {row.job_id for row in board.view()} == {"job0001", "job0002"}
            await happens(console, States({"job0004": asks(), "job0001": works()}, None))
            assert {row.job_id for row in board.view()} == {"job0002", "job0004"}
            await console.press("w")
            assert (board.filter.text, len(board)) == ("", 4)
            await console.press("slash", *"status:running", "enter", "w")
            assert board.filter.text == "status:running needs:any"
            assert [row.job_id for row in board.view()] == ["job0004"]
            await console.press("2", "w")  # from another view, too
            assert console.app.screen is console.app.board
            assert board.filter.text == "status:running"

    async def test_the_badge_is_on_every_view_and_short_where_it_is_narrow(
        self, tmp_path: Path
    ) -> None:
        jobs = [summary(1, RUNNING), summary(2, ERROR)]
        async with attending(
            tmp_path, jobs, {"job0001": asks()}, "1", size=(60, 20), ascii_only=True
        ) as console:
            for key in ("1", "2", "4"):
                await console.press(key)
                assert "! 2 need you " in console.text().split("\n")[0]
            assert "? permission" in console.text()
            await console.happens(summary(2))
            assert "! 1 needs you " in console.text().split("\n")[0]


class TestTime:
    def test_takes_old_ones_and_quotas_away(self) -> None:
        from mam_tui.columns import BY_URGENCY, sort_key
        from mam_tui.model import Board, Order

        now = [NOW]
        board = Board(sort_key, Order(BY_URGENCY))
        board.load([summary(1, ERROR), summary(2, reason=Reason.QUOTA, not_before=NOW + 100)])
        needing = Needing(board, lambda: now[0])
        needing.begin()
        assert needing.counts == {"retries used up": 1, "quota": 1}
        now[0] += 30
        assert needing.grow_older() is None
        now[0] += 90
        assert needing.grow_older() is not None
        assert needing.counts == {"retries used up": 1}
        now[0] += 24 * 3600
        told = needing.grow_older()
        assert told is not None
        assert told.news == {"job0001": {"need": ""}}
        assert not len(needing)


class TestJobsThatNobodyClaims:
    async def test_from_the_board_to_the_inbox_and_back(self, tmp_path: Path) -> None:
        """Jobs after one that failed are one item, `r` on it retries that one, and it goes."""
        path = str(tmp_path / "jobs")
        with open_registry(path) as registry:
            first = add(registry, "Test the API")
            followers = [add(registry, f"Ship part {at}", after=[first]) for at in range(3)]
            registry.claim("tmux:c")
            registry.finish(first, ERROR, attempt=1, reason=Reason.EXIT)
            async with opened(path, (120, 40)) as seen:
                await seen.until_seen("! 2 need you", "⊘ blocked", f"after {first} f")
                await seen.command("attention")
                view = await seen.until_on(AttentionScreen)
                await seen.until_seen("⊘ cannot run", "3 jobs cannot run", "Test the API")
                await seen.press("down")
                await seen.until(lambda: view.table.need.job_id == followers[0], "the second")
                await seen.until_seen(f"press r on {first}, or run mam retry {first}")
                await seen.press("r")
                await seen.until_on(Confirm)
                await seen.press("y")
                await seen.until(lambda: not len(seen.desk.needing), "nobody is needed")
                assert seen.desk.deeds[-1].command == f"mam retry {first}"
                assert seen.desk.live.rows[followers[0]].word == "blocked"

    async def test_a_label_that_nobody_serves_says_so_everywhere(
        self, tmp_path: Path, clock: FakeClock
    ) -> None:
        """On the board at once, in the inbox after a minute, until a session is there."""
        path = str(tmp_path / "jobs")
        with open_registry(path) as registry:
            registry.clock = clock
            job_id = add(registry, "Draw a picture")
            add(registry, "Draw another")
            folder = SessionFolder(path)
            async with opened(path, (140, 40), clock=clock.now) as seen:
                await seen.until_seen("nobody serves t")
                assert seen.desk.live.rows[job_id].word == "queued"
                assert not len(seen.desk.needing)
                clock.pass_time(61)
                await seen.until(lambda: len(seen.desk.needing), "it needs a person")
                assert [need.jobs for need in seen.desk.needing] == [2]
                await seen.press("4")
                await seen.until_seen(
                    "○ nobody serves",
                    "nobody serves label tmux:c with agent codex",
                    "press s, or run mam spawn --agent-session tmux:c --agent codex",
                )
                known = ("c", "tmux:c", "codex", "exec", "/", "/", "then", "ann", registry.node)
                folder.put(Session(*known))
                with Presence.announce(folder, "c"):
                    await seen.until(lambda: not len(seen.desk.needing), "somebody serves it")

    async def test_what_is_suggested_is_done_to_the_job_that_it_is_suggested_for(
        self, tmp_path: Path, clock: FakeClock
    ) -> None:
        """The board's cursor is elsewhere: here, in the graph, and on the screen of the job."""
        path = str(tmp_path / "jobs")
        with open_registry(path) as registry:
            registry.clock = clock
            other = add(registry, "Stay here", agent_session="tmux:a")
            clock.pass_time(1)
            asked = add(registry, "Ask for another", agent="codexx", agent_session="tmux:b")
            add(registry, "Come later", agent="codexx", agent_session="tmux:b", after=[asked])
            clock.pass_time(61)
            async with opened(path, (140, 40), clock=clock.now) as seen:
                await seen.until(lambda: len(seen.desk.needing) == 2, "both need a person")
                seen.app.board.table.go_to_job(other)
                await seen.press("4", "down")
                view = await seen.until_on(AttentionScreen)
                await seen.until(lambda: view.table.need.job_id == asked, "it is the second")
                await seen.until_seen(f"press E on {asked}")
                await self._both_forms(seen, asked)
                await seen.press("o")
                await seen.until_on(JobScreen)
                await self._both_forms(seen, asked)
                await seen.press("escape", "escape")
                await seen.until(lambda: seen.app.screen is seen.app.board, "back on the board")
                seen.app.board.table.go_to_job(other)
                await seen.press("8")
                graph = await seen.until_on(GraphScreen)
                await seen.until(lambda: graph.job_at_hand == asked, "it is the first with others")
                await seen.until_seen(f"press E on {asked}")
                await self._both_forms(seen, asked)

    async def _both_forms(self, seen: Opened, job_id: str) -> None:
        await seen.press("s")
        form = await seen.until_on(SpawnForm)
        assert "--agent-session tmux:b --agent codexx" in seen.text()
        await seen.press("escape")
        await seen.until(lambda: not isinstance(seen.app.screen, SpawnForm), f"{form} is left")
        await seen.press("E")
        await seen.until_on(JobForm)
        assert f"Change job {job_id}" in seen.text()
        await seen.press("escape")
        await seen.until(lambda: not isinstance(seen.app.screen, JobForm), "it is left")

    async def test_its_moment_comes_without_a_word_from_anybody(
        self, tmp_path: Path, clock: FakeClock
    ) -> None:
        path = str(tmp_path / "jobs")
        with open_registry(path) as registry:
            registry.clock = clock
            job_id = add(registry, "Later", not_before="+5m")
            async with opened(path, clock=clock.now) as seen:
                await seen.until_seen("⊘ blocked", "not before")
                clock.pass_time(301)
                row = seen.desk.live.rows[job_id]
                await seen.until(lambda: row.word == "queued", "its moment has come")
                await seen.until_seen("· queued")
