"""A stage for the console: a private tmux server, and one client that sees all that is printed.

The client speaks tmux's control mode: what a program prints comes to us with the moment at which
tmux had it, keys go the other way, and no process is started for either. A program that is told
that its terminal can hold a frame back (mode 2026) brackets each frame, and so they are counted.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.figures import Wrong

WIDTH, HEIGHT = 160, 48
PATIENCE_SEC = 60.0

_TICKS = os.sysconf("SC_CLK_TCK")
_ESCAPED = re.compile(rb"\\([0-7]{3})")
_FRAME = b"\x1b[?2026h"
#: As a terminal answers that it knows the mode.
_CAN_HOLD = b"\x1b[?2026;2$y"


class Show:
    """One program on the stage: what it prints, its keys, its processor time, its memory."""

    def __init__(self, stage: Stage, pane: str) -> None:
        self.pane = pane
        self.pid = 0  #: until tmux has said it
        self.stage = stage
        self._changed = threading.Condition()
        self._printed = bytearray()
        self._moments: list[tuple[int, float]] = []  #: how much had been printed, and when

    # -- what it prints ------------------------------------------------------------------------

    def heard(self, data: bytes, at: float) -> None:
        with self._changed:
            self._printed += data
            self._moments.append((len(self._printed), at))
            self._changed.notify_all()

    @property
    def printed(self) -> int:
        """Bytes so far."""
        return len(self._printed)

    def frames(self, since: int = 0) -> int:
        return bytes(self._printed[since:]).count(_FRAME)

    def wait_for(self, words: str, since: int = 0, patience: float = PATIENCE_SEC) -> float:
        """The moment at which these words had been printed."""
        wanted = words.encode()
        deadline = time.monotonic() + patience
        with self._changed:
            while (at := self._printed.find(wanted, since)) < 0:
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    raise Wrong(f"{words!r} was not printed within {patience:.0f} s")
            end = at + len(wanted)
            return next(moment for upto, moment in self._moments if upto >= end)

    def screen(self) -> bytes:
        """What stands there now, without its colours."""
        return self.stage.ask("capture-pane", "-p", "-t", self.pane).encode()

    def rest(self, quiet: float = 0.3, patience: float = PATIENCE_SEC) -> None:
        """Until nothing was printed for a while."""
        deadline = time.monotonic() + patience
        before = -1
        while before != self.printed:
            if time.monotonic() > deadline:
                raise Wrong("the screen does not come to rest")
            before = self.printed
            time.sleep(quiet)

    # -- what is done to it ----------------------------------------------------------------------

    def press(self, *keys: str) -> float:
        """By their names in tmux; the answer is when."""
        return self.stage.say("send-keys", "-t", self.pane, *keys)

    def count_frames(self) -> None:
        """From now on each frame has brackets."""
        self.stage.say("send-keys", "-t", self.pane, "-H", *(f"{byte:x}" for byte in _CAN_HOLD))
        time.sleep(0.2)

    def stop(self) -> None:
        """It neither works nor sees time pass."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> None:
        self.go_on()
        self.stage.ask("kill-pane", "-t", self.pane)
        deadline = time.monotonic() + PATIENCE_SEC
        while os.path.exists(f"/proc/{self.pid}") and time.monotonic() < deadline:
            time.sleep(0.02)

    # -- what it costs ---------------------------------------------------------------------------

    def cpu(self) -> float:
        """Seconds of processor time so far; children are not counted."""
        with open(f"/proc/{self.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory(self) -> int:
        """Bytes that are its own alone."""
        with open(f"/proc/{self.pid}/smaps_rollup", encoding="utf-8") as file:
            lines = [line.split() for line in file if line.startswith("Private_")]
        return sum(int(line[1]) for line in lines) * 1024

    def children(self) -> set[int]:
        """Processes that it has, at this moment."""
        found = set()
        for task in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{task}/children", encoding="utf-8") as file:
                found |= set(map(int, file.read().split()))
        return found


class Stage:
    """One tmux server with one session; each program has a window of its own."""

    def __init__(self, folder: str) -> None:
        self._command = ["tmux", "-S", os.path.join(folder, "tmux"), "-f", "/dev/null"]
        size = ["-x", str(WIDTH), "-y", str(HEIGHT)]
        self._tmux("new-session", "-d", "-s", "stage", *size, "exec sleep 1000000")
        self._shows: dict[str, Show] = {}
        self._early: dict[str, list[tuple[bytes, float]]] = {}
        self._lock = threading.Lock()
        self._client = subprocess.Popen(
            [*self._command, "-C", "attach", "-t", "=stage"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._thread = threading.Thread(target=self._listen, name="bench-stage", daemon=True)
        self._thread.start()
        self.say("refresh-client", "-C", f"{WIDTH}x{HEIGHT}")

    def start(self, command: Sequence[str], **environment: str) -> tuple[Show, float]:
        """A program in a window of its own, and when it was asked for."""
        words = ["env", *(f"{name}={value}" for name, value in environment.items()), *command]
        began = time.monotonic()
        place = self.ask(
            "new-window", "-d", "-P", "-F", "#{pane_id} #{pane_pid}", "exec " + shlex.join(words)
        )
        pane, pid = place.split()
        with self._lock:
            show = self._shows[pane] = Show(self, pane)
            for data, at in self._early.pop(pane, []):
                show.heard(data, at)
        show.pid = int(pid)
        return show, began

    def say(self, *words: str) -> float:
        """A command over the lasting client; nobody waits for its answer."""
        assert self._client.stdin is not None
        line = (" ".join(map(_quoted, words)) + "\n").encode()
        now = time.monotonic()
        self._client.stdin.write(line)
        self._client.stdin.flush()
        return now

    def ask(self, *words: str) -> str:
        return self._tmux(*words)

    def close(self) -> None:
        for show in self._shows.values():
            if os.path.exists(f"/proc/{show.pid}"):
                show.end()
        self._tmux("kill-server")
        self._client.wait(PATIENCE_SEC)
        self._thread.join(PATIENCE_SEC)
        for stream in (self._client.stdin, self._client.stdout):
            assert stream is not None
            stream.close()

    def _tmux(self, *words: str) -> str:
        done = subprocess.run([*self._command, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Wrong(f"tmux {words[0]}: {done.stderr.strip()}")
        return done.stdout.strip()

    def _listen(self) -> None:
        assert self._client.stdout is not None
        for line in self._client.stdout:
            now = time.monotonic()
            if not line.startswith(b"%output "):
                continue
            _, pane, text = line.rstrip(b"\n").split(b" ", 2)
            data = _ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), text)
            with self._lock:
                show = self._shows.get(pane.decode())
                if show is None:
                    self._early.setdefault(pane.decode(), []).append((data, now))
            if show is not None:
                show.heard(data, now)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


@contextmanager
def stage() -> Iterator[Stage]:
    """Its socket is in a folder of its own: no other tmux server is ever near."""
    with tempfile.TemporaryDirectory(prefix="mam-bench-", dir="/tmp") as folder:
        made = Stage(folder)
        try:
            yield made
        finally:
            made.close()
