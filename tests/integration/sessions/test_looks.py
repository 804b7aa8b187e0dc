"""Whoever looks at the sessions again and again starts no process, and reads what has changed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from mam_core.agents.states import ShownState
from mam_core.operations.panes import Panes
from mam_core.operations.session_looks import SessionLooks, SessionsNow
from mam_core.operations.sessions import SessionState
from tests.support.patience import eventually
from tests.support.sessions import SessionShop


@pytest.fixture
def panes(shop: SessionShop) -> Iterator[Panes]:
    shop.settle()
    made = Panes(str(shop.path), shop.config)
    yield made
    made.close()


def test_a_look_starts_no_process_and_misses_nothing(
    shop: SessionShop, panes: Panes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its job, its end, its worker's death and another session: each is seen, by the same looks."""
    stuck = shop.agent("stuck", "hangs")
    shop.spawn("a", stuck)
    looks = SessionLooks(shop.registry, str(shop.path), panes)
    assert looks.look().seen[0].state is SessionState.ALIVE

    def look() -> SessionsNow:
        with monkeypatch.context() as patched:
            patched.setattr(subprocess, "Popen", None)
            return looks.look()

    ids = [shop.add(stuck, agent_session="tmux:a") for _ in range(2)]

    def is_at_work() -> bool:
        now = look()
        states = [one.state for one in now.shown.values()]
        return now.seen[0].jobs == (ids[0],) and states == [ShownState.WORKING]

    eventually(is_at_work, "its job is seen at work")
    assert look().seen[0].queued == 1
    shop.ok("cancel", ids[0])
    eventually(lambda: look().seen[0].jobs == (ids[1],), "the next one is seen")
    os.kill(shop.worker_in("a").pid, signal.SIGKILL)
    eventually(lambda: look().seen[0].state is SessionState.DEAD, "its death is seen")
    shop.spawn("b", stuck)
    assert [one.name for one in look().seen] == ["a", "b"]
    eventually(lambda: look().seen[1].worker is not None, "and so is its worker")
