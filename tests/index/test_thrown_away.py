"""Deleting the index is always safe, also while four processes work; so is locking it."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from mam_core.records import Status
from mam_core.stores.base import Query
from mam_core.wiring import open_registry
from tests.index.site import Site, assert_same
from tests.support.children import Child
from tests.support.clock import FakeClock
from tests.support.jobs import request

WORK = """
import sys
from mam_core.records import Reason, Status
from mam_core.stores.base import Query
from mam_core.wiring import open_registry
place, rounds = sys.argv[1], int(sys.argv[2])
registry = open_registry(place)
print("ready", flush=True)
sys.stdin.readline()
for i in range(rounds):
    registry.register([{"prompt": f"job {i}", "agent": "shell", "agent_session": "alpha"}])
    job = registry.claim("alpha")
    assert job is not None, "there is one for everybody"
    print(job.job_id, job.attempt)
    registry.finish(job.job_id, Status.COMPLETED, attempt=job.attempt)
    if i % 5 == 0:
        registry.store.find(Query())
    if i % 7 == 0:
        registry.store.close()
"""


def together(place: Path, rounds: int, meanwhile: Callable[[], None]) -> list[list[str]]:
    """Four processes at work, and the test beside them; every claim that they made."""
    children = [Child(WORK, str(place), str(rounds)) for _ in range(4)]
    try:
        for one in children:
            assert one.hear() == "ready"
        for one in children:
            one.tell()
        while any(one.process.poll() is None for one in children):
            meanwhile()
        claims: list[list[str]] = []
        for one in children:
            printed = one.process.communicate(timeout=60)[0]
            assert one.process.returncode == 0
            claims += [line.split() for line in printed.splitlines()]
        return claims
    finally:
        for one in children:
            one.end()


def prepared(place: Path) -> None:
    with open_registry(str(place)) as registry:
        registry.register([request(f"first {i}") for i in range(20)])
        registry.store.find(Query())


def checked(place: Path, claims: list[list[str]], rounds: int) -> None:
    """Every job once, and everything as the files have it."""
    assert len(claims) == 4 * rounds
    assert {attempt for _, attempt in claims} == {"1"}
    assert len({job_id for job_id, _ in claims}) == len(claims), "a double claim"
    site = Site(place.parent, FakeClock())
    registry = site.open()
    ended = registry.store.find(Query(frozenset({Status.COMPLETED})))[0]
    assert {row.job_id for row in ended} == {job_id for job_id, _ in claims}
    assert_same(site, registry)
    site.close()


def test_thrown_away_at_random_moments_nothing_fails_and_nothing_is_claimed_twice(
    tmp_path: Path,
) -> None:
    """Issue 3: deleting it at any moment is safe. Whole, in part, or cut short."""
    place = tmp_path / "jobs"
    prepared(place)
    chance = random.Random(3)
    home = place / ".index"
    ways: list[Callable[[], object]] = [
        lambda: shutil.rmtree(home),
        lambda: (home / "jobs.sqlite").unlink(),
        lambda: (home / "jobs.sqlite-wal").unlink(),
        lambda: (home / "jobs.sqlite-shm").unlink(),
        lambda: os.truncate(home / "jobs.sqlite", chance.randrange(0, 9000)),
    ]

    def throw_away() -> None:
        time.sleep(chance.uniform(0, 0.03))
        with suppress(OSError):
            chance.choice(ways)()

    checked(place, together(place, 25, throw_away), 25)


def test_locked_by_a_stranger_now_and_then_nothing_fails(tmp_path: Path) -> None:
    """Somebody looks into it with sqlite3 and leaves a transaction open for a while."""
    place = tmp_path / "jobs"
    prepared(place)
    kinds = itertools.cycle(["IMMEDIATE", "EXCLUSIVE"])

    def lock_for_a_while() -> None:
        with suppress(sqlite3.Error):
            db = sqlite3.connect(f"file:{place}/.index/jobs.sqlite?mode=rw", uri=True, timeout=0.1)
            try:
                db.execute(f"BEGIN {next(kinds)}")
                time.sleep(0.2)
                db.rollback()
            finally:
                db.close()
        time.sleep(0.05)

    checked(place, together(place, 8, lock_for_a_while), 8)


def test_locked_by_a_stranger_for_good_it_is_given_up_before_anybody_loses_patience(
    tmp_path: Path,
) -> None:
    """Who holds the registry's lock must not wait as long for SQLite's as others do for his."""
    place = tmp_path / "jobs"
    prepared(place)
    stranger = sqlite3.connect(place / ".index" / "jobs.sqlite", timeout=0.1)
    try:
        stranger.execute("BEGIN IMMEDIATE")
        claims = together(place, 3, lambda: time.sleep(0.05))
    finally:
        stranger.close()
    checked(place, claims, 3)
