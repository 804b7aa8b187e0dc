"""What a record holds that has parts of its own: a broker's address, a lease, a memory cap."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from mam_core.errors import UnreadableRecord
from mam_core.record_checks import COUNT, FLAG, NUMBER, POSITIVE, TEXT, Kind, checked

# Named tuples rather than data classes, which take a millisecond each to make at every start.

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Broker(NamedTuple):
    """Where the events of a job go."""

    host: str = "127.0.0.1"
    port: int = 1883
    tls: bool = False
    username: str | None = None
    password: str | None = None
    extra: Mapping[str, Any] = NOTHING

    @property
    def place(self) -> str:
        return f"{self.host}:{self.port}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "port": self.port,
            "tls": self.tls,
            "username": self.username,
            "password": self.password,
            **self.extra,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Broker:
        known, extra = checked(data, _BROKER_KINDS)
        return cls(**known, extra=extra)


class Lease(NamedTuple):
    """A worker's claim on time: gone when it is not renewed within `ttl_sec`.

    It is dated on the boot clock of its host, so that a step of the wall clock
    neither ends it early nor keeps it alive; and where the store has a clock that
    all hosts share, on that one too, which then counts.
    """

    owner: str
    ttl_sec: float
    node: str = ""
    boot_id: str = ""
    since_boot: float = 0.0
    renewals: int = 0
    renewed_at: str = ""
    store_time: float | None = None  #: seconds since 1970 by the store's own clock
    logs: str = ""  #: the folder on its host in which its worker keeps histories and marks
    extra: Mapping[str, Any] = NOTHING

    def to_dict(self) -> dict[str, Any]:
        shared = {} if self.store_time is None else {"store_time": self.store_time}
        return {
            "owner": self.owner,
            "ttl_sec": self.ttl_sec,
            "node": self.node,
            "boot_id": self.boot_id,
            "since_boot": self.since_boot,
            "renewals": self.renewals,
            "renewed_at": self.renewed_at,
            **shared,
            **({"logs": self.logs} if self.logs else {}),
            **self.extra,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Lease:
        known, extra = checked(data, _LEASE_KINDS)
        for name in ("owner", "ttl_sec"):
            if name not in known:
                raise UnreadableRecord(f"its lease has no {name}")
        return cls(**known, extra=extra)


class MemoryCap(NamedTuple):
    """What holds the attempt to its memory; a record without one has no cap."""

    limit: int  #: bytes, of all its processes together
    means: str  #: one of `work.caps.Means`
    origin: str = ""  #: who said so: the job, its group, or its agent's profile
    extra: Mapping[str, Any] = NOTHING

    def to_dict(self) -> dict[str, Any]:
        return {"limit": self.limit, "means": self.means, "origin": self.origin, **self.extra}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MemoryCap:
        known, extra = checked(data, _CAP_KINDS)
        for name in ("limit", "means"):
            if name not in known:
                raise UnreadableRecord(f"its memory cap has no {name}")
        return cls(**known, extra=extra)


_BROKER_KINDS: dict[str, Kind] = {
    "host": TEXT,
    "port": COUNT,
    "tls": FLAG,
    "username": TEXT.or_null(),
    "password": TEXT.or_null(),
}
_LEASE_KINDS: dict[str, Kind] = {
    "owner": TEXT,
    "ttl_sec": POSITIVE,
    "node": TEXT,
    "boot_id": TEXT,
    "since_boot": NUMBER,
    "renewals": COUNT,
    "renewed_at": TEXT,
    "store_time": NUMBER.or_null(),
    "logs": TEXT,
}
_CAP_KINDS: dict[str, Kind] = {"limit": COUNT, "means": TEXT, "origin": TEXT}
