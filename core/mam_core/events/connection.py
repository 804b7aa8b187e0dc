"""How a job's events reach the broker: the record says where, the environment may correct it.

The record alone is enough. What it cannot say (certificates, the beginning of
our client ids) comes from ``mam.toml``, and so does the login where the record
names the configured broker and none of its own. A record that names the
registry's embedded broker gets that broker's port of now and its login. A
login is never sent to another broker than the one it was made for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from mam_core.config import VARIABLES, Config, load
from mam_core.errors import MamError
from mam_core.events.embedded import Role, with_login
from mam_core.locations import is_inside_attempt, registry_place
from mam_core.record_parts import Broker

if TYPE_CHECKING:
    from mam_core.config.tables import BrokerSettings

_PARTS_OF_RECORD = ("host", "port", "tls", "username", "password")
_PARTS_OF_TOML = ("tls", "username", "ca_certs", "certfile", "keyfile")


class BrokerUnreachable(MamError):
    """The broker cannot be reached."""

    title = "Broker"


@dataclass(frozen=True)
class Connection:
    """Everything that is needed to connect."""

    host: str
    port: int
    tls: bool = False
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_certs: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    client_id_prefix: str = "mam"
    #: The registry's own: its login is for a program of ours on this machine and nobody else's.
    is_embedded: bool = False

    @property
    def where(self) -> str:
        """Host and port, for people."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def to_dict(self) -> dict[str, Any]:
        """As the original's scripts know it."""
        told = asdict(self)
        del told["is_embedded"]
        return told

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Connection:
        """From a dict like that of `to_dict`; keys that mean nothing here are passed over."""
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        return cls(**known)


def resolve(
    record: Broker | None = None,
    config: Config | None = None,
    *,
    registry_path: str | None = None,
    role: Role = Role.OPERATOR,
) -> Connection:
    """Environment over record over ``mam.toml`` over the embedded broker.

    Without a path, the embedded broker is that of the registry which the configuration means.
    """
    config = config or load()
    settings = config.broker
    said = _said(record, settings)
    corrections = {
        place[1]: value.value
        for place, value in config.values.items()
        if place[0] == "broker" and value.source == "environment"
    }
    path = registry_path or registry_place(config.registry_dir).path
    embedded = with_login(path, _asked_for(record, config, said, corrections), role)
    if embedded is not None:
        said = {name: getattr(embedded, name) for name in _PARTS_OF_RECORD} | {"is_embedded": True}
        # Made for this broker by ourselves: a login that somebody has elsewhere does not fit.
        corrections = {name: value for name, value in corrections.items() if name not in said}
    if record is not None and corrections:
        _tell(corrections)
    return Connection(**{"client_id_prefix": settings.client_id_prefix, **said, **corrections})


def role_here() -> Role:
    """For clients that tell events and need no more: what an agent runs has the agents' rights."""
    return Role.AGENT if is_inside_attempt() else Role.OPERATOR


def is_embedded_meant(config: Config) -> bool:
    """Nobody named another broker for new jobs, in a file or in the environment."""
    named = [config.values.get(("broker", part)) for part in ("host", "port")]
    return named[0] is None and (named[1] is None or named[1].source != "environment")


def _said(record: Broker | None, settings: BrokerSettings) -> dict[str, Any]:
    """What record and ``mam.toml`` say together."""
    configured = (settings.host or Broker().host, settings.port)
    said: dict[str, Any] = {}
    if record is None or (record.host, record.port) == configured:
        said = {name: getattr(settings, name) for name in _PARTS_OF_TOML}
        said["password"] = settings.secret()
    if record is None:
        return said | dict(zip(("host", "port"), configured, strict=True))
    said |= {"host": record.host, "port": record.port, "tls": record.tls}
    if record.username is not None or record.password is not None:
        said |= {"username": record.username, "password": record.password}
    return said


def _asked_for(
    record: Broker | None, config: Config, said: Mapping[str, Any], corrections: Mapping[str, Any]
) -> Broker | None:
    """The broker that is meant, as far as it takes to know the embedded one; None: just that one.

    A login of the environment belongs to the address that the environment names, if it names one.
    """
    if record is None and is_embedded_meant(config) and not corrections.get("tls", said["tls"]):
        return None
    parts = _PARTS_OF_RECORD if {"host", "port"} & set(corrections) else ("tls",)
    asked = {**said, **{name: corrections[name] for name in parts if name in corrections}}
    login = asked.get("username"), asked.get("password")
    return Broker(asked["host"], asked["port"], asked["tls"], *login)


def _tell(corrections: Mapping[str, Any]) -> None:
    """For whoever wonders why the record is not obeyed: names only, no values."""
    import logging

    names = sorted(name for name, place in VARIABLES.items() if place[1] in corrections)
    logging.getLogger("mam").debug("the environment overrides the record: %s", ", ".join(names))
