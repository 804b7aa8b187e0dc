"""Carry a whole registry from one store to another, and prove that it arrived.

The source is frozen meanwhile and left as it is. Pieces arrive in small transactions,
histories first and records last; each is whole or absent, and what is there already
is left alone: so a transfer that was killed is simply begun again. At the end both
sides are read and compared, piece by piece.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from mam_core.config import Config
from mam_core.errors import (
    InvalidField,
    JobNotFound,
    StoreError,
    TransitionRefused,
    UnreadableRecord,
)
from mam_core.estate import Estate, Kind, Piece
from mam_core.presence import worker_of
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.rights import check_move, rights_here
from mam_core.sessions import SessionFolder
from mam_core.store_urls import StoreKind, StoreUrl
from mam_core.stores.base import Progress, Query
from mam_core.summaries import Unreadable
from mam_core.wiring import actor, estate_of, node_name, store_at

#: So many pieces, or so many bytes, arrive together.
_PIECES, _BYTES = 200, 4 * 1024 * 1024

_Key = tuple[Kind, str]


class TransferUnproven(StoreError):
    """What arrived is not what left."""

    title = "Migration"


@dataclass(slots=True)
class Transfer:
    """What was carried, or would be."""

    source: str
    target: str
    dry_run: bool = False
    carried: Counter[Kind] = field(default_factory=Counter)
    already: int = 0  #: pieces that were there, the same
    refused: dict[str, str] = field(default_factory=dict)  #: what is there, and differs
    unreadable: list[Unreadable] = field(default_factory=list)  #: carried all the same
    running: list[str] = field(default_factory=list)  #: unsupervised: nobody can tell who is at it
    left: list[str] = field(default_factory=list)  #: what belongs to no job
    content: str = ""  #: one number for all that was compared

    def to_dict(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "target": self.target,
            "dry_run": self.dry_run,
            "carried": {str(kind): count for kind, count in self.carried.items()},
            "already": self.already,
            "refused": self.refused,
            "unreadable": [row.to_dict() for row in self.unreadable],
            "running": self.running,
            "left": self.left,
            "content": self.content,
        }


@contextmanager
def between(
    source: StoreUrl,
    target: StoreUrl,
    registry_path: str,
    config: Config,
    allow_network: bool = False,
) -> Iterator[tuple[Registry, Registry, str]]:
    """The registries at both ends, and the folder of this host whose sessions use the first.

    A folder's url has its path as the place.
    """
    if str(source) == str(target):
        raise InvalidField(f"{source.without_password}: a registry is not carried to itself")
    with ExitStack() as stack:
        ends = []
        for url in (source, target):
            path = url.place if url.kind is StoreKind.FILES else registry_path
            store = store_at(url, path, config, allow_network=allow_network)
            rights = rights_here(path, config)
            ends.append(Registry(store, actor=actor(), node=node_name(), rights=rights))
            stack.enter_context(ends[-1])
        path = source.place if source.kind is StoreKind.FILES else registry_path
        yield ends[0], ends[1], path


def transfer(
    source: Registry,
    target: Registry,
    registry_path: str,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Transfer:
    """Raises `TransitionRefused` while somebody works on the source."""
    if not dry_run:
        check_move((end.rights, end.store) for end in (source, target))
    here, there = estate_of(source.store), estate_of(target.store)
    result = Transfer(here.place, there.place, dry_run)
    with here.frozen():
        result.running = _running(source, registry_path)
        result.left = here.left()
        if dry_run:
            _carry(here, there, result, progress)
            return result
        with there.opened():
            wanted = _carry(here, there, result, progress)
            there.settle()
            _prove(there, wanted, result)
    if result.carried[Kind.RECORD]:
        target.store.remember()
    return result


def _running(registry: Registry, registry_path: str) -> list[str]:
    """Jobs that run without a lease; one that is leased, or a worker that waits, is a refusal."""
    sessions = SessionFolder(registry_path)
    for session in sessions.all()[0]:
        if session.node == registry.node and worker_of(sessions, session.name) is not None:
            raise TransitionRefused(
                f"session {session.name} has a worker: `mam stop {session.name}` ends it"
            )
    running = []
    for row in registry.store.find(Query(frozenset({Status.RUNNING})))[0]:
        with suppress(JobNotFound, UnreadableRecord):
            job = registry.get(row.job_id)
            if job.lease is not None and not registry.lease_expired(job.lease):
                raise TransitionRefused(
                    f"job {job.job_id} is run by {job.lease.owner}: wait for it, or end its worker"
                )
            running.append(job.job_id)
    return running


def _carry(
    here: Estate, there: Estate, result: Transfer, progress: Progress | None
) -> dict[_Key, bytes]:
    """Everything that is not there yet; the answer is what must be there afterwards."""
    # The lines of a history arrive last: without them it was cut short, and is written anew.
    known = {
        piece.key: piece.digest
        for piece in there.pieces()
        if piece.data or piece.kind is not Kind.HISTORY
    }
    wanted: dict[_Key, bytes] = {}
    waiting: list[Piece] = []
    total = here.count()
    for done, piece in enumerate(here.pieces(), 1):
        if progress is not None:
            progress(min(done, total), total)
        if piece.kind is Kind.UNREADABLE:
            result.unreadable.append(Unreadable(piece.name, piece.why))
        digest = piece.digest
        if piece.key in known and known[piece.key] != digest:
            words = f"{_words(piece)} is in {there.place} already, and differs"
            result.refused[f"{piece.kind} {piece.name}".strip()] = words
            continue
        wanted[piece.key] = digest
        if piece.key in known:
            result.already += 1
            continue
        result.carried[piece.kind] += 1
        waiting.append(piece)
        if len(waiting) >= _PIECES or sum(len(one.data) for one in waiting) > _BYTES:
            _put(there, waiting, result)
    _put(there, waiting, result)
    return wanted


def _put(there: Estate, waiting: list[Piece], result: Transfer) -> None:
    if waiting and not result.dry_run:
        there.put(waiting)
    waiting.clear()


def _prove(there: Estate, wanted: Mapping[_Key, bytes], result: Transfer) -> None:
    arrived = {piece.key: piece.digest for piece in there.pieces() if piece.key in wanted}
    for key, digest in wanted.items():
        if arrived.get(key) != digest:
            raise TransferUnproven(
                f"{key[0]} {key[1]} did not arrive in {there.place} as it left {result.source}"
            )
    everything = hashlib.sha256()
    for key in sorted(wanted):
        everything.update(f"{key[0]}\0{key[1]}\0".encode("utf-8", "surrogatepass") + wanted[key])
    result.content = everything.hexdigest()


def _words(piece: Piece) -> str:
    if piece.kind is Kind.GATES:
        return "what is paused"
    names = {Kind.RECORD: "job", Kind.HISTORY: "the history of job"}
    return f"{names.get(piece.kind, str(piece.kind))} {piece.name}"
