"""How a job stood at a moment: what was asked for, where its record was, what it had last said.

Three parts that change at different speeds, so that a million lines share most of
them: a contract changes by an edit, a stand by a claim or an end, words all the time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from mam_core.agents.hearing import Heard, Said
from mam_core.agents.states import LeaseFacts, Shown, ShownState, shown
from mam_core.board.why import Hold
from mam_core.clock import stamp
from mam_core.records import DEFAULT_TIMEOUT_SEC, Job, Reason, Status
from mam_core.summaries import NOTHING_TOLD, Summary, Used, moment_of


def stamp_of(seconds: float) -> str:
    """As `clock.stamp`, for ten thousand different moments in a row."""
    day, rest = divmod(int(seconds), 86400)
    minutes, second = divmod(rest, 60)
    hour, minute = divmod(minutes, 60)
    return f"{_day(day)}{hour:02}:{minute:02}:{second:02}Z"


@lru_cache(maxsize=64)
def _day(day: int) -> str:
    return stamp(day * 86400.0)[:11]


class Contract(NamedTuple):
    """What was asked for, as far as a list shows it. Foreign words."""

    agent: str = ""
    agent_session: str = ""
    group: str | None = None
    priority: int = 0
    order: int = 0
    created_at: str = ""
    head: str = ""  #: the beginning of the prompt
    parents: str = ""  #: the ids of the jobs that it comes after, with spaces between
    timeout_sec: float = DEFAULT_TIMEOUT_SEC
    not_before: str | None = None


class Stand(NamedTuple):
    """What the record said; `gone` once it was cleaned away."""

    contract: Contract
    status: Status
    updated_at: str
    attempt: int = 0
    node: str | None = None
    claimed_by: str | None = None  #: the owner of the lease; who claimed it where there is none
    started_at: str | None = None
    ended_at: str | None = None
    reason: Reason | None = None
    detail: str | None = None
    cancel_requested_at: str | None = None
    cancel_requested_by: str | None = None
    stale: str = ""  #: what a sweep wrote down of this attempt's lost worker
    tokens: int | None = None
    cost: float | None = None
    gone: bool = False

    @property
    def is_bound(self) -> bool:
        """Whether it waits for other jobs or a start time; the log records nothing else that can
        block a job."""
        return bool(self.contract.parents) or self.contract.not_before is not None

    @property
    def may_be_held(self) -> bool:
        return self.status is Status.PENDING and self.is_bound


class Word(NamedTuple):
    """The newest event by then, and what the ones before it still mean. Foreign words."""

    seq: int
    name: str
    words: str
    at: float  #: in whole seconds, as its sender counts
    heard: Heard  #: without its `last`, which is this
    used: Used = NOTHING_TOLD  #: by its attempt

    @property
    def said(self) -> Said:
        return Said(*self[:4])


class Then(NamedTuple):
    """One job at one moment."""

    job_id: str
    stand: Stand
    word: Word | None

    @property
    def status(self) -> Status:
        return self.stand.status

    @property
    def last_seq(self) -> int:
        return self.word.seq if self.word is not None else 0

    @property
    def used(self) -> Used:
        """By the end of its attempt, and before that by what was told until then."""
        stand, word = self.stand, self.word
        told = word.used if word is not None and word.heard.attempt == stand.attempt else None
        tokens, cost, progress, memory = told or NOTHING_TOLD
        return Used(
            tokens if stand.tokens is None else stand.tokens,
            cost if stand.cost is None else stand.cost,
            progress,
            memory,
        )

    @property
    def summary(self) -> Summary:
        """As a list of that moment had it."""
        contract, stand, updated_at = self.stand.contract, self.stand, self.stand.updated_at
        if self.word is not None:  # to number an event is a change of the record, too
            updated_at = max(updated_at, stamp_of(self.word.at))
        return Summary(
            self.job_id,
            stand.status,
            contract.agent,
            contract.agent_session,
            contract.group,
            contract.priority,
            contract.order,
            stand.attempt,
            contract.created_at,
            updated_at,
            stand.started_at,
            stand.ended_at,
            stand.reason,
            stand.cancel_requested_at,
            self.last_seq,
            contract.head,
            node=stand.node,
            not_before=moment_of(contract.not_before),
            parents=contract.parents,
            timeout_sec=contract.timeout_sec,
        )

    def shown(self, at: float, holds: tuple[Hold, ...] = ()) -> Shown:
        """By the same rules as now; `holds` keep a pending job back. Not in the log, and so not
        known: how fresh a lease was, what tmux showed, and which limit would have ended it next."""
        stand = self.stand
        job = Job(
            self.job_id,
            stand.status,
            updated_at=stand.updated_at,
            agent_session=stand.contract.agent_session,
            attempt=stand.attempt,
            started_at=stand.started_at,
            ended_at=stand.ended_at,
            reason=stand.reason,
            detail=stand.detail,
            cancel_requested_at=stand.cancel_requested_at,
            cancel_requested_by=stand.cancel_requested_by,
        )
        heard, word = None, self.word
        if word is not None:
            heard = word.heard._replace(last=word.said, memory=word.used.memory)
        lease = None
        if stand.stale and stand.status is Status.RUNNING:
            lease = LeaseFacts(stand.claimed_by or "its worker", 0.0, None, True)
            if heard is not None and heard.attempt == stand.attempt:
                heard = heard._replace(stale=stand.stale)
            else:
                heard = Heard(stand.attempt, stale=stand.stale)
        return shown(job, at, holds=holds, lease=lease, heard=heard)._replace(limit=None)

    def to_dict(self, at: float, holds: tuple[Hold, ...] = ()) -> dict[str, Any]:
        """For programs: flat, with the words of the record where it has them."""
        contract, stand = self.stand.contract._asdict(), self.stand._asdict()
        for name in ("contract", "gone", "stale"):
            del stand[name]
        seen = self.shown(at, holds)
        question = seen.words if seen.state is ShownState.WAITING else None
        last, word = None, self.word
        if word is not None:
            last = {"event": word.name, "seq": word.seq, "detail": word.words}
            last["timestamp"] = stamp_of(word.at)
        return {
            "job_id": self.job_id,
            **contract,
            **stand,
            "tokens": self.used.tokens,
            "cost": self.used.cost,
            "last_seq": self.last_seq,
            "last_event": last,
            "question": question,
            "shown": seen.to_dict(at),
        }
