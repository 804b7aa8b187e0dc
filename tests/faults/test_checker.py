"""A checker that finds nothing must be able to find something: each rule meets its violation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mam_core.records import Status
from tests.faults.checker import check, violations
from tests.faults.diary import Act, Diary, Phase
from tests.faults.ground import Ground
from tests.faults.scene import look
from tests.faults.workload import CANARY_PASSWORD, facts_of, wanted

KEYS = ["asker.1-1-b3-0", "asker.1-1-b3-1", "asker.1-1-b3-2"]


@pytest.fixture
def played(place: Path) -> tuple[Ground, list[str]]:
    """A short honest play: three jobs of one batch, the first claimed, numbered and finished."""
    ground = Ground(place / "ground")
    ground.diaries_dir.mkdir(parents=True)
    registry = ground.open()
    diary = Diary(ground.diaries_dir, "asker.1")
    job_ids = [answer.job_id for answer in registry.register([wanted(key) for key in KEYS])]
    diary.write(Phase.DONE, Act.REGISTER, {"keys": KEYS, "ids": job_ids})
    job = registry.claim(str(wanted(KEYS[0])["agent_session"]))
    assert job is not None
    diary.write(Phase.DONE, Act.CLAIM, facts_of(job))
    diary.write(Phase.BEGUN, Act.SEQ, {"job": job.job_id})
    seq = registry.next_seq(job.job_id)
    diary.write(Phase.DONE, Act.SEQ, {"job": job.job_id, "seq": seq})
    ended = registry.finish(job.job_id, Status.COMPLETED, attempt=job.attempt)
    diary.write(Phase.DONE, Act.FINISH, facts_of(ended))
    registry.edit(next(i for i in job_ids if i != job.job_id), {"model": "big"})
    registry.store.close()
    diary.close()
    job_ids.sort(key=lambda job_id: job_id != job.job_id)
    return ground, job_ids


def _record(ground: Ground, job_id: str) -> Path:
    return ground.registry_dir / f"{job_id}.json"


def _log(ground: Ground, job_id: str, name: str = "events.ndjson") -> Path:
    return ground.logs_dir / job_id / name


def _alter(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def _diary(ground: Ground, phase: Phase, act: Act, **facts: Any) -> None:
    diary = Diary(ground.diaries_dir, "liar.1")
    diary.write(phase, act, facts)
    diary.close()


def _cut_line(path: Path, number: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[number]
    path.write_bytes(b"".join(lines))


def _leave(path: Path, data: str = "", mode: int = 0o600) -> None:
    path.write_text(data)
    path.chmod(mode)


#: What is done to the ground, by the words that the checker must find for it.
SABOTAGE: dict[str, Callable[[Ground, list[str]], object]] = {
    "is lost": lambda g, ids: _record(g, ids[1]).unlink(),
    "2 of 3 jobs are there": lambda g, ids: _record(g, ids[2]).unlink(),
    "cannot be read": lambda g, ids: _record(g, ids[0]).write_text("{"),
    "its prompt is": lambda g, ids: _alter(_record(g, ids[1]), prompt="another"),
    "was edited to": lambda g, ids: _alter(_record(g, ids[1]), model="small"),
    "was claimed by asker.1, liar.1": lambda g, ids: _diary(
        g, Phase.DONE, Act.CLAIM, job=ids[0], revision=2, attempt=1, status="running"
    ),
    "was acknowledged twice": lambda g, ids: _diary(
        g, Phase.DONE, Act.HEARTBEAT, job=ids[0], revision=2, attempt=1, status="running"
    ),
    "was told 9": lambda g, ids: _diary(
        g, Phase.DONE, Act.HEARTBEAT, job=ids[0], revision=9, attempt=1, status="running"
    ),
    "is not in its history": lambda g, ids: _diary(
        g, Phase.DONE, Act.RETRY, job=ids[2], revision=1, attempt=0, status="pending"
    ),
    "left no trace": lambda g, ids: _diary(
        g,
        Phase.DONE,
        Act.CANCEL,
        job=ids[2],
        revision=1,
        attempt=0,
        status="running",
        cancelling=True,
    ),
    "was handed out 2 times": lambda g, ids: _diary(g, Phase.DONE, Act.SEQ, job=ids[0], seq=1),
    "has last_seq 7": lambda g, ids: _alter(_record(g, ids[0]), last_seq=7),
    "0 are audited": lambda g, ids: _diary(
        g, Phase.REFUSED, Act.FINISH, job=ids[0], error="StaleAttempt"
    ),
    "got no clear answer": lambda g, ids: _diary(g, Phase.BROKEN, Act.READ, traceback="boo"),
    "is numbered [1, 3]": lambda g, ids: _cut_line(_log(g, ids[0]), 1),
    "the line before says pending": lambda g, ids: _cut_line(_log(g, ids[0]), 1),
    "its history says running": lambda g, ids: _cut_line(_log(g, ids[0]), 2),
    "does not begin with its registration": lambda g, ids: _cut_line(_log(g, ids[1]), 0),
    "has a torn line": lambda g, ids: _log(g, ids[0]).write_bytes(b'{"n": 1, "ev'),
    "its status.json pending": lambda g, ids: _alter(
        _log(g, ids[0], "status.json"), status="pending"
    ),
    "has no meta.json": lambda g, ids: _log(g, ids[0], "meta.json").unlink(),
    "its history says the registry": lambda g, ids: _archive_in_silence(g, ids[0]),
    "is at attempt 5": lambda g, ids: _alter(_record(g, ids[0]), attempt=5),
    "a temp file was left": lambda g, ids: _leave(_log(g, ids[0], ".meta.json.12ab.tmp")),
    "a stray name in the registry": lambda g, ids: _leave(g.registry_dir / "core.dump"),
    "a stray file in the audit log": lambda g, ids: _leave(_log(g, ids[0], "notes.txt")),
    "which never was": lambda g, ids: _record(g, ids[1]).unlink(),
    "has mode 644": lambda g, ids: _record(g, ids[0]).chmod(0o644),
    "a secret stands in": lambda g, ids: _leave(_log(g, ids[0], "meta.json"), CANARY_PASSWORD),
}


def _archive_in_silence(ground: Ground, job_id: str) -> None:
    batch = ground.registry_dir / ".archive" / "batch"
    batch.mkdir(parents=True)
    _record(ground, job_id).rename(batch / f"{job_id}.json")


def test_an_honest_play_breaks_no_rule(played: tuple[Ground, list[str]]) -> None:
    assert check(played[0]) == []


@pytest.mark.parametrize("words", list(SABOTAGE))
def test_the_checker_finds_what_was_broken(words: str, played: tuple[Ground, list[str]]) -> None:
    ground, job_ids = played
    SABOTAGE[words](ground, job_ids)
    found = check(ground)
    assert any(words in sentence for sentence in found), found


def test_a_death_in_the_lock_is_seen_until_somebody_recovers(
    played: tuple[Ground, list[str]],
) -> None:
    """Fault 10: a mark, a temp file, an intent; one recovery later there is nothing to see."""
    ground, job_ids = played
    (ground.registry_dir / ".lock").write_text("4711 1 12345\n")
    (ground.registry_dir / ".journal").write_text("torn by a power cut")
    _leave(ground.registry_dir / f".{job_ids[0]}.12ab34cd.tmp")
    seen = "\n".join(violations(look(ground)))
    for words in ("still marked", "the journal still holds", "a temp file was left"):
        assert words in seen
    assert check(ground) == []


def test_two_live_jobs_with_one_key_are_seen(played: tuple[Ground, list[str]]) -> None:
    """Fault 24."""
    ground, job_ids = played
    _alter(_record(ground, job_ids[2]), key=_key(ground, job_ids[1]))
    assert any("while job" in sentence for sentence in check(ground))


def _key(ground: Ground, job_id: str) -> str:
    return str(json.loads(_record(ground, job_id).read_text())["key"])
