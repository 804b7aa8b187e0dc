"""What only the disk knows of a need: the whole question, or the words of an error.

A list of needs is made from what is in memory. Whoever looks at one of them wants more, and
whoever has several in sight wants the words of each, but not the screen of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from mam_core.errors import MamError
from mam_core.operations.asked import Asked
from mam_core.operations.attention import MOST_CHARS, Need
from mam_core.operations.panes import Panes
from mam_core.operations.seen import Elsewhere, questions
from mam_core.records import Status
from mam_core.registry import Registry


class NeedDetail(NamedTuple):
    """Foreign text, all of it."""

    asked: tuple[Asked, ...] = ()  #: what waits for an answer, the oldest first
    detail: str = ""  #: of a job that is over or waits: why, as its record says


def need_detail(registry: Registry, need: Need, panes: Panes, others: Elsewhere) -> NeedDetail:
    """Nothing of a job that has changed meanwhile: whoever shows it will be told."""
    with suppress(MamError, OSError):
        if need.can_be_answered:
            return NeedDetail(asked=tuple(questions(registry, others, panes, need.job_id)))
        return NeedDetail(detail=_why(registry, need))
    return NeedDetail()


def why_of(registry: Registry, needs: Iterable[Need]) -> dict[str, str]:
    """By job: the words of those that ask nothing, and of which the record says something."""
    found = {}
    for need in needs:
        with suppress(MamError, OSError):
            if not need.can_be_answered and (why := _why(registry, need)):
                found[need.job_id] = why
    return found


def _why(registry: Registry, need: Need) -> str:
    if need.about:
        return ""  # its words say it of all of them
    job = registry.get(need.job_id)
    is_it = job.attempt == need.attempt and job.status is not Status.RUNNING
    return (job.detail or "")[:MOST_CHARS] if is_it else ""
