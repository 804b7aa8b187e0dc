"""A disk that is full, has no inodes or is read-only (promise 10; faults 11, 12, 13, 14).

Each costs one clear error a call. Nothing is damaged, readers go on, and what
was not possible is possible as soon as there is room again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mam_core.errors import MamError, StoreError
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.stores.base import GateKind, Query
from tests.faults.checker import check
from tests.faults.conftest import Figures
from tests.faults.figures import listed
from tests.faults.ground import Ground
from tests.faults.leftovers import temp_files
from tests.faults.scene import look
from tests.faults.single_acts import ids, request, set_stage
from tests.faults.small_disk import CannotMount, make_read_only, small_disk

Verb = Callable[[Registry, dict[str, str]], Any]

#: Every way to change something, tried on the stage.
VERBS: dict[str, Verb] = {
    "register": lambda registry, _: registry.register([request("one more")]),
    "bulk register": lambda registry, _: registry.register([request(f"m{n}") for n in range(20)]),
    "claim": lambda registry, _: registry.claim("alpha"),
    "finish": lambda r, found: r.finish(found["running"], Status.COMPLETED, attempt=1),
    "requeue": lambda r, found: r.requeue(found["leased"], Reason.LOST, attempt=1),
    "cancel": lambda registry, found: registry.request_cancel(found["other"]),
    "retry": lambda registry, found: registry.retry(found["error"]),
    "edit": lambda registry, found: registry.edit(found["other"], {"priority": 7}),
    "status": lambda registry, found: registry.set_status(found["cancelled"], Status.ERROR),
    "next_seq": lambda registry, found: registry.next_seq(found["running"]),
    "archive": lambda registry, found: registry.archive([found["completed"]]),
    "restore": lambda registry, _: registry.restore(),
    "pause": lambda registry, _: registry.pause(GateKind.GROUP, "night"),
}


class Disk(NamedTuple):
    """A small disk, and how small it is."""

    point: Path
    options: str


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> Iterator[Disk]:
    try:
        with small_disk(request.param) as point:
            yield Disk(point, request.param)
    except CannotMount as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize(
    "disk", ["size=1m", "size=2m", "size=64m,nr_inodes=130"], indirect=True, ids=lambda d: d
)
def test_a_full_disk_costs_errors_and_no_job(disk: Disk, show_figures: Figures) -> None:
    """Faults 11 12: filled by registering; then every verb; then a little room again."""
    ground = Ground(disk.point / "ground")
    ground.root.mkdir()
    set_stage(ground)
    # Room enough for the index to be made anew, too.
    ballast = [disk.point / f"ballast{number}" for number in range(64)]
    for path in ballast:
        path.write_bytes(b"\0" * 8192)
    registry = ground.open()
    found = ids(registry)
    acknowledged, first = _fill(registry)
    assert "the disk is full" in first.message
    answers = {"ok": 0, "refused": 1}
    for _ in range(3):
        for name, verb in VERBS.items():
            answers["refused" if _one_clear_error(name, verb, registry, found) else "ok"] += 1
    assert temp_files(look(ground)) == []
    rows, unreadable = registry.store.find(Query())
    assert not unreadable
    assert acknowledged <= {row.job_id for row in rows}
    for job_id in acknowledged:
        assert registry.get(job_id).prompt
    for path in ballast:
        path.unlink()
    victim = next(row.job_id for row in rows if row.status is Status.PENDING)
    assert registry.request_cancel(victim).status is Status.CANCELLED
    registry.register([request("there is room again")])
    registry.store.close()
    show_figures(f"full disk, {disk.options}", {"jobs": len(acknowledged)} | answers)
    broken = check(ground)
    assert not broken, listed(broken)


def _fill(registry: Registry) -> tuple[set[str], StoreError]:
    """Register until the first error; the ids of those that were acknowledged."""
    acknowledged: set[str] = set()
    while True:
        try:
            answer = registry.register([request(f"filler {len(acknowledged)}")])
        except StoreError as full:
            return acknowledged, full
        acknowledged.add(answer[0].job_id)


def _one_clear_error(
    name: str, verb: Verb, registry: Registry, found: dict[str, str]
) -> MamError | None:
    """What the verb was refused with, which must be an error of ours in one line."""
    refused = None
    try:
        verb(registry, found)
    except MamError as problem:
        refused = problem
    assert refused is None or "\n" not in refused.message, name
    return refused


@pytest.mark.parametrize("disk", ["size=8m"], indirect=True)
def test_a_disk_that_became_read_only_is_read_and_named(disk: Disk) -> None:
    """Fault 14: every writer gets one sentence that says so; list and get go on."""
    ground = Ground(disk.point / "ground")
    ground.root.mkdir()
    set_stage(ground)
    make_read_only(disk.point)
    registry = ground.open()
    rows, unreadable = registry.store.find(Query())
    assert len(rows) == 7
    assert not unreadable
    found = ids(registry)
    assert registry.get(found["pending"]).prompt
    for name, verb in VERBS.items():
        refused = _one_clear_error(name, verb, registry, found)
        assert refused is not None, name
        assert "read-only" in refused.message, name
    registry.store.close()


def test_an_audit_log_that_was_away_is_caught_up(place: Path) -> None:
    """F13 F14, promise 4: work goes on without it; when it is back, not a line is missing."""
    ground = Ground(place / "ground")
    ground.root.mkdir()
    set_stage(ground)
    away = ground.logs_dir.with_name("away")
    ground.logs_dir.rename(away)
    ground.logs_dir.write_bytes(b"a file where the folder should be")
    registry = ground.open()
    found = ids(registry)
    for name in ("register", "claim", "finish", "requeue", "edit", "cancel", "retry"):
        VERBS[name](registry, found)
    registry.request_cancel(found["leased"])
    registry.store.close()
    ground.logs_dir.unlink()
    away.rename(ground.logs_dir)
    broken = check(ground)
    assert not broken, listed(broken)
