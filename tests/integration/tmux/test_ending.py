"""Only what carries our mark is ended; other sessions and other servers see nothing of us."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mam_core.tmux.control import TmuxGlance
from mam_core.tmux.facts import ForeignSession, NoSuchSession, PaneFact
from mam_core.tmux.server import TmuxServer
from tests.integration.tmux.conftest import Spawn
from tests.support.patience import eventually
from tests.support.tmux import tmux


def test_a_server_that_never_held_a_session_goes_when_it_is_let_go(
    spawn: Spawn, server: TmuxServer
) -> None:
    server.let_go()  # there is none: nothing happens
    server._prepare()  # whoever would have spawned died in this moment
    assert server.is_running
    server.let_go()
    eventually(lambda: not server.is_running, "it has gone")
    spawn("a")
    server.let_go()
    assert [pane.session for pane in server.panes()] == ["a"]


def test_a_session_of_ours_is_ended_and_the_server_goes_with_the_last(
    spawn: Spawn, server: TmuxServer
) -> None:
    spawn("a")
    spawn("b")
    server.end("a")
    assert [pane.session for pane in server.panes()] == ["b"]
    server.end("b")
    eventually(lambda: not server.is_running, "nothing is left for the server to hold")
    with pytest.raises(NoSuchSession):
        server.end("b")


def test_a_session_that_somebody_else_made_on_our_server_stays(
    spawn: Spawn, server: TmuxServer
) -> None:
    """H11"""
    spawn("ours")
    tmux(server.socket, "new-session", "-d", "-s", "theirs", "sleep 1000")
    with pytest.raises(ForeignSession, match="theirs was not started by mam"):
        server.end("theirs")
    with pytest.raises(NoSuchSession):
        server.end("their")
    server.end("ours")
    (left,) = server.panes()
    assert (left.session, left.label) == ("theirs", "")
    assert server.is_running


def test_a_pane_that_the_operator_opened_is_not_ours_but_goes_with_the_session(
    spawn: Spawn, server: TmuxServer
) -> None:
    spawn("a")
    tmux(server.socket, "split-window", "-t", "=a:", "sleep 1000")
    assert sorted(pane.label for pane in server.panes()) == ["", "tmux:a"]
    server.end("a")
    assert server.panes() == []


def test_the_users_own_server_is_untouched(
    spawn: Spawn, server: TmuxServer, glance: TmuxGlance, sockets: Path
) -> None:
    """H13: a decoy on the default socket, with sessions of the same names."""
    subprocess.run(
        ["tmux", "-f", "/dev/null", "new-session", "-d", "-s", "claude", "sleep 1000"], check=True
    )

    def picture() -> list[str]:
        def default(*words: str) -> str:
            return subprocess.run(["tmux", *words], capture_output=True, check=True).stdout.decode()

        about = "#{pane_id} #{pane_pid} #{session_name} #{pane_title} #{pane_dead} #{@session}"
        return [
            default("list-panes", "-a", "-F", about),
            default("show-options", "-g"),
            default("show-options", "-s"),
            default("show-hooks", "-g"),
            default("show-environment", "-g"),
            default("list-keys"),
            default("list-clients"),
            default("list-buffers"),
        ]

    before = picture()
    pane = spawn("claude")
    server.label(pane.pane_id, job_id="j", attempt=1, title="t")
    assert len(glance.panes()) == 1
    glance.capture(pane.pane_id)
    server.end("claude")
    assert picture() == before


def test_on_a_server_that_mam_did_not_start_its_settings_stay(
    spawn: Spawn, server: TmuxServer, dead: Callable[[str], PaneFact]
) -> None:
    """``[tmux] socket`` may name the user's own server: we add a session and change nothing."""
    words = ["tmux", "-L", server.socket, "-f", "/dev/null", "new-session", "-d", "-s", "u"]
    subprocess.run([*words, "sleep 1000"], check=True)

    def picture() -> list[str]:
        wanted = (("show-options", "-g"), ("show-options", "-s"), ("show-hooks", "-g"))
        return [tmux(server.socket, *words) for words in wanted]

    before = picture()
    spawn("ours", "sh", "-c", "exit 4")
    assert dead("ours").exit_code == 4
    server.end("ours")
    assert picture() == before
