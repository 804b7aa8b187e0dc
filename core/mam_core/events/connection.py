"""How a job's events reach the broker: the record says where, the environment may correct it.

The record alone is enough. What it cannot say (certificates, the beginning of
our client ids) comes from ``mam.toml``, and so does the login where the record
names the configured broker and none of its own; a login is never sent to
another host than the one it was set up for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from mam_core.config import VARIABLES, Config, load
from mam_core.records import Broker


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

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Connection:
        """From a dict like that of `to_dict`; keys that mean nothing here are passed over."""
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        return cls(**known)


def resolve(record: Broker | None = None, config: Config | None = None) -> Connection:
    """Environment over record over ``mam.toml`` over the embedded broker's address."""
    config = config or load()
    settings = config.broker
    values: dict[str, Any] = {}
    configured = (settings.host or Broker().host, settings.port)
    if record is None or (record.host, record.port) == configured:
        values |= {"tls": settings.tls, "username": settings.username}
        values |= {name: getattr(settings, name) for name in ("ca_certs", "certfile", "keyfile")}
        values["password"] = settings.secret()
    if record is None:
        values["host"], values["port"] = configured
    else:
        values |= {"host": record.host, "port": record.port, "tls": record.tls}
        if record.username is not None or record.password is not None:
            values |= {"username": record.username, "password": record.password}
    corrections = {
        place[1]: said.value
        for place, said in config.values.items()
        if place[0] == "broker" and said.source == "environment"
    }
    if record is not None and corrections:
        _tell(corrections)
    return Connection(**{"client_id_prefix": settings.client_id_prefix, **values, **corrections})


def _tell(corrections: Mapping[str, Any]) -> None:
    """For whoever wonders why the record is not obeyed: names only, no values."""
    import logging

    names = sorted(name for name, place in VARIABLES.items() if place[1] in corrections)
    logging.getLogger("mam").debug("the environment overrides the record: %s", ", ".join(names))
