"""Sessions are started whole, labelled and alone; what runs in them got exactly its words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from mam_core.tmux import command
from mam_core.tmux.control import TmuxGlance
from mam_core.tmux.facts import (
    BadSessionName,
    PaneFact,
    SessionExists,
    SessionPlan,
    TmuxFailed,
    TmuxMissing,
)
from mam_core.tmux.server import TmuxServer
from tests.integration.tmux.conftest import Spawn
from tests.support.patience import eventually
from tests.support.tmux import server_pid, tmux

HAZARDS = (
    *("", " ", "a b", "a\tb", "two\nlines", "-x", "--", ";", "x;", "x\\;", "x\\\\;", ";;"),
    *("'", '"', 'it\'s "q"', "$HOME", "$(id)", "`id`", "${x}", "!!", "~", "*", "a|b&c<d>e"),
    *("#{pane_id}", "#(id)", "##", "#", "%1", "%%", "%H", "\\", "\\n", "{", "}", "한글", "🙂"),
    *("Enter", "C-c", "x" * 5000, "\x1b[201~", "\x07\x7f", "A=b", "=", "\udcff\udcfe"),
)

_TELL = """
import json, os, sys
with open(sys.argv[1] + ".tmp", "w") as file:
    json.dump([sys.argv[2:], dict(os.environ), os.getcwd(), os.getpid()], file)
os.rename(sys.argv[1] + ".tmp", sys.argv[1])
"""


class Told:
    """What a program in a pane says about itself."""

    def __init__(self, path: Path) -> None:
        eventually(path.exists, "the program in the pane starts")
        self.words, self.environ, self.cwd, self.pid = json.loads(path.read_text())


def tell(path: Path, *words: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-c", _TELL, str(path), *words)


def test_every_word_arrives_as_it_was_given(spawn: Spawn, tmp_path: Path) -> None:
    """H5: no shell, and no reading by tmux, between us and the program."""
    spawn("all", *tell(tmp_path / "all", *HAZARDS))
    assert Told(tmp_path / "all").words == list(HAZARDS)


def test_one_word_alone_is_a_program_too(spawn: Spawn, tmp_path: Path) -> None:
    """tmux gives a single word to a shell; we do not."""
    program = tmp_path / "a program; touch $(x)"
    program.write_text(f"#!/bin/sh\necho > {tmp_path}/ran\n")
    program.chmod(0o700)
    spawn("one", str(program))
    eventually((tmp_path / "ran").exists, "the program runs")


def test_a_session_is_labelled_and_titled_from_its_first_moment(
    spawn: Spawn, server: TmuxServer
) -> None:
    """H1, H3: the label is on the pane, and the pane's pid is the program's own."""
    pane = spawn("claude-a")
    assert (pane.session, pane.label, pane.agent) == ("claude-a", "tmux:claude-a", "shell")
    assert (pane.title, pane.job_id, pane.attempt) == ("tmux:claude-a", "", 0)
    assert (pane.dead, pane.exit_code, pane.width, pane.height) == (False, None, 200, 50)
    assert pane.created > 0
    eventually(
        lambda: Path(f"/proc/{pane.pid}/cmdline").read_bytes().startswith(b"sleep\0"),
        "the shell that cleans the environment has become the program",
    )
    assert server.panes() == [pane._replace(activity=server.panes()[0].activity)]


def test_a_twin_is_refused_and_the_first_goes_on(spawn: Spawn, server: TmuxServer) -> None:
    """H4"""
    first = spawn("claude")
    with pytest.raises(SessionExists, match="session claude is there already"):
        spawn("claude")
    assert [pane.pid for pane in server.panes()] == [first.pid]


def test_of_racing_spawns_one_wins(server: TmuxServer, tmp_path: Path) -> None:
    """H4: also when the server itself has to be started by all of them at once."""
    results: list[object] = []
    barrier = threading.Barrier(6)

    def race(number: int) -> None:
        plan = SessionPlan("one", ("sleep", "1000"), str(tmp_path), f"tmux:{number}", "shell")
        barrier.wait()
        try:
            results.append(server.spawn(plan).label)
        except SessionExists as refused:
            results.append(refused)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [result for result in results if isinstance(result, str)]
    assert len(winners) == 1
    assert len(results) == 6
    assert [pane.label for pane in server.panes()] == winners


@pytest.mark.parametrize("name", ["a.b", "a:b", "", "=a", "$1", "%1", "@1", "a b", "a#b", "x" * 65])
def test_a_name_that_tmux_would_change_is_refused(spawn: Spawn, name: str) -> None:
    with pytest.raises(BadSessionName) as refused:
        spawn(name)
    assert refused.value.exit_code == 2
    assert "\n" not in refused.value.message


def test_a_name_that_begins_like_another_is_another(
    spawn: Spawn, server: TmuxServer, dead: Callable[[str], PaneFact]
) -> None:
    """H1: exact targets; tmux itself would take `claude` for `claude-a`."""
    spawn("claude-a")
    spawn("claude")
    server.end("claude")
    assert [pane.session for pane in server.panes()] == ["claude-a"]
    spawn("cl", "sh", "-c", "exit 3")
    assert dead("cl").label == "tmux:cl"


# -- the environment ---------------------------------------------------------------------------


def test_a_session_has_the_environment_of_the_shell_that_spawned_it(
    spawn: Spawn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that of whoever happened to start the server."""
    monkeypatch.setenv("OLD_ONE", "stale")
    monkeypatch.setenv("CHANGES", "before; ")
    spawn("first")
    monkeypatch.delenv("OLD_ONE")
    monkeypatch.setenv("CHANGES", "after;")
    monkeypatch.setenv("NEW_ONE", "fresh $(id) 한글;")
    monkeypatch.setenv("PATH", f"/nowhere/special;:{os.environ['PATH']}")
    spawn("second", *tell(tmp_path / "told"), environ={"MAM_REGISTRY_DIR": "/re gistry;"})
    told = Told(tmp_path / "told")
    assert "OLD_ONE" not in told.environ
    assert told.environ["CHANGES"] == "after;"
    assert told.environ["NEW_ONE"] == "fresh $(id) 한글;"
    assert told.environ["PATH"] == os.environ["PATH"]
    assert told.environ["HOME"] == os.environ["HOME"]
    assert told.environ["MAM_REGISTRY_DIR"] == "/re gistry;"
    assert told.environ["TMUX_PANE"].startswith("%")


def test_a_session_does_not_inherit_a_job_or_the_size_of_another_terminal(
    spawn: Spawn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MAM_JOB_ID", "MAM_ATTEMPT", "MAM_WORKDIR", "COLUMNS", "LINES"):
        monkeypatch.setenv(name, "7")
    monkeypatch.setenv("TMUX", "/somebody/elses,1,0")
    monkeypatch.setenv("TMUX_PANE", "%99")
    spawn("clean", *tell(tmp_path / "told"))
    told = Told(tmp_path / "told")
    assert not {"MAM_JOB_ID", "MAM_ATTEMPT", "MAM_WORKDIR", "COLUMNS"} & told.environ.keys()
    assert told.environ["TMUX_PANE"] == "%0"


def test_secrets_are_in_no_argument_and_not_in_the_server(
    spawn: Spawn, server: TmuxServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 10: what a session needs passes through the socket."""
    monkeypatch.setenv("SOME_API_KEY", "canary-7f3a")
    seen: list[list[str]] = []
    real = subprocess.Popen

    class Noted(real):  # type: ignore[valid-type,misc]  # the class that stands there now
        def __init__(self, argv: list[str], *args: object, **more: object) -> None:
            seen.append(argv)
            super().__init__(argv, *args, **more)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    spawn("keyed", *tell(tmp_path / "told"))
    assert Told(tmp_path / "told").environ["SOME_API_KEY"] == "canary-7f3a"
    assert seen
    assert not [argv for argv in seen if any("canary" in word for word in argv)]
    pid = server_pid(server.socket)
    assert b"canary" not in Path(f"/proc/{pid}/environ").read_bytes()
    assert "canary" not in tmux(server.socket, "show-environment", "-g")


# -- what is in the way ------------------------------------------------------------------------


def test_a_folder_with_formats_in_its_name_is_a_folder(spawn: Spawn, server: TmuxServer) -> None:
    here = Path(os.getcwd()) / "#(touch pwned) #{pane_id};"
    here.mkdir()
    told = here.parent / "told"
    server.spawn(SessionPlan("odd", tell(told), str(here), "tmux:odd", "shell"))
    assert Told(told).cwd == str(here)
    assert not list(here.parent.rglob("pwned"))


def test_a_missing_folder_and_a_missing_program_are_said(
    spawn: Spawn, server: TmuxServer, dead: Callable[[str], PaneFact], tmp_path: Path
) -> None:
    """tmux itself would start in the home folder and say nothing. H12: exit code 127."""
    with pytest.raises(TmuxFailed, match="no such folder"):
        server.spawn(SessionPlan("x", ("true",), str(tmp_path / "none"), "tmux:x", "shell"))
    assert not server.is_running
    spawn("gone", "/no/such/program")
    assert dead("gone").exit_code == 127


def test_without_tmux_there_is_one_sentence(
    spawn: Spawn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H8"""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TmuxMissing, match=r"not installed.*3\.2"):
        spawn("x")


@pytest.mark.parametrize(
    ("said", "fits"),
    [("tmux 2.9a", False), ("tmux 3.1c", False)]
    + [
        (said, True)
        for said in ("tmux 3.2", "tmux 3.6", "tmux next-3.7", "tmux master", "tmux 10.0")
    ],
)
def test_an_old_tmux_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, fits: bool
) -> None:
    stand_in = tmp_path / "tmux"
    stand_in.write_text(f"#!/bin/sh\necho '{said}'\n")
    stand_in.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    if fits:
        assert command.program() == str(stand_in)
    else:
        with pytest.raises(TmuxMissing, match=f"{said} is too old"):
            command.program()


def test_the_configuration_has_no_mistake_and_is_ours_alone(
    spawn: Spawn, server: TmuxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(os.environ["HOME"], ".tmux.conf").write_text("set -g @users 1\nset -g mouse off\n")
    spawn("x")
    assert tmux(server.socket, "show-options", "-gv", "mouse") == "on"
    assert tmux(server.socket, "show-options", "-gqv", "@users") == ""
    # tmux puts mistakes of its configuration on the screen of the first session.
    assert tmux(server.socket, "display-message", "-p", "-t", "=x:", "#{pane_in_mode}") == "0"
    right = tmux(server.socket, "display-message", "-p", "-t", "=x:", "#{E:status-right}")
    assert right == "no job | C-b d: leave it running"
    argv = server.attach_argv("x")
    assert argv[-3:] == ["-E", "-t", "=x"]


# -- beside others -----------------------------------------------------------------------------


def test_sessions_begin_and_end_while_consoles_come_and_go(
    registry: Path, spawn: Spawn, server: TmuxServer
) -> None:
    """tmux 3.3 dies, with every pane, of a session that begins or ends while a control client is
    on its way in; and it forgets its configuration when a client comes while it starts."""
    is_over = threading.Event()

    def come_and_go() -> None:
        while not is_over.is_set():
            glance = TmuxGlance(str(registry), server.socket)
            with suppress(TmuxFailed):
                glance.panes()
            glance.close()
            is_over.wait(0.02)

    consoles = [threading.Thread(target=come_and_go) for _ in range(3)]
    for console in consoles:
        console.start()
    try:
        lives = spawn("stays").pid
        for number in range(12):
            spawn(f"goes{number}")
            server.end(f"goes{number}")
    finally:
        is_over.set()
        for console in consoles:
            console.join()
    assert [(pane.session, pane.pid) for pane in server.panes()] == [("stays", lives)]
    assert tmux(server.socket, "show-options", "-gqv", "@mam_server") == "1"
