"""What is there after a fault: records, histories, diaries, gathered once for all rules.

Records come through the store's own door, so that another store needs no other
rules; what only a folder of files can have is looked at in `leftovers`.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mam_core import codec
from mam_core.audit import AuditLog
from mam_core.audit_base import Audit
from mam_core.errors import MamError
from mam_core.estate import Kind
from mam_core.records import Job, Status
from mam_core.stores.base import Query
from mam_core.summaries import Unreadable
from mam_core.wiring import estate_of
from tests.faults.diary import Act, Entry, Phase, read_diaries
from tests.faults.ground import Ground


@dataclass(frozen=True)
class Kept:
    """A record and the archive batch it lies in; empty for the registry itself."""

    job: Job
    batch: str = ""


@dataclass(frozen=True)
class History:
    """The audit log of one job, as it stands on disk."""

    lines: list[dict[str, Any]]
    broken: list[bytes]  #: lines that are torn or no JSON object
    meta: dict[str, Any] | None
    status: dict[str, Any] | None

    @property
    def moves(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if line.get("event") == "status_changed"]

    def at(self, revision: int) -> dict[str, Any] | None:
        """The line that tells of this version of the record."""
        return next((line for line in self.lines if line.get("revision") == revision), None)


@dataclass(frozen=True)
class Scene:
    """Everything that the rules ask about."""

    ground: Ground
    kept: list[Kept]
    unreadable: list[str]
    histories: dict[str, History]
    entries: list[Entry]

    @cached_property
    def jobs(self) -> dict[str, Kept]:
        """Records by id; for one that is there twice the rules speak up elsewhere."""
        return {kept.job.job_id: kept for kept in self.kept}

    @cached_property
    def by_key(self) -> dict[str, list[Job]]:
        found: dict[str, list[Job]] = {}
        for kept in self.kept:
            if kept.job.key is not None:
                found.setdefault(kept.job.key, []).append(kept.job)
        return found

    def done(self, *acts: Act) -> list[Entry]:
        return [e for e in self.entries if e.phase is Phase.DONE and (not acts or e.act in acts)]

    def history(self, job_id: str) -> History:
        return self.histories.get(job_id, History([], [], None, None))


def look(ground: Ground) -> Scene:
    """Gather the scene; reads only, takes no lock."""
    if not ground.is_folder:
        return _look_into_database(ground)
    kept: list[Kept] = []
    unreadable: list[str] = []
    if ground.registry_dir.exists():
        store = ground.open_plainly()
        for row in store.bodies(Query()):
            if isinstance(row, Unreadable):
                unreadable.append(f"{row.job_id}: {row.error}")
            else:
                kept.append(Kept(row))
        store.close()
    for path in sorted(ground.registry_dir.glob(".archive/*/*.json")):
        try:
            kept.append(Kept(codec.decode_job(path.read_bytes(), path.stem), path.parent.name))
        except MamError as problem:
            unreadable.append(f"{path.name} in the archive: {problem}")
    with closing(AuditLog(str(ground.logs_dir))) as log:
        histories = {job_id: history_of(log, job_id) for job_id in log.job_ids()}
    return Scene(ground, kept, unreadable, histories, read_diaries(ground.diaries_dir))


def _look_into_database(ground: Ground) -> Scene:
    store = ground.open_plainly()
    rows = list(store.bodies(Query()))
    kept = [Kept(row) for row in rows if not isinstance(row, Unreadable)]
    unreadable = [f"{row.job_id}: {row.error}" for row in rows if isinstance(row, Unreadable)]
    for piece in estate_of(store).pieces():
        if piece.kind is Kind.ARCHIVED:
            batch, _, job_id = piece.name.rpartition("/")
            kept.append(Kept(codec.decode_job(piece.data, job_id), batch))
    histories = {job_id: history_of(store.audit, job_id) for job_id in store.audit.job_ids()}
    store.close()
    return Scene(ground, kept, unreadable, histories, read_diaries(ground.diaries_dir))


def history_of(log: Audit, job_id: str) -> History:
    """The audit log of one job, read without skipping what is broken."""
    lines: list[dict[str, Any]] = []
    broken: list[bytes] = []
    for raw in log.lines(job_id):
        try:
            parsed = json.loads(raw)
        except ValueError:
            parsed = None
        if isinstance(parsed, dict) and raw.endswith(b"\n"):
            lines.append(parsed)
        else:
            broken.append(raw)
    return History(lines, broken, log.meta(job_id), log.status(job_id))


_COMPARED = (
    "status",
    "revision",
    "attempt",
    "failures",
    "last_seq",
    "prompt",
    "priority",
    "reason",
    "detail",
    "is_supervised",
    "is_cancelling",
)


def outline(scene: Scene, *, without: str = "") -> dict[str, Any]:
    """The scene without what differs between two runs of the same act: ids, times, pids.

    Two scenes with one outline are the same to every user of the registry.
    """
    result: dict[str, Any] = {}
    for kept in scene.kept:
        job = kept.job
        if job.key is None or job.key == without:
            continue
        history = scene.history(job.job_id)
        result[job.key] = {
            "archived": bool(kept.batch),
            "fields": {name: getattr(job, name) for name in _COMPARED},
            "told": [(line.get("event"), line.get("to")) for line in history.lines],
            "meta": history.meta is not None,
            "status": (history.status or {}).get("status"),
        }
    gates = scene.ground.registry_dir / ".gates"
    if gates.exists():
        held = json.loads(gates.read_bytes())
        result[".gates"] = [*(gate["kind"] for gate in held["closed"]), *held["slots"]]
        result[".schedules"] = {
            name: (memory["until"], bool(memory["job_id"]))
            for name, memory in held.get("schedules", {}).items()
        }
    acts = scene.ground.registry_dir / ".acts"
    if acts.exists():
        result[".acts"] = [act["group"] for act in json.loads(acts.read_bytes())["acts"]]
    return result


def status_now(history: History) -> Status | None:
    """What the history says a job's status is."""
    for line in reversed(history.lines):
        if line.get("event") == "status_changed":
            return Status(line["to"])
        if line.get("event") == "registered":
            return Status.PENDING
    return None
