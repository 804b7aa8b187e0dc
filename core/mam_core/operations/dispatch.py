"""The verbs of the dispatch registry but for running it: make, look, release, hand on, sync."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mam_core.clock import parse_stamp
from mam_core.config import Config
from mam_core.dispatch import settling, specs, tasks
from mam_core.dispatch.errand import waiting_job
from mam_core.dispatch.layout import Whole
from mam_core.dispatch.naming import TaskName
from mam_core.dispatch.tasks import Task, TaskRefused, TaskStatus
from mam_core.dispatch.tasks_file import TasksFile
from mam_core.errors import MamError
from mam_core.locations import realm_of
from mam_core.operations.register import defaults_of, with_defaults
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.rights import Right
from mam_core.stores.base import Query
from mam_core.summaries import Unreadable
from mam_core.work.output import OUTPUT

AGENT = "claude-code"


class UnknownTask(MamError):
    """There is no such task."""

    title = "No such task"


class Count(NamedTuple):
    """The tasks of one status."""

    status: TaskStatus
    tasks: list[str]

    def to_dict(self) -> dict[str, Any]:
        """As the document's first query has it."""
        return {"status": self.status, "count": len(self.tasks), "tasks": self.tasks}


def counts(file: TasksFile) -> list[Count]:
    """By status, in the order of their words; what the document's first query answers."""
    by_status: dict[TaskStatus, list[str]] = {}
    for task_id, task in file.load().tasks.items():
        by_status.setdefault(task.status, []).append(task_id)
    return [Count(status, by_status[status]) for status in sorted(by_status)]


def summary(file: TasksFile) -> str:
    """One line; what the document's second query answers."""
    return " | ".join(f"{count.status}: {len(count.tasks)}" for count in counts(file))


def known(file: TasksFile, task_ids: Sequence[str]) -> Whole:
    """The registry, in which each of these is; raises `UnknownTask` that names the others."""
    whole = file.load()
    if strangers := [task_id for task_id in task_ids if task_id not in whole.tasks]:
        raise UnknownTask(f"there is no task {', '.join(strangers)} in {file.path}")
    return whole


def release(
    file: TasksFile,
    registry: Registry,
    node: str,
    task_ids: Sequence[str],
    *,
    older_than: float | None,
    yes: bool,
) -> tuple[list[settling.Stuck], list[settling.Stuck]]:
    """The tasks that are held by nobody, and those that were released.

    Those that are named are released, whoever holds them, unless their process lives here.
    """
    if yes or task_ids:
        registry.check_allowed(Right.RELEASE)
    whole = known(file, task_ids)
    found = settling.stuck(file, registry, node, time.time(), older_than)
    if not task_ids:
        return found, settling.release(file, found) if yes else []
    by_task = {one.task_id: one for one in found}
    named = []
    for task_id in task_ids:
        task = whole.tasks[task_id]
        if not task.status.is_held:
            raise TaskRefused(f"task {task_id} is {task.status}: there is nothing to release")
        if task_id not in by_task and settling.is_alive_here(task, node):
            job = f"; mam cancel {task.job} ends it" if task.job else ""
            raise TaskRefused(f"task {task_id} runs here, as process {task.pid}{job}")
        by_name = settling.Stuck(task_id, task, "it was named", tasks.released(task))
        named.append(by_task.get(task_id, by_name))
    return named, settling.release(file, named)


def request_for(
    config: Config, label: str, agent: str | None, workdir: str | None
) -> dict[str, Any]:
    """The fields of a job that is a task, but for its prompt."""
    defaults = defaults_of(config)
    chosen = {"agent": agent or defaults.get("agent") or AGENT, "agent_session": label}
    return with_defaults({**chosen, **({"workdir": workdir} if workdir else {})}, defaults)


def label_of(file: TasksFile) -> str:
    """The label of a file's tasks that are left to workers."""
    return f"dispatch:{realm_of(file.path)}"


def hand_in(
    file: TasksFile,
    registry: Registry,
    request: Mapping[str, Any],
    folder: str | None,
    task_ids: Sequence[str],
    *,
    retry_failed: bool,
) -> dict[str, str]:
    """Tasks become jobs that wait for the workers of their label; by task, the job.

    The tasks stay as they are: whoever runs such a job claims its task first.
    """
    whole = known(file, task_ids)
    wanted = {Status.PENDING} | ({Status.ERROR} if retry_failed or task_ids else set())
    for task_id in task_ids:
        if why := tasks.refusal(task_id, whole.tasks[task_id]):
            raise TaskRefused(why)
    chosen = {
        task_id: task
        for task_id, task in whole.tasks.items()
        if tasks.JOB_STATUS[task.status] in wanted and (not task_ids or task_id in task_ids)
    }
    if not chosen:
        return {}
    place = specs.specs_folder(whole.header, folder)
    prompts = {task_id: specs.prompt_of(task_id, task, place) for task_id, task in chosen.items()}
    return {
        task_id: waiting_job(
            registry,
            TaskName(file.path, task_id),
            task,
            {**request, "prompt": prompts[task_id]},
        )
        for task_id, task in chosen.items()
    }


def as_tasks(registry: Registry) -> Whole:
    """Every job of a registry as a task: under its task's name, or its own."""
    found: dict[str, Task] = {}
    for job in registry.store.bodies(Query()):
        if isinstance(job, Unreadable):
            continue
        name = TaskName.of(job)
        task_id = name.task_id if name and name.task_id not in found else job.job_id
        found[task_id] = _as_task(registry, job)
    return Whole({"updated_at": tasks.local_stamp(time.time())}, found)


def _as_task(registry: Registry, job: Job) -> Task:
    status = tasks.task_status(job)
    began = tasks.local_stamp(parse_stamp(job.started_at)) if job.started_at else None
    ended = tasks.local_stamp(parse_stamp(job.ended_at)) if job.ended_at else None
    folder = f"{registry.store.audit.path}/{job.job_id}/attempts/{job.attempt}"
    return Task(
        status,
        node=job.node,
        pid=job.pid,
        started_at=began,
        completed_at=ended if job.status is Status.COMPLETED else None,
        log=f"{folder}/{OUTPUT}" if job.attempt else None,
        error=tasks.error_of(job) if status is TaskStatus.FAILED else None,
        attempt=job.attempt or None,
        job=job.job_id,
    )
