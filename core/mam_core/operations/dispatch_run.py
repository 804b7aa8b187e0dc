"""Run tasks of the dispatch registry: each claimed, made a job, run by a worker, written back."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import NamedTuple

from mam_core.agents.profiles import Profile, profile_of
from mam_core.config import Config
from mam_core.dispatch import tasks
from mam_core.dispatch.counterpart import counterparts
from mam_core.dispatch.dispatcher import Dispatcher
from mam_core.dispatch.errand import Errand
from mam_core.dispatch.layout import Whole
from mam_core.dispatch.naming import GROUP, Surroundings
from mam_core.dispatch.settling import settle
from mam_core.dispatch.specs import specs_folder
from mam_core.dispatch.sync import Remote
from mam_core.dispatch.syncing import Syncing
from mam_core.dispatch.tasks import Task, TaskStatus
from mam_core.dispatch.tasks_file import TasksFile
from mam_core.errors import ConfigError
from mam_core.operations.dispatch import known, request_for
from mam_core.operations.work import Screen, Stops, Until, work
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores.base import Query
from mam_core.work.worker import Work, Worker


class Plan(NamedTuple):
    """What a run is asked for."""

    task_ids: Sequence[str] = ()  #: none: all that are pending
    retry_failed: bool = False
    agent: str | None = None
    workdir: str | None = None
    specs: str | None = None
    slots: int = 1
    remote: Remote | None = None
    every_sec: float = 30.0


class Ran(NamedTuple):
    """What became of it."""

    ended: dict[str, Task]  #: those that we took, as they stand
    refused: dict[str, str]  #: those that could not be run, and why
    skipped: dict[str, str]  #: those that somebody else took first

    @property
    def is_well(self) -> bool:
        done = all(task.status is TaskStatus.COMPLETED for task in self.ended.values())
        return done and not self.refused


def run(
    registry: Registry,
    registry_path: str,
    config: Config,
    file: TasksFile,
    plan: Plan,
    stops: Stops,
    *,
    screen: Screen,
    told: Callable[[str], None],
    config_path: str | None = None,
    allow_network: bool = False,
) -> Ran:
    """Until every task that was chosen has come to its end, here or elsewhere.

    Raises `UnknownTask` before anything is written. `told` hears of what is settled and synced.
    """
    around = Surroundings.of()
    label = f"dispatch:{secrets.token_hex(4)}"
    request = request_for(config, label, plan.agent, plan.workdir)
    if not profile_of(config, request["agent"]).is_headless:
        raise ConfigError(f"{request['agent']} is interactive: hand its tasks in with import")
    syncing = _syncing(file, plan, told)
    with syncing or nullcontext():
        known(file, plan.task_ids)
        for one in settle(file, registry, around.node):
            told(f"task {one.task_id} was {one.task.status}, {one.why}: now {one.becomes.status}")
        whole = file.load()
        errand = Errand(
            file,
            around.node,
            specs_folder(whole.header, plan.specs),
            request,
            patience_sec=config.defaults.lease_sec + 2 * config.defaults.sweep_sec,
            written=syncing.now if syncing else _nothing,
        )
        refused = _choose(errand, plan, whole, registry)
        soon = syncing.soon if syncing else _nothing

        def make(
            work: Work,
            opened: Callable[[], Registry],
            profiles: Callable[[str], Profile],
            screen: Screen,
            stops: Stops,
        ) -> Worker:
            companions = counterparts(lambda: around, soon)
            return Dispatcher(work, opened, profiles, screen, stops, companions, errand)

        if not errand.is_over:
            try:
                work(
                    registry_path,
                    config,
                    label,
                    stops,
                    agents=(request["agent"],),
                    slots=plan.slots,
                    until=Until.DRAINED,
                    screen=screen,
                    config_path=config_path,
                    allow_network=allow_network,
                    make=make,
                )
            finally:
                errand.give_back()
    return _ran(file, errand, refused, around.node)


def _choose(errand: Errand, plan: Plan, whole: Whole, registry: Registry) -> dict[str, str]:
    """Fill the errand; by task, why one that was named cannot be run."""
    refused: dict[str, str] = {}
    if plan.task_ids:
        named = list(dict.fromkeys(plan.task_ids))
        for task_id in named:
            if why := tasks.refusal(task_id, whole.tasks[task_id]):
                refused[task_id] = why
        free = [task_id for task_id in named if task_id not in refused]
        errand.add(free, with_failed=True, is_named=True)
        return refused
    retried = _retried(whole, registry) if not plan.retry_failed else set()
    for task_id, task in whole.tasks.items():
        if task.status is TaskStatus.PENDING:
            errand.add([task_id], with_failed=plan.retry_failed)
        elif task.status is TaskStatus.FAILED and (plan.retry_failed or task_id in retried):
            errand.add([task_id], with_failed=True)
    return refused


def _retried(whole: Whole, registry: Registry) -> set[str]:
    """Failed tasks whose job a person has retried, in the console or by `mam retry`."""
    waiting = registry.store.find(Query(frozenset({Status.PENDING}), group=GROUP))[0]
    jobs = {summary.job_id for summary in waiting}
    return {task_id for task_id, task in whole.tasks.items() if task.job in jobs}


def _syncing(file: TasksFile, plan: Plan, told: Callable[[str], None]) -> Syncing | None:
    if plan.remote is None:
        return None
    return Syncing(file, plan.remote, plan.every_sec, told)


def _ran(file: TasksFile, errand: Errand, refused: dict[str, str], node: str) -> Ran:
    now = file.load().tasks
    skipped = dict(errand.skipped)
    ended = {}
    for task_id in errand.taken:
        task = now.get(task_id)
        if task is None or task.node not in (node, None):
            skipped[task_id] = f"task {task_id} went to {task.node if task else 'nobody'}"
        else:
            ended[task_id] = task
    return Ran(ended, {**refused, **errand.left_out}, skipped)


def _nothing() -> None:
    pass
