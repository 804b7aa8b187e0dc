"""Cleaning: ended jobs leave the registry in a batch, and can come back."""

from __future__ import annotations

import pytest

from mam_core.errors import JobNotFound, TransitionRefused
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores.base import Query
from tests.contract.conftest import MakeRegistry
from tests.support.clock import FakeClock
from tests.support.jobs import add, in_status


def ids(registry: Registry) -> list[str]:
    return [row.job_id for row in registry.store.find(Query())[0]]


def test_a_batch_leaves_and_comes_back_unchanged(make_registry: MakeRegistry) -> None:
    registry = make_registry()
    done, failed = in_status(registry, Status.COMPLETED), in_status(registry, Status.ERROR)
    live = add(registry)
    before = [registry.get(done), registry.get(failed)]
    batch = registry.archive([done, failed])
    assert ids(registry) == [live]
    with pytest.raises(JobNotFound):
        registry.get(done)
    other = make_registry()
    assert sorted(other.restore()) == sorted([done, failed])
    assert [other.get(done), other.get(failed)] == before
    assert other.restore(batch) == [], "it is empty now"


def test_the_newest_batch_comes_back_first_and_a_named_one_by_name(
    registry: Registry, clock: FakeClock
) -> None:
    jobs = [in_status(registry, Status.COMPLETED, prompt=str(i)) for i in range(3)]
    batches = []
    for job_id in jobs:
        batches.append(registry.archive([job_id]))
        clock.pass_time(1)
    with registry.store.transaction() as tx:
        assert tx.batches() == batches
    assert registry.restore() == [jobs[2]]
    assert registry.restore(batches[0]) == [jobs[0]]
    assert registry.restore("no-such-batch") == []
    assert registry.restore("../jobs") == []
    assert registry.restore() == [jobs[1]]
    assert registry.restore() == []


@pytest.mark.parametrize("status", [Status.PENDING, Status.RUNNING])
def test_a_live_job_is_never_cleaned_and_nor_are_its_companions(
    registry: Registry, status: Status
) -> None:
    done = in_status(registry, Status.COMPLETED)
    live = add(registry)
    registry.set_status(live, status)
    with pytest.raises(TransitionRefused, match=f"job {live} is {status}: it is not cleaned"):
        registry.archive([done, live])
    assert set(ids(registry)) == {done, live}


def test_an_unknown_job_spoils_the_batch(registry: Registry) -> None:
    done = in_status(registry, Status.COMPLETED)
    with pytest.raises(JobNotFound):
        registry.archive([done, "nosuchjob"])
    assert ids(registry) == [done]
    assert registry.restore() == []


def test_a_job_named_twice_is_cleaned_once(registry: Registry) -> None:
    done = in_status(registry, Status.COMPLETED)
    registry.archive([done, done])
    assert ids(registry) == []
    assert registry.restore() == [done]


def test_ended_jobs_are_listed_for_cleaning_in_order(registry: Registry) -> None:
    jobs = [in_status(registry, status) for status in Status]
    with registry.store.transaction() as tx:
        assert [row.job_id for row in tx.ended()] == jobs[2:]


def test_an_archived_id_is_not_given_out_again(registry: Registry) -> None:
    """A10: an id means one job, for good."""
    done = in_status(registry, Status.COMPLETED)
    registry.archive([done])
    with registry.store.transaction() as tx:
        assert tx.exists(done)
        assert not tx.exists("neverwas")


def test_the_history_of_a_cleaned_job_stays(registry: Registry) -> None:
    """F16 and the additive lines of decision 18."""
    done = in_status(registry, Status.COMPLETED)
    batch = registry.archive([done])
    registry.restore()
    told = list(registry.store.audit.events(done))
    assert [line["event"] for line in told][-2:] == ["archived", "restored"]
    assert [line["batch"] for line in told[-2:]] == [batch, batch]
    assert [line["n"] for line in told] == [1, 2, 3, 4]


def test_nothing_to_bring_back_where_there_is_no_registry(registry: Registry) -> None:
    assert registry.restore() == []
