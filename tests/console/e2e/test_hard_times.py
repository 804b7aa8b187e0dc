"""The console is stopped, killed, and loses its broker: the screen comes back, nothing is lost."""

from __future__ import annotations

import psutil
import pytest

from mam_core.stores.outbox_files import FilesOutbox
from tests.console.e2e.conftest import AGENT, command
from tests.support.brokers import kill_server, processes_in
from tests.support.patience import eventually
from tests.support.sessions import SessionShop
from tests.support.terminal import Terminal

LABEL = "tmux:nobody"


@pytest.mark.usefixtures("known")
def test_suspended_broken_off_and_begun_anew(site: SessionShop, window: Terminal) -> None:
    kept = site.add(AGENT, "Keep this in mind", agent_session=LABEL)
    window.run("mam")
    window.until("mam board", kept, "1 queued")
    _suspended_and_resumed(site, window, kept)
    _without_a_broker(site, window, kept)
    _killed(site, window, kept)


def _suspended_and_resumed(site: SessionShop, window: Terminal, kept: str) -> None:
    """ctrl+z gives the shell its terminal, whole; what happens meanwhile is there after fg."""
    modes = window.modes()
    window.press("C-z")
    window.until("Stopped")
    assert window.modes()["alternate_on"] == "0"
    assert window.modes()["mouse_any_flag"] == "0"
    assert window.modes()["cursor_flag"] == "1"
    window.run("echo the shell $((40 + 2)) is here")
    window.until("the shell 42 is here")
    assert FilesOutbox(str(site.path)).relay() is None
    with site.mam("publish", kept, "--event", "log") as it:
        assert it.code() == 0
        assert it.says("queued; a relay was started to send it")
    meanwhile = site.add(AGENT, "Came while nobody looked", agent_session=LABEL)
    window.run("fg")
    window.until("mam board", "2 queued", meanwhile)
    window.until_gone("the shell 42 is here")
    assert window.modes() == modes
    window.press("?")
    window.until("Keys that are valid here")
    window.press("Escape")


@pytest.mark.usefixtures("known")
def test_all_of_the_screen_is_there_after_fg(site: SessionShop, window: Terminal) -> None:
    """Nothing has changed meanwhile, so that nothing but the return itself can draw it."""
    kept = site.add(AGENT, "Keep this in mind", agent_session=LABEL)
    window.run("mam")
    window.until("mam board", kept, "1 queued", "? keys")
    window.press("Escape")  # the welcome, which would go away later
    for _ in range(3):
        window.press("C-z")
        window.until("Stopped")
        window.run("clear")
        window.until_gone("Stopped")
        window.run("fg")
        window.until("mam board", kept, "1 queued", "? keys")


def _without_a_broker(site: SessionShop, window: Terminal, kept: str) -> None:
    """Its keeper starts it again; what is written meanwhile is seen all the same."""
    killed = eventually(lambda: _broker(site), "there is a broker")
    kill_server(site.path)
    meanwhile = site.add(AGENT, "Without any broker", agent_session=LABEL)
    window.until("3 queued", meanwhile)
    back = eventually(lambda: _broker(site) - killed, "there is a broker again")
    assert len(back) == 1
    with site.mam("publish", kept, "--event", "progress", "--detail", "told by the new one") as it:
        assert it.code() == 0
    command(window, f"job {kept}")
    window.press("]")
    window.until("[tail]", "told by the new one")


def _killed(site: SessionShop, window: Terminal, kept: str) -> None:
    """kill -9: nothing of it is left, and a fresh start in the same terminal is a whole one."""
    (console,) = window.programs()
    console.kill()
    window.until_prompt()
    window.until_alone()
    window.run("mam")
    window.until("mam board", "3 queued", kept, "Without any broker", "[tail]", "? keys")
    assert window.modes()["alternate_on"] == "1"
    window.press("q")
    window.until_prompt()
    # A terminal that a kill left on the other screen is on its own again, with its cursor.
    assert window.modes()["alternate_on"] == "0"
    assert window.modes()["mouse_any_flag"] == "0"
    assert window.modes()["cursor_flag"] == "1"
    window.run("echo back in the shell")
    window.until("\nback in the shell")


def _broker(site: SessionShop) -> set[psutil.Process]:
    return {one for one in processes_in(site.folder) if _is_broker(one)}


def _is_broker(process: psutil.Process) -> bool:
    try:
        return process.name().startswith("nats")
    except psutil.NoSuchProcess:
        return False  # it went while we looked
