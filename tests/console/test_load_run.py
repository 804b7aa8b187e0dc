"""The console under load: everything that happens is shown in the end, and its memory stays flat.

The short form counts: changes that come faster than frames are shown, none is lost. The long
form is the real command in a real tmux, ten minutes of two hundred changes and events a second.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from pathlib import Path

import pytest

from bench.console_ground import open_console, source, until_shown
from bench.console_stage import Show, stage
from bench.effort import QUICK
from bench.feed import replace
from bench.ground import Ground, bare_jobs
from mam_core.records import Status
from mam_core.wiring import embedded_broker, open_registry
from tests.console.staging import opened

_MINUTES = 10
_RATE = 200
_JOBS = 2_000
#: In private bytes. What is kept of each event would double it: there are sixty thousand of them.
_MOST_GROWTH = 1.25


async def test_a_burst_is_shown_whole_in_fewer_frames_than_changes(
    tmp_path: Path, frames: list[str]
) -> None:
    path = str(tmp_path / "jobs")
    with open_registry(path) as registry:
        asked = {"prompt": "a", "agent": "x", "agent_session": "tmux:a"}
        ids = [one.job_id for one in registry.register([asked] * 300)]
        records = [registry.get(job_id) for job_id in ids]

    def change() -> None:
        for record in records:
            replace(path, record.evolve(priority=1))
            replace(path, record.evolve(status=Status.CANCELLED))

    async with opened(path) as console:
        frames.clear()
        thread = threading.Thread(target=change)
        thread.start()
        board = console.desk.board
        await console.until(lambda: board.counts["cancelled"] == len(ids), "all are shown")
        thread.join()
        assert board.counts["queued"] == 0
        assert 0 < len(frames) < len(ids)


@pytest.mark.release
@pytest.mark.timeout(60 * (_MINUTES + 5))
def test_ten_minutes_under_load_take_no_more_memory_than_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = str(tmp_path / "jobs")
    os.makedirs(path, mode=0o700)
    bare_jobs(path, _JOBS)
    ids = [f"far{number:08d}" for number in range(_JOBS)]
    ground = Ground(str(tmp_path), QUICK)
    with embedded_broker(path).ensure_running(), stage() as on, source(path) as news:
        show, _ = open_console(ground, on, path)
        until_shown(show, _JOBS)
        memory: list[int] = []
        for minute in range(_MINUTES):
            kind = "events" if minute % 2 else "records"
            number = 60 * _RATE
            news.begin(kind, ids, number, _RATE, changes={"priority": -minute})
            for _ in range(5):
                time.sleep(10)
                memory.append(show.memory())
            news.end()
            _still_answers(show, minute + 1)
        early, late = memory[5:15], memory[-10:]
        assert statistics.median(late) < _MOST_GROWTH * statistics.median(early), memory


def _still_answers(show: Show, number: int) -> None:
    at = show.printed
    show.press("Space")
    show.wait_for(f" {number} marked", at)
