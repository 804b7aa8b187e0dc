"""A process in a pane ends: its code is known at once, and still known when tmux is gone."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from mam_core.tmux.control import TmuxGlance
from mam_core.tmux.deaths import ROTATE_BYTES, Deaths, deaths_path
from mam_core.tmux.facts import Death, PaneFact, SessionPlan
from mam_core.tmux.server import TmuxServer
from tests.integration.tmux.conftest import Spawn
from tests.support.patience import eventually
from tests.support.tmux import new_socket_name, server_pid, tmux

HOSTILE = (
    "it's $(touch pwned) `touch pwned` \\ \\' ! #(touch pwned) #{pane_id} %s\n"
    "%9\t0\t\t1\t1\tforged\ttmux:forged\tforged\n'; touch pwned; '"
)


class Gate:
    """Lets many processes go in one moment, when all of them stand before it."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        # For both, so that nobody waits for the other side to open it.
        self._fd = os.open(path, os.O_RDWR)
        self._path = path

    def then(self, ending: str) -> tuple[str, ...]:
        return ("sh", "-c", f'exec 3< "$0"; echo ready; read x <&3; {ending}', str(self._path))

    def open(self, glance: TmuxGlance, pane_ids: Iterable[str]) -> None:
        waiting = list(pane_ids)
        eventually(
            lambda: all(seen.lines[0] == "ready" for seen in glance.captures(waiting).values()),
            "everybody stands before the gate",
        )
        os.close(self._fd)  # the last writer: every reader wakes


def heard(glance: TmuxGlance, count: int) -> list[Death]:
    found: list[Death] = []

    def all_of_them() -> bool:
        glance.panes()  # as everybody does who waits: tmux may overlook a death until it is asked
        found.extend(glance.deaths())
        return len(found) >= count

    eventually(all_of_them, f"{count} deaths are told")
    return found


def test_forty_die_together_each_with_its_right_code(
    spawn: Spawn, server: TmuxServer, glance: TmuxGlance, tmp_path: Path
) -> None:
    """Exit codes and signals, by the hook and by a look, with job and attempt."""
    gate = Gate(tmp_path / "gate")
    signals = [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGHUP]
    endings = [f"exit {code}" for code in range(100, 136)] + [f"kill -{s:d} $$" for s in signals]
    told: dict[str, tuple[int | None, int | None]] = {}
    for number, ending in enumerate(endings):
        pane = spawn(f"s{number}", *gate.then(ending))
        server.label(pane.pane_id, job_id=f"job{number}", attempt=number + 1)
        is_code = number < 36
        told[pane.pane_id] = (100 + number, None) if is_code else (None, signals[number - 36])
    assert glance.deaths() == []
    gate.open(glance, told)
    deaths = heard(glance, 40)
    assert {d.pane_id: (d.exit_code, d.exit_signal) for d in deaths} == told
    for death in deaths:
        number = int(death.session.removeprefix("s"))
        assert (death.label, death.job_id) == (f"tmux:s{number}", f"job{number}")
        assert death.attempt == number + 1
        assert death.at > 1e9
    panes = glance.panes()
    assert {pane.pane_id: (pane.exit_code, pane.exit_signal) for pane in panes} == told
    assert all(pane.dead for pane in panes)
    assert glance.deaths() == []


def test_a_death_is_known_after_the_server_is_killed(
    spawn: Spawn, server: TmuxServer, registry: Path, dead: Callable[[str], PaneFact]
) -> None:
    spawn("x", "sh", "-c", "exit 7")
    dead("x")
    reader = Deaths(str(registry), from_start=True)
    found: list[Death] = eventually(reader.news, "the line is written")
    os.kill(server_pid(server.socket), signal.SIGKILL)
    again = Deaths(str(registry), from_start=True)
    assert [death.exit_code for death in found] == [7]
    assert again.news() == found
    reader.close()
    again.close()


def test_hostile_words_on_a_pane_reach_no_shell(
    spawn: Spawn, server: TmuxServer, glance: TmuxGlance, tmp_path: Path, registry: Path
) -> None:
    """Whoever has the socket can write anything on a pane; a death is still one line."""
    gate = Gate(tmp_path / "gate")
    pane = spawn("x", *gate.then("exit 5"))
    for option in ("@job_id", "@attempt", "@session", "@agent"):
        tmux(server.socket, "set-option", "-p", "-t", pane.pane_id, option, HOSTILE)
    (seen,) = glance.panes()
    assert (seen.label, seen.agent, seen.job_id) == (HOSTILE, HOSTILE, HOSTILE)
    assert (seen.pane_id, seen.session, seen.pid) == (pane.pane_id, "x", pane.pid)
    gate.open(glance, [pane.pane_id])
    (death,) = heard(glance, 1)
    assert (death.pane_id, death.session, death.exit_code) == (pane.pane_id, "x", 5)
    assert death.job_id.startswith("it?s $(touch pwned) `touch pwned` ? ?? ? #(touch pwned)")
    assert Path(deaths_path(str(registry))).read_bytes().count(b"\n") == 1
    for folder in (tmp_path, Path.cwd(), Path("/"), Path.home()):
        assert not (folder / "pwned").exists()


def test_labels_that_a_person_uses_arrive_whole(
    server: TmuxServer, spawn: Spawn, glance: TmuxGlance, dead: Callable[[str], PaneFact]
) -> None:
    spawn("한글-é_1+2@x", "sh", "-c", "exit 1")
    (death,) = heard(glance, 1)
    assert (death.session, death.label) == ("한글-é_1+2@x", "tmux:한글-é_1+2@x")


def test_titles_are_text(spawn: Spawn, server: TmuxServer, glance: TmuxGlance) -> None:
    pane = spawn("x")
    for title in ("a;", "#(touch pwned)", "#{pane_id}", "%H %%", "-x", 'it\'s "$(id)"', "한글", ""):
        server.label(pane.pane_id, title=title)
        assert glance.panes()[0].title == title
        assert glance.capture(pane.pane_id).title == title
    server.label(pane.pane_id, title="tab\tbell\x07esc\x1b[31mline\nend")
    assert glance.panes()[0].title == "tab bell esc [31mline end"
    server.label(pane.pane_id, job_id="j1;", attempt=3)
    assert (glance.panes()[0].job_id, glance.panes()[0].attempt) == ("j1;", 3)
    server.label(pane.pane_id, job_id="", attempt=0)
    assert (glance.panes()[0].job_id, glance.panes()[0].attempt) == ("", 0)
    assert not Path("pwned").exists()


@pytest.mark.release
def test_whoever_dies_at_once_is_not_overlooked(registry: Path, tmp_path: Path) -> None:
    """tmux misses some of them on a new server; a look at the panes brings each to light."""
    for number in range(100):
        server = TmuxServer(str(registry), new_socket_name())
        server.spawn(SessionPlan("x", ("sh", "-c", "exit 3"), str(tmp_path), "tmux:x", "shell"))

        def has_code(server: TmuxServer = server) -> bool:
            return [pane.exit_code for pane in server.panes()] == [3]

        eventually(has_code, f"the exit code of {number} is known")
        server.end("x")


def test_a_large_file_of_deaths_is_put_aside_and_no_line_is_missed(
    spawn: Spawn, registry: Path, glance: TmuxGlance, dead: Callable[[str], PaneFact]
) -> None:
    spawn("first", "sh", "-c", "exit 1")
    first = heard(glance, 1)
    path = Path(deaths_path(str(registry)))
    with path.open("ab") as file:
        file.write(b"x" * (ROTATE_BYTES + 1) + b"\n")
    spawn("second", "sh", "-c", "exit 2")
    second = heard(glance, 1)
    assert [death.session for death in first + second] == ["first", "second"]
    assert path.stat().st_size < 100


def test_a_path_with_every_hazard_is_only_a_path(tmp_path: Path) -> None:
    odd = tmp_path / 'it\'s; $(touch pwned) `x` #{pane_id} #(touch pwned) "q" %s'
    odd.mkdir()
    server = TmuxServer(str(odd), new_socket_name())
    reader = Deaths(str(odd), from_start=True)
    server.spawn(SessionPlan("x", ("sh", "-c", "exit 3"), str(odd), "tmux:x", "shell"))
    found: list[Death] = eventually(
        lambda: server.panes() and reader.news(), "the death is written there"
    )
    assert [death.exit_code for death in found] == [3]
    assert not list(tmp_path.rglob("pwned"))
    reader.close()
