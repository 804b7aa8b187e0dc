"""The stores that the contract suite runs over: a new one is one more line in `STORES`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mam_core.audit import AuditLog
from mam_core.store_urls import StoreUrl
from mam_core.stores.base import Store
from mam_core.stores.bell_file import bell_beside
from mam_core.stores.files import FilesStore
from mam_core.stores.index import Index
from mam_core.stores.sql_store import SqlStore
from mam_core.stores.sqlite import SqliteDatabase

#: Opens one more handle on the same registry.
Opener = Callable[[], Store]


def logs_of(root: Path) -> AuditLog:
    return AuditLog(str(root / "delegate_job_logs"))


def files(root: Path) -> Opener:
    return lambda: FilesStore(str(root / "jobs"), logs_of(root))


def indexed(root: Path) -> Opener:
    return lambda: FilesStore(str(root / "jobs"), logs_of(root), catalogue=Index())


def sqlite(root: Path) -> Opener:
    place = str(root / "jobs.sqlite")
    jobs, logs = str(root / "jobs"), str(root / "delegate_job_logs")
    return lambda: SqlStore(SqliteDatabase(place), jobs, logs, lambda: bell_beside(place))


def postgres(root: Path, uri: str) -> Opener:
    """`uri` leads to a schema of its own. Tests have a clock of their own, so it judges leases."""
    from mam_core.stores.postgres import PostgresDatabase

    jobs, logs = str(root / "jobs"), str(root / "delegate_job_logs")

    def opened() -> Store:
        database = PostgresDatabase(StoreUrl.parse(uri), shares_clock=False)
        return SqlStore(database, jobs, logs, database.bell)

    return opened


STORES: dict[str, Callable[[Path], Opener]] = {
    "files": files,
    "files+index": indexed,
    "sqlite": sqlite,
}
