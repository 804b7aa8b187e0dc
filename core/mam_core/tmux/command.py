"""One question to a tmux server by a process of its own, with a limit on the wait.

For what must be asked once: the acts of a worker in its pane, a look without a lasting client.
What goes in and comes out is bytes, because pane text and labels may be anything.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from functools import cache
from typing import NamedTuple

from mam_core.safe_text import one_line
from mam_core.tmux.facts import NoServer, TmuxFailed, TmuxMissing
from mam_core.tmux.names import socket_path

#: Longer than any answer takes under load; after it the server counts as wedged, not as dead.
PATIENCE_SEC = 10.0

_OLDEST = (3, 2)

# "no current target" is how a server answers whose last session has gone, and which is going, too.
_NO_SERVER = re.compile(
    r"no server running|no sessions|no current target|lost server|server exited"
    r"|error connecting to .*\((No such file or directory|Connection refused)\)"
)


def program() -> str:
    """The tmux on the PATH; TmuxMissing when there is none, or one that is too old."""
    found = shutil.which("tmux")
    if found is None:
        raise TmuxMissing
    if problem := _too_old(found):
        raise TmuxMissing(problem)
    return found


@cache
def _too_old(path: str) -> str | None:
    done = _run([path, "-V"])
    said = done.stdout.decode(errors="replace").strip()
    number = re.search(r"(\d+)\.(\d+)", said)
    # A development build ("tmux master") has no number, and is newer than what we need.
    if number is None or (int(number[1]), int(number[2])) >= _OLDEST:
        return None
    return f"{one_line(said)} is too old: agent sessions need tmux 3.2 or newer"


def word(text: str) -> str:
    """`text` as one argument of tmux, which takes a ``;`` at the end for its own separator."""
    return text[:-1] + "\\;" if text.endswith(";") else text


def literal(text: str) -> str:
    """`text` where tmux expands formats: ``#(…)`` would be run by a shell."""
    return re.sub(r"#(?!\[)", "##", text)


def surroundings() -> dict[str, str]:
    """Our environment without the tmux that we may be in ourselves."""
    return {name: value for name, value in os.environ.items() if name not in _INSIDE_TMUX}


_INSIDE_TMUX = ("TMUX", "TMUX_PANE")


class Address(NamedTuple):
    """Which server: by the name or the path of its socket."""

    flag: str  #: -L or -S
    where: str

    @property
    def words(self) -> tuple[str, str]:
        return self.flag, self.where

    @property
    def path(self) -> str:
        return self.where if self.flag == "-S" else socket_path(self.where)


def ask(address: Address, *words: str, stdin: bytes = b"") -> bytes:
    """What tmux answers to a command, or to several with ``;`` between them.

    Never starts a server. Raises NoServer, or TmuxFailed with tmux's own words.
    """
    done = _run([program(), "-u", "-N", *address.words, *words], stdin)
    if done.returncode != 0:
        raise failure(done.stderr.decode(errors="replace"))
    return done.stdout


def failure(said: str) -> TmuxFailed:
    """tmux's complaint as one of ours."""
    words = one_line(said)
    if _NO_SERVER.match(words):
        return NoServer()
    return TmuxFailed(f"tmux: {words}" if words else "tmux failed without a word")


def listens(address: Address) -> bool:
    """Whether there is a server behind a socket: asked of the kernel, without a process."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(address.path)
        except TimeoutError:
            return True  # it is there, and its queue is full
        except OSError:
            return False
    return True


def _run(argv: list[str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            argv,
            input=stdin,
            capture_output=True,
            env=surroundings(),
            timeout=PATIENCE_SEC,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TmuxFailed(f"tmux did not answer within {PATIENCE_SEC:g} s") from None
    except OSError as problem:
        raise TmuxFailed(f"tmux could not be started: {problem.strerror}") from None
