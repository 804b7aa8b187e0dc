"""To look over an agent's shoulder and come back, and to answer it without going there."""

from __future__ import annotations

import pytest

from mam_core.records import Status
from tests.console.session_story import talker
from tests.support.patience import eventually
from tests.support.sessions import SessionShop
from tests.support.terminal import Terminal

COMMAND = "python3 -c 'print(6*7)' && touch granted"


@pytest.mark.usefixtures("known")
def test_attach_come_back_and_answer(site: SessionShop, window: Terminal) -> None:
    """The agent waits for a permission: seen in the row, in its own screen, answered in place."""
    agent = talker(site)
    site.spawn("asks", agent)
    job_id = site.add(agent, "permission", agent_session="tmux:asks")
    window.run("mam")
    window.until("1 waiting", job_id)
    for _ in range(2):  # once more: it comes back whole each time
        _visited(site, window, job_id)
    _answered(site, window, job_id)
    window.press("C-q")
    window.until_prompt()


def _visited(site: SessionShop, window: Terminal, job_id: str) -> None:
    before = window.until("mam board", "[timeline]", "? keys")
    modes = window.modes()
    window.press("a")
    eventually(lambda: _clients(site) == ["asks"], "the agent's session is shown")
    seen = window.until("asks (talks)", COMMAND, "C-b d: leave it running")
    assert "mam board" not in seen
    window.press("C-b", "d")
    after = window.until("mam board", "[timeline]", "? keys", job_id)
    assert window.modes() == modes
    assert len(after.split("\n")) == len(before.split("\n"))
    assert "C-b d: leave it running" not in after
    assert site.words() == {"asks": "alive"}


def _answered(site: SessionShop, window: Terminal, job_id: str) -> None:
    window.press("A")
    window.until(f"Job {job_id} asks", COMMAND, "y yes")
    window.press("Enter", "A")  # neither reflex nor the key that asked says yes
    window.until(COMMAND, "y yes")
    assert not list(site.workdir.glob("granted-*"))
    window.press("y")
    window.until("1 completed")
    site.until_status(job_id, Status.COMPLETED)
    assert list(site.workdir.glob("granted-*"))
    window.press("@")
    window.until(f"$ mam answer {job_id} --question", "done")
    window.press("Escape")


def _clients(site: SessionShop) -> list[str]:
    """Those with a terminal: the console's own look at tmux has none."""
    found = site.tmux("list-clients", "-F", "#{client_tty} #{client_session}").splitlines()
    return [line.split()[1] for line in found if line.startswith("/")]
