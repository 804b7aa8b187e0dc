"""The audit log as every store keeps it: which lines, with which facts, in which order."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from mam_core.clock import fine_stamp
from mam_core.records import REDACTED, Reason, Status
from mam_core.registry import Registry
from tests.support.clock import FakeClock
from tests.support.jobs import LABEL, WORKER, add, running
from tests.support.rows import each_row

PASSWORD = "the-broker-password"
TOKEN = "the-token-of-this-job"


def lines(registry: Registry, job_id: str) -> list[dict[str, Any]]:
    return list(registry.store.audit.events(job_id))


def test_a_whole_life_is_told_line_by_line(registry: Registry, clock: FakeClock) -> None:
    """F4, F5, F6, F7, F10, C7 and decision 18."""
    job_id = add(registry)
    steps: list[Callable[[], object]] = [
        lambda: registry.edit(job_id, {"priority": 2}),
        lambda: registry.claim("alpha"),
        lambda: registry.heartbeat(job_id, WORKER),
        lambda: registry.heartbeat(job_id, WORKER),
        lambda: registry.next_seq(job_id),
        lambda: registry.requeue(job_id, Reason.LOST, attempt=1, detail="gone"),
        lambda: registry.claim("alpha", lease=WORKER),
        lambda: registry.request_cancel(job_id, "enough"),
        lambda: registry.finish(job_id, Status.CANCELLED, attempt=2, reason=Reason.CANCELLED),
        lambda: registry.retry(job_id),
        lambda: registry.claim("alpha"),
        lambda: registry.finish(job_id, Status.ERROR, attempt=3, reason=Reason.EXIT, detail="3"),
        lambda: registry.set_status(job_id, Status.COMPLETED),
    ]
    for step in steps:
        clock.pass_time(0.25)
        step()
        status = registry.store.audit.status(job_id)
        assert status is not None
        assert status["status"] == registry.get(job_id).status
    told = lines(registry, job_id)
    assert [line["n"] for line in told] == list(range(1, len(told) + 1))
    assert [(x["event"], x.get("from"), x.get("to"), x.get("cause")) for x in told] == [
        ("registered", None, None, None),
        ("edited", None, None, None),
        ("status_changed", "pending", "running", "claim"),
        ("leased", None, None, None),
        ("status_changed", "running", "pending", "requeue"),
        ("status_changed", "pending", "running", "claim"),
        ("cancel_requested", None, None, None),
        ("status_changed", "running", "cancelled", "end"),
        ("status_changed", "cancelled", "pending", "retry"),
        ("status_changed", "pending", "running", "claim"),
        ("status_changed", "running", "error", "end"),
        ("status_changed", "error", "completed", "override"),
    ]
    assert [line["attempt"] for line in told] == [0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3]
    assert all(line["by"] == "ann" and line["job_id"] == job_id for line in told)
    stamps = [line["timestamp"] for line in told]
    assert stamps == sorted(stamps)
    assert stamps[0] == "2026-06-19T09:30:00.000Z"
    revisions = [line["revision"] for line in told]
    assert revisions == sorted(set(revisions))
    assert (told[4]["reason"], told[4]["detail"]) == ("lost", "gone")
    assert told[6]["why"] == "enough"
    assert (told[10]["reason"], told[10]["detail"]) == ("exit", "3")


@each_row(
    ("verb", "cause", "to"),
    [("cancel", "cancel", "cancelled"), ("override", "override", "running")],
)
def test_who_moved_a_job_is_told_by_its_cause(
    registry: Registry, verb: str, cause: str, to: str
) -> None:
    """F7, decision 15."""
    job_id = add(registry)
    if verb == "cancel":
        registry.request_cancel(job_id, "not needed")
    else:
        registry.set_status(job_id, Status.RUNNING)
    last = lines(registry, job_id)[-1]
    assert (last["event"], last["from"], last["to"], last["cause"]) == (
        "status_changed",
        "pending",
        to,
        cause,
    )


def test_an_edit_keeps_the_old_values_in_its_line(registry: Registry) -> None:
    job_id = add(registry, "old words", priority=1)
    registry.edit(job_id, {"prompt": "new words", "priority": 1, "expected_artifacts": ["o"]})
    assert lines(registry, job_id)[-1]["changed"] == {
        "prompt": {"from": "old words", "to": "new words"},
        "expected_artifacts": {"from": [], "to": ["o"]},
    }


def test_meta_is_the_record_as_registered_and_never_changes(registry: Registry) -> None:
    """F3, X8."""
    job_id = add(registry, "별을 세어라")
    as_registered = json.loads(registry.store.raw(job_id))
    registry.edit(job_id, {"prompt": "other"})
    registry.set_status(job_id, Status.COMPLETED)
    assert registry.store.audit.meta(job_id) == as_registered


def test_no_secret_reaches_the_history(registry: Registry) -> None:
    """Decision 10, X8: a marker stands where a secret stood."""
    job = running(
        registry,
        broker={"host": "b", "port": 1, "username": "user", "password": PASSWORD},
        auth_token=TOKEN,
    )
    registry.finish(job.job_id, Status.ERROR, attempt=1, reason=Reason.EXIT)
    new_token = registry.retry(job.job_id).auth_token
    assert new_token
    meta = registry.store.audit.meta(job.job_id)
    assert meta is not None
    assert (meta["auth_token"], meta["broker"]["password"]) == (REDACTED, REDACTED)
    assert meta["broker"]["username"] == "user"
    everything = json.dumps(meta).encode() + b"".join(registry.store.audit.lines(job.job_id))
    for secret in (PASSWORD, TOKEN, new_token):
        assert secret.encode() not in everything


def test_status_holds_the_current_status_only(registry: Registry, clock: FakeClock) -> None:
    """F5, C7."""
    job = running(registry)
    clock.pass_time(7)
    registry.finish(job.job_id, Status.COMPLETED, attempt=1)
    assert registry.store.audit.status(job.job_id) == {
        "job_id": job.job_id,
        "status": "completed",
        "updated_at": "2026-06-19T09:30:07Z",
    }


def test_what_was_refused_leaves_no_status_behind(registry: Registry) -> None:
    """Decision 6: the refusal of a zombie is a line, not a change."""
    job = running(registry)
    registry.requeue(job.job_id, Reason.LOST, attempt=1)
    before = registry.store.audit.status(job.job_id)
    with pytest.raises(Exception, match="attempt 1"):
        registry.finish(job.job_id, Status.COMPLETED, attempt=1)
    assert registry.store.audit.status(job.job_id) == before
    assert lines(registry, job.job_id)[-1]["event"] == "refused"


def test_jobs_have_histories_of_their_own(registry: Registry) -> None:
    """A16, F4."""
    ids = [add(registry, f"job {i}") for i in range(10)]
    for job_id in ids:
        registry.claim("alpha")
        registry.finish(job_id, Status.COMPLETED, attempt=1)
    assert sorted(registry.store.audit.job_ids()) == sorted(ids)
    for job_id in ids:
        told = lines(registry, job_id)
        assert [(line["n"], line["job_id"]) for line in told] == [(n, job_id) for n in (1, 2, 3)]


class TestDates:
    """Of two writers one may have read its clock before the other, and written after it."""

    def note(self, registry: Registry, job_id: str, *times: float) -> list[str]:
        """Lines by clocks that say this; how all lines are dated then."""
        for at in times:
            line = {"timestamp": fine_stamp(at), "event": "received", "job_id": job_id}
            registry.store.audit.append(job_id, line)
        return [line.get("timestamp", "") for line in lines(registry, job_id)]

    @pytest.fixture
    def job_id(self, registry: Registry, clock: FakeClock) -> str:
        clock.wall = time.time() - 10.0
        return add(registry)

    def test_never_go_back_from_one_line_to_the_next(
        self, registry: Registry, clock: FakeClock, job_id: str
    ) -> None:
        now = clock.wall
        told = self.note(registry, job_id, now + 1.0, now + 0.998, now + 2.0, now - 5.0)
        assert told[1:] == [fine_stamp(now + after) for after in (1.0, 1.0, 2.0, 2.0)]

    def test_of_a_change_neither(self, registry: Registry, clock: FakeClock, job_id: str) -> None:
        """Also of a claim that a database makes in one statement."""
        self.note(registry, job_id, clock.wall + 1.0)
        assert registry.claim(LABEL) is not None
        registry.finish(job_id, Status.COMPLETED, attempt=1)
        told = lines(registry, job_id)
        assert [line["event"] for line in told[2:]] == ["status_changed", "status_changed"]
        assert {line["timestamp"] for line in told[1:]} == {fine_stamp(clock.wall + 1.0)}
        assert [line["n"] for line in told] == [1, 2, 3, 4]

    def test_of_several_lines_at_once_neither(self, registry: Registry, job_id: str) -> None:
        now = time.time()
        both = [
            {"timestamp": fine_stamp(at), "event": "received", "job_id": job_id}
            for at in (now + 1.0, now)
        ]
        assert registry.store.audit.append_all(job_id, both)
        assert [line["timestamp"] for line in lines(registry, job_id)[1:]] == [
            fine_stamp(now + 1.0)
        ] * 2

    def test_a_clock_that_is_set_back_far_is_believed(
        self, registry: Registry, job_id: str
    ) -> None:
        """Else one wrong hour would stay in this history until it is over; `n` has the order."""
        now = time.time()
        told = self.note(registry, job_id, now + 3600.0, now, now + 1.0)
        assert told[1:] == [fine_stamp(now + after) for after in (3600.0, 0.0, 1.0)]

    def test_a_line_of_another_form_dates_no_other(self, registry: Registry, job_id: str) -> None:
        strange = {"timestamp": "later than all", "event": "received", "job_id": job_id}
        registry.store.audit.append(job_id, strange)
        registry.store.audit.append(job_id, {"event": "received", "job_id": job_id})
        now = time.time()
        assert self.note(registry, job_id, now)[-1] == fine_stamp(now)
        assert lines(registry, job_id)[1]["timestamp"] == "later than all"
