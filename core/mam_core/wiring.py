"""The one place that picks concrete parts: which store, which audit log, whose name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from mam_core.audit import AuditLog
from mam_core.config import Config, load
from mam_core.errors import ConfigError
from mam_core.locations import logs_path, registry_place
from mam_core.registry import Registry
from mam_core.stores.files import FilesStore
from mam_core.stores.index import Index


def open_registry(
    registry_dir: str | None = None,
    *,
    config: Config | None = None,
    allow_network: bool = False,
) -> Registry:
    """The registry that a command, a script or the console works on."""
    config = config or load()
    if config.store.url not in (None, "", "files"):
        raise ConfigError("this version has only the files store: set [store] url to files")
    path = registry_place(registry_dir or config.registry_dir).path
    audit = AuditLog(logs_path(path))
    store = FilesStore(path, audit, catalogue=Index(), allow_network=allow_network)
    node = os.uname().nodename.partition(".")[0]
    return Registry(store, actor=actor(), node=node, slots=config.slots())


@contextmanager
def registry_lock(registry_dir: str | None = None) -> Iterator[None]:
    """The lock of the documents, held for a ``with`` block."""
    path = registry_place(registry_dir).path
    store = FilesStore(path, AuditLog(logs_path(path)))
    try:
        with store.locked():
            yield
    finally:
        store.close()


def actor() -> str:
    """Who acts, for the audit log: the login name, else the user's number."""
    return os.environ.get("USER") or os.environ.get("LOGNAME") or f"uid {os.getuid()}"


def carried_folders() -> tuple[str, ...]:
    """The folders inside a registry folder that go with the records when these move."""
    from mam_core.stores.files_transaction import ARCHIVE

    return (ARCHIVE,)
