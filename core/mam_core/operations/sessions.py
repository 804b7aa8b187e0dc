"""Which sessions there are, how they stand, and what they are at.

The record says what was started; tmux says what is there; the worker's own mark
says who does it. Where tmux cannot be asked, a session is *unknown* and never dead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from mam_core.clock import SystemClock
from mam_core.operations.families import Families
from mam_core.operations.running_records import RunningRecords
from mam_core.presence import Announcements
from mam_core.process_mark import ProcessMark
from mam_core.records import Job
from mam_core.registry import Registry
from mam_core.sessions import Session, SessionFolder
from mam_core.tmux.facts import PaneFact, TmuxFailed, TmuxMissing
from mam_core.work.processes import everybody

#: Asks tmux; raises `TmuxFailed` or `TmuxMissing` when that cannot be done.
Panes = Callable[[], list[PaneFact]]


class SessionState(StrEnum):
    """How a session stands."""

    ALIVE = "alive"
    STOPPING = "stopping"  #: a person asked it to end, and it still has something to do
    DEAD = "dead"  #: its worker has ended; tmux keeps the pane, with the last words
    GONE = "gone"  #: on record, and no longer in tmux: `mam restore` brings it back
    STOPPED = "stopped"  #: by a person; on record because its worktree was kept
    UNKNOWN = "unknown"  #: tmux cannot be asked
    DAMAGED = "damaged"  #: its file cannot be read
    UNRECORDED = "unrecorded"  #: tmux has it with our mark, and there is no file of it


class Seen(NamedTuple):
    """One session as it is now."""

    name: str
    state: SessionState
    session: Session | None = None
    pane: PaneFact | None = None  #: that is ours
    worker: ProcessMark | None = None
    jobs: tuple[str, ...] = ()  #: that its worker runs now
    queued: int = 0  #: pending jobs of its label
    memory: int | None = None  #: resident bytes of the worker and all below it
    cpu_sec: float | None = None
    note: str = ""

    @property
    def label(self) -> str:
        return self.session.label if self.session else self.pane.label if self.pane else ""

    @property
    def agent(self) -> str:
        return self.session.agent if self.session else self.pane.agent if self.pane else ""

    @property
    def words(self) -> str:
        """The state, with how it ended where it did."""
        if self.state is not SessionState.DEAD or self.pane is None:
            return self.state
        if self.pane.exit_signal is not None:
            return f"dead (signal {self.pane.exit_signal})"
        return "dead" if self.pane.exit_code is None else f"dead ({self.pane.exit_code})"

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        on_record = self.session.to_dict() if self.session else {"name": self.name}
        return {
            **on_record,
            "label": self.label,
            "agent": self.agent,
            "state": self.state,
            "exit_code": self.pane.exit_code if self.pane else None,
            "exit_signal": self.pane.exit_signal if self.pane else None,
            "pid": self.worker.pid if self.worker else None,
            "jobs": list(self.jobs),
            "queued": self.queued,
            "memory": self.memory,
            "cpu_sec": self.cpu_sec,
            "note": self.note,
        }


def sessions(registry: Registry, registry_path: str, panes: Panes) -> list[Seen]:
    """All of them, by name. One question to tmux, one look at the processes, two at the index."""
    folder = SessionFolder(registry_path)
    seen, families = seen_alive(folder, Announcements(folder), panes, registry.node)
    return at_work(seen, families, registry, RunningRecords(registry).all()) if seen else []


def at_work(
    seen: Iterable[Seen], families: Families, registry: Registry, running: Iterable[Job]
) -> list[Seen]:
    """The same sessions, with their jobs, those that wait for them, and what they use."""
    queued = registry.store.queued()
    jobs: dict[str, list[str]] = {}
    for job in running:
        if job.lease is not None:  # its owner names the worker's process, and the slot
            jobs.setdefault(job.lease.owner.rpartition(":")[0], []).append(job.job_id)
    found = []
    for one in seen:
        worker = one.worker
        owner = f"{registry.node}:{worker.pid}:{worker.started}" if worker else ""
        at_hand = tuple(jobs.get(owner, ()))
        found.append(
            _with_usage(one, families)._replace(jobs=at_hand, queued=queued.get(one.label, 0))
        )
    return found


def stand(folder: SessionFolder, panes: Panes, node: str) -> list[Seen]:
    """How the sessions stand, without what they are at."""
    return seen_alive(folder, Announcements(folder), panes, node)[0]


def seen_alive(
    folder: SessionFolder, announcements: Announcements, panes: Panes, node: str
) -> tuple[list[Seen], Families]:
    """How the sessions stand, and the processes by which that was seen."""
    on_record, damaged = folder.all()
    try:
        there: Mapping[str, PaneFact] | None = by_session(panes())
        trouble = ""
    except (TmuxFailed, TmuxMissing) as problem:
        there, trouble = None, problem.message
    said = announcements.of(one.name for one in on_record if one.node == node)
    families = Families(everybody() if said else (), SystemClock().boot_id())
    workers = {name: one.mark for name, one in said.items() if families.has(one.mark)}
    found = [_judged(one, there, trouble, workers.get(one.name), node) for one in on_record]
    names = {one.name for one in on_record}
    for broken in damaged:
        names.add(broken.name)
        found.append(Seen(broken.name, SessionState.DAMAGED, note=broken.error))
    for name, pane in (there or {}).items():
        if name not in names and pane.label:
            found.append(Seen(name, SessionState.UNRECORDED, pane=pane))
    return sorted(found, key=lambda one: one.name), families


def by_session(panes: Iterable[PaneFact]) -> dict[str, PaneFact]:
    """One pane for each session: somebody may have split it, and ours is the one with a label."""
    found: dict[str, PaneFact] = {}
    for pane in panes:
        if pane.session not in found or (pane.label and not found[pane.session].label):
            found[pane.session] = pane
    return found


def is_ours(session: Session, pane: PaneFact, worker: ProcessMark | None) -> bool:
    """The pane is that of the session on record, and not of a namesake."""
    if pane.label != session.label:
        return False
    return pane.dead or worker is None or worker.pid == pane.pid


def _judged(
    session: Session,
    there: Mapping[str, PaneFact] | None,
    trouble: str,
    worker: ProcessMark | None,
    node: str,
) -> Seen:
    if session.node != node:
        words = f"it is on {session.node}"
        return Seen(session.name, SessionState.UNKNOWN, session, note=words)
    if there is None:
        return Seen(session.name, SessionState.UNKNOWN, session, None, worker, note=trouble)
    pane, note = there.get(session.name), ""
    if pane is not None and not is_ours(session, pane, worker):
        pane, note = None, "another tmux session has its name"
    if pane is not None and not pane.dead:
        state = SessionState.STOPPING if session.stopped_at else SessionState.ALIVE
    elif worker is not None:
        # Its pane is gone, or is just going; it hands back what it has.
        state, note = SessionState.STOPPING, note or "its worker is ending"
    elif session.stopped_at:
        state = SessionState.STOPPED
    else:
        state = SessionState.GONE if pane is None else SessionState.DEAD
    return Seen(session.name, state, session, pane, worker, note=note)


def _with_usage(seen: Seen, families: Families) -> Seen:
    if seen.worker is None:
        return seen
    all_of_it = families.of(seen.worker.pid)
    return seen._replace(
        memory=sum(process.memory for process in all_of_it),
        cpu_sec=round(sum(process.cpu_sec for process in all_of_it), 2),
    )


def named(seen: Iterable[Seen], name: str) -> list[Seen]:
    """The session of this name, or those of the pool of this name; also when one that a person
    stopped long ago is still on record by that name."""
    everyone = list(seen)
    exact = [one for one in everyone if one.name == name]
    pool = [one for one in everyone if one.session is not None and one.session.pool == name]
    is_past = all(one.state is SessionState.STOPPED for one in exact)
    return pool if is_past and pool else exact
