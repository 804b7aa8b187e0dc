"""The stores that the contract suite runs over: a new one is one more line in `STORES`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mam_core.audit import AuditLog
from mam_core.stores.base import Store
from mam_core.stores.files import FilesStore
from mam_core.stores.index import Index
from mam_core.stores.memory import MemoryStore

#: Opens one more handle on the same registry.
Opener = Callable[[], Store]


def logs_of(root: Path) -> AuditLog:
    return AuditLog(str(root / "delegate_job_logs"))


def memory(root: Path) -> Opener:
    store = MemoryStore(logs_of(root))
    return lambda: store


def files(root: Path) -> Opener:
    return lambda: FilesStore(str(root / "jobs"), logs_of(root))


def indexed(root: Path) -> Opener:
    return lambda: FilesStore(str(root / "jobs"), logs_of(root), catalogue=Index())


STORES: dict[str, Callable[[Path], Opener]] = {
    "memory": memory,
    "files": files,
    "files+index": indexed,
}
