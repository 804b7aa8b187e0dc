"""Tests of the console are coroutines: each runs on a loop of its own, without a plugin."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import textual.app
import textual.pilot
from textual.app import App
from textual.notifications import Notification, Notifications

from mam_core.pace import POLL_VARIABLE
from mam_core.registry import Registry
from mam_tui import rounds
from mam_tui.attention import noticing
from mam_tui.desk import Desk
from mam_tui.history import reading
from mam_tui.screens import graph_making
from mam_tui.widgets.detail import panel
from tests.console.at_rest import until_at_rest
from tests.console.detail_story import desk_on, registry_in
from tests.console.staging import TOASTS
from tests.support.clock import FakeClock
from tests.support.sessions import SessionShop, session_shop


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.fixture(autouse=True)
def _calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A console looks at much, and draws what it finds: at the pace of other tests it does little
    else (a third more processor time, measured)."""
    monkeypatch.setenv(POLL_VARIABLE, "0.1")


@pytest.fixture(autouse=True)
def _slow_looks_are_soon_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who needs long for a look pauses for up to twenty times as long before the next. Where a
    busy machine makes three seconds of a look, no test would see another."""
    for module in (rounds, reading, noticing, graph_making, panel):
        monkeypatch.setattr(module, "_SHARE", 1)


@pytest.fixture(autouse=True)
def _rest_by_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a key, a test goes on when the console has done what it asked for."""
    monkeypatch.setattr(textual.app, "wait_for_idle", until_at_rest)
    monkeypatch.setattr(textual.pilot, "wait_for_idle", until_at_rest)


@pytest.fixture(autouse=True)
def _toasts_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """One is gone after five seconds, in which a busy machine takes a few keys and no more."""
    add, clear = Notifications.add, Notifications.clear

    def remember(self: Notifications, note: Notification) -> Notifications:
        TOASTS.setdefault(self, []).append(note.message)
        return add(self, note)

    def forget(self: Notifications) -> Notifications:
        TOASTS.pop(self, None)
        return clear(self)

    monkeypatch.setattr(Notifications, "add", remember)
    monkeypatch.setattr(Notifications, "clear", forget)


@pytest.fixture
def registry(tmp_path: Path, clock: FakeClock) -> Registry:
    return registry_in(tmp_path, clock)


@pytest.fixture
def desk(tmp_path: Path, clock: FakeClock) -> Desk:
    return desk_on(tmp_path, clock)


@pytest.fixture
def shop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[SessionShop]:
    """Sessions on a tmux server of their own, and no rules of the person's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    with session_shop(tmp_path, capsys) as made:
        yield made


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each frame that an app draws from now on."""
    drawn: list[str] = []
    display = App._display

    def count(self: App[Any], screen: Any, renderable: Any) -> None:
        if renderable is not None and self._running and self._batch_count == 0:
            drawn.append(type(renderable).__name__)
        display(self, screen, renderable)

    monkeypatch.setattr(App, "_display", count)
    return drawn
