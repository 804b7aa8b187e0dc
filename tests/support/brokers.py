"""Real brokers for tests: both kinds, each in a private folder, none left behind."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from mam_core.events.broker import EmbeddedBroker
from mam_core.events.connection import Connection
from mam_core.events.embedded import BrokerFolder, Login, free_port
from mam_core.events.keeper import Keeper
from mam_core.events.mqtt import new_client
from mam_core.events.running import read_running
from mam_core.events.servers import Mosquitto, Nats, Server
from mam_core.work.processes import pids
from tests.support.patience import PATIENCE_SEC, eventually, until_gone

LINGER_SEC = 0.05

SERVERS: dict[str, Server] = {"nats": Nats(), "mosquitto": Mosquitto()}


def server(name: str) -> Server:
    """A kind of broker; the test is skipped, and says so, where the machine has none."""
    found = SERVERS[name]
    if found.find() is None:
        pytest.skip(f"{name} is not installed here")
    return found


def embedded(registry: Path, kind: str) -> EmbeddedBroker:
    return EmbeddedBroker(str(registry), servers=(server(kind),), linger_sec=LINGER_SEC)


def processes_in(folder: Path) -> list[psutil.Process]:
    """Every other process that works inside a folder: watchers and brokers do.

    Tests ask again and again, so it reads one link of each process and nothing else.
    """
    found = []
    for pid in pids():
        with suppress(psutil.Error, OSError):
            cwd = Path(os.readlink(f"/proc/{pid}/cwd").removesuffix(" (deleted)"))
            if pid != os.getpid() and cwd.is_relative_to(folder):
                found.append(psutil.Process(pid))
    return found


@contextmanager
def nothing_left(folder: Path) -> Iterator[None]:
    """Fails when a process is left in the folder; it is ended all the same."""
    try:
        yield
        until_gone(lambda: [process.pid for process in processes_in(folder)])
    finally:
        for process in processes_in(folder):
            process.kill()


def kill_server(registry: Path) -> int:
    """kill -9 the broker itself; its pid.

    One that was killed a moment ago is waited for: its keeper takes longer for each new start.
    """

    def killed() -> int | None:
        with BrokerFolder.open(str(registry)) as home:
            running = read_running(home)
        if running is None or not running.server.send(signal.SIGKILL):
            return None
        return running.server.pid

    pid: int = eventually(killed, "there is a broker to be killed")
    return pid


def kill_watcher(registry: Path) -> int:
    with BrokerFolder.open(str(registry)) as home:
        running = read_running(home)
    assert running is not None
    assert running.watcher.send(signal.SIGKILL)
    return running.watcher.pid


def keepers_looks(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Grows with every look of a keeper in this process."""
    looks: list[None] = []

    def is_down(self: Keeper) -> bool:
        looks.append(None)
        return look(self)

    look = Keeper._is_down
    monkeypatch.setattr(Keeper, "_is_down", is_down)
    return looks


class Heard(Exception):
    """The broker's answer was a refusal."""


class Ear:
    """A client as a test wants it: each step waits for the broker's answer."""

    def __init__(
        self, port: int, login: Login | None = None, *, client_id: str = "", clean: bool = True
    ) -> None:
        name = client_id or f"ear-{os.urandom(4).hex()}"
        self.client = Client(CallbackAPIVersion.VERSION2, client_id=name, clean_session=clean)
        if login is not None:
            self.client.username_pw_set(login.username, login.password)
        self.messages: queue.Queue[MQTTMessage] = queue.Queue()
        self._answers: queue.Queue[tuple[str, Any]] = queue.Queue()
        self.client.on_connect = lambda c, u, flags, code, p: self._answers.put(("connect", code))
        self.client.on_subscribe = lambda c, u, m, codes, p: self._answers.put(("sub", codes[0]))
        self.client.on_message = lambda c, u, message: self.messages.put(message)
        self.port = port

    def __enter__(self) -> Ear:
        self.client.connect("127.0.0.1", self.port)
        self.client.loop_start()
        self._check("connect")
        return self

    def __exit__(self, *exc: object) -> None:
        self.client.disconnect()
        self.client.loop_stop()
        self.client._reset_sockets()  # which paho leaves to the collector

    def is_back(self) -> None:
        """Waits for the next welcome: until it is read, the lost connection still looks alive."""
        self._check("connect")

    def subscribe(self, topic: str) -> None:
        self.client.subscribe(topic, qos=1)
        self._check("sub")

    def publish(self, topic: str, text: str) -> None:
        self.client.publish(topic, text, qos=1).wait_for_publish(PATIENCE_SEC)

    def hear(self, number: int) -> list[str]:
        """The texts of the next messages, as many as asked for."""
        return [self.messages.get(timeout=PATIENCE_SEC).payload.decode() for _ in range(number)]

    def _check(self, step: str) -> None:
        name, code = self._answers.get(timeout=PATIENCE_SEC)
        assert name == step
        if code.is_failure:
            raise Heard(str(code))


# -- brokers of somebody else, with TLS --------------------------------------------------------


_NEW_KEY = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"


class Authority:
    """A throw-away certificate authority, made by the openssl program."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("openssl is not installed here")
        folder.mkdir()
        self.folder = folder
        self._openssl(
            f"req -x509 {_NEW_KEY} -days 2 -subj /CN=ca "
            "-addext basicConstraints=critical,CA:TRUE -addext keyUsage=keyCertSign "
            "-keyout ca.key -out ca.pem"
        )

    @property
    def bundle(self) -> str:
        return str(self.folder / "ca.pem")

    def certificate(self, name: str) -> tuple[str, str]:
        """A certificate for a host name (or a client), and its key."""
        self._openssl(f"req {_NEW_KEY} -subj /CN={name} -keyout {name}.key -out {name}.csr")
        (self.folder / f"{name}.ext").write_text(f"subjectAltName=DNS:{name}\n")
        self._openssl(
            f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
            f"-extfile {name}.ext -out {name}.pem"
        )
        return str(self.folder / f"{name}.pem"), str(self.folder / f"{name}.key")

    def _openssl(self, words: str) -> None:
        done = subprocess.run(
            ["openssl", *words.split()],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


@contextmanager
def tls_broker(
    kind: str, folder: Path, authority: Authority, name: str, *, client_certificates: bool = False
) -> Iterator[int]:
    """A broker with a certificate for `name`; its port."""
    program = server(kind).find()
    assert program is not None
    certificate, key = authority.certificate(name)
    port = free_port()
    folder.mkdir()
    if kind == "nats":
        verify = "verify: true" if client_certificates else ""
        config = f"""
server_name: "tls"
listen: "127.0.0.1:-1"
jetstream {{ store_dir: "store" }}
mqtt {{
  listen: "127.0.0.1:{port}"
  tls {{
    cert_file: "{certificate}"
    key_file: "{key}"
    ca_file: "{authority.bundle}"
    {verify}
  }}
}}
"""
    else:
        config = f"""
listener {port} 127.0.0.1
allow_anonymous true
certfile {certificate}
keyfile {key}
cafile {authority.bundle}
require_certificate {str(client_certificates).lower()}
{"user root" if os.geteuid() == 0 else ""}
"""
    (folder / "server.conf").write_text(config)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program.path, "-c", "server.conf"], cwd=folder, stdout=log, stderr=log
        )
    try:
        eventually(lambda: _listens(process.pid, port), (folder / "log").read_text())
        yield port
    finally:
        process.terminate()
        process.wait()


def _listens(pid: int, port: int) -> bool:
    found = psutil.Process(pid).net_connections("tcp")
    return any(c.status == psutil.CONN_LISTEN and c.laddr.port == port for c in found)


def try_connection(connection: Connection) -> str:
    """Connect with the client that the product uses; what came of it."""
    answers: queue.Queue[str] = queue.Queue()
    client = new_client(connection)
    client.on_connect = lambda c, u, flags, code, p: answers.put(str(code))
    client.connect(connection.host, connection.port)
    client.loop_start()
    try:
        return answers.get(timeout=PATIENCE_SEC)
    finally:
        client.disconnect()
        client.loop_stop()
        client._reset_sockets()
