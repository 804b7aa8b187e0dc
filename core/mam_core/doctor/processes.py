"""Processes that carry the mark of an attempt which nobody runs any more.

Whose a process is, is known by the attempt's token and by nothing else. Where to look
for that token is only a hint: the variables that an agent was given, the label of a
supervisor, and at last every mark in the log, for one that took its variables off.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from mam_core.audit import AuditEvent
from mam_core.disk import Folder
from mam_core.doctor.findings import Area, Finding, Fix, Mended, many, warning
from mam_core.doctor.ground import Ground, Look
from mam_core.errors import JobNotFound, MamError, StoreError, UnreadableRecord
from mam_core.records import Job, Status, check_job_id
from mam_core.work.marks import AttemptMark, end_leftovers, is_gone
from mam_core.work.processes import (
    HAS_PROC,
    TOKEN_VARIABLE,
    Process,
    ancestors,
    number_of,
    number_on,
)
from mam_core.work.witnesses import ATTEMPTS
from mam_core.work.workers_here import is_mam, variables_of

#: How the label of a supervisor ends.
_LABEL = re.compile(r"\bjob ([A-Za-z0-9_-]+) attempt ([0-9]+)$")
_NAMED = 5


class _Attempt(NamedTuple):
    job_id: str
    attempt: int


class _Carrier(NamedTuple):
    """A process with a mark of some attempt."""

    process: Process
    token: str  #: empty when only the kernel's limit tells of it
    number: int | None
    registry: str  #: empty when it does not say
    hint: _Attempt | None


def orphans(look: Look) -> Iterator[Finding]:
    """By attempt. Where there is no ``/proc``, only the sweep and the workers look for them."""
    if not HAS_PROC:
        return
    found = _carriers(look)
    if not found:
        return
    running = {_Attempt(job.job_id, job.attempt) for job in look.running.values()}
    marks = _marks(look, found, running)
    taken = {mark.token for name, mark in marks.items() if name in running}
    told: set[str] = set()
    for name, mark in marks.items():
        if mark.token in taken or mark.token in told or _is_owned(look, mark):
            continue
        told.add(mark.token)
        theirs = _theirs(look, found, mark)
        if theirs:
            yield _orphans(look, name, mark, theirs)


def _orphans(look: Look, name: _Attempt, mark: AttemptMark, theirs: list[Process]) -> Finding:
    pids = ", ".join(str(process.pid) for process in theirs[:_NAMED])
    more = " …" if theirs[_NAMED:] else ""
    count = many(len(theirs), "process", "processes")
    verb = "is" if len(theirs) == 1 else "are"
    words = f"{count} of it {verb} left (pid {pids}{more}), and {_state(look, name)}"
    fix = Fix(f"end what is left of job {name.job_id}", partial(_end, look.ground, name, mark))
    return warning(
        Area.PROCESSES, f"job {name.job_id} attempt {name.attempt}", words, fix, mark.token[:8]
    )


def _state(look: Look, name: _Attempt) -> str:
    try:
        job = look.registry.get(name.job_id)
    except (JobNotFound, UnreadableRecord):
        return "the job is not in the registry"
    if job.attempt != name.attempt:
        return f"the job is at attempt {job.attempt}"
    return f"the job is {job.status}"


# -- who carries a mark ------------------------------------------------------------------------


def _carriers(look: Look) -> list[_Carrier]:
    """Everybody with a mark but us and those above us: who asks from inside an attempt, lives."""
    spared = ancestors(os.getpid(), look.everybody)
    found = []
    for process in look.everybody:
        if process.pid in spared:
            continue
        environ = variables_of(process.pid)
        token, number = environ.get(TOKEN_VARIABLE, ""), number_on(process.pid)
        if token or number is not None:
            place = environ.get("MAM_REGISTRY_DIR", "")
            hint = _named(environ.get("MAM_JOB_ID", ""), environ.get("MAM_ATTEMPT", ""))
            found.append(_Carrier(process, token, number, place, hint))
    return found


def _theirs(look: Look, found: Iterable[_Carrier], mark: AttemptMark) -> list[Process]:
    number = number_of(mark.token)
    supervisor = [one for one in look.everybody if one.name == _process(mark)]
    marked = [one.process for one in found if one.token == mark.token or one.number == number]
    return [*supervisor, *marked]


def _process(mark: AttemptMark) -> tuple[int, str]:
    """The supervisor, as `Process.name` has it."""
    return mark.supervisor.pid, mark.supervisor.started


def _is_owned(look: Look, mark: AttemptMark) -> bool:
    """Its supervisor is the child of a `mam` that lives: a live agent stays from job to job, and
    whoever started it ends it. One whose worker is dead was handed on to somebody else."""
    parent = next((one.parent for one in look.everybody if one.name == _process(mark)), None)
    return parent is not None and is_mam(look.commands.get(parent, []))


# -- whose mark it is --------------------------------------------------------------------------


def _marks(
    look: Look, found: list[_Carrier], running: set[_Attempt]
) -> dict[_Attempt, AttemptMark]:
    """The marks of this registry's attempts that somebody may carry."""
    node, log = look.registry.node, look.registry.store.audit.path
    names = [*sorted(running), *_hints(look, found)]
    marks = {name: mark for name in names if (mark := _read(log, name)) is not None}
    explained = {mark.token for mark in marks.values()}
    numbers = {number_of(token) for token in explained}
    ours = os.path.realpath(look.ground.registry_path)
    dark = [
        one
        for one in found
        if one.token not in explained
        and one.number not in numbers
        and one.registry in ("", ours, look.ground.registry_path)
    ]
    if dark:
        wanted = {one.number for one in dark} | {
            number_of(one.token) for one in dark if _is_token(one.token)
        }
        for name in _all_attempts(log):
            mark = _read(log, name) if name not in marks else None
            if mark is not None and number_of(mark.token) in wanted:
                marks[name] = mark
    # What ran in another PID namespace, or on another host, cannot be judged from here.
    return {
        name: mark
        for name, mark in marks.items()
        if mark == AttemptMark.of(mark.token, mark.supervisor, node)
    }


def _hints(look: Look, found: list[_Carrier]) -> list[_Attempt]:
    names = {one.hint for one in found}
    for command in look.commands.values():
        if label := _LABEL.search((command or [""])[-1]):
            names.add(_named(label[1], label[2]))
    return sorted(filter(None, names))


def _named(job_id: str, attempt: str) -> _Attempt | None:
    try:
        return _Attempt(check_job_id(job_id), int(attempt))
    except (MamError, ValueError):
        return None


def _is_token(text: str) -> bool:
    return re.fullmatch("[0-9a-f]{32}", text) is not None


def _read(log: str, name: _Attempt) -> AttemptMark | None:
    try:
        with Folder.open(os.path.join(log, name.job_id, ATTEMPTS, str(name.attempt))) as folder:
            mark = AttemptMark.read(folder)
    except (OSError, StoreError):
        return None
    return mark if mark is not None and _is_token(mark.token) else None


def _all_attempts(log: str) -> Iterator[_Attempt]:
    """The newest log first: what is left over is seldom old."""
    for job_id in reversed(_listed(log)):
        for attempt in _listed(os.path.join(log, job_id, ATTEMPTS)):
            if (name := _named(job_id, attempt)) is not None:
                yield name


def _listed(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


# -- what is done about it ---------------------------------------------------------------------


def _end(ground: Ground, name: _Attempt, mark: AttemptMark) -> Mended:
    """Written down first, as the sweep does it; the record is looked at under the lock."""
    registry = ground.registry
    why = "the doctor ends what is left of an attempt that nobody runs"
    try:
        with registry.changing(name.job_id) as (tx, job):
            if _runs(job, name):
                return Mended(False, f"job {name.job_id} runs: nothing was done")
            tx.note(name.job_id, registry.note(AuditEvent.STALE, attempt=name.attempt, why=why))
    except (JobNotFound, UnreadableRecord):
        pass  # it was cleaned away; its processes were not
    count = end_leftovers(mark, ground.config.defaults.grace_sec)
    words = f"{many(count, 'process', 'processes')} of job {name.job_id} ended"
    if is_gone(mark, node=registry.node):
        return Mended(True, words)
    return Mended(False, f"{words}, and some are still there")


def _runs(job: Job, name: _Attempt) -> bool:
    return job.status is Status.RUNNING and job.attempt == name.attempt
