"""The task of a job that runs: claimed before its agent starts, and written as it goes.

What cannot be written is tried again a few times and then warned of: the job has
its result in any case, and the next `mam dispatch run` or `release` brings the file
in line with it (`settling`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from mam_core.audit import warn
from mam_core.dispatch import tasks
from mam_core.dispatch.naming import MODE_VARIABLE, BadVariable, Surroundings, TaskName
from mam_core.dispatch.tasks import DispatchError, Task
from mam_core.dispatch.tasks_file import TasksFile
from mam_core.errors import MamError
from mam_core.records import Job
from mam_core.registry import Registry
from mam_core.work.counterpart import CounterpartOf

_TRIES = 3
_PAUSE_SEC = 1.0


def _nothing() -> None:
    pass


def counterparts(
    surroundings: Callable[[], Surroundings] = Surroundings.of,
    written: Callable[[], object] = _nothing,
) -> CounterpartOf:
    """Which task a job has, for a worker. `written` is called after each change of a file."""

    def counterpart_of(registry: Registry, job: Job) -> TaskCounterpart | None:
        name = TaskName.of(job)
        return None if name is None else TaskCounterpart(name, job, surroundings, written)

    return counterpart_of


class TaskCounterpart:
    """One attempt of a job, as its task."""

    def __init__(
        self,
        name: TaskName,
        job: Job,
        surroundings: Callable[[], Surroundings],
        written: Callable[[], object] = _nothing,
    ) -> None:
        self._file = TasksFile(name.path)
        self._task_id = name.task_id
        self._job = job
        self._surroundings = surroundings
        self._node = self._mode = ""
        self._written = written
        self._number = 0

    @property
    def environ(self) -> Mapping[str, str]:
        return {MODE_VARIABLE: self._mode}

    def refusal(self) -> str:
        """A task that another node took, or that is done, is not run a second time."""
        try:
            self._node, self._mode = self._surroundings()
            return self._claim()
        except (DispatchError, BadVariable) as problem:  # no such file, or no such mode
            return problem.message

    def _claim(self) -> str:
        with self._file.changing() as draft:
            task = draft.get(self._task_id)
            if task is None:
                return f"there is no task {self._task_id} in {self._file.path}"
            is_ours = task.job == self._job.job_id and task.node == self._node
            if is_ours and task.status is tasks.TaskStatus.CLAIMED:
                self._number = task.number  # by whoever registered the job
                return ""
            # One that runs as this very job is an attempt that was lost: the registry gave the
            # job back only when nothing of it was left.
            if not (is_ours and task.status.is_held) and (
                why := tasks.refusal(self._task_id, task)
            ):
                return why
            task = tasks.claimed(task, self._node, os.getpid(), self._job.job_id, time.time())
            draft.put(self._task_id, task)
            self._number = task.number
        self._written()
        return ""

    def started(self, pid: int, log: str) -> None:
        self._write(lambda task: tasks.started(task, pid, log), tries=1)

    def ended(self, job: Job) -> None:
        if job.attempt == self._job.attempt and (after := after_job(job)) is not None:
            self._write(after, tries=_TRIES)

    def _write(self, change: Callable[[Task], Task], tries: int) -> None:
        for left in reversed(range(tries)):
            try:
                self._change(change)
            except (MamError, OSError) as problem:
                if left:
                    time.sleep(_PAUSE_SEC)
                    continue
                warn(f"task {self._task_id} of {self._file.path} is not up to date: {problem}")
            return

    def _change(self, change: Callable[[Task], Task]) -> None:
        with self._file.changing() as draft:
            task = draft.get(self._task_id)
            if task is None or (task.job, task.node, task.number) != (
                self._job.job_id,
                self._node,
                self._number,
            ):
                who = f"{task.node} has it" if task and task.node else "it was given back"
                warn(f"task {self._task_id} is no longer ours ({who}): it is left as it is")
                return
            draft.put(self._task_id, change(task))
        self._written()


def after_job(job: Job) -> Callable[[Task], Task] | None:
    """What becomes of a task when its job stands like this after an attempt; None: it goes on."""
    match tasks.task_status(job):
        case tasks.TaskStatus.COMPLETED:
            return lambda task: tasks.completed(task, tasks.moment(job.ended_at) or time.time())
        case tasks.TaskStatus.FAILED:
            return lambda task: tasks.failed(task, tasks.error_of(job))
        case tasks.TaskStatus.PENDING:
            return tasks.released
        case _:
            return None
