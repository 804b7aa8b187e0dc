"""The claim rules by themselves: one list serves the claim and the explanation."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam_core.claims import Rule, may_claim, refusals, slots_of
from mam_core.records import Job, Status
from mam_core.stores.base import Gate, GateKind, Gates, Want
from mam_core.stores.roll import Roll
from tests.support.clock import NOON
from tests.support.rows import each_row


@dataclass
class SomeFacts:
    statuses: dict[str, Status] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    held: Gates = field(default_factory=Gates)

    def status_of(self, job_id: str) -> Status | None:
        return self.statuses.get(job_id)

    def running_in(self, group: str) -> int:
        return self.running.get(group, 0)

    def gates(self) -> Gates:
        return self.held


def a_pending_job(**fields: object) -> Job:
    job = Job("abc12345", Status.PENDING, agent="shell", agent_session="alpha")
    return job.evolve(**fields)


def told(job: Job, facts: SomeFacts, slots: dict[str, int] | None = None) -> list[Rule]:
    return [refusal.rule for refusal in refusals(job, facts, now=NOON, slots=slots or {})]


@each_row(
    ("status", "rules"),
    [
        (Status.COMPLETED, []),
        (Status.PENDING, [Rule.PARENT_UNFINISHED]),
        (Status.RUNNING, [Rule.PARENT_UNFINISHED]),
        (Status.ERROR, [Rule.PARENT_FAILED]),
        (Status.CANCELLED, [Rule.PARENT_FAILED]),
        (None, [Rule.PARENT_GONE]),
    ],
)
def test_what_a_parent_means(status: Status | None, rules: list[Rule]) -> None:
    facts = SomeFacts({"parent01": status} if status else {})
    assert told(a_pending_job(after=("parent01",)), facts) == rules


@pytest.mark.parametrize(("running", "slots", "full"), [(0, 1, 0), (1, 1, 1), (2, 1, 1), (0, 0, 1)])
def test_slots_at_their_edges(running: int, slots: int, full: int) -> None:
    facts = SomeFacts(running={"g": running})
    assert told(a_pending_job(group="g"), facts, {"g": slots}) == [Rule.GROUP_FULL] * full
    assert told(a_pending_job(group=None), facts, {"g": slots}) == []


def test_live_slots_win() -> None:
    assert slots_of("g", Gates((), {"g": 0}), {"g": 4}) == 0
    assert slots_of("g", Gates(), {"g": 4}) == 4
    assert slots_of("g", Gates(), {}) is None


@pytest.mark.parametrize("text", ["never", "", "2026-06-19"])
def test_a_moment_that_nobody_can_read_never_comes(text: str) -> None:
    unreadable = text != "2026-06-19"
    assert told(a_pending_job(not_before=text), SomeFacts()) == [Rule.NOT_YET] * unreadable
    gate = Gate(GateKind.ALL, "", "now", until=text)
    assert told(a_pending_job(), SomeFacts(held=Gates((gate,)))) == [Rule.PAUSED] * unreadable


def test_a_pause_of_the_nameless_group_does_not_touch_jobs_without_a_group() -> None:
    gate = Gate(GateKind.GROUP, "", "now")
    assert told(a_pending_job(group=None), SomeFacts(held=Gates((gate,)))) == []


JOBS = st.builds(
    lambda i, status, label, agent, priority, order: Job(
        f"job{i}", status, agent=agent, agent_session=label, priority=priority, order=order
    ),
    st.integers(0, 30),
    st.sampled_from(Status),
    st.sampled_from("ab"),
    st.sampled_from(["codex", "shell"]),
    st.integers(-2, 2),
    st.integers(0, 5) | st.none(),
)


@given(st.lists(JOBS, max_size=12), st.sampled_from("ab"), st.booleans())
def test_the_next_job_is_the_best_of_those_that_nothing_holds_back(
    jobs: list[Job], label: str, choosy: bool
) -> None:
    """C1, C5, C6, decision 27: against the plainest possible reading of the rules."""
    want = Want(label, frozenset({"shell"}) if choosy else None, NOON, {})
    roll = Roll(jobs)
    allowed = [job for job in roll.in_order() if may_claim(job, want, SomeFacts())]
    best = min(allowed, key=lambda job: -job.priority, default=None)
    assert roll.next_claimable(want, SomeFacts()) == best
    assert all(job.status is Status.PENDING and job.agent_session == label for job in allowed)
