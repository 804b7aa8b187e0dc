"""The view of groups: slots, what runs and waits, the last decision; changed by key."""

from __future__ import annotations

from pathlib import Path

import pytest

from mam_core import acts
from mam_core.acts import Act, Deed
from mam_core.clock import fine_stamp
from mam_core.registry import Registry
from mam_core.stores.base import Paper
from mam_tui.screens.board import BoardScreen
from mam_tui.screens.confirm import Confirm
from mam_tui.screens.groups import GroupsScreen
from tests.console.detail_story import HOSTILE
from tests.console.staging import add, opened

FIGURES = {"host": "h", "cores": 8, "cpu": 12.5, "memory": 30.0, "load": 0.5, "swapped": 0}


@pytest.fixture
def place(tmp_path: Path, registry: Registry) -> str:
    (tmp_path / "mam.toml").write_text("[groups.p1]\nslots = 2\nmin = 1\nmax = 3\n")
    for _ in range(3):
        add(registry, group="p1")
    registry.claim("tmux:c")
    return str(tmp_path / "jobs")


async def test_a_group_is_seen_with_its_slots_and_changed_by_key(
    place: str, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 10, items 3 and 4; only after a question, and with the command beside it."""
    monkeypatch.chdir(Path(place).parent)
    async with opened(place) as seen:
        await seen.press("0")
        await seen.until_on(GroupsScreen)
        await seen.until_seen("p1", "1-3", "autoscaling is off")
        await seen.press("plus")
        await seen.until_on(Confirm)
        await seen.until_seen("Give group p1 3 slots, on all hosts?", "2 slots now, 1 run, 2 wait")
        await seen.press("n")
        assert registry.store.facts().gates().slots == {}
        await seen.press("plus")
        await seen.until_on(Confirm)
        await seen.press("y")
        await seen.until_told("group p1 has 3 slots now, before 2")
        assert registry.store.facts().gates().slots == {"p1": 3}
        await seen.until_seen("set 2 > 3")
        await seen.press("plus")
        await seen.until_on(Confirm)
        await seen.press("y")
        await seen.until_told("4 slots are above [groups.p1] max = 3")
        assert seen.desk.deeds[-1].command == "mam group p1 --slots 4"
        await seen.press("o")
        await seen.until_on(BoardScreen)
        assert seen.desk.board.filter.text == 'group:"p1"'
        assert len(seen.desk.board) == 3


async def test_a_decision_is_seen_with_its_figures_and_foreign_text_is_harmless(
    place: str, registry: Registry
) -> None:
    with registry.store.transaction() as tx:
        at, by = fine_stamp(registry.clock.now()), "autoscaler h:1"
        act = Act(at, by, Deed.UP, HOSTILE, 1, 2, f"because {HOSTILE}", FIGURES)
        tx.set_paper(Paper.ACTS, acts.encode(acts.Acts().with_act(act)))
        tx.set_gates(tx.gates_to_change().with_slots(HOSTILE, 2))
    async with opened(place, (200, 30)) as seen:
        await seen.command("groups")
        await seen.until_on(GroupsScreen)
        await seen.until_seen("up 1 > 2", "cpu 12.5 % mem 30.0 % load 0.5/8")
        assert "\x1b" not in seen.text()


async def test_a_read_only_console_changes_nothing(place: str, registry: Registry) -> None:
    async with opened(place, read_only=True) as seen:
        await seen.press("0")
        await seen.until_seen("p1")
        await seen.press("plus")
        await seen.until_told("one slot more: this console is read-only")
        assert registry.store.facts().gates().slots == {}


async def test_no_groups_is_said(tmp_path: Path, registry: Registry) -> None:
    add(registry)
    async with opened(str(tmp_path / "jobs")) as seen:
        await seen.press("0")
        await seen.until_seen("there are no groups")
