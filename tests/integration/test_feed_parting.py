"""Jobs that are cleaned away, or moved away and back, while a feed looks on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.events import missed
from mam_core.events.feed import NoticeKind, Origin
from mam_core.records import Status
from tests.support.brokers import nothing_left
from tests.support.feeds import Hand, Listener, Station, ear_of
from tests.support.jobs import add
from tests.support.patience import PATIENCE_SEC

NEVER = 3600.0
ODD = (NoticeKind.GAP, NoticeKind.REPEAT, NoticeKind.DROPPED, NoticeKind.LATE)


@pytest.fixture
def station(tmp_path: Path) -> Iterator[Station]:
    made = Station(tmp_path, None)
    add(made.registry, "there must be a folder")
    yield made
    made.close()


@pytest.fixture(params=["nats", "mosquitto"])
def connected(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Station]:
    with nothing_left(tmp_path):
        made = Station(tmp_path, request.param)
        assert made.broker is not None
        with made.broker.ensure_running():
            yield made
        made.close()


def is_gone(listener: Listener, job_id: str) -> None:
    listener.until(lambda: [one.job for one in listener.changes(job_id)][-1:] == [None], "gone")


def words(listener: Listener, job_id: str) -> list[str]:
    return [one.event.event for one in listener.events(job_id)]


def test_a_job_that_ends_and_is_cleaned_at_once_tells_its_last_event(station: Station) -> None:
    job_id = add(station.registry)
    with station.listening(rescan_sec=NEVER) as listener:
        station.registry.publish(job_id, "started")
        listener.hears_all(job_id, 1)
        station.registry.publish(job_id, "progress")
        station.registry.publish(job_id, "completed")
        station.registry.archive([job_id])
        is_gone(listener, job_id)
        assert words(listener, job_id) == ["started", "progress", "completed"]
        assert listener.items.index(listener.events(job_id)[-1]) < listener.items.index(
            listener.changes(job_id)[-1]
        )
        assert listener.notices(*ODD) == []


def test_also_when_its_record_never_showed_an_event(station: Station) -> None:
    """The events from before the feed are not told with it."""
    new, old = add(station.registry), add(station.registry)
    station.registry.publish(old, "started")
    with station.listening(rescan_sec=NEVER, jobs=frozenset({new, old})) as listener:
        for job_id in (new, old):
            station.registry.publish(job_id, "completed")
            Hand(station.registry).taken(station.registry.store.outbox.posts(10))
        station.registry.archive([new, old])
        is_gone(listener, new)
        is_gone(listener, old)
        assert words(listener, new) == words(listener, old) == ["completed"]
        assert listener.notices(*ODD) == []


def test_also_when_nobody_saw_it_come(station: Station) -> None:
    with station.listening(rescan_sec=NEVER) as listener:
        job_id = add(station.registry)
        station.registry.publish(job_id, "started")
        station.registry.publish(job_id, "completed")
        station.registry.archive([job_id])
        listener.until(lambda: len(listener.events(job_id)) == 2, "both events")
        listener.quiet(0.3)
        assert listener.seqs(job_id) == [1, 2]


def test_its_message_that_comes_too_late_is_no_surprise(connected: Station) -> None:
    """At least once, told once: neither a repeat nor an unknown job is complained of."""
    registry = connected.registry
    hand = Hand(registry)
    job_id = add(registry, auth_token="a-token-of-this-job-and-nobody-else")
    with ear_of(connected) as ear, connected.listening(rescan_sec=NEVER) as listener:
        listener.is_up()
        registry.publish(job_id, "started")
        registry.publish(job_id, "completed")
        posts = registry.store.outbox.posts(10)
        registry.archive([job_id])
        for post in posts:
            ear.client.publish(post.topic, post.payload, qos=1).wait_for_publish(PATIENCE_SEC)
        hand.taken(posts)
        is_gone(listener, job_id)
        listener.quiet(1.2)
        assert listener.seqs(job_id) == [1, 2]
        assert listener.notices(*ODD) == []
        assert listener.feed.state.dropped == {}


def test_a_record_that_is_moved_away_and_back_tells_nothing_twice(station: Station) -> None:
    with station.listening(rescan_sec=NEVER) as listener:
        job_id = add(station.registry)
        for _ in range(3):
            station.registry.publish(job_id, "progress")
        listener.hears_all(job_id, 3)
        record, aside = station.path / f"{job_id}.json", station.path / ".aside"
        record.rename(aside)
        is_gone(listener, job_id)
        aside.rename(record)
        listener.until(lambda: listener.changes(job_id)[-1].job is not None, "it is back")
        station.registry.publish(job_id, "progress")
        listener.hears_all(job_id, 4)
        listener.quiet(0.3)
        assert listener.seqs(job_id) == [1, 2, 3, 4]
        assert {one.origin for one in listener.events(job_id)} == {Origin.REGISTRY}


def test_cleaning_what_ended_long_ago_reads_no_history(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clean of 10,000 jobs must not cost a look into 10,000 logs."""
    jobs = [add(station.registry) for _ in range(20)]
    for job_id in jobs:
        station.registry.set_status(job_id, Status.COMPLETED)
    with station.listening(rescan_sec=NEVER) as listener:
        monkeypatch.setattr(missed, "published", pytest.fail)
        station.registry.archive(jobs)
        for job_id in jobs:
            is_gone(listener, job_id)
