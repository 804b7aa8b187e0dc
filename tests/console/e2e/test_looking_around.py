"""One console, left open: others write, the operator looks around, the window changes its size."""

from __future__ import annotations

import pytest

from tests.console.e2e.conftest import AGENT, command
from tests.support.sessions import SessionShop
from tests.support.terminal import Terminal

LABEL = "tmux:nobody"


@pytest.mark.usefixtures("known")
def test_others_write_and_the_operator_looks_around(site: SessionShop, window: Terminal) -> None:
    first = site.add(AGENT, "Sweep the floor", agent_session=LABEL)
    window.run("mam")
    window.until("mam board", first, "1 queued")
    second = _written_by_others(site, window)
    _filtered(window, first, second)
    _by_name(window, first, second)
    _opened(window, first)
    _resized(window, first, second)
    window.press("C-q")
    window.until_prompt()


def _written_by_others(site: SessionShop, window: Terminal) -> str:
    """No key is pressed: a command in another process shows in the row and in the tail."""
    words = ("--agent", AGENT, "--agent-session", LABEL, "--prompt", "Clean the windows")
    with site.mam("register", *words) as register:
        assert register.code() == 0
        (second,) = register.out
    window.until("2 queued", second, "Clean the windows")
    command(window, f"job {second}")
    window.press("]")
    window.until(f"{second}  ·", "[tail]", "no event of this job was told yet")
    progress = (second, "--event", "progress", "--detail", "two of three are clean")
    with site.mam("publish", *progress) as publish:
        assert publish.code() == 0
    window.until("progress     two of three are clean")
    return second


def _filtered(window: Terminal, first: str, second: str) -> None:
    window.press("/")
    window.type("floor")
    window.until("showing 1 of 2", "/floor")
    window.until_gone(second)
    window.press("Enter")
    window.until("showing 1 of 2")
    window.press("/", "Escape")
    window.until(first, second)
    window.until("text  state:")
    window.press("Escape")
    window.until_gone("text  state:")


def _by_name(window: Terminal, first: str, second: str) -> None:
    """Commands, the palette, the keys, the views."""
    command(window, "sort -prompt")
    seen = window.until("PROMPT▼")
    assert seen.index("Sweep the floor") < seen.index("Clean the windows")
    window.type(":dance")
    window.press("Enter")
    window.until("there is no command 'dance'")
    window.press("Escape")
    window.until_gone("there is no command")
    window.press("?")
    window.until("Keys that are valid here", "new job")
    window.press("Escape")
    window.until_gone("Keys that are valid here")
    window.press("C-p")
    window.until("Search for commands")
    window.type("read-only")
    window.until("switch read-only mode")
    window.press("Enter")
    window.until("READ-ONLY")
    window.press("c")
    window.until("this console is read-only")
    command(window, "read-only")
    window.until_gone("READ-ONLY ")
    window.press("2")
    window.until("mam sessions 0")
    window.press("1")
    window.until("mam board", first, second)


def _opened(window: Terminal, first: str) -> None:
    """One job on the whole screen, and back to the same line."""
    command(window, f"job {first}")
    window.press("Enter")
    window.until(f"board > {first}")
    window.press("]", "]")
    window.until("[record]", "Sweep the floor")
    window.press("Escape")
    window.until("mam board  ", "[record]", f"{first}  ·")


def _resized(window: Terminal, first: str, second: str) -> None:
    """From a wide window to one that is nearly none, and back."""
    window.resize(200, 50)
    window.until_in_line("STATE", "[record]")  # the panel stands beside the table now
    window.until(first, second)
    window.resize(60, 12)
    window.until(first, second, "? keys")
    window.until_gone("[record]")
    window.resize(3, 2)
    window.resize(120, 36)
    window.until("mam board", "[record]", first, second, "Sweep the floor", "? keys")
