"""A pooler for tests, between a client and PostgreSQL: it passes bytes both ways.

    python -m tests.support.forwarder LISTEN TARGET     each ``HOST:PORT`` or the path of a socket

Stopped by SIGSTOP it hangs as a pooler does: its connections stand, new ones are taken by the
kernel, and nothing answers. It ends with its parent, as far as that is possible, or when killed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from tests.support.patience import eventually

_SOCKET = ".s.PGSQL.5432"
ROOT = Path(__file__).resolve().parents[2]
_LIFE_SEC = 900


class Forwarder:
    """One that runs."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def hang(self) -> None:
        """Nothing is passed on from now on: a thread stops a moment after the signal."""
        self._process.send_signal(signal.SIGSTOP)
        eventually(self._stands_still, "all its threads are stopped")

    def _stands_still(self) -> bool:
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/stat")
        return all(task.read_bytes().rpartition(b") ")[2].startswith(b"T") for task in tasks)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)


@contextmanager
def forwarder(listen: str, target: str, before: Sequence[str] = ()) -> Iterator[Forwarder]:
    """It listens when the block begins; `before` are words that bring it to another host."""
    words = [*before, sys.executable, "-m", __name__, listen, target]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"listening\n"
            yield Forwarder(process)
        finally:
            process.kill()


@contextmanager
def pooler(uri: str) -> Iterator[tuple[Forwarder, str]]:
    """Before a server that listens on a socket in a folder; with the uri that leads through it."""
    [folder] = parse_qs(urlsplit(uri).query)["host"]
    place = tempfile.mkdtemp(prefix="mam-pool-")
    try:
        with forwarder(f"{place}/{_SOCKET}", f"{folder}/{_SOCKET}") as made:
            yield made, uri.replace(quote(folder, safe=""), quote(place, safe=""))
    finally:
        shutil.rmtree(place)


def _opened(place: str) -> tuple[socket.socket, str | tuple[str, int]]:
    if place.startswith("/"):
        return socket.socket(socket.AF_UNIX), place
    host, _, port = place.rpartition(":")
    return socket.socket(socket.AF_INET), (host, int(port))


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


def _join(client: socket.socket, target: str) -> None:
    there, address = _opened(target)
    with client, there:
        there.connect(address)
        back = threading.Thread(target=_pass_on, args=(there, client))
        back.start()
        _pass_on(client, there)
        back.join()


def _serve(listen: str, target: str) -> None:
    signal.alarm(_LIFE_SEC)
    server, place = _opened(listen)
    if isinstance(place, tuple):
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(place)
    if isinstance(place, str):
        os.chmod(place, 0o777)
    server.listen(200)
    print("listening", flush=True)
    while True:
        client, _ = server.accept()
        threading.Thread(target=_join, args=(client, target), daemon=True).start()


if __name__ == "__main__":
    _serve(*sys.argv[1:])
