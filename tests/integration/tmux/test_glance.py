"""One lasting client sees every pane and comes back after every break; a break is no death."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from functools import partial

import pytest

from mam_core.tmux.control import TmuxGlance
from mam_core.tmux.facts import Capture, NoServer, PaneFact, TmuxFailed
from mam_core.tmux.server import TmuxServer
from tests.integration.tmux.conftest import Spawn
from tests.support.patience import eventually
from tests.support.tmux import server_pid, tmux


def shows(glance: TmuxGlance, pane: PaneFact, word: str) -> Capture:
    def look() -> Capture | None:
        seen = glance.capture(pane.pane_id)
        return seen if word in "\n".join(seen.lines) else None

    found: Capture = eventually(look, f"the pane shows {word!r}")
    return found


def test_no_process_is_started_for_a_look(
    spawn: Spawn, glance: TmuxGlance, monkeypatch: pytest.MonkeyPatch
) -> None:
    panes = [spawn(f"s{number}") for number in range(3)]
    glance.panes()
    client = glance.client_pid
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", None)
        for _ in range(50):
            assert len(glance.panes()) == 3
            assert len(glance.captures([pane.pane_id for pane in panes])) == 3
            glance.capture(panes[0].pane_id)
            glance.deaths()
    assert glance.client_pid == client


def test_a_capture_has_lines_cursor_title_and_colours_when_asked(
    spawn: Spawn, glance: TmuxGlance
) -> None:
    red = "printf 'plain \\033[31mred\\033[0m 한글\\n\\302\\376bad\\nend'; sleep 1000"
    pane = spawn("x", "sh", "-c", red)
    seen = shows(glance, pane, "end")
    assert seen.lines[0] == "plain red 한글"
    assert (len(seen.lines), seen.cursor, seen.title) == (50, (3, 2), "tmux:x")
    assert "\x1b[31mred" in glance.capture(pane.pane_id, colours=True).lines[0]


def test_lines_that_scrolled_away_are_there_when_asked_for(
    spawn: Spawn, glance: TmuxGlance
) -> None:
    pane = spawn("x", "sh", "-c", "seq 1 300; echo over; sleep 1000")
    assert "100" not in shows(glance, pane, "over").lines
    back = glance.capture(pane.pane_id, lines_back=400).lines
    assert back[:3] == ("1", "2", "3")
    assert len(glance.capture(pane.pane_id, lines_back=10).lines) == 60


def test_a_screen_that_speaks_the_protocol_is_only_a_screen(
    spawn: Spawn, glance: TmuxGlance
) -> None:
    """Pane text may look like the end of a reply, a notice, or another pane's title."""
    fake = ("%end 1 2 1", "%begin 1 2 1", "%error 1 2 1", "%exit", "%output %0 x", "", "over")
    pane = spawn("x", "sh", "-c", 'printf "%s\\n" "$@"; sleep 1000', "sh", *fake)
    assert shows(glance, pane, "over").lines[:7] == fake
    assert [seen.pane_id for seen in glance.panes()] == [pane.pane_id]


def test_a_pane_that_is_gone_is_left_out(
    spawn: Spawn, server: TmuxServer, glance: TmuxGlance
) -> None:
    stays, goes = spawn("stays"), spawn("goes")
    server.end("goes")
    assert list(glance.captures([goes.pane_id, stays.pane_id, "%999"])) == [stays.pane_id]
    with pytest.raises(TmuxFailed, match="no pane"):
        glance.capture(goes.pane_id)
    with pytest.raises(TmuxFailed, match="no pane"):
        glance.capture("=stays:")


def test_the_session_that_it_is_attached_to_may_end(
    spawn: Spawn, server: TmuxServer, glance: TmuxGlance
) -> None:
    for number in range(4):
        spawn(f"s{number}")
        spawn(f"t{number}")
        assert glance.panes()
        attached = tmux(server.socket, "list-clients", "-F", "#{client_session}")
        server.end(attached)
        assert attached not in [pane.session for pane in glance.panes()]


def test_it_resizes_nothing_and_gets_no_output(
    spawn: Spawn, server: TmuxServer, glance: TmuxGlance
) -> None:
    pane = spawn("x")
    glance.panes()
    flags = tmux(server.socket, "list-clients", "-F", "#{client_flags}")
    assert {"ignore-size", "no-output", "control-mode"} <= set(flags.split(","))
    assert (glance.panes()[0].width, glance.panes()[0].height) == (pane.width, pane.height)


def test_the_server_is_killed_twenty_times_and_the_glance_comes_back(
    spawn: Spawn, server: TmuxServer, glance: TmuxGlance
) -> None:
    """Faults 37, 38: a server that is not there is unknown, never a list without panes."""
    with pytest.raises(NoServer):
        glance.panes()
    for number in range(20):
        pane = spawn(f"s{number}")
        assert [seen.session for seen in glance.panes()] == [pane.session]
        os.kill(server_pid(server.socket), signal.SIGKILL)

        def is_unknown() -> bool:
            try:
                glance.panes()
            except NoServer:
                return True
            return False

        eventually(is_unknown, "the glance notices")
        assert server.panes() == []
        assert not server.is_running


def test_a_client_that_is_killed_is_replaced(spawn: Spawn, glance: TmuxGlance) -> None:
    spawn("x")
    glance.panes()

    def sees_by_another_than(killed: int) -> bool:
        # The server has the client's pipes itself, so the dead one may answer for a moment.
        return len(_or_nothing(glance)) == 1 and glance.client_pid != killed

    for _ in range(5):
        pid = glance.client_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        eventually(partial(sees_by_another_than, pid), "the glance sees again")


def _or_nothing(glance: TmuxGlance) -> list[PaneFact]:
    try:
        return glance.panes()
    except TmuxFailed:
        return []


def test_a_server_that_stands_still_is_unknown_within_the_limit(
    spawn: Spawn, server: TmuxServer, registry: object
) -> None:
    """Fault 38; and it is not asked again at once."""
    spawn("x")
    pid = server_pid(server.socket)
    glance = TmuxGlance(str(registry), server.socket, limit_sec=0.3)
    try:
        # The limit is for a server that stands still; a busy machine may need longer for a client.
        eventually(lambda: len(_or_nothing(glance)) == 1, "the glance sees it")
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(TmuxFailed, match="did not answer"):
            glance.panes()
        with pytest.raises(TmuxFailed, match="did not answer"):
            glance.panes()
        assert glance.client_pid is None
        os.kill(pid, signal.SIGCONT)
        eventually(lambda: len(_or_nothing(glance)) == 1, "the glance sees again")
    finally:
        os.kill(pid, signal.SIGCONT)
        glance.close()


def test_threads_take_turns(spawn: Spawn, glance: TmuxGlance) -> None:
    for number in range(9):
        spawn(f"other{number}")  # so that ids have two digits: tmux takes %10 for a date
    panes = [spawn(f"s{number}", "sh", "-c", f"echo me{number}; sleep 1000") for number in range(4)]
    for number, pane in enumerate(panes):
        shows(glance, pane, f"me{number}")
    wrong: list[object] = []

    def look(number: int) -> None:
        for _ in range(40):
            if glance.capture(panes[number].pane_id).lines[0] != f"me{number}":
                wrong.append(number)
            if len(glance.panes()) != 13:
                wrong.append("panes")

    threads = [threading.Thread(target=look, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_closing_it_ends_its_client(
    spawn: Spawn, glance: TmuxGlance, server: TmuxServer, dead: Callable[[str], PaneFact]
) -> None:
    spawn("x")
    glance.panes()
    pid = glance.client_pid
    assert pid is not None
    glance.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert tmux(server.socket, "list-clients") == ""
