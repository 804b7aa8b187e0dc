"""Two hosts that share a database and a broker, both on the first; each has folders of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil

from mam_core.config import load
from mam_core.errors import StoreError
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.wiring import open_registry
from tests.support.brokers import server
from tests.support.hosts import Host, two_hosts
from tests.support.patience import eventually
from tests.support.postgres import Server, own_server
from tests.support.watching import MAM, Watched, running

LABEL = "farm"
_PORT = 1884
_WORK = ("work", "--label", LABEL, "--agents", "shell")
_SKEWED = Path(__file__).parents[2] / "support" / "skewed.py"


class Farm:
    """`oak` has database, broker and console; `elm` is a worker host."""

    def __init__(
        self, folder: Path, oak: Host, elm: Host, database: Server, broker: Mosquitto
    ) -> None:
        self.oak, self.elm = oak, elm
        self.database = database
        self.broker = broker
        self._folder = folder
        self._registry: Registry | None = None

    def settle(self, *more: str, **settings: float) -> None:
        """Both hosts get a project folder with the same settings, and `more` lines."""
        for host in (self.oak, self.elm):
            home = self.home(host)
            home.mkdir()
            (home / "secret").write_text("farm-password\n")
            (home / "secret").chmod(0o600)
            lines = ["[defaults]", *(f"{name} = {value}" for name, value in settings.items())]
            lines += ["[store]", f'url = "postgresql://postgres@{self.oak.address}/postgres"']
            lines += ["[broker]", f'host = "{self.oak.address}"', f"port = {_PORT}"]
            lines += ['username = "farm"', 'password_file = "secret"']
            # A server of tmux of its own for each, though both see one disk.
            lines += ["[tmux]", f'socket = "{self.socket(host)}"', *more]
            (home / "mam.toml").write_text("\n".join(lines) + "\n")

    def socket(self, host: Host) -> str:
        return f"{host.space}-tmux"

    def tmux(self, host: Host, *words: str) -> None:
        command = host.command("tmux", "-L", self.socket(host), *words)
        subprocess.run(command, capture_output=True, check=False, timeout=60)

    def home(self, host: Host) -> Path:
        return self._folder / host.name

    @contextmanager
    def mam(self, host: Host, *words: str) -> Iterator[Watched]:
        """A command on one of the hosts."""
        with running(host.command(*MAM, *words), self.home(host)) as watched:
            yield watched

    def work(self, host: Host, *words: str) -> Any:
        return self.mam(host, *_WORK, *words)

    def work_with_a_wrong_clock(self, host: Host, ahead: float) -> Any:
        words = [sys.executable, str(_SKEWED), str(ahead), *_WORK]
        return running(host.command(*words), self.home(host))

    def ask(self, host: Host, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            host.command(*MAM, *words),
            cwd=self.home(host),
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )

    @contextmanager
    def watch_all(self, host: Host) -> Iterator[Watched]:
        """Whoever listens, from the first event on."""
        with self.mam(host, "watch", "--all", "--json") as watch:
            watch.until(lambda: any("broker up" in line for line in list(watch.out)), "it listens")
            yield watch

    def add(self, script: str, agent: str = "shell", label: str = LABEL) -> str:
        words = ("register", "--agent", agent, "--agent-session", label, "--prompt", script)
        done = self.ask(self.oak, *words, "--workdir", str(self._folder))
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def told(self, host: Host, *words: str) -> str:
        """What a command prints; empty as long as it fails, since a host may not listen yet."""
        done = self.ask(host, *words)
        return done.stdout if done.returncode == 0 else ""

    def asked(self, job_id: str) -> list[str]:
        """The questions of its agent, as its events tell them."""
        return [
            line["payload"]["detail"]
            for line in self.registry.store.audit.events(job_id)
            if line["event"] == "published" and line["payload"]["event"] == "permission_required"
        ]

    def nodes(self) -> dict[str, Any]:
        said = self.ask(self.oak, "nodes", "--json").stdout
        return {node["name"]: node for node in json.loads(said)}

    def events_of(self, lines: list[str], job_id: str) -> list[int]:
        """The numbers of a job's events, as a watcher was told them."""
        items = [json.loads(line) for line in lines if line.startswith("{")]
        return [
            item["event"]["seq"]
            for item in items
            if item.get("kind") == "event" and item["event"]["job_id"] == job_id
        ]

    # -- from outside of both hosts, by the database's socket ------------------------------

    @property
    def registry(self) -> Registry:
        if self._registry is None:
            place = self._folder / "outside.toml"
            place.write_text(f'[store]\nurl = "{self.database.uri}"\n')
            outside = str(self._folder / "outside" / "jobs")
            self._registry = open_registry(outside, config=load(str(place)))
        return self._registry

    def job(self, job_id: str) -> Job:
        return self.registry.get(job_id)

    def until(self, job_id: str, *statuses: Status) -> Job:
        """Also while the database is away for a moment."""

        def is_there() -> Job | None:
            try:
                job = self.job(job_id)
            except StoreError:
                return None
            return job if job.status in statuses else None

        found: Job = eventually(is_there, f"{job_id} becomes {statuses}")
        return found

    def claims(self, job_id: str) -> list[int]:
        """The attempts that were claimed, as history has them."""
        lines = self.registry.store.audit.events(job_id)
        return [line["attempt"] for line in lines if line.get("cause") == "claim"]

    def history(self, job_id: str) -> list[str]:
        return [line["event"] for line in self.registry.store.audit.events(job_id)]

    def processes_of(self, job_id: str, attempt: int) -> list[int]:
        """Every process that belongs to an attempt, by what it inherited."""
        found = []
        for process in psutil.process_iter():
            try:
                environ = process.environ()
            except (psutil.Error, OSError):
                continue
            if (environ.get("MAM_JOB_ID"), environ.get("MAM_ATTEMPT")) == (job_id, str(attempt)):
                found.append(process.pid)
        return found

    def close(self) -> None:
        if self._registry is not None:
            self._registry.store.close()


@contextmanager
def farm(folder: Path) -> Iterator[Farm]:
    with ExitStack() as up:
        oak, elm = up.enter_context(two_hosts())
        database = up.enter_context(own_server(host=oak))
        broker = Mosquitto(folder / "broker", oak)
        up.callback(broker.kill)
        broker.start()
        made = Farm(folder, oak, elm, database, broker)
        up.callback(made.close)
        yield made


class Mosquitto:
    """Whoever is in the network may reach it who knows the password."""

    def __init__(self, home: Path, host: Host) -> None:
        program = server("mosquitto").find()
        assert program is not None
        home.mkdir()
        (home / "passwords").write_text("farm:farm-password\n")
        hashing = ["mosquitto_passwd", "-U", str(home / "passwords")]
        subprocess.run(hashing, check=True, capture_output=True, umask=0o077)
        lines = [f"listener {_PORT} {host.address}", "allow_anonymous false"]
        lines += [f"password_file {home}/passwords", f"user {'root' if os.geteuid() == 0 else ''}"]
        (home / "conf").write_text("\n".join(lines) + "\n")
        self._words = host.command(program.path, "-c", str(home / "conf"))
        self._log = home / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._words, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
