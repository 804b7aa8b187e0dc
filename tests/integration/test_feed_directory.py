"""The feed without a broker: the directory alone tells everything."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mam_core import codec
from mam_core.events import directory_watch, merge
from mam_core.events.feed import Feed, JobChanged, Notice, NoticeKind, Origin
from mam_core.records import Job, Reason, Status
from mam_core.summaries import Unreadable
from mam_core.wiring import open_registry
from tests.support.children import child
from tests.support.feeds import Hand, Listener, Station
from tests.support.handles import close_later
from tests.support.jobs import LABEL, add
from tests.support.patience import eventually

#: No rescan comes to the rescue while a test looks at the watch alone.
NEVER = 3600.0


@pytest.fixture
def station(tmp_path: Path) -> Iterator[Station]:
    made = Station(tmp_path, None)
    yield made
    made.close()


@pytest.fixture
def hand(station: Station) -> Hand:
    return Hand(station.registry)


@pytest.fixture
def never_stalled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that a busy machine stopped for a while asks for a look at everything, too."""
    monkeypatch.setattr(directory_watch, "_STALLED_SEC", NEVER)


def replace(path: Path, job: Job) -> None:
    """As any tool does it: a temp file beside the record, then a rename."""
    temp = path / f".{job.job_id}.{os.urandom(3).hex()}.tmp"
    temp.write_bytes(codec.encode_job(job))
    temp.chmod(0o600)
    temp.replace(path / f"{job.job_id}.json")


def statuses(listener: Listener, job_id: str) -> list[Any]:
    return [one.job.status for one in listener.changes(job_id) if isinstance(one.job, Job)]


def looks_at_everything(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Grows with every one of them."""
    looks: list[None] = []
    rescan = feed._merge.rescan

    def counted() -> None:
        looks.append(None)
        rescan()

    monkeypatch.setattr(feed._merge, "rescan", counted)
    return looks


class TestRecords:
    def test_what_is_there_at_the_beginning_is_not_told(self, station: Station) -> None:
        add(station.registry)
        with station.listening() as listener:
            assert [one for one in listener.quiet() if isinstance(one, JobChanged)] == []
            assert [one.kind for one in listener.notices()] == [NoticeKind.NO_BROKER]

    @pytest.mark.usefixtures("never_stalled")
    def test_the_life_of_a_job_is_told_step_by_step(self, station: Station) -> None:
        """O4, D6: one write, one change; temp files are noise."""
        add(station.registry, "there must be a folder")
        with station.listening(rescan_sec=NEVER) as listener:
            job_id = add(station.registry, priority=1)
            listener.until(lambda: len(listener.changes(job_id)) == 1, "registered")
            job = station.registry.claim(LABEL)
            assert job is not None
            assert job.job_id == job_id
            listener.until(lambda: len(listener.changes(job_id)) == 2, "claimed")
            station.registry.finish(job_id, Status.ERROR, attempt=1, reason=Reason.EXIT)
            listener.until(lambda: len(listener.changes(job_id)) == 3, "ended")
            listener.quiet(0.3)
            assert statuses(listener, job_id) == ["pending", "running", "error"]
            assert {one.origin for one in listener.changes()} == {Origin.DIRECTORY}
            assert listener.changes()[-1].job == station.registry.get(job_id)

    def test_many_writes_at_once_are_read_once(self, station: Station) -> None:
        job_id = add(station.registry)
        with station.listening(rescan_sec=NEVER) as listener:
            for _ in range(50):
                replace(station.path, station.registry.get(job_id).evolve(priority=7))
            listener.until(lambda: listener.changes(job_id), "the change")
            listener.quiet(0.3)
            assert len(listener.changes(job_id)) == 1

    def test_a_record_edited_by_hand_is_told_as_it_is(self, station: Station) -> None:
        """Broken in the middle of it, mended, written with other tools' blanks, removed."""
        job_id = add(station.registry)
        record = station.path / f"{job_id}.json"
        good = record.read_bytes()
        with station.listening(rescan_sec=NEVER) as listener:
            record.write_bytes(good[:50])
            broken = listener.until(lambda: listener.changes(job_id), "broken")[-1].job
            assert isinstance(broken, Unreadable)
            edited = {**json.loads(good), "priority": 9, "detail": "by hand"}
            record.write_text(json.dumps(edited, indent=4))
            # Between emptying and writing it is broken in another way, which may be told.
            listener.until(lambda: statuses(listener, job_id), "mended")
            mended = listener.changes(job_id)[-1].job
            assert isinstance(mended, Job)
            assert (mended.priority, mended.detail) == (9, "by hand")
            record.unlink()
            listener.until(lambda: listener.changes(job_id)[-1].job is None, "gone")

    def test_an_editor_that_empties_the_file_first_shows_no_broken_record(
        self, station: Station, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(merge, "_SECOND_LOOK_SEC", NEVER)  # a busy disk makes a slow editor
        job_id = add(station.registry)
        record = station.path / f"{job_id}.json"
        good = record.read_bytes().replace(b'"priority": 0', b'"priority": 5')
        with station.listening(rescan_sec=NEVER) as listener:
            with record.open("r+b") as file:
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
                eventually(lambda: listener.feed._merge._doubtful, "it was seen empty")
                file.write(good)
            listener.until(lambda: listener.changes(job_id), "the edit")
            listener.quiet(0.3)
            assert [type(one.job) for one in listener.changes(job_id)] == [Job]

    def test_files_that_are_no_records_are_noise_or_one_unreadable_row(
        self, station: Station
    ) -> None:
        """A18"""
        add(station.registry)
        with station.listening(rescan_sec=NEVER) as listener:
            (station.path / "notes.txt").write_text("x")
            (station.path / ".hidden.json").write_text("x")
            (station.path / "x.events.log").write_text("x")
            odd = station.path / "no job id.json"
            odd.write_text("{}")
            listener.until(lambda: listener.changes("no job id"), "the odd one")
            odd.unlink()
            listener.until(lambda: len(listener.changes()) == 2, "it is gone")
            assert [one.job_id for one in listener.changes()] == ["no job id"] * 2
            assert isinstance(listener.changes()[0].job, Unreadable)
            assert listener.changes()[1].job is None

    def test_only_the_jobs_that_were_asked_for_are_told(self, station: Station) -> None:
        """`mam wait`"""
        mine, other = add(station.registry), add(station.registry)
        with station.listening(jobs=frozenset({mine}), rescan_sec=NEVER) as listener:
            station.registry.set_status(other, Status.ERROR)
            station.registry.set_status(mine, Status.COMPLETED)
            listener.until(lambda: listener.changes(mine), "mine")
            listener.quiet(0.3)
            assert listener.changes(other) == []


class TestBursts:
    def test_a_thousand_files_replaced_are_a_thousand_changes(self, station: Station) -> None:
        count = 1_000
        requests = [
            {"prompt": f"{n}", "agent": "shell", "agent_session": "a"} for n in range(count)
        ]
        ids = [one.job_id for one in station.registry.register(requests)]
        jobs = [station.registry.get(job_id).evolve(priority=3) for job_id in ids]
        with station.listening(rescan_sec=NEVER) as listener:
            for job in jobs:
                replace(station.path, job)
            listener.until(lambda: len(listener.changes()) >= count, "all of them")
            listener.quiet(0.5)
            assert sorted(one.job_id for one in listener.changes()) == sorted(ids)
            told = {one.job_id: one.job for one in listener.changes()}
            assert all(isinstance(job, Job) and job.priority == 3 for job in told.values())

    def test_what_the_kernel_dropped_is_found_by_a_look_at_everything(
        self, station: Station
    ) -> None:
        """inotify keeps 16,384 notes; a feed that was stopped gets no more than that."""
        count = 300
        requests = [
            {"prompt": f"{n}", "agent": "shell", "agent_session": "a"} for n in range(count)
        ]
        ids = [one.job_id for one in station.registry.register(requests)]
        jobs = [station.registry.get(job_id) for job_id in ids]
        with child(FEEDER, str(station.path)) as feeder:
            assert feeder.hear() == "ready"
            os.kill(feeder.pid, signal.SIGSTOP)
            stopped_at = time.monotonic()
            filler = station.path / ".noise.tmp"
            for n in range(10_000):  # two notes at the least for each
                filler.write_bytes(b"x" * (n % 2))
            for job in jobs:
                replace(station.path, job.evolve(priority=4))
            eventually(
                lambda: time.monotonic() > stopped_at + directory_watch._STALLED_SEC,
                "it was stopped long",
            )
            os.kill(feeder.pid, signal.SIGCONT)
            feeder.tell(str(count))
            heard = set()
            while (line := feeder.hear()) != "done":
                assert line, "the feed ended early"
                heard.add(line)
        assert heard == set(ids)


FEEDER = """
import sys
from mam_core.events.feed import Feed, JobChanged
from mam_core.wiring import open_registry
path = sys.argv[1]
with Feed(open_registry(path), registry_path=path, connect=None, rescan_sec=3600.0) as feed:
    print("ready", flush=True)
    wanted = int(sys.stdin.readline())
    seen = set()
    while len(seen) < wanted:
        for item in feed.take(60):
            if isinstance(item, JobChanged) and item.job is not None and item.job.priority == 4:
                seen.add(item.job_id)
    for job_id in seen:
        print(job_id)
    print("done", flush=True)
"""


class TestTheFolder:
    def test_a_folder_that_is_not_there_yet_is_waited_for(self, station: Station) -> None:
        """O17"""
        with station.listening() as listener:
            listener.until(lambda: listener.notices(NoticeKind.DIRECTORY_LOST), "it is not there")
            assert not listener.feed.state.directory_up
            job_id = add(station.registry)
            listener.until(lambda: listener.changes(job_id), "the first job")
            listener.until(lambda: listener.notices(NoticeKind.DIRECTORY_BACK), "it is there")
            assert listener.feed.state.directory_up

    def test_a_removed_folder_is_said_and_its_return_too(self, station: Station) -> None:
        job_id = add(station.registry)
        aside = station.path.with_name("aside")
        with station.listening(rescan_sec=NEVER) as listener:
            station.path.rename(aside)
            listener.hears(NoticeKind.DIRECTORY_LOST)
            assert [one for one in listener.quiet(1) if isinstance(one, JobChanged)] == []
            replace(aside, station.registry_of(aside).get(job_id).evolve(priority=8))
            aside.rename(station.path)
            listener.hears(NoticeKind.DIRECTORY_BACK)
            changed = listener.until(lambda: listener.changes(job_id), "what changed meanwhile")
            assert isinstance(changed[-1].job, Job)
            assert changed[-1].job.priority == 8

    def test_a_removed_folder_is_said_once_while_its_watch_is_late(
        self, station: Station, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`mam watch`: the looks find it before the watch does, and then look again and again."""
        job_id = add(station.registry)
        there = directory_watch._identity(str(station.path))
        aside = station.path.with_name("aside")
        with station.listening(jobs=frozenset({job_id}), rescan_sec=NEVER) as listener:
            monkeypatch.setattr(directory_watch, "_identity", lambda _: there)
            looks = looks_at_everything(listener.feed, monkeypatch)
            station.path.rename(aside)
            listener.feed.rescan()
            listener.hears(NoticeKind.DIRECTORY_LOST)
            seen = len(looks)
            listener.until(lambda: len(looks) > seen + 3, "it was looked for again")
            told = listener.notices(NoticeKind.DIRECTORY_LOST, NoticeKind.DIRECTORY_BACK)
            assert [one.kind for one in told] == [NoticeKind.DIRECTORY_LOST]
            aside.rename(station.path)
            listener.hears(NoticeKind.DIRECTORY_BACK)

    @pytest.mark.usefixtures("never_stalled")
    def test_a_replaced_folder_is_compared_job_by_job(self, station: Station) -> None:
        """N21: those that are gone are told as gone."""
        kept, gone = add(station.registry), add(station.registry)
        new = station.path.with_name("new")
        shutil.copytree(station.path, new)
        (new / f"{gone}.json").unlink()
        job = station.registry.get(kept)
        replace(new, job.evolve(job_id="fresh001", topic_prefix="python/mqtt/jobs/fresh001"))
        with station.listening(rescan_sec=NEVER) as listener:
            station.path.rename(station.path.with_name("old"))
            new.rename(station.path)
            listener.until(lambda: len(listener.changes()) == 2, "the differences")
            listener.quiet(0.3)
            told = {one.job_id: one.job for one in listener.changes()}
            assert told.keys() == {gone, "fresh001"}
            assert told[gone] is None
            assert {one.origin for one in listener.changes()} == {Origin.RESCAN}
            # And the new one is watched.
            listener.until(lambda: listener.notices(NoticeKind.DIRECTORY_BACK), "its watch stands")
            feed = listener.feed
            listener.until(lambda: feed._rescan_at > time.monotonic() + NEVER / 2, "no look is due")
            station.registry.set_status(kept, Status.COMPLETED)
            listener.until(lambda: listener.changes(kept), "a change in the new folder")
            assert listener.changes(kept)[-1].origin is Origin.DIRECTORY

    def test_where_nothing_can_be_watched_looking_does(
        self, station: Station, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The user's limit of watches is used up."""
        import watchfiles

        def refuse(*_: Any, **__: Any) -> Iterator[Any]:
            raise OSError(28, "OS file watch limit reached")

        monkeypatch.setattr(watchfiles, "watch", refuse)
        monkeypatch.setattr(directory_watch, "_STALLED_SEC", 0.1)
        job_id = add(station.registry)
        with station.listening(rescan_sec=0.2) as listener:
            station.registry.set_status(job_id, Status.COMPLETED)
            listener.until(lambda: listener.changes(job_id), "the change")
            assert listener.changes(job_id)[0].origin is Origin.RESCAN
            said = [one for one in listener.notices() if one.kind is NoticeKind.DIRECTORY_LOST]
            assert len(said) == 1
            assert "from time to time" in said[0].text


class TestEvents:
    def test_events_are_read_from_the_outbox(self, station: Station, hand: Hand) -> None:
        """G25: the broker is down for the whole run, and everything is told."""
        job_id = add(station.registry)
        with station.listening(rescan_sec=NEVER) as listener:
            for _ in range(20):
                hand.post(job_id, "progress")
            listener.until(lambda: len(listener.events(job_id)) == 20, "all of them")
            listener.quiet(0.3)
            assert listener.seqs(job_id) == list(range(1, 21))
            assert {one.origin for one in listener.events()} == {Origin.REGISTRY}
            assert listener.notices(NoticeKind.FILLED)
            assert listener.events()[4].event.detail == "number 5"
            assert not listener.notices(NoticeKind.GAP)

    def test_events_are_read_from_the_audit_log(self, station: Station, hand: Hand) -> None:
        job_id = add(station.registry)
        with station.listening(rescan_sec=NEVER) as listener:
            for _ in range(5):
                hand.taken(hand.post(job_id, "progress"))
            listener.until(lambda: len(listener.events(job_id)) == 5, "all of them")
            listener.quiet(1.5)
            assert listener.seqs(job_id) == [1, 2, 3, 4, 5]

    def test_an_event_is_told_before_the_record_that_it_changed(
        self, station: Station, hand: Hand
    ) -> None:
        job_id = add(station.registry)
        with station.listening(rescan_sec=NEVER) as listener:
            hand.post(job_id, "started")
            listener.until(lambda: listener.changes(job_id), "both")
            about = [item for item in listener.items if not isinstance(item, Notice)]
            assert not isinstance(about[0], JobChanged)
            assert isinstance(about[1], JobChanged)

    def test_a_job_that_is_new_is_told_from_its_first_event(
        self, station: Station, hand: Hand
    ) -> None:
        add(station.registry, "there must be a folder")
        with station.listening(rescan_sec=NEVER) as listener:
            job_id = add(station.registry)
            hand.post(job_id, "started", "progress", "progress")
            listener.until(lambda: len(listener.events(job_id)) == 3, "all of them")
            assert listener.seqs(job_id) == [1, 2, 3]

    def test_a_job_is_new_though_the_wall_clock_was_set_back(
        self, station: Station, hand: Hand, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """G16: an hour, as when a machine first hears of the right time."""
        add(station.registry, "there must be a folder")
        with station.listening(rescan_sec=NEVER) as listener:
            true = time.time
            monkeypatch.setattr(time, "time", lambda: true() - 3600)
            job_id = add(station.registry)
            hand.post(job_id, "started", "progress", "progress")
            listener.until(lambda: len(listener.events(job_id)) == 3, "all of them")
            assert listener.seqs(job_id) == [1, 2, 3]

    def test_what_happened_before_the_feed_began_is_not_told_again(
        self, station: Station, hand: Hand
    ) -> None:
        job_id = add(station.registry)
        hand.taken(hand.post(job_id, "started", "progress"))
        with station.listening(rescan_sec=NEVER) as listener:
            hand.taken(hand.post(job_id, "progress"))
            listener.until(lambda: listener.events(job_id), "the third")
            listener.quiet(1.5)
            assert listener.seqs(job_id) == [3]

    def test_a_job_brought_back_from_the_archive_does_not_tell_its_old_events(
        self, station: Station, hand: Hand, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job_id = add(station.registry)
        hand.taken(hand.post(job_id, "started", "completed"))
        job = station.registry.get(job_id)
        replace(
            station.path, job.evolve(status=Status.COMPLETED, created_at="2026-01-01T00:00:00Z")
        )
        batch = station.registry.archive([job_id])
        assert batch
        with station.listening(rescan_sec=NEVER) as listener:
            assert station.registry.restore(batch) == [job_id]
            listener.until(lambda: listener.changes(job_id), "it is back")
            listener.quiet(1.5)
            assert listener.events(job_id) == []


def _open_in(folder: Path) -> Counter[str]:
    """Which files below a folder this process has open, and its watches."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
    return Counter(name for name in found if name.startswith(str(folder)) or "inotify" in name)


class TestTheFeedItself:
    def test_two_feeds_hear_the_same(self, station: Station, hand: Hand) -> None:
        job_id = add(station.registry)
        with station.listening() as one, station.listening() as two:
            hand.post(job_id, "started", "progress")
            station.registry.set_status(job_id, Status.ERROR)
            for listener in (one, two):
                listener.hears_all(job_id, 2)
                assert statuses(listener, job_id)[-1] == "error"

    def test_nothing_is_left_of_a_closed_feed(self, station: Station) -> None:
        add(station.registry)
        with station.listening():
            pass  # SQLite keeps a file until the last of a process' connections to it is closed
        threads, files = threading.active_count(), _open_in(station.path)
        for _ in range(4):
            with station.listening() as listener:
                listener.feed.take(0.01)
                assert _open_in(station.path) - files
            assert listener.feed.take(5) == []
            assert threading.active_count() <= threads
            # A watch is let go by a thread of its own, a moment later.
            eventually(lambda: not _open_in(station.path) - files, "all is let go")

    def test_a_feed_that_fails_says_so_to_its_consumer(
        self, station: Station, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job_id = add(station.registry)
        registry = close_later(open_registry(str(station.path)))
        with Feed(registry, registry_path=str(station.path), connect=None) as feed:
            listener = Listener(feed, station.registry)
            monkeypatch.setattr(registry.store, "raw", lambda _: 1 / 0)
            station.registry.set_status(job_id, Status.ERROR)
            with pytest.raises(ZeroDivisionError):
                listener.until(lambda: False, "it raises")

    def test_an_operator_can_ask_for_a_look(self, station: Station) -> None:
        add(station.registry)
        with station.listening(rescan_sec=NEVER) as listener:
            listener.feed.rescan()
            assert [one for one in listener.quiet(0.3) if isinstance(one, JobChanged)] == []
            state = listener.feed.state
            assert state.directory_up
            assert state.broker_up is None
            assert dict(state.dropped) == {}
