"""Tasks of the dispatch registry on the board: jobs of one group, with the keys of any job."""

from __future__ import annotations

from pathlib import Path

import pytest

from mam_core.dispatch.naming import GROUP, TaskName
from mam_core.records import Status
from mam_core.wiring import open_registry
from mam_tui.screens.confirm import Confirm
from tests.console.staging import add, opened


@pytest.fixture(autouse=True)
def _no_place_of_the_persons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


async def test_they_are_found_by_their_group_and_retried_by_a_key(tmp_path: Path) -> None:
    """M31: the counts and the table are the board's own; `r` makes a failed task's job pending."""
    path = str(tmp_path / "jobs")
    with open_registry(path) as registry:
        add(registry, "another job")
        key = TaskName(str(tmp_path / "tasks.json"), "S01").key
        job_id = add(registry, "count the stars", group=GROUP, key=key)
        registry.set_status(job_id, Status.ERROR)
        async with opened(path, (100, 20)) as console:
            await console.press("/", *"group:dispatch", "enter")
            await console.until(lambda: len(console.desk.board) == 1, "one is left")
            await console.until_seen("count the stars", "showing 1 of 2")
            await console.press("r")
            await console.until_on(Confirm)
            await console.press("y")
            await console.until(
                lambda: registry.get(job_id).status is Status.PENDING, "it is pending again"
            )
