"""A person who looks elsewhere is called: what a real terminal gets, and the operator's program."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.leases import LeaseTerms
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.wiring import open_registry
from mam_tui.app import Console
from mam_tui.attention import noticing
from mam_tui.state_watch import States
from tests.console.detail_story import HOSTILE
from tests.console.staging import add
from tests.console.story import summary
from tests.console.test_attention_view import asks, attending, happens, works
from tests.console.test_situations_terminal import leave, reading, surroundings
from tests.support.patience import eventually, until
from tests.support.pty_program import Tty

LEAVES, RETURNS = b"\x1b[O", b"\x1b[I"
LEASE = LeaseTerms("worker-1", 600.0)
#: What a terminal that shows OSC 9 is sent; it ends where the first terminator stands.
CALLS = re.compile(rb"\x1b\]9;(.*?)\x1b\\", re.DOTALL)


@pytest.fixture(autouse=True)
def _nothing_of_the_persons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


class Person(Tty):
    """At a terminal that says when somebody looks."""

    def turns(self, way: bytes) -> None:
        self.type(way.decode())

    @property
    def calls(self) -> list[str]:
        return [one.decode() for one in CALLS.findall(self.written)]


@contextmanager
def person(folder: Path, path: str, **environ: str) -> Iterator[Person]:
    made = Person(reading(path), folder, surroundings(**environ))
    try:
        yield made
    finally:
        made.close()


def job_in(registry: Registry, session: str) -> str:
    job_id = add(registry, f"Work in {session}", agent_session=session)
    assert registry.claim(session, lease=LEASE) is not None
    return job_id


def ask(registry: Registry, job_id: str, words: str) -> None:
    now = registry.clock.now()
    sign = Sign(AgentState.WAITING, Channel.HOOK, "PermissionRequest", now, words)
    registry.publish(job_id, "state", detail=words, data=sign.to_dict())


def test_only_who_looks_elsewhere_is_called_and_once(tmp_path: Path) -> None:
    """By a real terminal, and by a real program that is told which job of which session."""
    path, told = str(tmp_path / "jobs"), tmp_path / "told"
    program = (
        "import os, sys; open(sys.argv[1], 'a').write("
        "'|'.join(os.environ['MAM_NOTIFY_' + name] for name in"
        " ('KIND', 'JOB', 'SESSION', 'COUNT', 'WORDS')) + '\\n')"
    )
    argv = [sys.executable, "-c", program, str(told)]
    (tmp_path / "mam.toml").write_text(
        f"[notify]\ndebounce_sec = 0.5\nbell = false\ncommand = {json.dumps(argv)}\n"
    )
    with open_registry(path) as registry:
        jobs = [job_in(registry, f"tmux:{name}") for name in "abcd"]
        with person(tmp_path, path, TERM_PROGRAM="WezTerm") as seen:
            seen.until("Work in tmux:d")
            ask(registry, jobs[0], "May I touch the first?")
            seen.until("1 needs you")
            seen.turns(LEAVES)
            ask(registry, jobs[1], HOSTILE)
            eventually(lambda: seen.calls, "the person is called")
            ask(registry, jobs[1], HOSTILE)  # the same once more is no second question
            ask(registry, jobs[2], "And I?")
            eventually(lambda: len(seen.calls) > 1, "the person is called again")
            eventually(lambda: told.read_text().count("\n") > 1, "the program was run twice")
            seen.turns(RETURNS)
            ask(registry, jobs[3], "And I, too?")
            seen.until("4 need you")
            written = leave(seen)
    hostile, other = seen.calls
    assert hostile.startswith(f"mam: job {jobs[1]} in tmux:b asks for a permission: ")
    assert hostile.isprintable()
    assert "owned" in hostile  # its letters are there, and do nothing
    assert other == f"mam: job {jobs[2]} in tmux:c asks for a permission: And I?"
    assert not re.search(rb"\x1b\](0|2|52);", written)
    assert b"\x07" not in re.sub(rb"\x1b\]22;\w+\x07", b"", written)  # Textual's pointer
    lines = told.read_text().splitlines()
    assert lines[0].startswith(f"permission|{jobs[1]}|tmux:b|1|")
    assert lines[0].isprintable()
    assert lines[1:] == [f"permission|{jobs[2]}|tmux:c|1|And I?"]


class Wire:
    """In place of the terminal's driver."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.written: list[str] = []

    def write(self, data: str) -> None:
        if data.startswith(("\a", "\x1b]9;", "\x1b]777;")):
            self.written.append(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> list[Wire]:
    """The lines to the terminals of all consoles that are opened."""
    made: list[Wire] = []
    mount = Console.on_mount

    def on_mount(self: Console) -> None:
        made.append(Wire(self._driver))
        vars(self)["_driver"] = made[-1]
        mount(self)

    monkeypatch.setattr(Console, "on_mount", on_mount)
    monkeypatch.setattr("mam_core.operations.notifier.GATHER_SEC", 0.05)
    monkeypatch.setattr(noticing, "_PACE_SEC", 0.0)
    return made


JOBS = [summary(number, Status.RUNNING) for number in range(1, 4)]
OSC777 = '[notify]\nterminal = "osc777"\ndebounce_sec = 0.05\n'


async def test_several_are_one_call_and_what_was_seen_is_none(
    tmp_path: Path, wire: list[Wire]
) -> None:
    async with attending(tmp_path, JOBS, {"job0001": asks()}, config=OSC777) as console:
        app = console.app
        app.app_focus = False
        shown = {"job0002": asks("This?"), "job0003": asks("That?", "question v3")}
        await happens(console, States(shown, None))
        await until(console.pilot, lambda: wire[0].written)
        assert wire[0].written == [
            "\a\x1b]777;notify;mam;2 jobs need you: job0002 asks for a permission, "
            "job0003 asks a question\x1b\\"
        ]
        await happens(console, States({"job0002": works()}, None))
        app.app_focus = True
        await happens(console, States({"job0002": asks("Something else?")}, None))
        app.app_focus = False  # whoever goes away has seen it
        await happens(console, States({"job0001": works()}, None))
        await console.press("g", "x")  # by a key, which is a sign of somebody, too
        assert len(app.desk.needing) == 1
        app.app_focus = False
        await happens(console, States({"job0002": asks("Something else?")}, None))
        await console.pilot.pause(0.2)
        assert len(wire[0].written) == 1
        await until(console.pilot, lambda: app.noticing._timer is None)  # nothing is waited for


async def test_a_program_that_cannot_be_run_is_said(tmp_path: Path, wire: list[Wire]) -> None:
    config = '[notify]\nbell = false\ncommand = ["/no/such/program"]\n'
    async with attending(tmp_path, JOBS, {}, config=config) as console:
        console.app.app_focus = False
        await happens(console, States({"job0001": asks()}, None))
        await until(console.pilot, lambda: console.toasts())
        words = "[notify] command /no/such/program: no such file or directory"
        assert console.toasts() == [words]
        assert not wire[0].written  # no bell, and a terminal that nobody knows
