"""What a job printed and what its agent's screen shows, from whichever host that is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from mam_core.config import Config
from mam_core.operations.elsewhere import Elsewhere, Printed
from mam_core.operations.output import NoOutput, attempts_with_output, read_output
from mam_core.operations.panes import Panes, screen_of
from mam_core.records import Job
from mam_core.registry import Registry


def printed(
    registry: Registry, registry_path: str, config: Config, job: Job, attempt: int
) -> Printed:
    """The end of what an attempt printed; attempt 0 is the newest that has any."""
    with closing(Elsewhere(registry, registry_path, config)) as others:
        if others.is_there(job):
            return others.output(job, attempt)
    attempts = attempts_with_output(registry, job.job_id)
    chosen = attempt or (attempts[-1] if attempts else 0)
    if not chosen:
        raise NoOutput(f"job {job.job_id} has printed nothing yet, or not on this host")
    return Printed(attempts, chosen, read_output(registry, job.job_id, chosen))


def screen(registry: Registry, registry_path: str, config: Config, job: Job) -> Sequence[str]:
    """The lines of its agent's pane as they are now, without colours where it is here."""
    with closing(Elsewhere(registry, registry_path, config)) as others:
        if others.is_there(job):
            return others.screen(job)
    with closing(Panes(registry_path, config)) as panes:
        return panes.plain(screen_of(registry, job.job_id, panes).pane_id).lines
