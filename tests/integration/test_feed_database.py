"""The feed over a database: the same stream, by change numbers instead of a folder's files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mam_core.errors import StoreError
from mam_core.events.event import EventName
from mam_core.events.feed import JobChanged, NoticeKind, Origin
from mam_core.records import Job, Reason, Status
from mam_core.registry import Registry
from tests.support.feeds import Hand, Listener, Station
from tests.support.jobs import LABEL, add, in_status
from tests.support.patience import eventually
from tests.support.postgres import own_server

#: No rescan comes to the rescue while a test looks at the watch alone.
NEVER = 3600.0


@pytest.fixture(params=["sqlite", "postgres"])
def station(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Station]:
    url = f"sqlite:{tmp_path / 'jobs.sqlite'}"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_schema")
    monkeypatch.setenv("MAM_STORE", url)
    made = Station(tmp_path, None)
    yield made
    made.close()


def statuses(listener: Listener, job_id: str) -> list[Status]:
    return [one.job.status for one in listener.changes(job_id) if isinstance(one.job, Job)]


def test_what_is_there_at_the_beginning_is_not_told(station: Station) -> None:
    add(station.registry)
    with station.listening() as listener:
        assert [one for one in listener.quiet() if isinstance(one, JobChanged)] == []
        assert [one.kind for one in listener.notices()] == [NoticeKind.NO_BROKER]
        assert listener.feed.state.directory_up


def test_the_life_of_a_job_is_told_step_by_step(station: Station) -> None:
    add(station.registry, "there must be a registry")
    with station.listening(rescan_sec=NEVER) as listener:
        job_id = add(station.registry, priority=1)
        listener.until(lambda: len(listener.changes(job_id)) == 1, "registered")
        assert station.registry.claim(LABEL) is not None
        listener.until(lambda: len(listener.changes(job_id)) == 2, "claimed")
        station.registry.finish(job_id, Status.ERROR, attempt=1, reason=Reason.EXIT)
        listener.until(lambda: len(listener.changes(job_id)) == 3, "ended")
        listener.quiet(0.3)
        assert statuses(listener, job_id) == ["pending", "running", "error"]
        assert {one.origin for one in listener.changes()} == {Origin.DIRECTORY}
        assert listener.changes()[-1].job == station.registry.get(job_id)


def test_a_job_that_is_cleaned_away_and_brought_back_is_told_both_times(station: Station) -> None:
    job_id = in_status(station.registry, Status.COMPLETED)
    with station.listening(rescan_sec=NEVER) as listener:
        station.registry.archive([job_id])
        # A notification of before may be late: then the record is told as it was, too.
        listener.until(lambda: [one.job for one in listener.changes(job_id)][-1:] == [None], "gone")
        told = len(listener.changes(job_id))
        station.registry.restore()
        listener.until(lambda: len(listener.changes(job_id)) > told, "back")
        assert listener.changes(job_id)[-1].job == station.registry.get(job_id)


def test_a_burst_is_told_whole(station: Station) -> None:
    add(station.registry)
    with station.listening(rescan_sec=NEVER) as listener:
        ids = {add(station.registry, f"job {number}") for number in range(300)}
        listener.until(lambda: {one.job_id for one in listener.changes()} >= ids, "all of them")


def test_events_that_no_broker_has_are_told_from_the_outbox(station: Station) -> None:
    hand = Hand(station.registry)
    job_id = add(station.registry)
    station.registry.claim(LABEL)
    with station.listening(rescan_sec=NEVER) as listener:
        hand.post(job_id, EventName.STARTED, EventName.PROGRESS, EventName.PROGRESS)
        listener.until(lambda: len(listener.events(job_id)) == 3, "three events")
        assert listener.seqs(job_id) == [1, 2, 3]


def test_a_registry_that_is_made_later_is_followed(station: Station) -> None:
    with station.listening() as listener:
        job_id = add(station.registry)
        listener.until(lambda: listener.changes(job_id), "the first job of all")


def test_a_lost_server_is_said_and_heals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A console over PostgreSQL: grey while the server is away, and nothing missed."""
    with own_server() as server:
        monkeypatch.setenv("MAM_STORE", server.uri)
        station = Station(tmp_path, None)
        job_id = add(station.registry)
        with station.listening(rescan_sec=NEVER) as listener:
            server.kill()
            assert "postgresql://" in listener.hears(NoticeKind.DIRECTORY_LOST).text
            assert not listener.feed.state.directory_up
            server.start()
            eventually(lambda: _claimed(station.registry), "the registry can be written again")
            listener.hears(NoticeKind.DIRECTORY_BACK)
            listener.until(lambda: Status.RUNNING in statuses(listener, job_id), "the claim")
        station.close()


def _claimed(registry: Registry) -> bool:
    with suppress(StoreError):
        return registry.claim(LABEL) is not None
    return False
