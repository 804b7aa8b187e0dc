"""Records that anybody may have written: each is a job or one row, and the others go on.

Faults 48 to 54, through the command line and therefore through everything below it.
"""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

from mam_core import codec
from tests.cli.conftest import Mam
from tests.fuzz.conftest import EVERY_SMALLER_COUNT, Door, Tried
from tests.fuzz.mutants import Mutant, batches, mutants
from tests.support.jobs import a_full_job

#: At a time beside one good job; each batch is a registry that a person could meet.
_TOGETHER = 30
_LOOKS = (["list"], ["list", "--json"], ["attention"], ["pick", "--label", "tmux:a"])
_VERBS: tuple[list[str], ...] = (
    *(["get"], ["why"], ["status"], ["logs"], ["diff"], ["cancel"], ["retry"]),
    *(["edit", "--priority", "3"], ["status", "--set", "error"], ["clean"]),
    *(["heartbeat", "--owner", "w1"], ["publish", "--event", "progress"], ["why", "--history"]),
)


def _corpus() -> list[bytes]:
    """A record with everything in it, one of the original's with the least, one that runs."""
    full = a_full_job("JOB").to_dict() | {"validate": None, "agent_session": "tmux:a"}
    least = {"schema_version": 1, "job_id": "JOB", "status": "pending", "prompt": "p"}
    least |= {"agent": "shell", "agent_session": "tmux:a"}
    return [codec.dumps(full), json.dumps(least).encode()]


@EVERY_SMALLER_COUNT
def test_in_a_folder(mam: Mam, door: Door, tried: Tried, count: int) -> None:
    good = mam.register("the good one", "--priority", "-100")
    chance = random.Random(0)
    for batch in batches(mutants("records", _corpus(), count), _TOGETHER):
        names = {f"m{number:02}": mutant for number, mutant in enumerate(batch)}
        for name, mutant in names.items():
            _written(mam, name, mutant)
        label = batch[0].label
        for words in _LOOKS:
            answer = door(label, *words)
            assert "--json" not in words or answer.json, label
        for name, mutant in names.items():
            door(mutant.label, *chance.choice(_VERBS), "--job", name)
        rows = {row["job_id"] for row in door(label, "list", "--json").json}
        gone = {path.stem for path in mam.registry.parent.rglob(".archive/*/*.json")}
        assert {good, *names} <= rows | gone, label
        assert mam.record(good)["prompt"] == "the good one"
        for name in names:
            mam.path(name).unlink(missing_ok=True)
    tried("records", count)


def _written(mam: Mam, name: str, mutant: Mutant) -> None:
    path = mam.path(name)
    path.write_bytes(mutant.data.replace(b"JOB", name.encode()))
    path.chmod(0o600)


@EVERY_SMALLER_COUNT
def test_in_a_database(mam: Mam, door: Door, tried: Tried, count: int, folder: Path) -> None:
    """Its columns are a database's, its body is anybody's."""
    store = ["--store", f"sqlite:{folder / 'jobs.sqlite'}"]
    asked = ["--agent", "shell", "--agent-session", "tmux:a", *store]
    good = mam.ok("register", "--prompt", "the good one", *asked).out.strip()
    chance = random.Random(1)
    count = max(60, count // 3)  # fewer, since all that follows is the same as above
    for batch in batches(mutants("bodies", _corpus(), count), _TOGETHER):
        lines = "".join(json.dumps({"prompt": str(number)}) + "\n" for number in range(len(batch)))
        (folder / "bulk").write_text(lines)
        ids = mam.ok("register", "--bulk", folder / "bulk", *asked).out.split()
        names = dict(zip(ids, batch, strict=True))
        _exchanged(folder / "jobs.sqlite", names)
        for words in _LOOKS:
            door(batch[0].label, *words, *store)
        for name, mutant in names.items():
            door(mutant.label, *chance.choice(_VERBS), "--job", name, *store)
        assert door(batch[0].label, "get", good, *store).json["prompt"] == "the good one"
        _exchanged(folder / "jobs.sqlite", names, gone=True)
    tried("records in a database", count)


def _exchanged(path: Path, names: dict[str, Mutant], *, gone: bool = False) -> None:
    """By a hand that is not ours."""
    database = sqlite3.connect(path)
    with database:
        for name, mutant in names.items():
            if gone:
                database.execute("DELETE FROM jobs WHERE job_id = ?", (name,))
            else:
                body = mutant.data.replace(b"JOB", name.encode())
                words: tuple[Any, ...] = (body, name)
                database.execute("UPDATE jobs SET body = ? WHERE job_id = ?", words)
    database.close()
