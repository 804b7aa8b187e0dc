"""Jobs on record against those who should run them: workers, their processes, and nobody at all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from mam_core.board.why import Pair, about_service
from mam_core.doctor.findings import Area, Finding, Fix, Mended, many, note, problem, warning
from mam_core.doctor.ground import Ground, Look
from mam_core.record_parts import Lease
from mam_core.records import Job
from mam_core.summaries import Summary
from mam_core.work.marks import AttemptMark
from mam_core.work.overdue import overdue
from mam_core.work.sweep import Act, Sweep
from mam_core.work.witnesses import Node, traces_of

_AREA = Area.JOBS
_LEFT_ALONE = (Act.ENDING, Act.STALE)


def held(look: Look) -> Iterator[Finding]:
    """Every running job has a worker that lives and renews its lease, or a time of its own."""
    node = Node(look.registry.node, look.registry.clock)
    for job in look.running.values():
        if job.lease is None:
            yield from _unsupervised(look, job)
        elif node.is_stranger(job.lease):
            yield from _elsewhere(node, job, job.lease)
        elif words := _loss(look, node, job, job.lease):
            state = _what_is_left(look, node, job)
            yield problem(_AREA, _name(job), f"{words}; {state}", _sweeping(look, job), "held")


def _loss(look: Look, node: Node, job: Job, lease: Lease) -> str:
    """Why its worker cannot be believed in any more; empty while it can."""
    if node.was_restarted(lease):
        return "its host was restarted since its worker took it"
    gone = node.sees_no_worker(lease)
    if look.registry.lease_expired(lease):
        since = f", last renewed at {lease.renewed_at}" if lease.renewed_at else ""
        end = "its worker is gone" if gone else f"{lease.owner} does not renew it"
        return f"its lease has expired{since}: {end}"
    return f"its worker {lease.owner} is gone" if gone else ""


def _what_is_left(look: Look, node: Node, job: Job) -> str:
    mark, unknown = traces_of(look.registry.store.audit, job)
    if mark is None and job.lease is not None and job.lease.store_time is not None:
        return "what it started, if anything, cannot be seen from here"
    if mark is None:
        return unknown or "it had started nothing"
    gone = node.is_gone(mark)
    if gone is None:
        return "its processes cannot be seen from here"
    return "nothing of it is left" if gone else "some of its processes are still there"


def _elsewhere(node: Node, job: Job, lease: Lease) -> Iterator[Finding]:
    if node.seems_expired(lease):
        words = f"the lease of {lease.owner} seems to have expired; only {lease.node} can tell"
        advice = f"run `mam doctor` on {lease.node}; `mam nodes` says whether it is there"
        yield warning(_AREA, _name(job), words, rule="elsewhere", advice=advice)


def _unsupervised(look: Look, job: Job) -> Iterator[Finding]:
    now = look.registry.clock.now()
    late = overdue(job, look.registry.store, now, now)
    if late is not None:
        words = f"nobody supervises it, and {late.words}"
        yield problem(_AREA, _name(job), words, _sweeping(look, job), "overdue")


def supervised(look: Look) -> Iterator[Finding]:
    """Of a job whose worker lives: what it runs belongs to a supervisor that lives, too."""
    node = Node(look.registry.node, look.registry.clock)
    for job in look.running.values():
        if job.lease is None or _loss(look, node, job, job.lease):
            continue
        mark = traces_of(look.registry.store.audit, job).mark
        if mark is not None and _has_no_owner(mark, node) and node.is_gone(mark) is False:
            # No fix of ours: its worker lives, and ends what is left as soon as it sees it.
            words = "its supervisor is gone, and some of what it ran is not"
            yield warning(_AREA, _name(job), words, advice=f"`mam cancel {job.job_id}` ends it")


def _has_no_owner(mark: AttemptMark, node: Node) -> bool:
    """Its supervisor is gone, seen from where it was: a pid says nothing anywhere else."""
    here = AttemptMark.of(mark.token, mark.supervisor, node.name)
    return here == mark and not mark.supervisor.is_alive


def _sweeping(look: Look, job: Job) -> Fix:
    act = partial(_sweep, look.ground, job)
    return Fix(f"sweep job {job.job_id}: back to the queue once nothing of it is left", act)


def _sweep(ground: Ground, job: Job) -> Mended:
    """What every worker and console does, for this one job and now."""
    sweep = Sweep(
        ground.registry,
        grace_sec=ground.config.defaults.grace_sec,
        jobs=frozenset({job.job_id}),
    )
    swept = sweep.once()
    if not swept:
        words = f"job {job.job_id} is left alone: what it runs is not known to be gone yet"
        return Mended(False, words)
    one = swept[0]
    return Mended(one.act not in _LEFT_ALONE, f"job {job.job_id} is {one.act}: {one.words}")


# -- waiting, and for whom? --------------------------------------------------------------------


def served(look: Look) -> Iterator[Finding]:
    """A label that no session and no worker serves."""
    waiting: dict[Pair, list[Summary]] = {}
    for job in look.pending:
        waiting.setdefault((job.agent_session, job.agent), []).append(job)
    known = look.reasons.evidence.served if look.reasons.evidence is not None else {}
    now = look.registry.clock.now()
    for label, agent in sorted(waiting):
        held = waiting[label, agent]
        served = known.get((label, agent))
        if served is None or served.by is not False:
            continue
        ready = sum(look.reasons.is_ready(job, now) for job in held)
        jobs = _count(agent, ready, len(held) - ready)
        first = min(held, key=lambda job: (job.order, job.job_id))
        help = about_service((label, agent), served, first.job_id)
        words = [f"{jobs}, and {served.words(label, agent)}", *(one.by_command for one in help)]
        yield note(_AREA, label, "; ".join(words), rule=f"served {agent}")


def _count(agent: str, ready: int, blocked: int) -> str:
    """How many jobs wait only for somebody who serves them, and how many for something else."""
    if not ready:
        return f"{many(blocked, 'job')} of agent {agent} {'is' if blocked == 1 else 'are'} blocked"
    waits = f"{many(ready, 'job')} of agent {agent} {'waits' if ready == 1 else 'wait'}"
    if not blocked:
        return waits
    return f"{waits}, {blocked} more {'is' if blocked == 1 else 'are'} blocked"


def can_run(look: Look) -> Iterator[Finding]:
    """Jobs that wait for one that failed, was cancelled or is gone: none of them ever runs."""
    for one in look.reasons.stuck(look.pending, look.registry.clock.now()):
        if not one.can_run:
            advice = "; ".join(help.by_command for help in one.help)
            yield warning(
                _AREA, f"job {one.first.job_id}", one.words, rule=one.about, advice=advice
            )


def _name(job: Job) -> str:
    return f"job {job.job_id} attempt {job.attempt}"
