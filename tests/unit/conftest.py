"""Fixtures of the unit tests: a registry of files in a folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.audit import AuditLog
from mam_core.registry import Registry
from mam_core.stores.files import FilesStore
from tests.support.clock import FakeClock


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "jobs"


@pytest.fixture
def registry(tmp_path: Path, place: Path, clock: FakeClock) -> Iterator[Registry]:
    store = FilesStore(str(place), AuditLog(str(tmp_path / "logs")))
    yield Registry(store, clock=clock, actor="ann", node="host")
    store.close()
