"""Tasks that say they run and do not: found by what is known, never by guess.

Our own registry knows best: a job that ended, or that it gave back, settles its task.
Else the process does, on the node that it runs on. Of other nodes only the age is
known, so that a person has to say how old is too old.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mam_core.clock import SystemClock
from mam_core.dispatch.counterpart import after_job
from mam_core.dispatch.naming import TaskName
from mam_core.dispatch.tasks import Task, released
from mam_core.dispatch.tasks_file import TasksFile
from mam_core.errors import MamError
from mam_core.process_mark import ProcessMark
from mam_core.records import Job, Status
from mam_core.registry import Registry

#: The moment of boot is known to a few seconds.
_SLACK_SEC = 10.0


class Stuck(NamedTuple):
    """A task that is held and should not be."""

    task_id: str
    task: Task
    why: str
    becomes: Task  #: once it is released


def settle(file: TasksFile, registry: Registry, node: str) -> list[Stuck]:
    """Bring the tasks in line whose jobs of ours are over, or wait again; the answer says which."""
    return release(file, list(_by_jobs(file.load().tasks, file.path, registry, node)))


def stuck(
    file: TasksFile, registry: Registry, node: str, now: float, older_than: float | None
) -> list[Stuck]:
    """Every task that is held by nobody, with the reason."""
    tasks = file.load().tasks
    found = {one.task_id: one for one in _by_jobs(tasks, file.path, registry, node)}
    for task_id, task in tasks.items():
        if not task.status.is_held or task_id in found:
            continue
        if why := _gone(task, node, now, older_than):
            found[task_id] = Stuck(task_id, task, why, released(task))
    return [found[task_id] for task_id in tasks if task_id in found]


def is_alive_here(task: Task, node: str) -> bool:
    return task.node == node and task.pid is not None and _lives(task)


def release(file: TasksFile, found: list[Stuck]) -> list[Stuck]:
    """Write what becomes of them, of those that are still as they were looked at."""
    if not found:
        return []
    done = []
    with file.changing() as draft:
        for one in found:
            if draft.get(one.task_id) == one.task:
                draft.put(one.task_id, one.becomes)
                done.append(one)
    return done


def _by_jobs(
    tasks: Mapping[str, Task], path: str, registry: Registry, node: str
) -> Iterator[Stuck]:
    for task_id, task in tasks.items():
        if not task.status.is_held or task.job is None or task.node != node:
            continue
        job = job_of(registry, task, TaskName(path, task_id))
        if job is None or (after := after_job(job)) is None:
            continue
        if job.status is Status.PENDING and is_alive_here(task, node):
            continue  # whoever claimed it is about to run it
        yield Stuck(task_id, task, f"its job {job.job_id} is {job.status}", after(task))


def job_of(registry: Registry, task: Task, name: TaskName) -> Job | None:
    """The job of a task, where it is one of this registry."""
    if task.job is None:
        return None
    try:
        job = registry.get(task.job)
    except MamError:
        return None
    return job if TaskName.of(job) == name else None


def _gone(task: Task, node: str, now: float, older_than: float | None) -> str:
    if task.node == node and task.pid is not None:
        return "" if _lives(task) else f"its process {task.pid} is gone"
    if older_than is not None and task.since and now - task.since > older_than:
        return f"it was claimed at {task.started_at}"
    return ""


def _lives(task: Task) -> bool:
    """There is a process of that pid, and none that can only be another's: of another boot."""
    assert task.pid is not None
    clock = SystemClock()
    if task.since and task.since < clock.now() - clock.since_boot() - _SLACK_SEC:
        return False
    return task.pid > 0 and ProcessMark.of(task.pid) is not None
