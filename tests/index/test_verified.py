"""A row of the index is a hint: what is handed out was read from its file first.

An edit in place leaves the folder's date alone, so the index cannot know of it.
The clock of its periodic look stands still here: nothing but the check before a
claim can help.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores.base import GateKind, Query
from tests.index.site import Site, assert_same, foreign_record, ids_of
from tests.support.jobs import add, in_status

#: What makes the first of two jobs one that a claim for alpha must not take, or not first.
UNFIT: dict[str, dict[str, Any]] = {
    "cancelled": {"status": "cancelled"},
    "already running": {"status": "running"},
    "of another label": {"agent_session": "beta"},
    "of an agent that is not served": {"agent": "gemini"},
    "of lower priority": {"priority": -9},
    "later in order": {"order": 2**62},
    "not before next century": {"not_before": "2999-01-01T00:00:00Z"},
    "of a group that is paused": {"group": "night"},
    "after a job that is not there": {"after": ["absent"]},
}


class TestTheCandidate:
    @pytest.mark.parametrize("change", UNFIT.values(), ids=UNFIT)
    def test_edited_in_place_just_before_the_claim_is_not_taken_as_it_was(
        self, site: Site, registry: Registry, change: dict[str, Any]
    ) -> None:
        """Issue 3 item 1: verified against the file before a claim is believed."""
        first, second = add(registry), add(registry)
        registry.pause(GateKind.GROUP, "night")
        assert len(ids_of(registry)) == 2
        site.edit_in_place(first, **change)
        edited = site.file(first).read_bytes()

        job = registry.claim("alpha", agents=["shell"])

        assert job is not None
        assert job.job_id == second
        assert site.file(first).read_bytes() == edited

    def test_is_handed_out_as_its_file_is_not_as_its_row_was(
        self, site: Site, registry: Registry
    ) -> None:
        job_id = add(registry, "count the stars")
        assert ids_of(registry) == [job_id]
        site.edit_in_place(job_id, prompt="count the moons", model="big", colour="blue")
        job = registry.claim("alpha")
        assert job is not None
        assert (job.prompt, job.model, job.extra) == ("count the moons", "big", {"colour": "blue"})
        assert_same(site, registry)

    def test_that_got_another_label_is_found_under_it_once_it_was_met(
        self, site: Site, registry: Registry
    ) -> None:
        job_id = add(registry)
        site.edit_in_place(job_id, agent_session="beta")
        assert registry.claim("alpha") is None
        job = registry.claim("beta")
        assert job is not None
        assert job.job_id == job_id

    @pytest.mark.parametrize("junk", [b"", b"{", b"\xff", b"[]", foreign_record("other")])
    def test_that_became_junk_is_passed_over_and_listed_as_unreadable_at_once(
        self, site: Site, registry: Registry, junk: bytes
    ) -> None:
        """The claim has met it, so a list must neither show it as pending nor lose it."""
        first, second = add(registry), add(registry)
        assert len(ids_of(registry)) == 2
        site.file(first).write_bytes(junk)
        job = registry.claim("alpha")
        assert job is not None
        assert job.job_id == second
        assert_same(site, registry, site.open())

    @pytest.mark.parametrize("kind", ["gone", "a folder", "a link", "a pipe"])
    def test_whose_file_became_something_else_is_passed_over(
        self, site: Site, registry: Registry, kind: str
    ) -> None:
        first, second = add(registry), add(registry)
        path = site.file(first)
        path.unlink()
        if kind == "a folder":
            path.mkdir()
        elif kind == "a link":
            path.symlink_to(site.file(second))
        elif kind == "a pipe":
            os.mkfifo(path)
        job = registry.claim("alpha")
        assert job is not None
        assert job.job_id == second
        assert_same(site, registry)

    def test_when_all_are_unfit_nothing_is_claimed_and_nothing_hangs(
        self, site: Site, registry: Registry
    ) -> None:
        ids = [add(registry, f"job {i}") for i in range(len(UNFIT))]
        registry.pause(GateKind.GROUP, "night")
        assert len(ids_of(registry)) == len(UNFIT)
        for job_id, change in zip(ids, UNFIT.values(), strict=True):
            site.edit_in_place(job_id, **change)
        taken = [registry.claim("alpha", agents=["shell"]) for _ in range(3)]
        fit = {ids[4], ids[5]}  # a low priority and a late order are no reason not to
        assert [job and job.job_id for job in taken] == [ids[5], ids[4], None]
        assert {row.job_id for row in registry.store.find(Query())[0] if row.attempt} == fit


class TestTheParent:
    def test_that_a_stranger_reopened_holds_its_child_back(
        self, site: Site, registry: Registry
    ) -> None:
        parent = in_status(registry, Status.COMPLETED, agent_session="beta")
        add(registry, "child", after=[parent])
        assert len(ids_of(registry)) == 2
        site.edit_in_place(parent, status="running")
        assert registry.claim("alpha") is None

    @pytest.mark.parametrize("junk", [b"", foreign_record("other", status="completed")])
    def test_that_became_junk_holds_its_child_back(
        self, site: Site, registry: Registry, junk: bytes
    ) -> None:
        parent = in_status(registry, Status.COMPLETED, agent_session="beta")
        add(registry, "child", after=[parent])
        assert len(ids_of(registry)) == 2
        site.file(parent).write_bytes(junk)
        assert registry.claim("alpha") is None

    def test_completed_in_place_lets_its_child_go_at_the_next_look(
        self, site: Site, registry: Registry
    ) -> None:
        """A claim that is not made is no wrong claim; it comes with the look."""
        parent = add(registry, agent_session="beta")
        child = add(registry, "child", after=[parent])
        assert registry.claim("alpha") is None
        site.edit_in_place(parent, status="completed")
        site.wait_for_look()
        job = registry.claim("alpha")
        assert job is not None
        assert job.job_id == child

    def test_exchanged_in_place_is_forgotten(self, site: Site, registry: Registry) -> None:
        """The record still says revision 1: strangers do not number their edits."""
        old = add(registry, agent_session="beta")
        new = in_status(registry, Status.COMPLETED, agent_session="beta")
        child = add(registry, "child", after=[old])
        assert registry.claim("alpha") is None
        site.edit_in_place(child, after=[new])
        site.wait_for_look()
        assert_same(site, registry)
        job = registry.claim("alpha")
        assert job is not None
        assert job.job_id == child


class TestWhatARegistrationBelieves:
    def test_a_key_is_taken_only_by_a_job_whose_file_says_so(
        self, site: Site, registry: Registry
    ) -> None:
        first = add(registry, key="nightly")
        site.edit_in_place(first, status="completed")
        assert add(registry, key="nightly") != first

    @pytest.mark.parametrize(
        "change", [{"agent_session": "beta"}, {"prompt": "other"}, {"status": "completed"}]
    )
    def test_a_twin_is_one_only_if_its_file_says_so(
        self, site: Site, registry: Registry, change: dict[str, str]
    ) -> None:
        """Decision 22: same label and prompt while one is live."""
        first = add(registry)
        site.edit_in_place(first, **change)
        request = {"prompt": "count the stars", "agent": "shell", "agent_session": "alpha"}
        assert registry.register([request])[0].twin is None

    def test_of_two_live_jobs_with_one_key_the_older_answers(
        self, site: Site, registry: Registry
    ) -> None:
        """A retry can bring a key back that was given again meanwhile."""
        cancelled = [in_status(registry, Status.CANCELLED, key="nightly") for _ in range(6)]
        add(registry, key="nightly")
        for job_id in reversed(cancelled):
            registry.retry(job_id)
        assert add(registry, key="nightly") == cancelled[0]
        assert_same(site, registry)


class TestWhatAListShows:
    def test_a_body_that_no_longer_fits_the_question_is_left_out(
        self, site: Site, registry: Registry
    ) -> None:
        """The record is read after the row, so it is the record that must fit."""
        first, second = add(registry), add(registry)
        assert len(ids_of(registry)) == 2
        site.edit_in_place(first, status="running")
        pending = Query(frozenset({Status.PENDING}))
        bodies = [job for job in registry.store.bodies(pending) if not isinstance(job, tuple)]
        assert [job.job_id for job in bodies] == [second]
        stored = [data for data in registry.store.stored(pending) if isinstance(data, bytes)]
        assert len(stored) == 1
        assert second in stored[0].decode()

    def test_a_record_mended_in_place_and_then_changed_is_no_longer_unreadable(
        self, site: Site, registry: Registry
    ) -> None:
        job_id = add(registry)
        whole = site.file(job_id).read_bytes()
        site.file(job_id).write_bytes(b"{")
        site.wait_for_look()
        assert [row.job_id for row in registry.store.unreadable()] == [job_id]
        site.file(job_id).write_bytes(whole)
        registry.request_cancel(job_id)
        assert_same(site, registry)
