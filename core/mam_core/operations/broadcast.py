"""Say one thing to the agents of many jobs: to those that are named, or to the running job of
each session that fits a pattern."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from mam_core.errors import LockTimeout, MamError, StoreError
from mam_core.messages import MessageKind, checked_text
from mam_core.operations.delivery import Sent, Wait, delivered, send
from mam_core.operations.outcome import Outcome
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores.base import Query

_TMUX = "tmux:"


class NobodyThere(MamError):
    """No session that fits has a running job."""

    title = "Nobody there"


def broadcast(registry: Registry, pattern: str, text: str, wait: Wait) -> list[Outcome]:
    """To the running jobs of all sessions that fit."""
    checked_text(MessageKind.SAY, text)
    found = registry.store.find(Query(statuses=frozenset({Status.RUNNING})))[0]
    chosen = [one.job_id for one in found if fits(one.agent_session, pattern)]
    if not chosen:
        raise NobodyThere(f"no session that fits {pattern[:60]!r} has a running job")
    return say_to_all(registry, chosen, text, wait)


def say_to_all(registry: Registry, job_ids: Sequence[str], text: str, wait: Wait) -> list[Outcome]:
    """An outcome for each job, in their order; all are sent before the first receipt is waited
    for."""
    checked_text(MessageKind.SAY, text)  # once, and not as many refusals as there are jobs
    chosen = list(dict.fromkeys(job_ids))
    sent: list[Sent] = []
    refused: list[Outcome] = []
    for number, job_id in enumerate(chosen):
        try:
            sent.append(send(registry, job_id, MessageKind.SAY, text))
        except (LockTimeout, StoreError) as problem:  # each of the rest would wait as long again
            refused += [Outcome.refused(one, problem) for one in chosen[number:]]
            break
        except MamError as problem:
            refused.append(Outcome.refused(job_id, problem))
    places = {job_id: place for place, job_id in enumerate(chosen)}
    outcomes = delivered(registry, sent, wait) + refused
    return sorted(outcomes, key=lambda outcome: places[outcome.job_id])


def fits(label: str, pattern: str) -> bool:
    """By the label as it stands (``tmux:claude``), or by the session's name alone."""
    return fnmatchcase(label, pattern) or fnmatchcase(label.removeprefix(_TMUX), pattern)
