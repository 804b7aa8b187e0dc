"""The state that a job is shown in, with the witness that says so: facts in, sentence out.

`running` on disk is one thing; what its agent is doing is another. Everything here is a
pure function of what was read before, so that the console can ask it for every row, and
so that each state has a witness, a rule and an age.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from mam_core.agents.hearing import Heard
from mam_core.agents.signs import AgentState, Channel
from mam_core.clock import parse_stamp
from mam_core.events.event import EventName
from mam_core.limits import Limit, NearLimit, is_doubtful
from mam_core.records import Job, Status
from mam_core.summaries import Memory
from mam_core.table import age
from mam_core.tmux.facts import PaneFact

if TYPE_CHECKING:
    from mam_core.board.why import Hold

#: A worker renews its lease three times in its term; so long without it is late.
_LATE = 2 / 3


class ShownState(StrEnum):
    """What a person sees; only the five statuses are ever on disk."""

    QUEUED = "queued"
    BLOCKED = "blocked"
    STARTING = "starting"
    WORKING = "working"
    WAITING = "waiting for input"
    IDLE = "idle"
    FINISHING = "finishing"
    CANCELLING = "cancelling"
    STALE = "stale"
    LOST = "lost"
    ENDED = "ended"

    @property
    def word(self) -> str:
        """Short enough for a column."""
        return self.split()[0]


class Shown(NamedTuple):
    """A state and who says so. `words` may be the agent's: foreign text."""

    state: ShownState
    words: str
    channel: str  #: a `Channel`, or "registry", "lease", "event"
    rule: str
    at: float | None  #: since when; None where nobody knows
    heard_at: float | None = None  #: when anything was heard of it last, while it runs
    limit: NearLimit | None = None  #: what ends it next, while it runs
    memory: Memory | None = None  #: as its worker told of it last

    def is_doubtful(self, now: float) -> bool:
        """Its witness is weak or old."""
        seen_at = max(self.at or 0.0, self.heard_at or 0.0)
        limit = str(self.limit.limit) if self.limit is not None else ""
        return is_doubtful(self.state.word, self.channel, limit, seen_at, now)

    def sentence(self, now: float) -> str:
        words = f": {self.words}" if self.words else ""
        return f"{self.state}{words} ({self.evidence(now)})"

    def evidence(self, now: float) -> str:
        ago = f", {age(now - self.at)} ago" if self.at is not None else ""
        return f"{self.channel}: {self.rule}{ago}"

    def to_dict(self, now: float) -> dict[str, Any]:
        ago = None if self.at is None else round(max(0.0, now - self.at), 3)
        return {
            **self._asdict(),
            "state": str(self.state),
            "age_sec": ago,
            "doubtful": self.is_doubtful(now),
            "memory": None if self.memory is None else self.memory._asdict(),
            "limit": None if self.limit is None else self.limit.to_dict(now),
        }


class LeaseFacts(NamedTuple):
    """How a lease stands, on whichever clock it could be measured."""

    owner: str
    ttl_sec: float
    age_sec: float | None  #: since it was renewed; None for one of an earlier boot
    is_over: bool

    @property
    def is_late(self) -> bool:
        return self.is_over or (self.age_sec is not None and self.age_sec > _LATE * self.ttl_sec)


class Pane(NamedTuple):
    """What tmux says of a job's pane; that tmux could not be asked is no `Pane` at all."""

    fact: PaneFact | None  #: None: two looks found it gone


def shown(
    job: Job,
    now: float,
    *,
    holds: tuple[Hold, ...] = (),
    lease: LeaseFacts | None = None,
    heard: Heard | None = None,
    pane: Pane | None = None,
) -> Shown:
    if job.status is Status.PENDING:
        return _pending(job, holds)
    if job.status is not Status.RUNNING:
        words = ": ".join(filter(None, (str(job.reason or ""), job.detail or "")))
        return Shown(ShownState.ENDED, words, "registry", str(job.status), moment(job.ended_at))
    if heard is None or heard.attempt != job.attempt:
        heard = Heard(job.attempt)
    found = (
        _lost(job, now, lease, heard, pane)
        or _cancelling(job)
        or _stale(now, lease)
        or _finishing(heard)
        or _by_agent(heard)
        or _claimed(job)
    )
    return found._replace(
        heard_at=heard.last.at if heard.last is not None else None,
        limit=near_limit(job, found.state, heard),
        memory=heard.memory,
    )


def near_limit(job: Job, state: ShownState, heard: Heard) -> NearLimit | None:
    """What ends an attempt next. Its silence counts from where it was told of: until then the
    worker sees work that events do not show. Without a worker, events are all there is."""
    began = moment(job.started_at)
    if job.status is not Status.RUNNING or began is None:
        return None
    wall = NearLimit(Limit.WALL, began + job.timeout_sec)
    if state is ShownState.WAITING:
        return wall._replace(limit=Limit.WAITING)
    silent = heard.limit if heard.attempt == job.attempt else None
    if job.lease is None:
        seen = heard.last.at if heard.last is not None and heard.attempt == job.attempt else began
        silent = NearLimit(Limit.IDLE, max(seen, began) + job.idle_timeout_sec)
    return silent if silent is not None and silent.ends_at < wall.ends_at else wall


def _pending(job: Job, holds: tuple[Hold, ...]) -> Shown:
    since = moment(job.updated_at)
    if holds:
        words = "; ".join(hold.words for hold in holds)
        return Shown(ShownState.BLOCKED, words, "registry", str(holds[0].rule), since)
    return Shown(ShownState.QUEUED, "", "registry", str(job.status), since)


def _lost(
    job: Job, now: float, lease: LeaseFacts | None, heard: Heard, pane: Pane | None
) -> Shown | None:
    """Its worker is known not to hold it any more; whether all it ran is gone is not known."""
    if lease is not None and lease.is_over:
        since = None if lease.age_sec is None else now - max(0.0, lease.age_sec - lease.ttl_sec)
        words = heard.stale or f"the lease of {lease.owner} has expired"
        return Shown(ShownState.LOST, words, "lease", "expired", since)
    if pane is None:
        return None
    fact = pane.fact
    if fact is None:
        words = f"its pane in session {job.agent_session} is gone"
        return Shown(ShownState.LOST, words, Channel.PROCESS, "pane gone", None)
    if fact.dead:
        how = f"signal {fact.exit_signal}" if fact.exit_signal else f"exit {fact.exit_code}"
        words = f"the worker in its pane has ended, {how}"
        return Shown(ShownState.LOST, words, Channel.PROCESS, "pane dead", None)
    return None


def _cancelling(job: Job) -> Shown | None:
    if not job.is_cancelling:
        return None
    by = f"asked to end by {job.cancel_requested_by}" if job.cancel_requested_by else ""
    since = moment(job.cancel_requested_at)
    return Shown(ShownState.CANCELLING, by, "registry", "cancel requested", since)


def _stale(now: float, lease: LeaseFacts | None) -> Shown | None:
    if lease is None or not lease.is_late or lease.age_sec is None:
        return None
    words = f"{lease.owner} has not renewed its lease in time"
    return Shown(ShownState.STALE, words, "lease", "late", now - lease.age_sec)


def _finishing(heard: Heard) -> Shown | None:
    """The agent has had its last word, or is gone; what it left behind is being checked."""
    word, sign = heard.last_word, heard.sign
    if word is not None and word.seq > heard.sign_seq:
        words = f"the agent said {word.name}" + (f": {word.words}" if word.words else "")
        return Shown(ShownState.FINISHING, words, "event", word.name, word.at)
    if sign is not None and sign.state is AgentState.ENDED:
        words = sign.words or "the agent has ended"
        return Shown(ShownState.FINISHING, words, sign.channel, sign.rule, sign.at)
    return None


_STATES = {
    AgentState.STARTING: ShownState.STARTING,
    AgentState.WORKING: ShownState.WORKING,
    AgentState.WAITING: ShownState.WAITING,
    AgentState.IDLE: ShownState.IDLE,
}


def _by_agent(heard: Heard) -> Shown | None:
    """By the agent's state as its worker tells it; by any event where nobody tells of states."""
    sign, asked, last = heard.sign, heard.question, heard.last
    if sign is not None and sign.channel is Channel.SILENCE and last and last.seq > heard.sign_seq:
        sign = None  # it was broken since
    if sign is not None and (asked is None or asked.seq < heard.sign_seq or _tells(heard)):
        # A question is told twice, as a state and as the event that people are notified of.
        words = sign.words or (asked.words if asked and sign.state is AgentState.WAITING else "")
        return Shown(_STATES[sign.state], words, sign.channel, sign.rule, sign.at)
    if asked is not None and (asked == last or sign is not None):
        return Shown(ShownState.WAITING, asked.words, "event", asked.name, asked.at)
    if last is None or last.name == EventName.QUEUED:
        return None
    return Shown(ShownState.WORKING, last.words, "event", last.name, last.at)


def _tells(heard: Heard) -> bool:
    return heard.sign is not None and heard.sign.state is AgentState.WAITING


def _claimed(job: Job) -> Shown:
    words = "claimed, and nothing was heard of it yet"
    return Shown(ShownState.STARTING, words, "registry", "claimed", moment(job.started_at))


def moment(text: str | None) -> float | None:
    try:
        return parse_stamp(text) if text else None
    except ValueError:
        return None
