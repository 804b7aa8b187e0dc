"""Short parts for a child process: hold the lock, sleep on a job, end one.

They exist for the tests that need one process at one certain moment.
"""

from __future__ import annotations

import signal
from pathlib import Path

from mam_core.errors import TransitionRefused
from mam_core.leases import LeaseTerms
from mam_core.records import Status
from tests.faults.diary import Act, Diary, Phase
from tests.faults.ground import Ground
from tests.faults.workload import facts_of


def hold_lock(root: str) -> None:
    """Take the lock and keep it until killed."""
    with Ground(Path(root)).open().store.transaction():
        signal.pause()


def finish_on_signal(root: str, player: str) -> dict[str, str]:
    """Claim a job, say so, and finish it at SIGUSR1, whatever has happened meanwhile."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    ground = Ground(Path(root))
    registry = ground.open()
    job = registry.claim("alpha", lease=LeaseTerms(player, 0.1))
    assert job is not None
    Diary(ground.diaries_dir, player).write(Phase.DONE, Act.CLAIM, facts_of(job))
    signal.sigwait({signal.SIGUSR1})
    try:
        registry.finish(job.job_id, Status.COMPLETED, attempt=job.attempt)
    except TransitionRefused as refusal:
        return {"error": type(refusal).__name__}
    return {}


def end(root: str, job_id: str, how: str) -> str:
    """Finish the first attempt of a job, or cancel the job: what it came to."""
    registry = Ground(Path(root)).open()
    try:
        if how == "finish":
            return registry.finish(job_id, Status.COMPLETED, attempt=1).status
        return registry.request_cancel(job_id).status
    except TransitionRefused as refusal:
        return type(refusal).__name__
