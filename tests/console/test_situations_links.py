"""What the console hangs on is lost and comes back: broker, folder, and the way between threads."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mam_core.errors import StoreError
from mam_core.events import public_brokers, subscription
from mam_core.events.embedded import free_port
from mam_core.events.event import Event
from mam_core.events.feed import EventHeard, JobChanged, Notice, NoticeKind, Origin
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.summaries import Unreadable
from mam_core.wiring import open_registry
from mam_tui import link
from mam_tui.folding import MOST_EVENTS, Pile
from tests.console.staging import add, opened
from tests.console.story import summary
from tests.support.brokers import embedded, nothing_left
from tests.support.patience import PATIENCE_SEC
from tests.support.postgres import own_server


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "jobs")


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker is missed, and looked for, sooner than by a person."""
    monkeypatch.setattr(link, "_GRACE_SEC", 0.1)
    monkeypatch.setattr(subscription, "PAUSES_SEC", (0.05, 0.2))


class TestTheBroker:
    @pytest.mark.usefixtures("_impatient")
    async def test_lost_and_back(self, path: str, tmp_path: Path) -> None:
        """The bar says it, files tell meanwhile, and messages are heard again afterwards."""
        with nothing_left(tmp_path), open_registry(path) as registry:
            job_id = add(registry)
            broker = embedded(Path(path), "nats")
            async with opened(path) as seen:
                row = seen.desk.board.rows[job_id]
                with broker.ensure_running():
                    await seen.until(lambda: _is_up(seen), "the broker is heard")
                    await seen.until(lambda: "BROKER" not in seen.top(), "nothing to say")
                await seen.until(lambda: "BROKER LOST" in seen.top(), "it is said")
                assert not seen.app.board.table.stale
                registry.claim("tmux:c")
                registry.publish(job_id, "progress", detail="by the files", attempt=1)
                await seen.until(lambda: row.live.detail == "by the files", "files tell")
                with broker.ensure_running():
                    await seen.until(lambda: "BROKER" not in seen.top(), "it is back")
                    registry.publish(job_id, "progress", detail="and again", attempt=1)
                    await seen.until(lambda: row.live.detail == "and again", "events go on")

    @pytest.mark.usefixtures("_impatient")
    async def test_one_that_a_job_names_is_offline(self, path: str, tmp_path: Path) -> None:
        """The registry's own is up, and that is not enough to call the picture live."""
        elsewhere = {"host": "127.0.0.1", "port": free_port()}
        with nothing_left(tmp_path), open_registry(path) as registry:
            jobs = [add(registry, broker=elsewhere) for _ in range(2)]
            async with opened(path) as seen:
                with embedded(Path(path), "nats").ensure_running():
                    said = f"BROKER 127.0.0.1:{elsewhere['port']} OFFLINE since "
                    await seen.until(lambda: _is_up(seen) and said in seen.top(), "it is said")
                    assert not seen.top().rstrip().endswith(" live")
                    registry.set_status(jobs[0], Status.COMPLETED)
                    await seen.until(lambda: len(seen.desk.board) == 2, "one has ended")
                    assert said in seen.top()
                    registry.set_status(jobs[1], Status.COMPLETED)
                    await seen.until(
                        lambda: seen.top().rstrip().endswith(" live"), "nobody needs it"
                    )

    async def test_a_console_that_is_suspended_is_no_relay(self, path: str, tmp_path: Path) -> None:
        with nothing_left(tmp_path), open_registry(path) as registry:
            add(registry)
            relay = registry.store.outbox.relay
            async with opened(path, with_duties=True) as seen:
                await seen.until(relay, "it is the relay")
                with seen.app.bridge.resting():
                    assert relay() is None
                await seen.until(relay, "it is the relay again")

    async def test_one_that_is_only_starting_is_not_worth_a_word(
        self, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(link, "_GRACE_SEC", PATIENCE_SEC)
        async with opened(path) as seen:
            await seen.until(lambda: _is_down(seen), "there is none")
            seen.app._tick()
            assert "BROKER" not in seen.top()


class TestAPublicBroker:
    async def test_is_in_the_bar_while_a_live_job_uses_it(
        self, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """G26: for as long as it is so, in words that nobody takes for a state."""
        monkeypatch.setattr(public_brokers, "_PUBLIC", ("localhost",))
        with open_registry(path) as registry:
            job_id = add(registry, broker={"host": "localhost", "port": 1})
            async with opened(path) as seen:
                await seen.until(lambda: job_id in seen.desk.board.rows, "it is there")
                said = "PUBLIC BROKER localhost: anyone can read"
                await seen.until(lambda: said in seen.top(), "it is said")
                registry.claim("tmux:c")
                await seen.until(lambda: "starting" in seen.text(), "it runs")
                assert said in seen.top()
                registry.set_status(job_id, Status.COMPLETED)
                await seen.until(lambda: "PUBLIC" not in seen.top(), "it is over")


def _is_up(seen: Any) -> bool:
    state = seen.app.bridge.state
    return state is not None and state.broker_up is True


def _is_down(seen: Any) -> bool:
    state = seen.app.bridge.state
    return state is not None and state.broker_up is False


class TestTheDatabase:
    async def test_gone_and_back(
        self, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Killed as by a power cut: grey and dated meanwhile, and nothing is missed afterwards."""
        with own_server() as server:
            monkeypatch.setenv("MAM_STORE", server.uri)
            with open_registry(path) as registry:
                job_id = add(registry, "apples")
                async with opened(path) as seen:
                    board, table = seen.desk.board, seen.app.board.table
                    server.kill()
                    await seen.until_seen("REGISTRY LOST, trying again: as of ", "apples")
                    assert table.stale
                    await seen.press("c", "y")  # asked for meanwhile: refused, with a reason
                    await seen.until(lambda: seen.desk.deeds, "it is answered")
                    assert not seen.desk.deeds[-1].ok
                    server.start()
                    late = await seen.until(lambda: _added(registry), "it can be written to")
                    await seen.until(lambda: board.rows.keys() == {job_id, late}, "both are there")
                    await seen.until(lambda: not table.stale, "and says so")
                    assert "REGISTRY" not in seen.top()


def _added(registry: Registry) -> str | None:
    with suppress(StoreError):
        return add(registry, "quinces")
    return None


class TestTheFolder:
    async def test_gone_and_back(self, path: str) -> None:
        """The table stays, grey and dated; it heals without a key, and what changed is there."""
        aside = f"{path}-aside"
        with open_registry(path) as registry:
            kept, gone = add(registry, "apples"), add(registry, "pears")
        async with opened(path) as seen:
            board, table = seen.desk.board, seen.app.board.table
            os.rename(path, aside)
            await seen.until_seen("REGISTRY LOST, trying again: as of ", "apples", "pears")
            assert table.stale
            await seen.press("j", "c", "y")  # what is asked for meanwhile is refused, with a reason
            await seen.until(lambda: seen.desk.deeds, "it is answered")
            assert not seen.desk.deeds[-1].ok
            os.unlink(os.path.join(aside, f"{gone}.json"))
            with open_registry(aside) as registry:
                late = add(registry, "quinces")
            os.rename(aside, path)
            await seen.until(lambda: board.rows.keys() == {kept, late}, "it is as it is")
            await seen.until(lambda: not table.stale, "and says so")
            assert "REGISTRY" not in seen.top()

    async def test_one_that_never_was_is_not_lost(self, path: str) -> None:
        async with opened(path) as seen:
            await seen.until_seen("there are no jobs yet")
            assert "REGISTRY" not in seen.top()
            with open_registry(path) as registry:
                job_id = add(registry)
            await seen.until(lambda: job_id in seen.desk.board.rows, "the first job")
            assert not seen.app.board.table.stale

    async def test_what_cannot_be_read_for_a_while_is_old_for_that_while(
        self, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The folder is there, and its disk does not answer."""
        from mam_core.events import feed
        from mam_core.events.merge import Merge

        monkeypatch.setattr(feed, "_BLIND_SEC", 0.1)
        whole = Merge.rescan
        broken = True

        def rescan(self: Merge) -> None:
            if broken:
                raise OSError(5, "Input/output error")
            whole(self)

        with open_registry(path) as registry:
            add(registry)
        async with opened(path) as seen:
            await seen.until(lambda: seen.app.link.lost_at is None, "all is well")
            await seen.pilot.pause(0.05)
            seen.app._tick()
            monkeypatch.setattr(Merge, "rescan", rescan)
            await seen.press("ctrl+r")
            await seen.until_seen("REGISTRY LOST", "Input/output error")
            broken = False
            await seen.until(lambda: "REGISTRY" not in seen.top(), "it is read again")


class TestWhatWaits:
    """Nobody looks for hours: an editor has the terminal, or the picture is held."""

    def test_two_hundred_thousand_arrivals_take_the_room_of_a_few(self) -> None:
        pile = Pile()
        heard = [_heard(number, f"{number} of many") for number in range(50)]
        told = [_told(number, number) for number in range(50)]
        for _ in range(2_000):
            pile.add(heard)
            pile.add(told)
        assert pile.count == 200_000
        folded = pile.take()
        assert (len(folded.heard), len(folded.records), len(folded.news)) == (MOST_EVENTS, 50, 50)
        assert folded.heard[-1].event.detail.startswith("49 ")
        assert folded.missed == {f"job{number:04}" for number in range(50)}
        assert folded.records["job0049"] == Unreadable("job0049", "try 49")
        assert folded.news["job0049"]["tokens"] == 49
        assert (pile.count, pile.take().heard) == (0, [])

    def test_a_few_huge_events_are_bounded_too(self) -> None:
        pile = Pile(most_chars=1_000)
        pile.add(_heard(number, "x" * 400) for number in range(3))
        assert len(pile.take().heard) == 2

    def test_of_what_is_said_about_the_way_the_newest_of_each_kind_stays_in_order(self) -> None:
        pile = Pile()
        for kind in (NoticeKind.BROKER_DOWN, NoticeKind.LATE, NoticeKind.BROKER_DOWN):
            pile.add([Notice(kind, None, "", 0.0)] * 1000)
        kinds = [one.kind for one in pile.take_notices().notices if isinstance(one, Notice)]
        assert kinds == [NoticeKind.LATE, NoticeKind.BROKER_DOWN]

    async def test_a_held_picture_counts_all_and_shows_the_newest(self, path: str) -> None:
        with open_registry(path) as registry:
            job_id = add(registry)
            job = registry.get(job_id)
            async with opened(path) as seen:
                await seen.press("p")
                news = [_changed(job)] * 199_998 + [_changed(job.evolve(priority=7))] * 2
                seen.app.bridge._put(*news)
                await seen.until(lambda: "PAUSED +200000" in seen.top(), "all are counted")
                was = seen.desk.board.rows[job_id].summary
                assert was is not None
                assert was.priority == 0
                await seen.press("p")
                now = seen.desk.board.rows[job_id].summary
                assert now is not None
                assert now.priority == 7
                assert seen.app.standing().paused is None

    async def test_a_tail_that_missed_some_reads_them_from_the_registry(self, path: str) -> None:
        with open_registry(path) as registry:
            job_id = add(registry)
            registry.claim("tmux:c")
            async with opened(path, (160, 40)) as seen:
                seen.app.board.panel.switch("tail")
                await seen.until(lambda: not seen.app.board.panel._asking.is_waiting, "asked")
                await seen.press("p")
                seen.app.bridge._pile._most_events = 2
                for number in range(6):
                    registry.publish(job_id, "progress", detail=f"word{number}", attempt=1)
                await seen.until(lambda: seen.app.bridge.waiting >= 7, "all are heard")
                await seen.press("p")
                await seen.until_seen(*(f"word{number}" for number in range(6)))

    async def test_jobs_that_a_new_list_does_not_know_are_gone(self, path: str) -> None:
        """The feed began anew, and told of no single removal."""
        with open_registry(path) as registry:
            add(registry)
            async with opened(path) as seen:
                board = seen.desk.board
                board.put(summary(7, Status.RUNNING))
                board.marks.add("job0007")
                board.load([summary(8)])
                assert list(board.rows) == ["job0008"]
                assert (board.marks, board.counts["running"]) == (set(), 0)


def _heard(number: int, detail: str) -> EventHeard:
    data = {"tokens": number}
    event = Event(f"job{number % 50:04}", 1, number, "progress", "", detail, data=data)
    return EventHeard(event, {}, Origin.BROKER, 0.0, 0)


def _told(number: int, order: int) -> JobChanged:
    told = Unreadable(f"job{number:04}", f"try {order}")
    return JobChanged(told.job_id, told, Origin.DIRECTORY, 0.0)


def _changed(job: Job) -> JobChanged:
    return JobChanged(job.job_id, job, Origin.DIRECTORY, 0.0)


async def test_a_registry_that_was_removed_before_is_said(path: str) -> None:
    """It would look as if nothing had ever been there."""
    with open_registry(path) as registry:
        add(registry)
    shutil.rmtree(path)
    async with opened(path) as seen:
        words = "held jobs and is gone"
        await seen.until(lambda: words in seen.app.complaints.words, "it is said")
    with open_registry(path) as registry:
        add(registry)
    async with opened(path) as seen:
        words = "a new one was started in its place"
        await seen.until(lambda: words in seen.app.complaints.words, "it is still said")


@pytest.mark.parametrize("is_whole", [True, False])
async def test_a_registry_that_is_removed_meanwhile_is_said(path: str, is_whole: bool) -> None:
    """As whole as it was, or with the lock of somebody who was at work in it."""
    with open_registry(path) as registry:
        lost = add(registry)
    async with opened(path) as seen:
        await seen.until(lambda: lost in seen.desk.board.rows, "it is there")
        if is_whole:
            shutil.rmtree(path)
            await seen.until_seen("REGISTRY LOST")
            with open_registry(path) as registry:
                add(registry)
        else:
            os.unlink(os.path.join(path, f"{lost}.json"))
        words = "a new one was started in its place"
        await seen.until(lambda: words in seen.app.complaints.words, "it is said")
        assert lost not in seen.desk.board.rows
