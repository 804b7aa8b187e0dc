"""A program on a terminal whose other end is ours: we read it, stop reading it, or close it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.patience import PATIENCE_SEC, eventually

_LOOK_SEC = 0.02


class Tty:
    """A program in a terminal of its own; everything that it writes is kept.

    `controls`: the terminal is the one that controls it, so that it is signalled at a hang-up.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        size: tuple[int, int] = (100, 24),
        *,
        controls: bool = False,
    ) -> None:
        self._leader, follower = pty.openpty()
        self._name = os.ttyname(follower)
        width, height = size
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.process = subprocess.Popen(
            [*(("setsid", "--ctty") if controls else ()), *command],
            cwd=folder,
            env=dict(environ),
            stdin=follower,
            stdout=follower,
            stderr=follower,
        )
        os.close(follower)
        self.written = b""
        self._wants_to_read = True
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        while self._wants_to_read:
            if not select.select([self._leader], [], [], _LOOK_SEC)[0]:
                continue
            try:
                data = os.read(self._leader, 65536)
            except OSError:
                return  # nobody holds the other end any more
            if not data:
                return
            self.written += data

    def type(self, text: str) -> None:
        """In one write."""
        os.write(self._leader, text.encode())

    def until(self, words: str) -> None:
        eventually(lambda: words.encode() in self.written, words)

    def stop_reading(self) -> None:
        """What it writes from now on fills the terminal, and then waits."""
        self._wants_to_read = False
        self._reading.join(PATIENCE_SEC)

    def is_full(self) -> bool:
        """Whoever writes to it now has to wait."""
        follower = os.open(self._name, os.O_WRONLY | os.O_NOCTTY)
        try:
            return not select.select([], [follower], [], 0)[1]
        finally:
            os.close(follower)

    def hang_up(self) -> None:
        self.stop_reading()
        os.close(self._leader)
        self._leader = -1

    def ended(self) -> int:
        """Its exit code; what it wrote is all there then."""
        code = self.process.wait(PATIENCE_SEC)
        if self._wants_to_read:
            self._reading.join(PATIENCE_SEC)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self._leader >= 0:
            self.hang_up()


@contextmanager
def tty(
    command: Sequence[str],
    folder: Path,
    environ: Mapping[str, str],
    size: tuple[int, int] = (100, 24),
    *,
    controls: bool = False,
) -> Iterator[Tty]:
    made = Tty(command, folder, environ, size, controls=controls)
    try:
        yield made
    finally:
        made.close()
