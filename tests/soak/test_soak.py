"""Issue 11: a day with everything in it, and figures that stay flat.

In every gate for some seconds with a few sessions; in a release for ten minutes with twenty, or
for as many seconds as ``MAM_SOAK`` says (7200: two hours). The long one draws ``docs/soak.svg``.
"""

from __future__ import annotations

import json
import os
import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from mam_core.disk import is_temp_name
from mam_core.operations.preferences import Preferences
from mam_core.records import Status
from tests.soak.plot import drawn
from tests.soak.storm import Sample, Storm, agent_of
from tests.support.brokers import nothing_left
from tests.support.patience import eventually
from tests.support.sessions import SessionShop, session_shop
from tests.support.terminal import Terminal, terminal

Told = Callable[[str, object], None]

_DOCS = Path(__file__).parents[2] / "docs"
_SETTLE_SEC = 300.0
#: Caches fill, and a garbage collector has its own time; what leaks would double in ten minutes.
_MOST_GROWTH = 1.3


class Size(NamedTuple):
    """How long, how many sessions, and how many jobs at most."""

    seconds: float
    sessions: int
    jobs: int
    live: int


_FULL = Size(float(os.environ.get("MAM_SOAK", "600")), 20, 5000, 30)


@pytest.fixture
def shop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[SessionShop]:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with nothing_left(project), session_shop(project, capsys) as made:
        made.set(lease_sec=6.0, heartbeat_sec=2.0, sweep_sec=1.0, grace_sec=0.3, retry_sec=0.2)
        agent_of(made)
        made.settle()
        yield made


@pytest.fixture
def window(shop: SessionShop) -> Iterator[Terminal]:
    Preferences(hint_seen=True).save()
    with terminal(shop.folder) as made:
        yield made


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(Size(12, 2, 60, 8), id="short"),
        pytest.param(
            _FULL,
            id="full",
            marks=[pytest.mark.release, pytest.mark.timeout(_FULL.seconds + 1200)],
        ),
    ],
)
def test_a_stormy_day_loses_nothing_and_stays_flat(
    shop: SessionShop, window: Terminal, record_property: Told, size: Size
) -> None:
    shop.spawn("storm", "storm", "--count", str(size.sessions))
    window.run("mam")
    window.until("mam board")
    (console,) = window.programs()
    storm = Storm(shop, console, random.randrange(1 << 30))
    storm.play(size.seconds, size.jobs, size.live)
    _calm_down(shop, storm)
    assert console.is_running(), "the console was there all the time"
    window.press("1")
    window.until("mam board")
    window.press("C-q")
    window.until_prompt()
    for row in shop.rows():
        shop.say("stop", row["name"], "--now")
    shop.until_nobody_lives()
    counts = Counter(storm.counts)
    _check(shop, storm, counts)
    record_property(f"load: {size.sessions} sessions, {size.seconds:.0f} s", dict(counts))
    if size is _FULL:
        _drawn(storm, counts, size)
        _check_flat(storm.samples)


def _calm_down(shop: SessionShop, storm: Storm) -> None:
    """The last kill was made: whatever is left has its time, and workers to run it."""

    def done() -> bool:
        if storm.live():
            storm.restore()
        return not storm.live()

    eventually(done, f"nothing is stuck: {storm.live()}", timeout=_SETTLE_SEC)


def _check(shop: SessionShop, storm: Storm, counts: Counter[str]) -> None:
    """Nothing acknowledged is lost; every attempt began and ended once; histories are 1..n."""
    for job_id in storm.acknowledged:
        job = shop.job(job_id)
        assert job.status.is_ended, job
        lines = shop.audit(job_id)
        assert [line["n"] for line in lines] == list(range(1, len(lines) + 1)), job_id
        moves = [line for line in lines if line["event"] == "status_changed"]
        begun = [move["attempt"] for move in moves if move["to"] == Status.RUNNING]
        over = [move["attempt"] for move in moves if move["from"] == Status.RUNNING]
        assert begun == over == list(range(1, job.attempt + 1)), (job_id, moves)
        counts["jobs"] += 1
        counts["attempts"] += job.attempt
        counts[str(job.status)] += 1
    assert len(json.loads(shop.ok("list", "--json").out)) == len(storm.acknowledged)
    left = [path for path in (shop.folder / ".mam").rglob("*") if is_temp_name(path.name)]
    assert not left


def _check_flat(samples: list[Sample]) -> None:
    """The last quarter against the second one: the first is for caches to fill."""
    quarter = len(samples) // 4
    before, after = samples[quarter : 2 * quarter], samples[-quarter:]
    for name in ("memory_mb", "workers_mb", "files", "processes"):
        was = statistics.median(getattr(sample, name) for sample in before)
        now = statistics.median(getattr(sample, name) for sample in after)
        assert now <= was * _MOST_GROWTH + 3, f"{name} grew from {was} to {now}"


def _drawn(storm: Storm, counts: Counter[str], size: Size) -> None:
    title = f"{size.seconds / 60:.0f} minutes, {size.sessions} sessions, a console, random kills"
    today = datetime.now(UTC).date()
    struck = sum(count for name, count in counts.items() if name.endswith("killed"))
    words = f"{today}: {counts['jobs']} jobs, {counts['attempts']} attempts, {struck} kills, 0 lost"
    (_DOCS / "soak.svg").write_text(drawn(storm.samples, title, words))
