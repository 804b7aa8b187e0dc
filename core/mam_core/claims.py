"""Which pending job may be claimed, and if not, why not.

One list of rules serves both questions: a claim takes the first job without a
refusal, and `board.why` explains the refusals of any job to a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from mam_core.clock import parse_stamp
from mam_core.records import Job, Status
from mam_core.stores.base import Facts, Gate, GateKind, Gates, Want


class Rule(StrEnum):
    """What can stand between a job and its claim, in the order in which it is told."""

    NOT_PENDING = "not pending"
    PAUSED = "paused"
    NOT_YET = "not yet"
    PARENT_UNFINISHED = "parent unfinished"
    PARENT_FAILED = "parent failed"
    PARENT_GONE = "parent gone"
    GROUP_FULL = "group full"
    AGENT_NOT_SERVED = "agent not served"

    @property
    def is_upstream(self) -> bool:
        """A job that it comes after is the reason."""
        return self in (Rule.PARENT_UNFINISHED, Rule.PARENT_FAILED, Rule.PARENT_GONE)


class Refusal(NamedTuple):
    """One reason, as a rule for machines and words for people."""

    rule: Rule
    message: str
    name: str = ""  #: of the job, agent or group that is the reason
    gate: Gate | None = None  #: where it is a pause


class Asked(Protocol):
    """As much of a job as the rules look at: a record has it, and so has a line of a list."""

    @property
    def status(self) -> Status: ...
    @property
    def agent(self) -> str: ...
    @property
    def group(self) -> str | None: ...
    @property
    def not_before(self) -> str | None: ...
    @property
    def after(self) -> Sequence[str]: ...


def may_claim(job: Job, want: Want, facts: Facts) -> bool:
    if job.agent_session != want.agent_session:
        return False
    if want.agents is not None and job.agent not in want.agents:
        return False
    return next(refusals(job, facts, now=want.now, slots=want.slots), None) is None


def refusals(
    job: Asked, facts: Facts, *, now: float, slots: Mapping[str, int]
) -> Iterator[Refusal]:
    """Everything that keeps `job` from being claimed by a session of its label right now."""
    if job.status is not Status.PENDING:
        yield Refusal(Rule.NOT_PENDING, f"it is {job.status}")
        return
    gates = facts.gates()
    yield from _pauses(job, gates, now)
    if job.not_before is not None and now < _moment(job.not_before):
        yield Refusal(Rule.NOT_YET, f"not before {job.not_before}")
    yield from _upstreams(job, facts)
    if job.group is not None:
        limit = slots_of(job.group, gates, slots)
        if limit is not None and (running := facts.running_in(job.group)) >= limit:
            words = f"group {job.group} is full: {running} of {limit} running"
            yield Refusal(Rule.GROUP_FULL, words, job.group)


def slots_of(group: str, gates: Gates, slots: Mapping[str, int]) -> int | None:
    """How many jobs of a group may run at once; None for any number."""
    return gates.slots.get(group, slots.get(group))


def is_closed(gate: Gate | None, now: float) -> bool:
    return gate is not None and (gate.until is None or now < _moment(gate.until))


def _pauses(job: Asked, gates: Gates, now: float) -> Iterator[Refusal]:
    for kind, name, words in (
        (GateKind.ALL, "", "everything is paused"),
        (GateKind.AGENT, job.agent, f"agent {job.agent} is paused"),
        (GateKind.GROUP, job.group, f"group {job.group} is paused"),
    ):
        gate = gates.find(kind, name) if name is not None else None
        if gate is not None and is_closed(gate, now):
            until = f" until {gate.until}" if gate.until else f" since {gate.since}"
            why = f": {gate.why}" if gate.why else ""
            yield Refusal(Rule.PAUSED, words + until + why, name or "", gate)


def _upstreams(job: Asked, facts: Facts) -> Iterator[Refusal]:
    for upstream in job.after:
        status = facts.status_of(upstream)
        if status is None:
            words = f"after {upstream}, which is not in the registry"
            yield Refusal(Rule.PARENT_GONE, words, upstream)
        elif status in (Status.ERROR, Status.CANCELLED):
            how = "failed" if status is Status.ERROR else "was cancelled"
            yield Refusal(Rule.PARENT_FAILED, f"after {upstream}, which {how}", upstream)
        elif status is not Status.COMPLETED:
            words = f"after {upstream}, which is {status}"
            yield Refusal(Rule.PARENT_UNFINISHED, words, upstream)


def _moment(text: str) -> float:
    """A stored moment; one that nobody can read never comes, rather than always having come."""
    try:
        return parse_stamp(text)
    except ValueError:
        return float("inf")
