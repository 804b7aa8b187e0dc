"""Fault 55 in numbers: thousands of hostile prompts and words, page by page, on every view."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mam_core.safe_text import safe
from mam_core.wiring import open_registry
from tests.console.hostile.generated import hostile_text
from tests.console.hostile.payloads import MARK
from tests.console.staging import Opened, opened

SIZE = (150, 50)
#: Lines of a page that hold jobs, at least.
_PAGE = 15


@pytest.mark.parametrize(
    "count", [60, pytest.param(20_000, marks=[pytest.mark.release, pytest.mark.timeout(3600)])]
)
async def test_every_page_of_every_view_is_only_text(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    count: int,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    path = str(tmp_path / "jobs")
    with open_registry(path) as registry:
        asked = {"agent": "x", "agent_session": "tmux:a", "group": "night"}
        jobs = registry.register(
            [{**asked, "prompt": hostile_text(number)} for number in range(count)]
        )
        for number, job in enumerate(jobs[:40]):  # what runs, says, waits and failed
            claimed = registry.claim("tmux:a")
            assert claimed is not None
            word = hostile_text(count + number)
            registry.publish(claimed.job_id, "progress", detail=word, data={word: word})
            if number % 4 == 0:
                registry.publish(claimed.job_id, "permission_required", detail=word)
            elif number % 4 == 1:
                registry.publish(claimed.job_id, "error", detail=word)
            assert job.job_id
    async with opened(path, SIZE) as console:
        seen = await _paged(console, count // _PAGE + 2)
        assert seen >= 20
        for key in ("4", "5", "6", "7", "8", "2", "3"):
            await console.press(key)
            await console.pilot.pause(0.1)
            await _paged(console, 3)
        assert console.app._exception is None
    record_property("inputs: hostile jobs on every view", {"tried": count, "leaks": 0})


async def _paged(console: Opened, pages: int) -> int:
    """How often the mark was seen; every line is text. (How wide it is, a real terminal says.)"""
    seen = 0
    for _ in range(pages):
        await console.press("pagedown")
        lines = console.text().split("\n")
        odd = [line for line in lines if safe(line) != line]
        assert not odd, odd
        seen += sum(line.count(MARK) for line in lines)
    return seen
