"""What one `mam dispatch run` is to do: task after task, each claimed before it becomes a job.

The claim and the job are made under the file's lock, in this order: the job first,
then the line that names it. Killed in between, the job waits, and whoever claims it
claims the task; the task itself never names a job that is not there.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mam_core.dispatch import tasks
from mam_core.dispatch.naming import GROUP, TaskName
from mam_core.dispatch.settling import job_of
from mam_core.dispatch.specs import prompt_of
from mam_core.dispatch.tasks import Task, TaskRefused, TaskStatus
from mam_core.dispatch.tasks_file import TasksFile
from mam_core.errors import MamError
from mam_core.records import Job, Status
from mam_core.registry import Registry

#: What a job of an earlier attempt is set to anew.
_RENEWED = ("prompt", "agent", "agent_session", "workdir")


class _NotYet(TaskRefused):
    """Its job seems to run here; if its worker is dead, a sweep will say so soon."""


class Errand:
    """The tasks to run, and what became of each."""

    def __init__(
        self,
        file: TasksFile,
        node: str,
        specs: str,
        request: Mapping[str, Any],
        *,
        patience_sec: float,
        written: Callable[[], object],
    ) -> None:
        """`request` holds the fields of the jobs; `specs` is the folder of their prompts."""
        self.taken: dict[str, str] = {}  #: by task, its job
        self.left_out: dict[str, str] = {}  #: by task, the reason
        self.skipped: dict[str, str] = {}  #: those that somebody else took first
        self._file = file
        self._node = node
        self._specs = specs
        self._request = request
        self._patience_sec = patience_sec
        self._written = written
        self._waiting: deque[str] = deque()
        self._named: set[str] = set()
        self._with_failed: set[str] = set()
        self._give_up_at: dict[str, float] = {}

    def add(
        self, task_ids: Iterable[str], *, with_failed: bool = False, is_named: bool = False
    ) -> None:
        """Failed ones are run again only where that was said. Of those that a person named it is
        a refusal, and no matter of course, when somebody else has them."""
        new = list(task_ids)
        self._waiting.extend(new)
        self._with_failed.update(new if with_failed else ())
        self._named.update(new if is_named else ())

    @property
    def is_over(self) -> bool:
        return not self._waiting

    def take(self, registry: Registry) -> bool:
        """Claim the next task that can be; its job waits then. False when there is none."""
        later: list[str] = []
        try:
            while self._waiting:
                task_id = self._waiting.popleft()
                try:
                    self.taken[task_id] = self._take(registry, task_id)
                except _NotYet as problem:
                    if time.monotonic() < self._deadline(task_id):
                        later.append(task_id)
                    else:
                        self.left_out[task_id] = problem.message
                except TaskRefused as problem:
                    named = task_id in self._named
                    (self.left_out if named else self.skipped)[task_id] = problem.message
                except MamError as problem:
                    self.left_out[task_id] = problem.message
                else:
                    self._written()
                    return True
        finally:
            self._waiting.extend(later)
        return False

    def give_back(self) -> None:
        """Claimed and not begun: pending again, for whoever comes next."""
        held = {self.taken[task_id]: task_id for task_id in self.taken}
        if not held:
            return
        with self._file.changing() as draft:
            for job_id, task_id in held.items():
                task = draft.get(task_id)
                if task and task.status is TaskStatus.CLAIMED and task.job == job_id:
                    draft.put(task_id, tasks.released(task))

    def _deadline(self, task_id: str) -> float:
        return self._give_up_at.setdefault(task_id, time.monotonic() + self._patience_sec)

    def _take(self, registry: Registry, task_id: str) -> str:
        with self._file.changing() as draft:
            task = draft.get(task_id)
            if task is None:
                raise TaskRefused(f"there is no task {task_id} any more")
            if why := tasks.refusal(task_id, task):
                raise TaskRefused(why)
            if task.status is TaskStatus.FAILED and task_id not in self._with_failed:
                raise TaskRefused(f"task {task_id} has failed meanwhile")
            prompt = prompt_of(task_id, task, self._specs)
            job_id = self._job(registry, task_id, task, prompt)
            draft.put(task_id, tasks.claimed(task, self._node, os.getpid(), job_id, time.time()))
        return job_id

    def _job(self, registry: Registry, task_id: str, task: Task, prompt: str) -> str:
        """A job that waits under our label: the task's own, taken up again, or a new one."""
        return waiting_job(
            registry, TaskName(self._file.path, task_id), task, {**self._request, "prompt": prompt}
        )


def waiting_job(registry: Registry, name: TaskName, task: Task, request: Mapping[str, Any]) -> str:
    """The id of a pending job for this task; raises `TaskRefused` when its job runs."""
    job = job_of(registry, task, name)
    if job is None or job.status is Status.COMPLETED:
        made = registry.register([{**request, "group": GROUP, "key": name.key}])[0]
        if not made.existed:
            return made.job_id
        job = registry.get(made.job_id)
    return _renewed(registry, name, job, request)


def _renewed(registry: Registry, name: TaskName, job: Job, request: Mapping[str, Any]) -> str:
    if job.status is Status.RUNNING:
        raise _NotYet(f"job {job.job_id} of task {name.task_id} runs here")
    if job.is_ended:
        job = registry.retry(job.job_id)
    fresh = {field: request[field] for field in _RENEWED if field in request}
    registry.edit(job.job_id, {**fresh, "not_before": None})
    return job.job_id
