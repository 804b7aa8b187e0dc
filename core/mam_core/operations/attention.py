"""What needs a person, as one list: the most urgent first, and of those the oldest.

A need is made from what is known of a job anyway, its summary and the state that it is
shown in, so that a view can ask for every change and no disk is read. What only the disk
knows (an error's own words, a question's choices) is added to the few that are needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from mam_core.agents.states import Shown, ShownState, moment
from mam_core.errors import MamError
from mam_core.events.event import EventName
from mam_core.operations.answer import open_questions
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.stores.base import Query
from mam_core.summaries import Summary

if TYPE_CHECKING:
    from mam_core.board.why import Help, Stuck
    from mam_core.operations.asked import Asked, Choice
    from mam_core.operations.evidence import Services
    from mam_core.operations.panes import Panes

#: A job that ended badly longer ago than this is history, and nobody's next act.
RECENT_SEC = 24 * 3600.0
#: Of a question or an error: more than a person reads in a list.
MOST_CHARS = 2000
#: So many get their own words from disk, the most urgent ones.
_IN_FULL = 500


class Urgency(StrEnum):
    """How much waits for the person; the last is the highest."""

    LOW = "low"  #: it goes on by itself, later
    NORMAL = "normal"  #: a job is over, or nobody holds it
    HIGH = "high"  #: an agent stands still until somebody answers

    @property
    def rank(self) -> int:
        return _URGENCIES.index(self)


_URGENCIES = tuple(Urgency)


class NeedKind(StrEnum):
    """Why a person is needed; the first is the most urgent."""

    PERMISSION = "permission"  #: its agent asks whether it may do something
    QUESTION = "question"  #: its agent asks something else, or shows a dialog
    LOST = "lost"  #: nobody holds it any more, or it was lost too often
    VALIDATION = "failed validation"
    BUDGET = "budget"  #: an attempt used up its dollars or tokens
    RETRIES = "retries used up"  #: it failed, and nobody will try it again
    STUCK = "cannot run"  #: jobs come after one that failed, or is gone
    UNSERVED = "nobody serves"  #: jobs could be claimed, and nobody does
    QUOTA = "quota"  #: it waits until its agent's usage limit is over

    @property
    def urgency(self) -> Urgency:
        if self in ASKING:
            return Urgency.HIGH
        return Urgency.LOW if self is NeedKind.QUOTA else Urgency.NORMAL


ASKING = frozenset({NeedKind.PERMISSION, NeedKind.QUESTION})
_RANKS = {kind: rank for rank, kind in enumerate(NeedKind)}
_ENDS = {
    Reason.VALIDATION: NeedKind.VALIDATION,
    Reason.LOST: NeedKind.LOST,
    Reason.BUDGET: NeedKind.BUDGET,
    Reason.QUOTA: NeedKind.QUOTA,
}
#: What the rules of a permission are called, by whichever channel.
_PERMITS = ("permission", "can_use_tool", "control_response", "approval", "trust")


class Need(NamedTuple):
    """One of them. `words` and `choices` are the agent's, or an error's: foreign text."""

    kind: NeedKind
    job_id: str
    agent: str
    session: str  #: the label that it runs, or would run, under
    attempt: int
    words: str
    since: float | None  #: None where nobody knows
    question: str = ""  #: by which an answer says that it is meant, where that is known
    choices: tuple[Choice, ...] = ()  #: as its screen offers them; none: yes, no or a text
    jobs: int = 1  #: that need the same; `job_id` is the oldest of them
    about: str = ""  #: by what they hang together, where they do
    help: tuple[Help, ...] = ()

    @property
    def urgency(self) -> Urgency:
        return self.kind.urgency

    @property
    def can_be_answered(self) -> bool:
        """In place, by `answer`."""
        return self.kind in ASKING

    @property
    def place(self) -> tuple[int, float, str]:
        """Where it stands in the list; of unknown age comes last of its kind."""
        since = self.since if self.since is not None else float("inf")
        return _RANKS[self.kind], since, self.job_id

    @property
    def name(self) -> tuple[str, int, str, str]:
        """Equal for what a person would call the same: a question is known by its words, since
        witnesses differ about what kind it is and since when it is asked."""
        if self.kind in ASKING:
            return self.job_id, self.attempt, "asks", self.words
        if self.about:
            return self.about, 0, str(self.kind), ""
        return self.job_id, self.attempt, str(self.kind), ""

    def to_dict(self, now: float) -> dict[str, Any]:
        """For programs."""
        ago = None if self.since is None else round(max(0.0, now - self.since), 3)
        return {
            **self._asdict(),
            "kind": str(self.kind),
            "urgency": str(self.urgency),
            "age_sec": ago,
            "choices": [choice.words for choice in self.choices],
            "help": [help._asdict() for help in self.help],
            "can_be_answered": self.can_be_answered,
        }


def needs(
    job: Summary,
    shown: Shown | None,
    now: float,
    *,
    detail: str = "",
    recent_sec: float = RECENT_SEC,
) -> Need | None:
    """Whether a job needs a person now. `shown` is for one that runs, `detail` for one that
    ended; without them less is said, and nothing wrong."""
    if job.status is Status.RUNNING:
        return _of_running(job, shown) if shown is not None else None
    if job.status is Status.ERROR:
        return _of_error(job, now, detail, recent_sec)
    if job.status is Status.PENDING and job.reason is Reason.QUOTA:
        if job.not_before is not None and now >= job.not_before:
            return None
        return _need(NeedKind.QUOTA, job, detail or _STANDING[NeedKind.QUOTA], job.updated_at)
    return None


def in_full(need: Need, asked: Sequence[Asked]) -> Need:
    """With the oldest open question: its words, its handle, and what can be answered."""
    if not asked:
        return need
    first = asked[0]
    words = first.question.words[:MOST_CHARS] or need.words
    return need._replace(words=words, question=first.question.handle, choices=first.choices)


def need_of(stuck: Stuck) -> Need:
    """For jobs that wait for a person before anybody has claimed them."""
    kind = NeedKind.UNSERVED if stuck.can_run else NeedKind.STUCK
    need = _need(kind, stuck.first, stuck.words, stuck.since)
    return need._replace(jobs=stuck.jobs, about=stuck.about, help=stuck.help)


def attention(
    registry: Registry,
    panes: Panes | None = None,
    *,
    recent_sec: float = RECENT_SEC,
    services: Services | None = None,
) -> list[Need]:
    """All needs, in order, from disk; with `panes` also what the screens offer to choose from,
    with `services` the labels that nobody serves."""
    from mam_core.operations.evidence import block_reasons
    from mam_core.operations.shown import Showing

    wanted = frozenset({Status.RUNNING, Status.ERROR, Status.PENDING})
    jobs, _ = registry.store.find(Query(wanted))
    states, now = Showing(registry).of(jobs), registry.clock.now()
    looked = (needs(job, states.get(job.job_id), now, recent_sec=recent_sec) for job in jobs)
    stuck = block_reasons(registry, services, jobs).stuck(jobs, now)
    needed = [need for need in (*looked, *map(need_of, stuck)) if need is not None]
    found = sorted(needed, key=lambda need: need.place)
    told = [_told(registry, need, panes) for need in found[:_IN_FULL]]
    return told + found[_IN_FULL:]


def _of_running(job: Summary, shown: Shown) -> Need | None:
    if shown.state is ShownState.LOST:
        return _need(NeedKind.LOST, job, shown.words, shown.at)
    if shown.state is not ShownState.WAITING or job.cancel_requested_at is not None:
        return None
    rule = shown.rule.casefold()
    asks = shown.rule == EventName.PERMISSION_REQUIRED or any(word in rule for word in _PERMITS)
    kind = NeedKind.PERMISSION if asks else NeedKind.QUESTION
    return _need(kind, job, shown.words or "the agent waits for a person", shown.at)


def _of_error(job: Summary, now: float, detail: str, recent_sec: float) -> Need | None:
    """A person who set the status by hand knows of it."""
    if job.reason is Reason.OVERRIDE:
        return None
    ended = moment(job.ended_at or job.updated_at)
    if ended is not None and now - ended > recent_sec:
        return None
    kind = _ENDS.get(job.reason, NeedKind.RETRIES) if job.reason else NeedKind.RETRIES
    if kind is NeedKind.RETRIES and job.reason:
        words = f"{job.reason}: {detail}" if detail else str(job.reason)
    else:
        words = detail or _STANDING[kind]
    return _need(kind, job, words, ended)


_STANDING = {
    NeedKind.LOST: "it was lost too often",
    NeedKind.VALIDATION: "what it left behind did not pass",
    NeedKind.BUDGET: "its budget is used up",
    NeedKind.RETRIES: "it failed",
    NeedKind.QUOTA: "its agent met a usage limit",
}


def _need(kind: NeedKind, job: Summary, words: str, since: float | str | None) -> Need:
    at = moment(since) if isinstance(since, str) else since
    words = words[:MOST_CHARS]
    return Need(kind, job.job_id, job.agent, job.agent_session, job.attempt, words, at)


def _told(registry: Registry, need: Need, panes: Panes | None) -> Need:
    """With what its record, its events and its screen say; a job that has changed meanwhile is
    left as it was seen."""
    if need.about:
        return need
    with suppress(MamError, OSError):
        if need.can_be_answered and panes is not None:
            from mam_core.operations.asked import asked

            return in_full(need, asked(registry, need.job_id, panes))
        if need.can_be_answered:
            first = next(iter(open_questions(registry, need.job_id)), None)
            if first is not None:
                words = first.words[:MOST_CHARS] or need.words
                return need._replace(words=words, question=first.handle)
            return need
        job = registry.get(need.job_id)
        now = registry.clock.now()
        if job.status is not Status.RUNNING and job.detail:
            return needs(Summary.of(job), None, now, detail=job.detail) or need
    return need
