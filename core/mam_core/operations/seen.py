"""What a job printed, what its agent's screen shows and asks, and why: from whichever host that is.

What this host knows is looked up here; all else is asked of the host that runs the job. Nothing
of this host is ever shown for a job of another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mam_core.errors import MamError
from mam_core.nodes.asking import NoAnswer
from mam_core.operations.answer import OpenQuestion, in_full
from mam_core.operations.elsewhere import Elsewhere, Printed, is_elsewhere
from mam_core.operations.evidence import Services
from mam_core.operations.output import NoOutput, Place, attempts_with_output, read_output
from mam_core.operations.panes import Panes, lines_of
from mam_core.operations.why import Explanation, Reasons, why
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.tmux.facts import PaneFact

if TYPE_CHECKING:
    from mam_core.operations.asked import Asked

__all__ = [
    "Elsewhere",
    "Printed",
    "explained",
    "is_elsewhere",
    "open_in_full",
    "printed",
    "questions",
    "screen",
]


def printed(
    registry: Registry, others: Elsewhere, job: Job, attempt: int = 0, after: Place | None = None
) -> Printed:
    """What stands after a place, else the end; attempt 0 is the newest that has any.

    Earlier attempts may have been made here, whoever makes the present one; and where hosts share
    a disk, its log is here, too. Raises `MamError`.
    """
    here = attempts_with_output(registry, job.job_id)
    if is_elsewhere(registry, job) and job.attempt not in here:
        if attempt not in here:
            found = others.output(registry, job, attempt, after)
            return found._replace(attempts=_together(here, found.attempts))
        here = _together(here, (job.attempt,))
    chosen = attempt or (here[-1] if here else 0)
    if not chosen:
        raise NoOutput(f"job {job.job_id} has printed nothing yet, or not on this host")
    return Printed(here, chosen, read_output(registry, job.job_id, chosen, after))


def screen(
    registry: Registry, others: Elsewhere, panes: Panes, job: Job, *, colours: bool = False
) -> Sequence[str]:
    """The lines of its agent's pane as they are now. Raises `MamError`."""
    if job.status is Status.RUNNING and is_elsewhere(registry, job):
        return others.screen(registry, job, colours=colours)
    return lines_of(registry, job.job_id, panes, colours=colours)


def explained(
    registry: Registry,
    others: Elsewhere,
    job_id: str,
    registry_path: str,
    *,
    panes: Callable[[], Sequence[PaneFact]] | None = None,
    with_history: bool = False,
    services: Services | None = None,
) -> Explanation:
    """Records and history are the store's; what is seen of a running job is its own host's word."""
    told = why(
        registry,
        job_id,
        registry_path=registry_path,
        panes=panes,
        with_history=with_history,
        reasons=Reasons(registry, services),
    )
    job = told.job
    if job.status is not Status.RUNNING or not is_elsewhere(registry, job):
        return told
    try:
        return replace(told, there=tuple(others.why(registry, job)))
    except MamError as problem:
        return replace(told, trouble=problem.message)


def questions(registry: Registry, others: Elsewhere, panes: Panes, job_id: str) -> list[Asked]:
    """What its agent waits for; where its host is silent, as short as events tell it."""
    from mam_core.operations.asked import asked

    job = registry.get(job_id)
    if job.status is Status.RUNNING and is_elsewhere(registry, job):
        try:
            return others.asked(registry, job)
        except NoAnswer:
            pass
    return asked(registry, job_id, panes)


def open_in_full(registry: Registry, others: Elsewhere, job_id: str) -> list[OpenQuestion]:
    """The same questions, without the screens that they stand on; none is no error."""
    job = registry.get(job_id)
    if job.status is Status.RUNNING and is_elsewhere(registry, job):
        try:
            return [one.question for one in others.asked(registry, job)]
        except MamError:  # silent, or it knows of none: the events tell
            pass
    return in_full(registry, job_id)


def _together(some: Sequence[int], more: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted({*some, *more}))
