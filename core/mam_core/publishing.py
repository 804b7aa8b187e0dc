"""How an event becomes news and how the status follows it: the rules of `Registry.publish`.

The number, the status and the post in the outbox are one transaction, so that
whatever is killed, no number is missing and none is told twice. `started`
claims a pending job, `completed` and `error` end one that nobody supervises; on
a job that a worker holds by a lease an event is a report, and on one that has
ended it is news and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mam_core import changes
from mam_core.clock import fine_stamp, stamp
from mam_core.discretion import told_data, told_detail
from mam_core.errors import InvalidField, TransitionRefused
from mam_core.events.event import Event, EventName
from mam_core.events.post import Post
from mam_core.frozen import frozen
from mam_core.record_parts import Broker
from mam_core.records import Job, Reason, Status
from mam_core.redaction import discreet

if TYPE_CHECKING:
    from mam_core.registry import Registry
    from mam_core.stores.base import Transaction
    from mam_core.work.validation import Verdict

_CAUSE = "publish"
#: A job whose contract changes each time while it is being checked is somebody else's to end.
_TRIES = 3


@frozen
class Said:
    """What the agent said."""

    name: EventName
    detail: str
    data: Mapping[str, Any]


@frozen
class Published:
    """What came of it."""

    seq: int
    job: Job  #: as it stands now
    event: Event  #: as it is told
    broker: Broker  #: where it goes
    refused: str = ""  #: why a job that was said to be completed is not


@frozen
class _Judged:
    """What was checked, and what the checks said."""

    job: Job
    verdict: Verdict

    def is_about(self, job: Job) -> bool:
        return all(
            getattr(job, name) == getattr(self.job, name)
            for name in ("attempt", "status", "expected_artifacts", "validate", "workdir")
        )


class _NotJudged(Exception):
    """The job in the transaction is not the one whose promises were checked."""


def checked_name(event: str) -> EventName:
    try:
        return EventName(event)
    except ValueError:
        known = ", ".join(EventName)
        raise InvalidField(f"{event[:40]!r} is no event: say one of {known}") from None


def publish(
    registry: Registry,
    job_id: str,
    said: Said,
    *,
    attempt: int | None,
    route: Callable[[Broker], Broker] | None,
) -> Published:
    for _ in range(_TRIES):
        judged = _judge(registry, job_id, said, attempt)
        fence = attempt
        if judged is not None and judged.job.status is Status.RUNNING:
            fence = judged.job.attempt  # the checks may have outlasted the attempt they were for
        try:
            with registry.changing(job_id, fence) as (tx, job):
                return _tell(registry, tx, job, said, judged, route)
        except _NotJudged:
            continue
    raise TransitionRefused(f"job {job_id} changed while it was checked: nothing was told")


def _judge(registry: Registry, job_id: str, said: Said, attempt: int | None) -> _Judged | None:
    """The checks of a job that is to be completed by this event, made before any lock is taken."""
    if said.name is not EventName.COMPLETED:
        return None
    job = registry.get(job_id)
    if not (_can_end(job) and _promises(job)) or changes.stale_attempt(job, attempt) is not None:
        return None
    from mam_core.work.validation import judge

    return _Judged(
        job,
        judge(
            job,
            registry_path=getattr(registry.store, "path", ""),
            store_url=registry.store.url,
            strict=registry.strict_checks,
        ),
    )


def _tell(
    registry: Registry,
    tx: Transaction,
    job: Job,
    said: Said,
    judged: _Judged | None,
    route: Callable[[Broker], Broker] | None,
) -> Published:
    now = registry.clock.now()
    detail = _told(job, said.detail)
    before, job = job, job.evolve(last_seq=job.last_seq + 1)
    told: dict[str, Any] = {"seq": job.last_seq}
    refused = ""
    if before.status is Status.PENDING and said.name in _SYNCED:
        # Nobody claimed it, and it runs: that was an unsupervised claim.
        claimed = changes.claimed(job, now, node=registry.node, pid=None, lease=None)
        tx.put(claimed, registry.moved(job, claimed, _CAUSE, **told))
        job = claimed
    if said.name in _ENDS and _can_end(before):
        status, reason, words = *_ENDS[said.name], detail or None
        if status is Status.COMPLETED and _promises(before):
            if judged is None or not judged.is_about(before):
                raise _NotJudged
            told["checks"] = judged.verdict.to_list()
            refused = judged.verdict.words
            words = "; ".join(filter(None, (judged.verdict.remark, words))) or None
            if refused:
                status, reason, words = Status.ERROR, Reason.VALIDATION, refused
        ended = changes.ended(job, now, status, reason, words)
        tx.put(ended, registry.moved(job, ended, _CAUSE, **told))
        job = ended
    if job.revision == before.revision:
        job = changes.touched(job, now)
        tx.put(job, None)
    broker = route(job.broker) if route else job.broker
    event = post(tx, job, said, now, broker)
    return Published(event.seq, job, event, broker, refused)


def _told(job: Job, detail: str) -> str:
    """G23: no prompt, no place and no key, whoever wrote it; what is the job's own is named."""
    return told_detail(job.prompt, discreet(job, detail))


def post(tx: Transaction, job: Job, said: Said, now: float, broker: Broker | None = None) -> Event:
    """Put an event into the outbox; `job` is the version, put by the caller, that numbers it."""
    event = Event(
        job.job_id,
        job.attempt,
        job.last_seq,
        said.name,
        stamp(now),
        _told(job, said.detail),
        told_data(job.prompt, discreet(job, dict(said.data))),
    )
    payload = event.encode(job.auth_token)
    where = broker or job.broker
    topic, said_at = job.events_topic, fine_stamp(now)
    tx.post(Post(job.job_id, job.attempt, event.seq, topic, where, payload, said_at))
    return event


#: What the status follows, and how a job ends by it.
_ENDS: Mapping[EventName, tuple[Status, Reason | None]] = {
    EventName.COMPLETED: (Status.COMPLETED, None),
    EventName.ERROR: (Status.ERROR, Reason.AGENT),
}
_SYNCED = frozenset({EventName.STARTED, *_ENDS})


def _can_end(job: Job) -> bool:
    """By an event: whoever holds a lease checks and ends the job himself."""
    return job.is_live and not job.is_supervised


def _promises(job: Job) -> bool:
    return bool(job.expected_artifacts or job.validate)
