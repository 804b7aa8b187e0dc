"""A console on a real registry, opened without a terminal, and what stands on its screen."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from textual.app import App
from textual.notifications import Notifications
from textual.pilot import Pilot

from mam_core.config import load
from mam_core.registry import Registry
from mam_tui.app import Console
from mam_tui.bridge import Bridge
from mam_tui.desk import Desk
from tests.support.patience import PATIENCE_SEC

#: The words of each console's toasts, also of those that are gone by now.
TOASTS: WeakKeyDictionary[Notifications, list[str]] = WeakKeyDictionary()


def text_of(app: App[Any]) -> str:
    """All that stands on the screen, line by line."""
    lines = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in lines)


@dataclass(frozen=True)
class Opened:
    """A console at work."""

    app: Console
    pilot: Pilot[None]

    @property
    def desk(self) -> Desk:
        return self.app.desk

    def text(self) -> str:
        return text_of(self.app)

    def top(self) -> str:
        """The status bar."""
        return self.text().split("\n")[0]

    def told(self) -> list[str]:
        """Toasts and the last failure; whole, however they are broken into lines on the screen."""
        return [*self.toasts(), self.app.complaints.words]

    def toasts(self) -> list[str]:
        return TOASTS.get(self.app._notifications, [])

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def command(self, line: str) -> None:
        """By the ``:`` line."""
        await self.press("colon", *("space" if sign == " " else sign for sign in line), "enter")

    async def until(self, is_so: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + PATIENCE_SEC
        while not (answer := is_so()):
            assert time.monotonic() < deadline, f"not in time: {what}\n{self.text()}"
            await self.pilot.pause(0.02)
        return answer

    async def until_seen(self, *words: str) -> None:
        await self.until(lambda: all(word in self.text() for word in words), f"{words} is seen")

    async def until_told(self, words: str) -> None:
        await self.until(lambda: any(words in one for one in self.told()), f"{words!r} is told")

    async def until_on(self, screen: type) -> Any:
        await self.until(lambda: isinstance(self.app.screen, screen), f"{screen.__name__} is open")
        await self.pilot.pause()
        return self.app.screen


@asynccontextmanager
async def opened(
    path: str,
    size: tuple[int, int] = (120, 30),
    *,
    with_duties: bool = False,
    read_only: bool = False,
    clock: Callable[[], float] = time.time,
    **more: Any,
) -> AsyncIterator[Opened]:
    """Until everything was read; without duties it starts no broker of its own."""
    config = load()
    desk = Desk(path, config, read_only=read_only, clock=clock)

    def bridge(ring: Callable[[], None]) -> Bridge:
        return Bridge(
            path, config, ring, with_duties=with_duties, read_only=read_only, panes=desk.panes
        )

    app = Console(desk, bridge=bridge, **more)
    try:
        async with app.run_test(size=size, notifications=True) as pilot:
            seen = Opened(app, pilot)
            await seen.until(lambda: not app.link.is_loading, "the registry was read")
            yield seen
    finally:
        desk.panes.close()


def add(registry: Registry, prompt: str = "Do it", **more: Any) -> str:
    """A pending job."""
    request = {"prompt": prompt, "agent": "codex", "agent_session": "tmux:c", **more}
    return registry.register([request])[0].job_id
