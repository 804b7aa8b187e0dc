"""A person looks into a session, types, and leaves it running."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from mam_core.tmux.control import TmuxGlance
from mam_core.tmux.server import TmuxServer
from tests.integration.tmux.conftest import Spawn
from tests.support.patience import eventually
from tests.support.tmux import tmux


class Terminal:
    """A terminal of its own with a command in it."""

    def __init__(self, argv: list[str]) -> None:
        self._fd, other = pty.openpty()
        os.set_blocking(self._fd, False)
        environ = {**os.environ, "TERM": "xterm-256color"}
        self.process = subprocess.Popen(
            argv, stdin=other, stdout=other, stderr=other, env=environ, start_new_session=True
        )
        os.close(other)
        self._seen = b""

    def shows(self, words: bytes) -> None:
        def is_there() -> bool:
            with suppress(OSError):  # nothing there yet
                self._seen += os.read(self._fd, 65536)
            return words in self._seen

        eventually(is_there, f"the terminal shows {words!r}")

    def was_left(self) -> bool:
        """Read on meanwhile: a client that leaves waits until its last words were taken."""
        with suppress(OSError):
            self._seen += os.read(self._fd, 65536)
        return self.process.poll() == 0

    def type(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    def press(self, key: bytes) -> None:
        """At a person's pace: keys less than a millisecond apart are a paste to tmux (its option
        assume-paste-time), and a paste runs no key binding."""
        time.sleep(0.05)
        self.type(key)

    def close(self) -> None:
        os.close(self._fd)
        self.process.kill()
        self.process.wait()


@contextmanager
def terminal(argv: list[str]) -> Iterator[Terminal]:
    made = Terminal(argv)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("inside_tmux", [False, True])
def test_attach_show_type_and_leave(
    spawn: Spawn,
    server: TmuxServer,
    glance: TmuxGlance,
    monkeypatch: pytest.MonkeyPatch,
    inside_tmux: bool,
) -> None:
    """Also from a pane of the operator's own tmux, which a plain `tmux attach` refuses."""
    pane = spawn("claude", "sh", "-c", "echo hello; while read x; do echo got $x; done")
    server.label(pane.pane_id, job_id="k7vgku7d", attempt=2)
    if inside_tmux:
        monkeypatch.setenv("TMUX", "/tmp/somebody-elses,1,0")
    with terminal(server.attach_argv("claude")) as seen:
        seen.shows(b"hello")
        seen.shows(b"claude (shell)")
        seen.shows(b"job k7vgku7d attempt 2")
        seen.shows(b"C-b d: leave it running")
        seen.type(b"words\r")
        seen.shows(b"got words")
        seen.press(b"\x02")
        seen.press(b"d")
        eventually(seen.was_left, "the person has left")
    assert [(found.session, found.dead) for found in glance.panes()] == [("claude", False)]


def test_whoever_attaches_does_not_change_the_sessions_environment(
    spawn: Spawn, server: TmuxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHOSE", "spawner")
    spawn("claude", "sh", "-c", "echo hello; sleep 1000")
    monkeypatch.setenv("WHOSE", "visitor")
    with terminal(server.attach_argv("claude")) as seen:
        seen.shows(b"hello")
        assert tmux(server.socket, "show-environment", "-t", "=claude", "WHOSE") == "WHOSE=spawner"
