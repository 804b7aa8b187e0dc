"""The registry's own broker, as others see it: where it listens and who may log in.

Everything about it is in ``.broker/`` inside the registry folder (0700, files
0600) and is made once: a loopback port, and a login for each of two roles. A
record holds host and port only; whoever connects looks the login up here.

This module starts nothing and is light, since `register` passes through it to
fill in a record's broker; the process itself is the business of `broker`.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import Any, NamedTuple

from mam_core.disk import FILE_MODE, Folder, explain, sync_fd, temp_name, write_all
from mam_core.errors import MamError, StoreError, UnsafePath
from mam_core.file_lock import lock_within
from mam_core.moving_in import move_in
from mam_core.record_parts import Broker

FOLDER_NAME = ".broker"
HOST = "127.0.0.1"

#: Below the ports that Linux (32768) and macOS (49152) give to outgoing connections: one of those
#: could be in use, for a moment, whenever the broker is started again.
_PORTS = range(20000, 32000)
_TRIES = 200

_ADDRESS = "address.json"
_ADDRESS_LOCK = "address.lock"
_CREDENTIALS = "credentials.json"
_LIMIT = 64 * 1024

#: What a server was last started with, and how the port stands there.
_CONFIGURATIONS = {
    "nats.conf": r'^mqtt .*"127\.0\.0\.1:(\d+)"',
    "mosquitto.conf": r"^listener (\d+) 127\.0\.0\.1$",
}


class BrokerFailed(MamError):
    """The embedded broker could not be started."""

    title = "Broker"


class Role(StrEnum):
    """Who logs in."""

    OPERATOR = "operator"  #: everything: consoles, workers, relays, watchers
    AGENT = "agent"  #: may tell the events of jobs, and hears nothing


class Login(NamedTuple):
    """A name and its password."""

    username: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.username!r}, …)"  # what is printed ends up in logs


class Address(NamedTuple):
    """The port, and those that strangers took from us: records may still name them."""

    port: int
    former: tuple[int, ...] = ()


class BrokerStatus(NamedTuple):
    """What can be told about it; no secrets."""

    running: bool
    host: str = HOST
    port: int | None = None  #: None: nobody has asked for a port yet
    kind: str | None = None
    version: str | None = None
    pid: int | None = None
    uptime_sec: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()


class BrokerFolder:
    """``.broker/`` of one registry, held open."""

    def __init__(self, folder: Folder) -> None:
        folder.check_owner()
        if folder.is_loose:
            folder.tighten()
        self.folder = folder

    @classmethod
    def open(cls, registry_path: str) -> BrokerFolder:
        """Raises FileNotFoundError when there is none yet."""
        with Folder.open(registry_path) as registry:
            return cls(registry.subfolder(FOLDER_NAME))

    @classmethod
    def make(cls, registry_path: str) -> BrokerFolder:
        """As `open`; what is missing is made, also the registry folder."""
        try:
            with Folder.open(registry_path, create=True) as registry:
                move_in(registry)
                return cls(registry.subfolder(FOLDER_NAME, create=True))
        except OSError as problem:
            where = os.path.join(registry_path, FOLDER_NAME)
            raise explain(problem, f"cannot make {where}") from problem

    def close(self) -> None:
        self.folder.close()

    def __enter__(self) -> BrokerFolder:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def has_address(self) -> bool:
        return self.folder.has(_ADDRESS)

    def address(self) -> Address:
        data = self._once(
            _ADDRESS, lambda: {"port": self._configured_port() or free_port(), "former": []}
        )
        try:
            return Address(int(data["port"]), tuple(int(port) for port in data["former"]))
        except (KeyError, TypeError, ValueError):
            raise self._broken(_ADDRESS) from None

    def _configured_port(self) -> int | None:
        """Where it listened last: records name that port, and the file that said so is gone."""
        import re

        for name, pattern in _CONFIGURATIONS.items():
            with suppress(OSError, MamError, UnicodeDecodeError):
                text = self.folder.read(name, _LIMIT)[0].decode()
                if found := re.search(pattern, text, re.MULTILINE):
                    return int(found[1])
        return None

    def login(self, role: Role) -> Login:
        data = self._once(_CREDENTIALS, lambda: {str(each): os.urandom(24).hex() for each in Role})
        password = data.get(str(role))
        if not isinstance(password, str) or not password.isalnum():
            raise self._broken(_CREDENTIALS)
        return Login(str(role), password)

    def move(self) -> Address:
        """Another port, because a stranger sits on ours. Only the holder of the lock may do this.

        The old one is remembered, so that records which name it find the new one.
        """
        with self._alone():
            old = self.address()
            former = tuple(dict.fromkeys((*old.former, old.port)))
            return self._put(Address(free_port(besides=former), former))

    def remember(self, ports: Iterable[int]) -> None:
        """Records name these as well, and mean the broker here."""
        with self._alone():
            known = self.address()
            former = (*known.former, *(port for port in ports if port != known.port))
            self._put(Address(known.port, tuple(dict.fromkeys(former))))

    def _put(self, where: Address) -> Address:
        text = json.dumps({"port": where.port, "former": list(where.former)})
        self.folder.write(_ADDRESS, text.encode())
        return where

    @contextmanager
    def _alone(self) -> Iterator[None]:
        fd = self.folder.open_in_place(_ADDRESS_LOCK, os.O_RDWR)
        try:
            lock_within(fd, f"{self.folder.path}/{_ADDRESS_LOCK}")
            yield
        finally:
            os.close(fd)

    def _once(self, name: str, make: Any) -> dict[str, Any]:
        """A file's content; where there is none, the first of several makers wins."""
        for _ in range(2):
            try:
                data, _ = self.folder.read(name, _LIMIT)
            except FileNotFoundError:
                self._put_once(name, json.dumps(make()).encode())
                continue
            except UnsafePath as problem:
                raise UnsafePath(f"{self.folder.path}/{problem.message}") from None
            try:
                content = json.loads(data)
            except ValueError:
                break
            if isinstance(content, dict):
                return content
            break
        raise self._broken(name)

    def _put_once(self, name: str, data: bytes) -> None:
        """Synced, once in a registry's life: records that name the port are, too."""
        fd, temp = self._nameless(data) or self._named(name, data)
        try:
            sync_fd(fd, self.folder.path)
            os.link(
                temp or f"/proc/self/fd/{fd}",
                name,
                src_dir_fd=self.folder.fd,
                dst_dir_fd=self.folder.fd,
            )
            self.folder.sync()
        except FileExistsError:
            pass
        finally:
            os.close(fd)
            if temp:
                self.folder.remove(temp)

    def _nameless(self, data: bytes) -> tuple[int, str] | None:
        """A file without a name, of which nothing stays when we are killed: Linux has them."""
        kind = getattr(os, "O_TMPFILE", None)
        if kind is None or not os.path.isdir("/proc/self/fd"):
            return None
        try:
            fd = os.open(".", kind | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE, dir_fd=self.folder.fd)
        except OSError:
            return None  # not on every file system
        try:
            os.fchmod(fd, FILE_MODE)
            write_all(fd, data)
        except BaseException:
            os.close(fd)
            raise
        return fd, ""

    def _named(self, name: str, data: bytes) -> tuple[int, str]:
        temp = temp_name(name)
        return self.folder.create(temp, data), temp

    def _broken(self, name: str) -> StoreError:
        path = os.path.join(self.folder.path, name)
        return StoreError(f"{path} is damaged: remove it, and it is made anew")


def address(registry_path: str) -> Broker:
    """Where the embedded broker of a registry listens, or will: for new records."""
    with BrokerFolder.make(registry_path) as home:
        return Broker(HOST, home.address().port)


def credentials(registry_path: str, role: Role) -> Login:
    with BrokerFolder.make(registry_path) as home:
        return home.login(role)


def with_login(registry_path: str, record: Broker | None, role: Role) -> Broker | None:
    """The embedded broker as it is now, with a login, if that is what a record names; else None.

    A record that brings its own login, or asks for TLS, means another broker; no record at all
    means this one, if there ever was one. Looks only: asking makes no folder.
    """
    if record and (record.host != HOST or record.tls or record.username or record.password):
        return None
    try:
        home = BrokerFolder.open(registry_path)
    except FileNotFoundError:
        return None
    with home:
        if not home.has_address:
            return None
        known = home.address()
        if record and record.port != known.port and record.port not in known.former:
            return None
        login = home.login(role)
    return Broker(HOST, known.port, username=login.username, password=login.password)


def adopt(registry_path: str, other_path: str) -> None:
    """Records that came here from another registry name its broker; from now on, ours is meant."""
    try:
        other = BrokerFolder.open(other_path)
    except FileNotFoundError:
        return
    with other:
        if not other.has_address:
            return
        left = other.address()
    with BrokerFolder.make(registry_path) as home:
        home.remember((*left.former, left.port))


def is_free(port: int) -> bool:
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the brokers do: a connection that was closed a moment ago does not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as problem:
            if problem.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True


def free_port(besides: tuple[int, ...] = ()) -> int:
    for _ in range(_TRIES):
        port = _PORTS[int.from_bytes(os.urandom(4), "big") % len(_PORTS)]
        if port not in besides and is_free(port):
            return port
    raise BrokerFailed(f"no free port was found between {_PORTS.start} and {_PORTS.stop - 1}")
