"""Real sessions for the console: a private tmux server, real workers, agents that are stand-ins."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mam_tui.app import Console
from mam_tui.bridge import Bridge
from mam_tui.desk import Desk
from mam_tui.screens.session_acts import SessionActs
from mam_tui.screens.sessions import SessionsScreen
from mam_tui.screens.talk import Talk
from tests.console.staging import Opened
from tests.support.live import AGENT, RULES
from tests.support.patience import PATIENCE_SEC
from tests.support.recordings import SAMPLES
from tests.support.sessions import SessionShop

_RECORDING = SAMPLES / "claude" / "permission.control.jsonl"


def talker(shop: SessionShop) -> str:
    """An agent that asks for permission over its own channel."""
    words = (_RECORDING, "--input-format", "stream-json")
    return shop.agent("talks", "two_way", *words, mode="stream", stream="stream-json")


def in_terminal(shop: SessionShop) -> str:
    """An agent that lives in its pane and asks there, with rules to read its screen by."""
    rules = Path(os.environ["XDG_CONFIG_HOME"], "mam", "screens")
    rules.mkdir(parents=True, exist_ok=True)
    (rules / f"{AGENT}.toml").write_text(RULES)
    return shop.agent(AGENT, "interactive", mode="interactive", stream="codex-json")


class Deaf(Bridge):
    """Of jobs nothing is told: here only sessions are looked at."""

    def start(self) -> None:
        return


@dataclass(frozen=True)
class Sight(Opened):
    """A console on the view of sessions."""

    view: SessionsScreen

    async def until_deed(self, count: int = 1) -> Any:
        await self.until(lambda: len(self.desk.deeds) >= count, "it is done")
        return self.desk.deeds[-1]

    def states(self) -> dict[str, str]:
        return {row.name: row.word for row in self.desk.sessions.rows}

    async def on(self, name: str) -> None:
        """The cursor goes to this session."""
        await self.until(lambda: name in self.states(), f"session {name} is listed")
        self.view.table.move([row.name for row in self.desk.sessions.rows].index(name))
        await self.pilot.pause()


@asynccontextmanager
async def looking(
    shop: SessionShop,
    size: tuple[int, int] = (120, 36),
    *,
    read_only: bool = False,
    ascii_only: bool = False,
) -> AsyncIterator[Sight]:
    shop.settle()
    desk = Desk(str(shop.path), shop.config, read_only=read_only)
    app = Console(
        desk, ascii_only=ascii_only, bridge=lambda ring: Deaf(desk.registry_path, desk.config, ring)
    )
    try:
        async with app.run_test(size=size, notifications=True) as pilot:
            acts = SessionActs(app)
            view = SessionsScreen(desk, Talk(app), acts, ascii_only=ascii_only)
            await app.push_screen(view)
            sight = Sight(app, pilot, view)
            await sight.until(lambda: view.watch_sessions.rounds.looks, "a first look")
            await pilot.pause()
            yield sight
    finally:
        desk.panes.close()
        await asyncio.to_thread(until_no_errand)


def until_no_errand() -> None:
    """Nothing of the console goes on when it was left."""
    for thread in threading.enumerate():
        if thread.name in ("mam-errand", "mam-question", "mam-sessions", "mam-panes"):
            thread.join(PATIENCE_SEC)
            assert not thread.is_alive(), thread.name
