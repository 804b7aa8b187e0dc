"""A task of the dispatch registry, as the file has it, and how its words map to those of a job.

The document's fields come first; ours (`attempt`, `job`, `released`) are additive,
and what other tools wrote into a task is carried along untouched.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from mam_core.clock import parse_stamp
from mam_core.errors import MamError
from mam_core.records import Job, Reason, Status

VERSION = 1
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class DispatchError(MamError):
    """The dispatch registry cannot be used."""

    title = "Dispatch registry"


class TaskRefused(MamError):
    """The task is not in a state that allows this."""

    title = "Refused"


class TaskStatus(StrEnum):
    """The document's five words."""

    PENDING = "pending"
    CLAIMED = "claimed"  #: a node has it, and its process does not run yet
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"

    @property
    def is_held(self) -> bool:
        """A node has it."""
        return self in (TaskStatus.CLAIMED, TaskStatus.RUNNING)


#: The one table between the two vocabularies. A running job whose process is not there yet is
#: `claimed`, which `task_status` decides; a task has no word for cancelled.
TASK_STATUS: Mapping[Status, TaskStatus] = {
    Status.PENDING: TaskStatus.PENDING,
    Status.RUNNING: TaskStatus.RUNNING,
    Status.COMPLETED: TaskStatus.COMPLETED,
    Status.ERROR: TaskStatus.FAILED,
    Status.CANCELLED: TaskStatus.FAILED,
}
#: And back: what the console and `mam list` call it.
JOB_STATUS: Mapping[TaskStatus, Status] = {
    TaskStatus.PENDING: Status.PENDING,
    TaskStatus.CLAIMED: Status.RUNNING,
    TaskStatus.RUNNING: Status.RUNNING,
    TaskStatus.COMPLETED: Status.COMPLETED,
    TaskStatus.FAILED: Status.ERROR,
}


def task_status(job: Job) -> TaskStatus:
    """The task's word for where a job stands."""
    if job.status is Status.RUNNING and job.pid is None:
        return TaskStatus.CLAIMED
    return TASK_STATUS[job.status]


def error_of(job: Job) -> str:
    """Why a job that did not complete ended, in the words of the task's `error`."""
    word = "cancelled" if job.status is Status.CANCELLED else str(job.reason or "error")
    detail = job.detail or ""
    if job.reason is Reason.CANCELLED and detail.startswith(word):
        return detail
    return ": ".join(filter(None, (word, detail)))


class Task(NamedTuple):
    """One task; what is None is not in the file."""

    status: TaskStatus
    node: str | None = None
    pid: int | None = None
    started_at: str | None = None  #: when it was claimed
    completed_at: str | None = None
    log: str | None = None
    spec: str | None = None  #: the name of its file in the specs folder
    error: str | None = None
    attempt: int | None = None  #: grows at every claim; None where only other tools wrote it
    job: str | None = None  #: the job that it is on its node
    released: Mapping[str, Any] | None = None  #: who had it before it was given back
    extra: Mapping[str, Any] = _NOTHING

    @classmethod
    def from_dict(cls, task_id: str, data: Any) -> Task:
        """Raises `DispatchError` that names the task and what is wrong with it."""
        if not isinstance(data, dict):
            raise DispatchError(f"task {task_id[:60]!r} is no object")
        try:
            status = TaskStatus(str(data.get("status")))
        except ValueError:
            said, words = data.get("status"), ", ".join(TaskStatus)
            raise DispatchError(
                f"task {task_id[:60]!r} has the status {said!r:.40}: say one of {words}"
            ) from None
        known: dict[str, Any] = {}
        for name, kind in _KINDS.items():
            value = data.get(name)
            if value is None:
                continue
            if not isinstance(value, kind) or isinstance(value, bool):
                raise DispatchError(f"task {task_id[:60]!r} has a {name} that is {value!r:.40}")
            known[name] = value
        extra = {name: data[name] for name in data if name not in _KINDS and name != "status"}
        return cls(status, **known, extra=extra)

    def to_dict(self) -> dict[str, Any]:
        data = {
            name: value
            for name, value in self._asdict().items()
            if value is not None and name != "extra"
        }
        if self.released is not None:
            data["released"] = dict(self.released)
        return {**data, **self.extra}

    @property
    def number(self) -> int:
        """Of its attempt; one that other tools claimed is at its first."""
        if self.attempt is not None:
            return self.attempt
        return 0 if self.status is TaskStatus.PENDING else 1

    @property
    def since(self) -> float:
        """When it was claimed; 0.0 where that is not known."""
        return moment(self.started_at)


_KINDS: Mapping[str, type] = {
    "node": str,
    "pid": int,
    "started_at": str,
    "completed_at": str,
    "log": str,
    "spec": str,
    "error": str,
    "attempt": int,
    "job": str,
    "released": dict,
}


# -- what each step does to a task ---------------------------------------------------------------


def refusal(task_id: str, task: Task) -> str:
    """Why a task cannot be claimed, as a sentence; empty when it can."""
    if task.status.is_held:
        by = f" by {task.node}" if task.node else ""
        since = f" since {task.started_at}" if task.started_at else ""
        return f"task {task_id} is {task.status}{by}{since}"
    if task.status is TaskStatus.COMPLETED:
        by = f" by {task.node}" if task.node else ""
        return f"task {task_id} is completed{by}: it is not run again"
    return ""


def claimed(task: Task, node: str, pid: int, job: str, now: float) -> Task:
    """The next attempt; nothing of an earlier one is shown as its own."""
    return Task(
        TaskStatus.CLAIMED,
        node=node,
        pid=pid,
        started_at=local_stamp(now),
        spec=task.spec,
        attempt=task.number + 1,
        job=job,
        extra=task.extra,
    )


def started(task: Task, pid: int, log: str) -> Task:
    return task._replace(status=TaskStatus.RUNNING, pid=pid, log=log)


def completed(task: Task, now: float) -> Task:
    return task._replace(status=TaskStatus.COMPLETED, completed_at=local_stamp(now), error=None)


def failed(task: Task, error: str) -> Task:
    return task._replace(status=TaskStatus.FAILED, error=error)


def released(task: Task) -> Task:
    """Pending again. Who had it is kept, so that a merge knows which claim was given up."""
    had = {"node": task.node, "started_at": task.started_at}
    return Task(
        TaskStatus.PENDING,
        spec=task.spec,
        attempt=task.number,
        released={name: value for name, value in had.items() if value is not None},
        extra=task.extra,
    )


def tasks_in_words(number: int) -> str:
    return "1 task" if number == 1 else f"{number} tasks"


# -- time ----------------------------------------------------------------------------------------


def local_stamp(now: float) -> str:
    """The document's form of a moment: local time with its offset, whole seconds."""
    shown = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(now))
    return f"{shown[:-2]}:{shown[-2:]}"


def moment(text: Any) -> float:
    """Seconds since the epoch, of either form; 0.0 for what is no moment."""
    try:
        return parse_stamp(text)
    except (TypeError, ValueError, OverflowError):
        return 0.0
