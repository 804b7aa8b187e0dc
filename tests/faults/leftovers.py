"""What a fault must not leave in the folders: temp files, debts, locks, loose modes, secrets."""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from mam_core.disk import is_temp_name
from mam_core.stores.base import Query
from tests.faults.scene import Scene
from tests.faults.workload import CANARY_PASSWORD, CANARY_TOKEN

_RECORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\.json")
_REGISTRY_FILES = frozenset({".lock", ".journal", ".gates", ".acts"})
#: Folders with a keeper of their own; what lies in them is their rules' business.
_REGISTRY_FOLDERS = frozenset({".archive", ".index", ".outbox", ".broker"})
_LOG_FILES = frozenset({"meta.json", "events.ndjson", "status.json"})


def temp_files(scene: Scene) -> list[str]:
    """Every temp file below the root, by its path."""
    found = []
    for folder, _, names in os.walk(scene.ground.root):
        found += [os.path.join(folder, name) for name in names if is_temp_name(name)]
    return [os.path.relpath(path, scene.ground.root) for path in found]


def no_temp_file(scene: Scene) -> Iterator[str]:
    for path in temp_files(scene):
        yield f"a temp file was left: {path}"


def nothing_is_owed(scene: Scene) -> Iterator[str]:
    journal = scene.ground.registry_dir / ".journal"
    if journal.exists() and journal.stat().st_size:
        yield f"the journal still holds {journal.read_bytes()[:300]!r}"


def the_lock_is_free(scene: Scene) -> Iterator[str]:
    lock = scene.ground.registry_dir / ".lock"
    if not lock.exists():
        return
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield "the lock is still held"
            return
        if mark := file.read():
            yield f"the lock is free but still marked: {mark!r}"


def no_stray_file(scene: Scene) -> Iterator[str]:
    registry = scene.ground.registry_dir
    for path in registry.iterdir() if registry.exists() else ():
        if path.is_dir():
            expected = path.name in _REGISTRY_FOLDERS
        else:
            expected = path.name in _REGISTRY_FILES or bool(_RECORD.fullmatch(path.name))
        if not expected and not is_temp_name(path.name):
            yield f"a stray name in the registry: {path.name}"
    for job_id, history in scene.histories.items():
        folder = scene.ground.logs_dir / job_id
        repaired = any(line.get("event") == "log_repaired" for line in history.lines)
        for path in folder.iterdir() if folder.exists() else ():
            expected = path.name in _LOG_FILES or (path.name == "torn.log" and repaired)
            if not expected and not is_temp_name(path.name):
                yield f"a stray file in the audit log of job {job_id}: {path.name}"
        if job_id not in scene.jobs:
            yield f"the audit log tells of job {job_id}, which never was"
    home = registry.parent
    names = {path.name for path in home.iterdir()} if home.exists() else set()
    if names and ".gitignore" not in names:  # git does not see an empty folder
        yield f"{home.name} has no .gitignore"


def only_the_owner_may_look(scene: Scene) -> Iterator[str]:
    home = scene.ground.registry_dir.parent
    if not home.exists():
        return
    for path in [home, *home.rglob("*")]:
        mode = path.lstat().st_mode
        wanted = 0o700 if stat.S_ISDIR(mode) else 0o600
        # `.index` is derived by another library, which has its own rule for what it makes.
        if stat.S_IMODE(mode) != wanted and ".index" not in path.parts:
            yield f"{path.relative_to(home)} has mode {stat.S_IMODE(mode):o}, not {wanted:o}"


def no_secret_in_the_history(scene: Scene) -> Iterator[str]:
    secrets = {CANARY_PASSWORD, CANARY_TOKEN}
    for kept in scene.kept:
        secrets |= {kept.job.auth_token or CANARY_TOKEN, kept.job.broker.password or CANARY_TOKEN}
    needles = [secret.encode() for secret in secrets]
    for path in _files(scene.ground.logs_dir):
        data = path.read_bytes()
        if any(needle in data for needle in needles):
            yield f"a secret stands in {path.relative_to(scene.ground.root)}"
    for job_id, history in scene.histories.items():
        told = json.dumps([history.lines, history.meta], ensure_ascii=False).encode()
        if any(needle in told for needle in needles):
            yield f"a secret stands in the history of job {job_id}"


def the_index_agrees(scene: Scene) -> Iterator[str]:
    """Whatever finds jobs quickly finds the same as reading every file."""
    if not (scene.ground.registry_dir / ".index").exists():
        return
    slow = scene.ground.open_plainly()
    fast = scene.ground.open().store
    try:
        known, true = fast.find(Query()), slow.find(Query())
        if known != true:
            odd = set(known[0]) ^ set(true[0])
            yield f"the index and the files disagree about {sorted({row.job_id for row in odd})}"
    finally:
        fast.close()
        slow.close()


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


LEFTOVER_RULES = (
    no_temp_file,
    nothing_is_owed,
    the_lock_is_free,
    no_stray_file,
    only_the_owner_may_look,
    no_secret_in_the_history,
    the_index_agrees,
)
