"""Move a registry and its audit log to another folder: from ``.hermes`` to ``.mam``.

Under the locks of both. Each piece moves by one rename, a job's history first
and its record last, so a migration that is killed leaves every piece in one of
the two places, and the next run goes on with the rest. Nothing is overwritten: a
job that is there already stays where it is, and is named.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from mam_core import codec, moving
from mam_core.config import Config, load
from mam_core.disk import Folder
from mam_core.errors import InvalidField, MamError, RegistryMissing, StoreError
from mam_core.events.embedded import adopt
from mam_core.locations import (
    DEFAULT_REGISTRY_DIR,
    LEGACY_REGISTRY_DIR,
    LOGS_NAME,
    REGISTRY_VARIABLE,
    is_inside_attempt,
    logs_path,
    project_folder,
)
from mam_core.records import Status, check_job_id
from mam_core.rights import check_move, rights_here
from mam_core.store_urls import StoreKind, StoreUrl
from mam_core.stores.base import Gates, Transaction
from mam_core.summaries import Unreadable
from mam_core.wiring import carried_folders, store_at

_RECORD = ".json"
_EVENTS_LOG = ".events.log"
_JOBS = os.path.basename(DEFAULT_REGISTRY_DIR)
_SCHEME = re.compile(r"([A-Za-z0-9]+):")
_DATABASE = re.compile(r"(sqlite|postgres|postgresql):")


@dataclass(slots=True)
class Migration:
    """What was moved, or would be."""

    source: str
    target: str
    dry_run: bool = False
    jobs: list[str] = field(default_factory=list)  #: those whose record moved
    histories: list[str] = field(default_factory=list)  #: those whose audit log moved
    others: list[str] = field(default_factory=list)  #: event logs, batches of the archive
    pauses: int = 0
    unreadable: list[Unreadable] = field(default_factory=list)  #: moved all the same
    running: list[str] = field(default_factory=list)  #: somebody may still be working on them
    refused: dict[str, str] = field(default_factory=dict)  #: what is in both places, and how
    left: list[str] = field(default_factory=list)  #: files that belong to no job

    @property
    def is_empty(self) -> bool:
        return not (self.jobs or self.histories or self.others or self.pauses or self.refused)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "unreadable": [row.to_dict() for row in self.unreadable]}


class MigrationUnproven(StoreError):
    """What arrived is not what left."""

    title = "Migration"


def database_url(place: str, cwd: str | None = None) -> StoreUrl | None:
    """The database that ``--from`` or ``--to`` names; None where it names a folder."""
    if not _DATABASE.match(place):
        scheme = _SCHEME.match(place)
        if scheme and scheme[1] != StoreKind.FILES:
            raise InvalidField(
                f"unknown kind of store {scheme[0]!r}: use sqlite:PATH, postgresql://… or files "
                f"(for a folder of that name: ./{place})"
            )
        return None
    url = StoreUrl.parse(place, cwd or os.getcwd())
    if url.has_password:
        raise InvalidField(
            "a password on the command line can be read by every user of this machine: "
            "put it into ~/.pgpass, PGPASSWORD or [store] password_file"
        )
    return url


def registry_folder(place: str, cwd: str | None = None) -> str:
    """The registry that ``--from`` or ``--to`` names: for a folder ``X`` it is ``X/jobs``."""
    path = place.removeprefix("files:")
    path = os.path.normpath(os.path.join(cwd or os.getcwd(), os.path.expanduser(path)))
    return path if os.path.basename(path) == _JOBS else os.path.join(path, _JOBS)


def default_target(registry_dir: str | None, environ: Mapping[str, str] | None = None) -> str:
    """Where jobs go when nobody says: the registry that is in use, and never a legacy one."""
    environ = os.environ if environ is None else environ
    if chosen := registry_dir or environ.get(REGISTRY_VARIABLE):
        return os.path.abspath(os.path.expanduser(chosen))
    return os.path.join(project_folder(os.getcwd()), DEFAULT_REGISTRY_DIR)


def default_source() -> str:
    """The legacy registry of this project, whether there is one or not."""
    return registry_folder(LEGACY_REGISTRY_DIR, project_folder(os.getcwd()))


def migrate(
    source: str,
    target: str,
    *,
    dry_run: bool = False,
    allow_network: bool = False,
    config: Config | None = None,
) -> Migration:
    """Move everything from one registry folder to another, and prove that it arrived.

    Inside an attempt, an agent needs a grant in `config` if either end is its own registry.
    """
    result = Migration(os.path.abspath(source), os.path.abspath(target), dry_run)
    _check_apart(result)
    with ExitStack() as things:
        if dry_run:
            _look(result, _Places.open(result, things, create=False))
            return result
        files = StoreUrl(StoreKind.FILES)
        old = store_at(files, result.source, allow_network=allow_network)
        new = store_at(files, result.target, allow_network=allow_network)
        things.callback(old.close)
        things.callback(new.close)
        if is_inside_attempt():
            ends = ((result.source, old), (result.target, new))
            settings = config or load()
            check_move((rights_here(path, settings), store) for path, store in ends)
        was_removed = bool(old.removal())
        # Left in reverse: what arrives is written before what leaves is crossed out.
        leaving = things.enter_context(old.transaction(create=_has_histories(result)))
        arriving = things.enter_context(new.transaction(create=True))
        places = _Places.open(result, things, create=True)
        _move(_look(result, places))
        places.sync()
        adopt(result.target, result.source)
        result.pauses = _move_pauses(leaving, arriving)
        if not was_removed:  # that warning stays until a person accepts it
            old.forget_removal()
        if result.jobs:
            new.remember()
    return result


class Piece(NamedTuple):
    """One thing that moves whole: a record, an event log, a history, a batch of the archive."""

    source: Folder
    name: str
    target: Folder | None  #: None where a dry run finds none

    @property
    def clashes(self) -> bool:
        if self.target is None or not self.target.has(self.name):
            return False
        return not moving.holds(self.target, self.name, moving.fingerprint(self.source, self.name))


class _Places(NamedTuple):
    """Pairs of folders, old and new: of records, of histories, and those that go along."""

    jobs: tuple[Folder, Folder | None] | None  #: None where only histories are left
    logs: tuple[Folder, Folder | None] | None
    carried: list[tuple[Folder, Folder | None]]

    @classmethod
    def open(cls, result: Migration, things: ExitStack, *, create: bool) -> _Places:
        def there(path: str, make: bool = False) -> Folder | None:
            try:
                return things.enter_context(Folder.open(path, create=make))
            except FileNotFoundError:
                return None

        old_jobs = there(result.source)
        if old_jobs is None and not _has_histories(result):
            raise RegistryMissing(f"there is no registry at {result.source}")
        logs = None
        old_logs = there(_old_logs(result))
        if old_logs is not None:
            new_logs = there(logs_path(result.target), create)
            if new_logs is None or new_logs.identity != old_logs.identity:
                logs = (old_logs, new_logs)
        carried = []
        for name in carried_folders():
            if (old := there(os.path.join(result.source, name))) is not None:
                carried.append((old, there(os.path.join(result.target, name), create)))
        jobs = (old_jobs, there(result.target)) if old_jobs else None
        return cls(jobs, logs, carried)

    def sync(self) -> None:
        pairs = [pair for pair in (self.jobs, self.logs, *self.carried) if pair is not None]
        for folder in [new for _, new in pairs] + [old for old, _ in pairs]:
            if folder is not None:
                folder.sync()


def _old_logs(result: Migration) -> str:
    """Beside the old registry, also where the variable sends new histories elsewhere."""
    return os.path.join(os.path.dirname(result.source), LOGS_NAME)


def _has_histories(result: Migration) -> bool:
    return os.path.isdir(_old_logs(result))


def _check_apart(result: Migration) -> None:
    try:
        if os.path.samefile(result.source, result.target):
            raise InvalidField(f"{result.source}: jobs are moved to another folder, not to itself")
    except FileNotFoundError:
        pass  # one that is not there is not the other


def _look(result: Migration, places: _Places) -> list[Piece]:
    """What is to move, in order; `result` is told about each, and about what stays."""
    pieces: list[Piece] = []
    names = set(places.jobs[0].names()) if places.jobs else set()
    logged = _histories(places, result)
    for stem in sorted({*_stems(names, _RECORD), *_stems(names, _EVENTS_LOG), *logged}):
        parts = []
        if places.logs and stem in logged:
            parts.append(Piece(places.logs[0], stem, places.logs[1]))
        if places.jobs:
            files = [stem + end for end in (_EVENTS_LOG, _RECORD) if stem + end in names]
            parts += [Piece(places.jobs[0], name, places.jobs[1]) for name in files]
        if any(part.clashes for part in parts):
            result.refused[stem] = f"job {stem} is in {result.target} already, and differs"
            continue
        pieces += parts
        result.histories += [stem] if stem in logged else []
        result.others += [stem + _EVENTS_LOG] if stem + _EVENTS_LOG in names else []
        if places.jobs and stem + _RECORD in names:
            _tell_record(result, places.jobs[0], stem)
    for old, new in places.carried:
        for name in sorted(old.names()):
            piece = Piece(old, name, new)
            label = os.path.join(os.path.basename(old.path), name)
            if piece.clashes:
                result.refused[label] = f"{label} is in {result.target} already, and differs"
            else:
                pieces.append(piece)
                result.others.append(label)
    endings = (_RECORD, _EVENTS_LOG)
    result.left += sorted(n for n in names if not n.startswith(".") and not n.endswith(endings))
    return pieces


def _stems(names: set[str], ending: str) -> Iterator[str]:
    return (n.removesuffix(ending) for n in names if n.endswith(ending) and n[0] != ".")


def _histories(places: _Places, result: Migration) -> set[str]:
    """The jobs with a history; what stands between the histories and is none is left."""
    found = set()
    if places.logs:
        for name in places.logs[0].names():
            try:
                check_job_id(name)
            except MamError:
                result.left += [] if name.startswith(".") else [f"{LOGS_NAME}/{name}"]
            else:
                found.add(name)
    return found


def _tell_record(result: Migration, folder: Folder, stem: str) -> None:
    result.jobs.append(stem)
    try:
        data, _ = folder.read(stem + _RECORD, codec.MAX_RECORD_BYTES)
        job = codec.decode_job(data, stem)
    except (MamError, OSError) as problem:
        result.unreadable.append(Unreadable(stem, str(problem)))
    else:
        if job.status is Status.RUNNING:
            result.running.append(stem)


def _move(pieces: list[Piece]) -> None:
    proofs = [moving.fingerprint(piece.source, piece.name) for piece in pieces]
    for piece in pieces:
        if piece.target is not None:
            moving.move(piece.source, piece.name, piece.target)
    for piece, proof in zip(pieces, proofs, strict=True):
        if piece.target is None or not moving.holds(piece.target, piece.name, proof):
            raise MigrationUnproven(f"{piece.name} did not arrive as it left {piece.source.path}")
        if piece.source.has(piece.name):
            raise MigrationUnproven(f"{piece.name} is still in {piece.source.path}")


def _move_pauses(leaving: Transaction, arriving: Transaction) -> int:
    """What was paused stays paused; where both say something, the new place is right."""
    old, new = leaving.gates(), arriving.gates()
    if not (old.closed or old.slots or old.schedules):
        return 0
    for gate in old.closed:
        if new.find(gate.kind, gate.name) is None:
            new = new.with_gate(gate)
    slots = {**old.slots, **new.slots}
    arriving.set_gates(Gates(new.closed, slots, {**old.schedules, **new.schedules}))
    leaving.set_gates(Gates())
    return len(old.closed) + len(old.slots)
