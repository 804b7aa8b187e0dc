"""Claims: who gets which job, in which order, and why a job is not handed out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mam_core.claims import Refusal, Rule
from mam_core.errors import InvalidField
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.stores.base import GateKind, Gates, Want
from mam_core.summaries import Summary
from tests.contract.conftest import MakeRegistry
from tests.support.clock import FakeClock
from tests.support.jobs import WORKER, add, claim_all, in_status
from tests.support.rows import each_row


def rules(refusals: Sequence[Refusal]) -> list[Rule]:
    return [refusal.rule for refusal in refusals]


def told(refusals: Sequence[Refusal]) -> list[tuple[Rule, str]]:
    return [(refusal.rule, refusal.message) for refusal in refusals]


def finish_next(registry: Registry, status: Status = Status.COMPLETED) -> str:
    job = registry.claim("alpha")
    assert job is not None
    reason = Reason.EXIT if status is Status.ERROR else None
    registry.finish(job.job_id, status, attempt=job.attempt, reason=reason)
    return job.job_id


class TestWhoGetsWhat:
    def test_the_oldest_of_the_label_becomes_a_running_attempt(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        """C1, C2."""
        first, second = add(registry, "one"), add(registry, "two")
        clock.pass_time(5)
        job = registry.claim("alpha", pid=77)
        assert job is not None
        assert job.job_id == first
        assert (job.status, job.attempt, job.node, job.pid) == (Status.RUNNING, 1, "host", 77)
        assert (job.started_at, job.updated_at) == ("2026-06-19T09:30:05Z", "2026-06-19T09:30:05Z")
        assert job.created_at == "2026-06-19T09:30:00Z"
        assert job.lease is None
        assert registry.get(first) == job
        assert registry.get(second).status is Status.PENDING

    def test_nothing_pending_is_none(self, registry: Registry) -> None:
        """C1: also where there is no registry yet."""
        assert registry.claim("alpha") is None
        add(registry, agent_session="beta")
        assert registry.claim("alpha") is None

    @each_row("near", ["alph", "alpha ", "Alpha", "alpha2", "alpha\u0301"])
    def test_labels_match_exactly(self, registry: Registry, near: str) -> None:
        """C1, C4."""
        add(registry, agent_session=near)
        assert registry.claim("alpha") is None
        assert registry.claim(near) is not None

    def test_labels_partition_and_equal_labels_compete(self, make_registry: MakeRegistry) -> None:
        """C4."""
        one, two = make_registry(), make_registry()
        a1, b1, a2 = (add(one, label, agent_session=label) for label in ("a", "b", "a"))
        takers = [one.claim("a"), two.claim("a"), two.claim("b"), one.claim("a"), two.claim("b")]
        assert [job.job_id if job else None for job in takers] == [a1, a2, b1, None, None]

    def test_higher_priority_first_then_registration(self, registry: Registry) -> None:
        """Decision 27."""
        low, plain, high, second_high = (add(registry, priority=p) for p in (-5, 0, 9, 9))
        assert claim_all(registry) == [high, second_high, plain, low]

    @each_row("status", [Status.RUNNING, Status.COMPLETED, Status.ERROR, Status.CANCELLED])
    def test_only_pending_jobs_are_taken(self, registry: Registry, status: Status) -> None:
        """C5."""
        job_id = in_status(registry, status)
        assert registry.claim("alpha") is None
        assert told(registry.refusals(job_id)) == [(Rule.NOT_PENDING, f"it is {status}")]

    def test_only_agents_that_the_claimer_serves(self, registry: Registry) -> None:
        """Decision 26: what it does not serve stays pending, for others."""
        codex, shell = add(registry, agent="codex"), add(registry, agent="shell")
        assert registry.claim("alpha", agents=[]) is None
        job = registry.claim("alpha", agents=["shell", "aider"])
        assert job is not None
        assert job.job_id == shell
        assert registry.claim("alpha", agents=iter(["shell"])) is None
        assert registry.get(codex).status is Status.PENDING
        assert registry.claim("alpha", agents={"codex"}) is not None

    def test_a_claim_may_come_with_a_lease(self, registry: Registry) -> None:
        """Decision 14."""
        add(registry)
        job = registry.claim("alpha", lease=WORKER)
        assert job is not None
        assert job.lease is not None
        assert (job.lease.owner, job.lease.ttl_sec, job.lease.node) == ("worker-1", 30.0, "host")
        assert (job.lease.boot_id, job.lease.since_boot) == ("boot-one", 1000.0)
        assert job.is_supervised


class TestAfter:
    def test_a_child_waits_until_all_its_parents_are_completed(self, registry: Registry) -> None:
        one, two = add(registry, "one"), add(registry, "two")
        child = add(registry, "child", after=[one, two])
        assert rules(registry.refusals(child)) == [Rule.PARENT_UNFINISHED] * 2
        finish_next(registry)
        assert told(registry.refusals(child)) == [
            (Rule.PARENT_UNFINISHED, f"after {two}, which is pending")
        ]
        job = registry.claim("alpha")
        assert job is not None
        assert job.job_id == two
        assert registry.claim("alpha") is None, "a running parent is not a completed one"
        registry.finish(two, Status.COMPLETED, attempt=1)
        assert registry.refusals(child) == []
        assert claim_all(registry) == [child]

    @each_row(("end", "how"), [(Status.ERROR, "failed"), (Status.CANCELLED, "was cancelled")])
    def test_a_failed_parent_blocks_its_children_with_the_reason(
        self, registry: Registry, end: Status, how: str
    ) -> None:
        parent = add(registry, "parent")
        child = add(registry, "child", after=[parent])
        registry.set_status(parent, end)
        assert registry.claim("alpha") is None
        assert told(registry.refusals(child)) == [
            (Rule.PARENT_FAILED, f"after {parent}, which {how}")
        ]

    def test_a_retried_parent_frees_its_children_in_the_end(self, registry: Registry) -> None:
        parent = add(registry, "parent")
        child = add(registry, "child", after=[parent])
        finish_next(registry, Status.ERROR)
        registry.retry(parent)
        assert finish_next(registry) == parent
        assert claim_all(registry) == [child]

    def test_a_parent_cleaned_away_is_named_and_can_come_back(self, registry: Registry) -> None:
        parent = add(registry, "parent")
        child = add(registry, "child", after=[parent])
        finish_next(registry)
        with registry.store.transaction() as tx:
            assert tx.awaited() == {parent}, "so that `clean` can leave it where it is"
        batch = registry.archive([parent])
        assert rules(registry.refusals(child)) == [Rule.PARENT_GONE]
        assert parent in registry.refusals(child)[0].message
        assert registry.claim("alpha") is None
        registry.restore(batch)
        assert claim_all(registry) == [child]

    def test_a_circle_is_refused_and_changes_nothing(self, registry: Registry) -> None:
        one = add(registry, "one")
        two = add(registry, "two", after=[one])
        three = add(registry, "three", after=[two])
        for parents in ([three], [two], [one], [two, three]):
            with pytest.raises(InvalidField, match=f"job {one} would come after itself"):
                registry.edit(one, {"after": parents})
        assert registry.get(one).after == ()
        assert registry.edit(three, {"after": [one]}).after == (one,)

    def test_an_edit_to_an_unknown_parent_is_refused(self, registry: Registry) -> None:
        job_id = add(registry)
        with pytest.raises(InvalidField, match="there is no job nosuchjob"):
            registry.edit(job_id, {"after": ["nosuchjob"]})


class TestNotBefore:
    def test_a_job_waits_for_its_moment(self, registry: Registry, clock: FakeClock) -> None:
        later, now = add(registry, not_before="+10m"), add(registry)
        assert claim_all(registry) == [now]
        assert told(registry.refusals(later)) == [(Rule.NOT_YET, "not before 2026-06-19T09:40:00Z")]
        clock.pass_time(599)
        assert registry.claim("alpha") is None
        clock.pass_time(1)
        assert claim_all(registry) == [later]

    def test_a_moment_in_the_past_holds_nothing_back(self, registry: Registry) -> None:
        assert claim_all(registry) == []
        job_id = add(registry, not_before="0999-01-01T00:00:00Z")
        assert registry.refusals(job_id) == []
        assert claim_all(registry) == [job_id]


class TestGroups:
    def test_running_jobs_never_exceed_the_slots(self, make_registry: MakeRegistry) -> None:
        registry = make_registry(slots={"night": 2})
        jobs = [add(registry, group="night") for _ in range(3)]
        free = add(registry)
        assert claim_all(registry) == [jobs[0], jobs[1], free]
        assert told(registry.refusals(jobs[2])) == [
            (Rule.GROUP_FULL, "group night is full: 2 of 2 running")
        ]
        registry.finish(jobs[0], Status.COMPLETED, attempt=1)
        assert claim_all(registry) == [jobs[2]]

    def test_slots_count_over_all_labels(self, make_registry: MakeRegistry) -> None:
        registry = make_registry(slots={"night": 1})
        add(registry, group="night", agent_session="a")
        add(registry, group="night", agent_session="b")
        assert registry.claim("a") is not None
        assert registry.claim("b") is None

    def test_no_slots_means_none_and_an_unnamed_group_has_no_limit(
        self, make_registry: MakeRegistry
    ) -> None:
        registry = make_registry(slots={"closed": 0})
        add(registry, group="closed")
        others = [add(registry, group="other") for _ in range(5)]
        assert claim_all(registry) == others

    def test_slots_changed_while_running_win_over_the_settings(
        self, make_registry: MakeRegistry
    ) -> None:
        registry = make_registry(slots={"night": 1})
        jobs = [add(registry, group="night") for _ in range(4)]
        assert claim_all(registry) == jobs[:1]
        set_slots(registry, night=3)
        assert claim_all(registry) == jobs[1:3]
        set_slots(registry, night=1)
        assert registry.claim("alpha") is None, "running jobs go on, no new one starts"
        assert "3 of 1 running" in registry.refusals(jobs[3])[0].message


def set_slots(registry: Registry, **slots: int) -> None:
    with registry.store.transaction() as tx:
        tx.set_gates(Gates(tx.gates().closed, slots))


class TestPauses:
    @each_row(
        ("kind", "name", "words"),
        [
            (GateKind.ALL, "", "everything is paused"),
            (GateKind.AGENT, "codex", "agent codex is paused"),
            (GateKind.GROUP, "night", "group night is paused"),
        ],
    )
    def test_a_pause_holds_back_what_it_names_until_it_is_lifted(
        self, registry: Registry, kind: GateKind, name: str, words: str
    ) -> None:
        held = add(registry, agent="codex", group="night")
        other = add(registry, agent="shell", group="day")
        registry.pause(kind, name, why="too hot")
        assert claim_all(registry) == ([] if kind is GateKind.ALL else [other])
        assert told(registry.refusals(held)) == [
            (Rule.PAUSED, f"{words} since 2026-06-19T09:30:00Z: too hot")
        ]
        assert registry.resume(kind, name)
        assert not registry.resume(kind, name), "it was already open"
        assert held in claim_all(registry)

    def test_a_host_that_is_drained_claims_nothing_and_others_do(self, registry: Registry) -> None:
        job_id = add(registry)
        registry.pause(GateKind.NODE, registry.node)
        assert claim_all(registry) == []
        assert registry.refusals(job_id) == [], "it is the host that waits, not the job"
        here, registry.node = registry.node, "another"
        assert claim_all(registry) == [job_id]
        registry.node = here

    def test_a_pause_with_an_end_lifts_itself(self, registry: Registry, clock: FakeClock) -> None:
        job_id = add(registry)
        registry.pause(GateKind.ALL, until="2026-06-19T09:31:00Z")
        assert "until 2026-06-19T09:31:00Z" in registry.refusals(job_id)[0].message
        clock.pass_time(59)
        assert registry.claim("alpha") is None
        clock.pass_time(1)
        assert claim_all(registry) == [job_id]

    def test_pauses_stand_beside_each_other_and_survive_a_new_handle(
        self, make_registry: MakeRegistry
    ) -> None:
        registry = make_registry()
        job_id = add(registry, agent="codex", group="night")
        registry.pause(GateKind.AGENT, "codex")
        registry.pause(GateKind.GROUP, "night")
        registry.pause(GateKind.GROUP, "night", why="said again")
        other = make_registry()
        assert rules(other.refusals(job_id)) == [Rule.PAUSED, Rule.PAUSED]
        assert other.resume(GateKind.AGENT, "codex")
        assert "said again" in other.refusals(job_id)[0].message
        assert len(other.store.facts().gates().closed) == 1

    def test_a_pause_does_not_stop_what_is_running(self, registry: Registry) -> None:
        add(registry)
        job = registry.claim("alpha")
        assert job is not None
        registry.pause(GateKind.ALL)
        assert registry.finish(job.job_id, Status.COMPLETED, attempt=1).is_ended

    def test_a_registry_can_be_paused_before_its_first_job(self, registry: Registry) -> None:
        assert not registry.resume(GateKind.ALL)
        registry.pause(GateKind.ALL)
        add(registry)
        assert registry.claim("alpha") is None

    def test_every_refusal_of_a_job_is_told_at_once(self, make_registry: MakeRegistry) -> None:
        registry = make_registry(slots={"night": 0})
        parent = add(registry)
        child = add(registry, group="night", after=[parent], not_before="+1h")
        registry.pause(GateKind.ALL)
        assert rules(registry.refusals(child)) == [
            Rule.PAUSED,
            Rule.NOT_YET,
            Rule.PARENT_UNFINISHED,
            Rule.GROUP_FULL,
        ]


class TestAhead:
    """How many a session of the label takes first, in every store alike."""

    def test_counts_the_more_urgent_and_the_older_that_nothing_holds(
        self, make_registry: MakeRegistry
    ) -> None:
        registry = make_registry(slots={"full": 0, "free": 3})
        add(registry, "older")
        add(registry, "another label", agent_session="beta")
        first = add(registry, "later", not_before="+1h")
        add(registry, "after", after=[first])
        add(registry, "no slot", group="full")
        add(registry, "a slot", group="free")
        add(registry, "paused group", group="night")
        add(registry, "paused agent", agent="gemini")
        job_id = add(registry, "this")
        add(registry, "younger")
        registry.pause(GateKind.GROUP, "night")
        registry.pause(GateKind.AGENT, "gemini")
        assert ahead(registry, job_id) == 2
        add(registry, "urgent", priority=1)
        add(registry, "not urgent", priority=-1)
        assert ahead(registry, job_id) == 3
        registry.pause(GateKind.ALL)
        assert ahead(registry, job_id) == 0

    def test_agrees_with_the_order_of_the_claims(self, registry: Registry) -> None:
        jobs = [add(registry, f"job {at}", priority=at % 3) for at in range(9)]
        places = {job_id: ahead(registry, job_id) for job_id in jobs}
        assert claim_all(registry) == sorted(jobs, key=places.__getitem__)
        assert sorted(places.values()) == list(range(9))


def ahead(registry: Registry, job_id: str) -> int:
    want = Want("alpha", None, registry.clock.now(), registry.slots)
    return registry.store.ahead(want, Summary.of(registry.get(job_id)))
