"""What a person does to jobs: cancel, retry, edit, and set a status by hand."""

from __future__ import annotations

from typing import Any

import pytest

from mam_core.errors import BadJobId, BadStatus, InvalidField, JobNotFound, TransitionRefused
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.stores.base import NameKind
from tests.support.clock import FakeClock
from tests.support.jobs import WORKER, add, in_status, running
from tests.support.rows import each_row

ANY = list(Status)


def test_those_that_wait_are_counted_by_label(registry: Registry) -> None:
    assert dict(registry.store.queued()) == {}
    add(registry)
    add(registry, "another")
    add(registry, agent_session="beta")
    running(registry, agent_session="gamma")
    assert dict(registry.store.queued()) == {"alpha": 2, "beta": 1}


class TestCancel:
    def test_a_pending_job_is_cancelled_at_once(self, registry: Registry) -> None:
        """O11, O14."""
        job_id = add(registry)
        job = registry.request_cancel(job_id, "not needed")
        assert (job.status, job.reason, job.detail) == (
            Status.CANCELLED,
            Reason.CANCELLED,
            "not needed",
        )
        assert job.ended_at is not None
        assert registry.claim("alpha") is None

    def test_an_unsupervised_running_job_is_cancelled_at_once(self, registry: Registry) -> None:
        """Decision 14: there is no worker to ask."""
        job = running(registry)
        assert registry.request_cancel(job.job_id).status is Status.CANCELLED

    def test_a_leased_job_is_asked_through_its_worker(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        job = running(registry, lease=WORKER)
        clock.pass_time(5)
        asked = registry.request_cancel(job.job_id, "too slow")
        assert (asked.status, asked.is_cancelling) == (Status.RUNNING, True)
        assert asked.cancel_requested_at == "2026-06-19T09:30:05Z"
        assert asked.cancel_requested_by == "ann"
        clock.pass_time(5)
        assert registry.request_cancel(job.job_id) == asked, "asking twice is asking once"
        done = registry.finish(
            job.job_id, Status.CANCELLED, attempt=1, reason=Reason.CANCELLED, detail="ended"
        )
        assert (done.status, done.is_cancelling) == (Status.CANCELLED, False)

    @each_row("status", [Status.COMPLETED, Status.ERROR, Status.CANCELLED])
    def test_a_job_that_has_ended_is_returned_as_it_is(
        self, registry: Registry, status: Status
    ) -> None:
        job_id = in_status(registry, status)
        before = registry.get(job_id)
        assert registry.request_cancel(job_id) == before == registry.get(job_id)


class TestRetry:
    @each_row("end", [Status.ERROR, Status.CANCELLED])
    def test_it_waits_again_with_a_full_budget_and_a_new_token(
        self, registry: Registry, clock: FakeClock, end: Status
    ) -> None:
        """Decisions 6 and 17, O12, O15."""
        job = running(registry, auth_token=True, not_before="2026-06-19T09:00:00Z")
        registry.next_seq(job.job_id)
        registry.finish(job.job_id, end, attempt=1, reason=Reason.EXIT, detail="code 3")
        clock.pass_time(9)
        again = registry.retry(job.job_id)
        assert again.job_id == job.job_id
        assert (again.status, again.attempt, again.failures) == (Status.PENDING, 1, 0)
        assert (again.reason, again.detail, again.ended_at) == (None, None, None)
        assert (again.not_before, again.started_at, again.node) == (None, None, None)
        assert again.last_seq == 1, "event numbers go on"
        assert again.auth_token not in (None, job.auth_token)
        claimed = registry.claim("alpha")
        assert claimed is not None
        assert claimed.attempt == 2

    def test_without_a_token_there_is_none_to_renew(self, registry: Registry) -> None:
        job_id = in_status(registry, Status.ERROR)
        assert registry.retry(job_id).auth_token is None

    @each_row("status", [Status.PENDING, Status.RUNNING, Status.COMPLETED])
    def test_anything_else_is_refused_and_says_why(
        self, registry: Registry, status: Status
    ) -> None:
        """O15."""
        job_id = add(registry)
        registry.set_status(job_id, status)
        before = registry.get(job_id)
        with pytest.raises(TransitionRefused, match=f"is {status}: only a job that ended as error"):
            registry.retry(job_id)
        assert registry.get(job_id) == before

    def test_a_wish_to_cancel_does_not_follow_into_the_next_attempt(
        self, registry: Registry
    ) -> None:
        job = running(registry, lease=WORKER)
        registry.request_cancel(job.job_id)
        registry.finish(job.job_id, Status.CANCELLED, attempt=1, reason=Reason.CANCELLED)
        again = registry.retry(job.job_id)
        assert (again.cancel_requested_at, again.cancel_requested_by) == (None, None)


class TestEdit:
    def test_a_pending_job_takes_new_values(self, registry: Registry, clock: FakeClock) -> None:
        job_id = add(registry, "old words", timeout_sec=60)
        clock.pass_time(1)
        job = registry.edit(
            job_id, {"prompt": "new words", "timeout_sec": 90, "agent_session": "b"}
        )
        assert (job.prompt, job.timeout_sec, job.agent_session) == ("new words", 90, "b")
        assert job.updated_at == "2026-06-19T09:30:01Z"
        assert registry.get(job_id) == job
        assert registry.claim("alpha") is None
        assert registry.claim("b") is not None

    def test_values_that_are_the_same_change_nothing(self, registry: Registry) -> None:
        job_id = add(registry, "words")
        before = registry.get(job_id)
        assert registry.edit(job_id, {"prompt": "words", "expected_artifacts": []}) == before
        assert registry.get(job_id) == before
        assert len(list(registry.store.audit.events(job_id))) == 1

    @each_row("status", [Status.RUNNING, Status.COMPLETED, Status.ERROR, Status.CANCELLED])
    def test_only_a_pending_job_is_edited(self, registry: Registry, status: Status) -> None:
        job_id = in_status(registry, status)
        with pytest.raises(TransitionRefused, match=f"is {status}: only a pending job"):
            registry.edit(job_id, {"priority": 3})

    @each_row(
        "name", ["key", "topic_prefix", "broker", "auth_token", "status", "job_id", "nonsense"]
    )
    def test_what_cannot_be_edited_is_named(self, registry: Registry, name: str) -> None:
        job_id = add(registry)
        with pytest.raises(InvalidField, match=f"'{name}' cannot be edited; what can: prompt"):
            registry.edit(job_id, {name: "x", "priority": 1})
        assert registry.get(job_id).priority == 0

    @each_row("values", [{"timeout_sec": 0}, {"prompt": ""}, {"after": ["nosuchjob"]}])
    def test_a_bad_value_changes_nothing(self, registry: Registry, values: dict[str, Any]) -> None:
        job_id = add(registry)
        before = registry.get(job_id)
        with pytest.raises(InvalidField):
            registry.edit(job_id, {"priority": 5, **values})
        assert registry.get(job_id) == before


class TestOverride:
    @each_row("new", ANY)
    @each_row("old", ANY)
    def test_any_status_can_be_set_from_any(
        self, registry: Registry, old: Status, new: Status
    ) -> None:
        """A8, decision 15."""
        job_id = add(registry)
        registry.set_status(job_id, old)
        before = registry.get(job_id)
        after = registry.set_status(job_id, new)
        assert after.status is new
        assert registry.get(job_id) == after
        if old is new:
            assert after == before
        else:
            assert after.attempt == before.attempt + (new is Status.RUNNING)
            assert (after.ended_at is not None) == new.is_ended
            assert (after.reason is Reason.OVERRIDE) == new.is_ended
            assert after.lease is None

    def test_setting_a_leased_job_ends_its_lease(self, registry: Registry) -> None:
        job = running(registry, lease=WORKER)
        after = registry.set_status(job.job_id, Status.COMPLETED)
        assert (after.lease, after.pid) == (None, None)

    def test_a_status_that_is_none_is_refused(self) -> None:
        """A8."""
        for text in ("done", "", "PENDING", "claimed", "failed"):
            with pytest.raises(BadStatus, match="say pending, running"):
                Status.parse(text)


@each_row("job_id", ["../x", "", "a" * 300, "a\0b", "a/b", ".hidden", "-x", "가"])
def test_a_bad_id_is_refused_by_every_verb(registry: Registry, job_id: str) -> None:
    """A10."""
    add(registry)
    for verb in (
        lambda: registry.get(job_id),
        lambda: registry.store.raw(job_id),
        lambda: registry.retry(job_id),
        lambda: registry.request_cancel(job_id),
        lambda: registry.edit(job_id, {"priority": 1}),
        lambda: registry.set_status(job_id, Status.ERROR),
        lambda: registry.next_seq(job_id),
        lambda: registry.heartbeat(job_id, WORKER),
        lambda: registry.archive([job_id]),
        lambda: registry.refusals(job_id),
    ):
        with pytest.raises(BadJobId):
            verb()


def test_an_unknown_id_is_said_to_be_unknown(registry: Registry) -> None:
    """E6, E7."""
    for _ in range(2):  # before there is a registry, and in one
        for verb in (registry.get, registry.retry, registry.request_cancel, registry.next_seq):
            with pytest.raises(JobNotFound, match="there is no job nosuchjob"):
                verb("nosuchjob")
        add(registry)


def test_names_that_jobs_use_are_known_one_by_one_and_all_together(registry: Registry) -> None:
    for kind in NameKind:
        assert (registry.store.has(kind, "x"), list(registry.store.names(kind))) == (False, [])
    add(registry, group="night")
    done = add(registry, "another", agent_session="béta")
    registry.set_status(done, Status.COMPLETED)
    running(registry, agent_session="gamma")
    assert registry.store.names(NameKind.LABEL) == ["alpha", "béta", "gamma"]
    assert registry.store.names(NameKind.AGENT) == ["shell"]
    assert "night" in registry.store.names(NameKind.GROUP)
    assert registry.store.names(NameKind.NODE) == [registry.node]
    for label in ("alpha", "béta", "gamma"):
        assert registry.store.has(NameKind.LABEL, label)
    assert registry.store.has(NameKind.GROUP, "night")
    assert registry.store.has(NameKind.NODE, registry.node)
    for nobody in ("alph", "ALPHA", "", "%", "alpha' OR 1 --", "\0"):
        assert not registry.store.has(NameKind.LABEL, nobody)
