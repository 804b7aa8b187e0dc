"""What happened before I looked? The operator goes back, sees it, changes nothing, and returns."""

from __future__ import annotations

import pytest

from tests.console.e2e.conftest import AGENT, command
from tests.support.sessions import SessionShop
from tests.support.terminal import Terminal

LABEL = "tmux:nobody"


@pytest.mark.usefixtures("known")
def test_an_operator_looks_at_the_past(site: SessionShop, window: Terminal) -> None:
    first = site.add(AGENT, "Sweep the floor", agent_session=LABEL)
    second = site.add(AGENT, "Clean the windows", agent_session=LABEL)
    with site.mam("cancel", first) as cancel:
        assert cancel.code() == 0
    window.run("mam")
    window.until("mam board", "1 queued", "1 cancelled")
    window.press("t")
    window.until("PAST", "nothing can be changed here", "esc: back to now", "1 cancelled")
    window.press("Left")
    window.until("2 queued", first, second)
    window.press("c")
    window.until("this is the past")
    window.press("Home")
    window.until("1 queued", first)
    window.until_gone(second)
    with site.mam("cancel", second) as cancel:  # meanwhile somebody else works on
        assert cancel.code() == 0
    window.press("2")
    window.until("mam sessions 1", "PAST", "what tmux showed then")
    window.press("1", ">", ">", "Space")
    window.until("1 cancelled", second)
    command(window, "at -1d")
    window.until("1 queued")
    window.until_gone(second)
    window.press("Escape")
    window.until("2 cancelled", first, second)
    window.until_gone("PAST")
    window.press("C-q")
    window.until_prompt()
