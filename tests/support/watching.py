"""``mam watch`` and ``mam wait`` as processes, beside a real broker of either kind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import psutil
import pytest

from mam_core.config import load
from mam_core.events.embedded import Role, address, credentials, free_port
from mam_core.operations.endings import Endings
from mam_core.operations.publish import publish
from mam_core.records import Job
from mam_core.wiring import open_registry
from tests.support.brokers import kill_server, server
from tests.support.jobs import request
from tests.support.patience import PATIENCE_SEC, eventually

MAM = [sys.executable, "-m", "mam_core.cli.main"]


class Watched:
    """A command that runs: its lines as they come."""

    def __init__(self, command: list[str], cwd: Path, environ: dict[str, str] | None) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.out: list[str] = []
        self.err: list[str] = []
        self._readers = [
            self._reading(self.process.stdout, self.out),
            self._reading(self.process.stderr, self.err),
        ]

    def _reading(self, stream: IO[str] | None, into: list[str]) -> threading.Thread:
        assert stream is not None

        def read() -> None:
            for line in stream:
                into.append(line.rstrip("\n"))

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread

    def until(self, is_so: Callable[[], Any], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SEC
        while not is_so():
            said = f"{what}; code {self.process.poll()}; {self.out[-5:]}; {self.err[-5:]}"
            assert time.monotonic() < deadline, f"not in time: {said}"
            time.sleep(0.02)

    def is_listening(self) -> None:
        self.until(lambda: self.says("listening to"), "it listens")

    def says(self, words: str) -> list[str]:
        """The lines of stderr that hold these words."""
        return [line for line in self.err if words in line]

    def items(self, kind: str) -> list[dict[str, Any]]:
        """Of the lines of ``--json``."""
        return [item for item in map(json.loads, list(self.out)) if item["kind"] == kind]

    def seqs(self) -> list[int]:
        return [int(line.split()[2].removeprefix("seq=")) for line in list(self.out)]

    def filled(self) -> int:
        """How many events it read from the registry: on a slow machine a message may come late."""
        found = (re.search(r"(\d+) read from the registry", line) for line in self.err)
        return sum(int(one[1]) for one in found if one)

    def code(self) -> int:
        """How it ended; all its lines are there by then."""
        code = self.process.wait(PATIENCE_SEC * 2)
        for reader in self._readers:
            reader.join(PATIENCE_SEC)
        assert "Traceback" not in "\n".join(self.err), self.err
        return code

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for reader in self._readers:
            reader.join(PATIENCE_SEC)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


@contextmanager
def running(
    command: list[str], cwd: Path, environ: dict[str, str] | None = None
) -> Iterator[Watched]:
    watched = Watched(command, cwd, environ)
    try:
        yield watched
    finally:
        watched.end()


class Site:
    """A project with a registry, whose broker is the embedded NATS or a Mosquitto of its own.

    The second is named in ``mam.toml``, as a broker that somebody else looks after.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder
        self.kind = kind
        self.path = folder / ".mam" / "jobs"
        self.path.mkdir(parents=True, mode=0o700)
        self._program = server(kind).find()
        self._process: subprocess.Popen[bytes] | None = None
        if kind == "mosquitto":
            self._port = free_port()
            settings = f'[broker]\nhost = "127.0.0.1"\nport = {self._port}\n'
            (folder / "mam.toml").write_text(settings)
        self.config = load(str(folder / "mam.toml") if kind == "mosquitto" else None)
        self.registry = open_registry(str(self.path), config=self.config)

    @property
    def port(self) -> int:
        return self._port if self.kind == "mosquitto" else address(str(self.path)).port

    # -- the broker ------------------------------------------------------------------------

    def start_broker(self) -> None:
        """The embedded one is started by the commands themselves."""
        if self.kind != "mosquitto":
            return
        assert self._program is not None
        user = "user root\n" if os.geteuid() == 0 else ""
        conf = self.folder / "mosquitto.conf"
        conf.write_text(f"listener {self._port} 127.0.0.1\nallow_anonymous true\n{user}")
        self._process = subprocess.Popen(
            [self._program.path, "-c", str(conf)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        pid = self._process.pid
        eventually(lambda: _listens(pid), "mosquitto listens")

    def kill_broker(self) -> None:
        """kill -9; the embedded one is started again by whoever keeps it."""
        if self.kind == "mosquitto":
            assert self._process is not None
            self._process.kill()
            self._process.wait()
        else:
            kill_server(self.path)

    def close(self) -> None:
        self.registry.store.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    # -- jobs ------------------------------------------------------------------------------

    def register(self, **fields: Any) -> str:
        return self.registry.register([request(**fields)])[0].job_id

    def job(self, job_id: str) -> Job:
        return self.registry.get(job_id)

    def publish(self, job_id: str, *events: str, detail: str = "") -> None:
        """As ``mam publish`` does it, without a process for each."""
        for event in events:
            publish(
                self.registry,
                str(self.path),
                self.config,
                job_id,
                event,
                detail=detail,
                config_path=str(self.folder / "mam.toml") if self.kind == "mosquitto" else None,
            )

    def audit(self, job_id: str, event: str) -> list[dict[str, Any]]:
        lines = self.registry.store.audit.events(job_id)
        return [line for line in lines if line["event"] == event]

    # -- commands --------------------------------------------------------------------------

    @contextmanager
    def mam(self, *words: str, environ: dict[str, str] | None = None) -> Iterator[Watched]:
        with running([*MAM, *words], self.folder, environ) as watched:
            yield watched

    @contextmanager
    def watching(self, *words: str, environ: dict[str, str] | None = None) -> Iterator[Watched]:
        """``mam watch …`` that listens to its broker."""
        with self.mam("watch", *words, environ=environ) as watched:
            if "--json" in words:
                watched.until(
                    lambda: [i for i in watched.items("notice") if i["notice"] == "broker up"],
                    "it listens",
                )
            else:
                watched.is_listening()
            yield watched

    def foreign(self, role: Role = Role.AGENT) -> list[str]:
        """What mosquitto's own clients are told about the broker."""
        there = ["-h", "127.0.0.1", "-p", str(self.port), "-q", "1"]
        if self.kind == "mosquitto":
            return there
        login = credentials(str(self.path), role)
        return [*there, "-u", login.username, "-P", login.password]

    def send(self, topic: str, payload: bytes) -> None:
        """By mosquitto_pub, which knows nothing of us."""
        done = subprocess.run(
            ["mosquitto_pub", *self.foreign(), "-t", topic, "-s"],
            input=payload,
            capture_output=True,
            check=False,
            timeout=PATIENCE_SEC,
        )
        assert done.returncode == 0, done.stderr

    def say(self, job_id: str, event: str, seq: int | None = None, **more: Any) -> None:
        """As a publisher without our code does: it takes a number from the registry, and sends."""
        seq = self.registry.next_seq(job_id) if seq is None else seq
        self.send(f"python/mqtt/jobs/{job_id}/events", said(job_id, seq, event, **more))


def said(job_id: str, seq: int, event: str, **more: Any) -> bytes:
    """An event as somebody without our code would write it."""
    content = {"schema_version": 1, "seq": seq, "job_id": job_id, "event": event}
    content |= {"timestamp": "2026-06-19T09:30:00Z", "detail": "", "data": {}}
    return json.dumps(content | more).encode()


def begun(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a watch or a wait in this very process has begun: nothing is missed from then on."""
    event = threading.Event()

    class Noticed(Endings):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            event.set()

    monkeypatch.setattr("mam_core.operations.following.Endings", Noticed)
    return event


def _listens(pid: int) -> bool:
    found = psutil.Process(pid).net_connections("tcp")
    return any(each.status == psutil.CONN_LISTEN for each in found)
