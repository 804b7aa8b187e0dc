"""Real tmux servers for tests: on sockets of their own in a private folder, none left behind."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def private_tmux() -> Iterator[Path]:
    """A folder for sockets, as ``TMUX_TMPDIR``; every server in it is ended afterwards."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed here")
    # Not pytest's own folder: the path of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="mam-test-", dir="/tmp") as folder:
        before = {name: os.environ.get(name) for name in ("TMUX_TMPDIR", "TMUX", "TMUX_PANE")}
        os.environ["TMUX_TMPDIR"] = folder
        os.environ.pop("TMUX", None)
        os.environ.pop("TMUX_PANE", None)
        try:
            yield Path(folder)
        finally:
            for socket in Path(folder).glob("tmux-*/*"):
                subprocess.run(["tmux", "-S", str(socket), "kill-server"], capture_output=True)
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def new_socket_name() -> str:
    return f"mam-test-{secrets.token_hex(4)}"


def tmux(socket: str, *words: str | bytes) -> str:
    """Ask a server directly, with a tmux that is not ours to test."""
    done = subprocess.run(["tmux", "-u", "-L", socket, *words], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode(errors="backslashreplace").rstrip("\n")


def server_pid(socket: str) -> int:
    return int(tmux(socket, "display-message", "-p", "#{pid}"))
