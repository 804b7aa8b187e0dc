"""The console in a real terminal, itself inside tmux: it makes room for a session and returns."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from tests.support.patience import eventually
from tests.support.sessions import SessionShop
from tests.support.tmux import new_socket_name, tmux

_CONSOLE = """
import sys
from mam_core.config import load
from mam_tui.app import Console
from mam_tui.desk import Desk
from mam_tui.screens.session_acts import SessionActs
from mam_tui.screens.sessions import SessionsScreen
from mam_tui.screens.talk import Talk
from tests.console.session_story import Deaf

desk = Desk(sys.argv[1], load(sys.argv[2]))


class Opened(Console):
    def on_mount(self):
        self.call_after_refresh(self.open_view)

    def open_view(self):
        self.push_screen(SessionsScreen(desk, Talk(self), SessionActs(self)))


Opened(desk, bridge=lambda ring: Deaf(desk.registry_path, desk.config, ring)).run()
desk.panes.close()
"""


def test_attach_makes_room_and_comes_back(shop: SessionShop) -> None:
    """Nested, so it says first how to get out; the agent goes on when it is left."""
    shop.spawn("inner", shop.agent("good", "behaves"))
    outer = new_socket_name()
    program = [sys.executable, "-c", _CONSOLE, str(shop.path), str(shop.folder / "mam.toml")]
    here = f"PYTHONPATH={':'.join(sys.path)}"
    size = ("-x", "100", "-y", "30")
    words = ("new-session", "-d", "-s", "outer", *size, "-e", here, shlex.join(program))
    tmux(outer, "-f", "/dev/null", *words, ";", "set-option", "-g", "remain-on-exit", "on")

    def shown() -> str:
        return tmux(outer, "capture-pane", "-p", "-t", "=outer:")

    def until(*wanted: str) -> None:
        try:
            eventually(lambda: all(word in shown() for word in wanted), str(wanted))
        except AssertionError:
            raise AssertionError(f"{wanted}:\n{shown()}") from None

    def press(*keys: str) -> None:
        tmux(outer, "send-keys", "-t", "=outer:", *keys)

    try:
        until("mam sessions 1", "inner")
        for again in (False, True):  # it can be done again, without the notice
            press("a")
            if not again:
                until("tmux inside tmux", "ctrl-b ctrl-b d")
                press("Enter")
            eventually(lambda: _clients(shop) == ["inner"], "it is attached")
            eventually(lambda: "mam sessions 1" not in shown(), "the console has made room")
            press("C-b", "d")
            until("mam sessions 1", "inner")
        console = int(tmux(outer, "display-message", "-p", "-t", "=outer:", "#{pane_pid}"))
        press("C-q")
        # Asked of the kernel: tmux 3.3 sometimes overlooks that the program of a pane has ended.
        eventually(lambda: _has_ended(console), "the console is left")
        assert "Traceback" not in shown()
        assert shop.words() == {"inner": "alive"}
    finally:
        tmux(outer, "kill-server")


def _clients(shop: SessionShop) -> list[str]:
    """Those with a terminal: the console's own look at tmux has none."""
    found = shop.tmux("list-clients", "-F", "#{client_tty} #{client_session}").splitlines()
    return [line.split()[1] for line in found if line.startswith("/")]


def _has_ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"  # nobody has taken notice of it yet
