"""Which pending job may be claimed, and if not, why not.

One list of rules serves both questions: a claim takes the first job without a
refusal, and ``mam why`` prints the refusals of one job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from mam_core.clock import parse_stamp
from mam_core.records import Job, Status
from mam_core.stores.base import Facts, Gate, GateKind, Gates, Want


class Rule(StrEnum):
    """What can stand between a job and its claim."""

    NOT_PENDING = "not pending"
    OTHER_LABEL = "other label"
    AGENT_NOT_SERVED = "agent not served"
    NOT_YET = "not yet"
    PARENT_UNFINISHED = "parent unfinished"
    PARENT_FAILED = "parent failed"
    PARENT_GONE = "parent gone"
    PAUSED = "paused"
    GROUP_FULL = "group full"


class Refusal(NamedTuple):
    """One reason, as a rule for machines and a sentence for people."""

    rule: Rule
    message: str


def may_claim(job: Job, want: Want, facts: Facts) -> bool:
    if job.agent_session != want.agent_session:
        return False
    if want.agents is not None and job.agent not in want.agents:
        return False
    return next(refusals(job, facts, now=want.now, slots=want.slots), None) is None


def refusals(job: Job, facts: Facts, *, now: float, slots: Mapping[str, int]) -> Iterator[Refusal]:
    """Everything that keeps `job` from being claimed by a session of its label right now."""
    if job.status is not Status.PENDING:
        yield Refusal(Rule.NOT_PENDING, f"it is {job.status}")
        return
    gates = facts.gates()
    yield from _pauses(job, gates, now)
    if job.not_before is not None and now < _moment(job.not_before):
        yield Refusal(Rule.NOT_YET, f"it may not start before {job.not_before}")
    yield from _parents(job, facts)
    if job.group is not None:
        limit = slots_of(job.group, gates, slots)
        if limit is not None and (running := facts.running_in(job.group)) >= limit:
            words = f"group {job.group} runs {running} of {limit} at once"
            yield Refusal(Rule.GROUP_FULL, words)


def slots_of(group: str, gates: Gates, slots: Mapping[str, int]) -> int | None:
    """How many jobs of a group may run at once; None for any number."""
    return gates.slots.get(group, slots.get(group))


def is_closed(gate: Gate | None, now: float) -> bool:
    return gate is not None and (gate.until is None or now < _moment(gate.until))


def _pauses(job: Job, gates: Gates, now: float) -> Iterator[Refusal]:
    for kind, name, words in (
        (GateKind.ALL, "", "everything is paused"),
        (GateKind.AGENT, job.agent, f"agent {job.agent} is paused"),
        (GateKind.GROUP, job.group, f"group {job.group} is paused"),
    ):
        gate = gates.find(kind, name) if name is not None else None
        if gate is not None and is_closed(gate, now):
            until = f" until {gate.until}" if gate.until else f" since {gate.since}"
            why = f": {gate.why}" if gate.why else ""
            yield Refusal(Rule.PAUSED, words + until + why)


def _parents(job: Job, facts: Facts) -> Iterator[Refusal]:
    for parent in job.after:
        status = facts.status_of(parent)
        if status is None:
            yield Refusal(
                Rule.PARENT_GONE, f"it comes after job {parent}, which is not in the registry"
            )
        elif status in (Status.ERROR, Status.CANCELLED):
            words = f"it comes after job {parent}, which ended as {status}"
            yield Refusal(Rule.PARENT_FAILED, words)
        elif status is not Status.COMPLETED:
            words = f"it comes after job {parent}, which is {status}"
            yield Refusal(Rule.PARENT_UNFINISHED, words)


def _moment(text: str) -> float:
    """A stored moment; one that nobody can read never comes, rather than always having come."""
    try:
        return parse_stamp(text)
    except ValueError:
        return float("inf")
