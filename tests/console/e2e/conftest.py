"""The console as a person has it: the installed command, in a terminal, with a shell around it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import mam_core.demo.simulated
from mam_core.operations.preferences import Preferences
from tests.support.brokers import nothing_left
from tests.support.sessions import SessionShop
from tests.support.terminal import Terminal, terminal

AGENT = "simulated"


@pytest.fixture
def site(shop: SessionShop) -> SessionShop:
    """A project with an agent whose prompt says what it does: work, write, fail."""
    program = mam_core.demo.simulated.__file__
    shop.agent(AGENT, sys.executable, "-I", "-S", program, shop.word)
    shop.settle()
    return shop


@pytest.fixture
def window(site: SessionShop) -> Iterator[Terminal]:
    """A terminal in the project's folder; nothing that was started from it is left."""
    with nothing_left(site.folder):
        with terminal(site.folder) as made:
            yield made
        site.tmux("kill-server")


def command(window: Terminal, line: str) -> None:
    """By the ``:`` line; the letters come before it has been drawn."""
    window.type(f":{line}")
    window.until(f": {line}")
    window.press("Enter")
    window.until_gone(f": {line}")


@pytest.fixture
def known() -> None:
    """It is not the first time: the hint of a first run was read before."""
    Preferences(hint_seen=True).save()
