"""The private place of one fault run: a registry, its audit log and the players' diaries.

Everything below one root, so that it can be copied before a fault and compared
after it, and removed with one call.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from mam_core.audit import AuditLog
from mam_core.config import load
from mam_core.registry import Registry
from mam_core.stores.base import Store
from mam_core.stores.catalogue import Scan
from mam_core.stores.files import FilesStore
from mam_core.wiring import open_registry


@dataclass(frozen=True)
class Ground:
    """Where a workload plays; each process opens the registry there for itself."""

    root: Path

    @property
    def registry_dir(self) -> Path:
        return self.root / ".mam" / "jobs"

    @property
    def logs_dir(self) -> Path:
        return self.root / ".mam" / "delegate_job_logs"

    @property
    def diaries_dir(self) -> Path:
        return self.root / "diaries"

    @property
    def clock(self) -> Path:
        """How many seconds the wall clock is off here; without it, not at all."""
        return self.root / "clock"

    @property
    def store_url(self) -> str:
        """Where the records are; whoever plays finds it written down."""
        try:
            return (self.root / "store").read_text()
        except FileNotFoundError:
            return "files"

    @property
    def is_folder(self) -> bool:
        return self.store_url == "files"

    @property
    def may_be_cut_off(self) -> bool:
        """A server can go away in the middle of a call, and nobody knows what became of that."""
        return self.store_url.startswith("postgresql")

    def keep_in(self, store_url: str) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / "store").write_text(store_url)

    def open(self) -> Registry:
        config = load(flags={"store.url": self.store_url})
        return open_registry(str(self.registry_dir), config=config)

    def open_plainly(self) -> Store:
        """The records without anything derived from them, to see what is true."""
        if not self.is_folder:
            return self.open().store
        audit = AuditLog(str(self.logs_dir))
        return FilesStore(str(self.registry_dir), audit, catalogue=Scan())

    def copy_to(self, root: Path) -> Ground:
        shutil.copytree(self.root, root, symlinks=True)
        return Ground(root)

    def remove(self) -> None:
        shutil.rmtree(self.root)


def recover(ground: Ground) -> None:
    """What the next user of a registry does without knowing: take the lock once."""
    if ground.is_folder and not ground.registry_dir.exists():
        return
    registry = ground.open()
    try:
        with registry.store.transaction():
            pass
    finally:
        registry.store.close()
