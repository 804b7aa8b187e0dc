"""What we are measured against, each at its best: called directly, nothing in its way.

The scan is our own store without its index; huey is a queue in SQLite that syncs
every change; the raw loops are the least that a durable change of a file costs.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from typing import Any

from huey import SqliteHuey  # type: ignore[import-untyped]  # huey ships no types

from mam_core.audit import AuditLog
from mam_core.locations import logs_path
from mam_core.registry import Registry
from mam_core.stores.catalogue import Scan
from mam_core.stores.files import FilesStore

#: What any Python program with an argument parser, JSON and SQLite pays before its first line.
IMPORTS = "import argparse, json, sqlite3, dataclasses"

#: One parse of a whole file, as the process that reads what we print would do it.
LOADS = "import json, sys\nwith open(sys.argv[1], 'rb') as file:\n    json.loads(file.read())"

#: The command line with the scan in the place of the index, whoever imports the index when.
SCANNING_MAM = """\
import sys
import mam_core.stores.index as index
from mam_core.stores.catalogue import Scan
index.Index = Scan
from mam_core.cli.main import entry
sys.exit(entry())"""


def scanning_registry(path: str) -> Registry:
    """The same registry, reading every file for every question."""
    return Registry(FilesStore(path, AuditLog(logs_path(path)), catalogue=Scan()))


class HueyQueues:
    """SqliteHuey with a queue for each label, in one file, with the library's defaults.

    Asked at its storage, below its tasks and workers. A claim deletes the row: it
    keeps no record of who took what, and no history.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._open: dict[str, Any] = {}

    def fill(self, labels: Sequence[str], count: int, body: bytes) -> None:
        """So many jobs over the labels, each body different, in one transaction."""
        storage = self._storage(labels[0])
        there = storage.conn.execute("SELECT count(*), ifnull(max(id), 0) FROM task").fetchone()
        rows = [
            (labels[number % len(labels)], b"%08d" % (there[1] + number) + body[8:], 0)
            for number in range(count - there[0])
        ]
        storage.conn.execute("BEGIN")
        storage.conn.executemany("INSERT INTO task (queue, data, priority) VALUES (?, ?, ?)", rows)
        storage.conn.execute("COMMIT")
        storage.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def claim(self, label: str) -> bytes:
        return _taken(self._storage(label).dequeue(), label)

    def claim_with_new_handle(self, label: str) -> bytes:
        storage = self._new(label)
        try:
            return _taken(storage.dequeue(), label)
        finally:
            storage.close()

    def claim_in_a_crowd(self, label: str) -> bytes:
        """It gives up after five seconds without its turn; a worker would ask again."""
        while True:
            try:
                return self.claim(label)
            except sqlite3.OperationalError:
                continue

    def close(self) -> None:
        for storage in self._open.values():
            storage.close()
        self._open.clear()

    def _storage(self, label: str) -> Any:
        if label not in self._open:
            self._open[label] = self._new(label)
        return self._open[label]

    def _new(self, label: str) -> Any:
        return SqliteHuey(name=label, filename=self.path).storage


def _taken(data: bytes | None, label: str) -> bytes:
    if data is None:
        raise LookupError(f"the queue of {label} is empty")
    return data


class RawLoop:
    """Write a file under a temp name, sync it, rename it; perhaps sync the folder, too.

    The folder is as full as the registry's, since a sync also writes the parts of the folder that
    have changed.
    """

    def __init__(self, folder: str, body: bytes, *, files: int) -> None:
        os.mkdir(folder, 0o700)
        self._fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self._body = body
        self._files = files
        self._turn = 0
        for number in range(files):
            os.close(self._written(f"{number:08d}.json"))
        os.sync()

    def replace(self) -> None:
        """As a claim does: a record that is there is written anew."""
        self._turn += 1
        self._put(f"{self._turn % self._files:08d}.json")

    def create(self) -> None:
        self._turn += 1
        self._put(f"new{self._turn:08d}.json")

    def create_durably(self) -> None:
        """As a registration does: a new record, and the folder that it stands in."""
        self.create()
        os.fsync(self._fd)

    def _put(self, name: str) -> None:
        temp = f".{name}.tmp"
        fd = self._written(temp)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temp, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def _written(self, name: str) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        fd = os.open(name, flags, 0o600, dir_fd=self._fd)
        os.write(fd, self._body)
        return fd
