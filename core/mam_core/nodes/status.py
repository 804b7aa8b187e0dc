"""What a worker says of itself and of its host.

It is retained by the broker, so that whoever asks later hears the last word. All of it
is a hint: nothing is requeued or ended because of it (leases do that), and a host that
is not heard of is stale, never idle.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from mam_core.errors import MamError
from mam_core.machine import Machine

SCHEMA_VERSION = 1
#: A label and a hundred job ids fit many times over.
MAX_BYTES = 64 * 1024

#: No host has more of anything, bytes of memory included; and no year is further away.
_MOST = 2**53

_STATUS, _WILL = "status", "will"
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_Read = TypeVar("_Read")


class BadStatusWord(MamError):
    """What was said about a node makes no sense."""

    title = "Bad word of a node"


class WorkerStatus(NamedTuple):
    """One worker, and its host as it saw it at that moment. Times are those of its own clock."""

    node: str
    worker: str  #: pid and start time: no two are alike on one host
    at: float
    started_at: float
    version: str
    boot: str
    namespace: int  #: the PID namespace in which it has that pid; 0: not known
    agent_session: str
    agents: tuple[str, ...]
    slots: int
    running: tuple[str, ...]  #: ids of jobs
    machine: Machine
    clock_offset: float | None = None  #: ahead of the store's clock, where that has one of its own

    def encode(self) -> bytes:
        said = {"schema_version": SCHEMA_VERSION, **self._asdict(), **self.machine._asdict()}
        del said["machine"]
        return json.dumps(said, separators=(",", ":")).encode("ascii")

    @classmethod
    def parse(cls, payload: bytes) -> WorkerStatus:
        """Raises `BadStatusWord`."""
        if len(payload) > MAX_BYTES:
            raise BadStatusWord(f"{len(payload)} bytes; the limit is {MAX_BYTES}")
        try:
            said = json.loads(payload)
            if said["schema_version"] != SCHEMA_VERSION:
                raise BadStatusWord(f"schema version {said['schema_version']!r}")
            return cls(
                _text(said["node"]),
                _text(said["worker"]),
                _number(said["at"]),
                _number(said["started_at"]),
                _text(said["version"]),
                _text(said["boot"]),
                _count(said["namespace"]),
                _text(said["agent_session"]),
                _texts(said["agents"]),
                _count(said["slots"]),
                _texts(said["running"]),
                Machine(
                    _count(said["cores"]),
                    _number(said["load"]),
                    _or_none(_count, said["memory_total"]),
                    _or_none(_count, said["memory_free"]),
                ),
                _or_none(_number, said.get("clock_offset")),
            )
        except (ValueError, KeyError, TypeError, RecursionError) as problem:
            raise BadStatusWord(f"it cannot be read: {problem!r}") from None


class Topics(NamedTuple):
    """Where one worker speaks: its status, and the will that the broker speaks for it."""

    status: str
    will: str

    @classmethod
    def of(cls, realm: str, node: str, worker: str) -> Topics:
        home = f"{_home(realm)}/{level(node)}/{level(worker)}"
        return cls(f"{home}/{_STATUS}", f"{home}/{_WILL}")


def every_worker(realm: str, node: str | None = None) -> str:
    """The filter for the words of all workers, or of those on one host."""
    return f"{_home(realm)}/{'+' if node is None else level(node)}/+/+"


def home_and_kind(topic: str) -> tuple[str, bool]:
    """By what two words belong to one worker, and whether this one is its will."""
    home, _, kind = topic.rpartition("/")
    return home, kind == _WILL


def topics_in(home: str) -> Topics:
    return Topics(f"{home}/{_STATUS}", f"{home}/{_WILL}")


def _home(realm: str) -> str:
    return f"mam/{level(realm)}/nodes"


def level(text: str) -> str:
    """As one level of a topic: a broker may refuse blanks and read dots as its own."""
    return "".join(
        chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in text.encode("utf-8", "replace")
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return tuple(map(_text, value))


def _number(value: Any) -> float:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_one or not abs(value) <= _MOST:  # NaN is not, either
        raise TypeError(f"{value!r} is no number")
    return float(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise TypeError(f"{value!r} is no count")
    return value


def _or_none(read: Callable[[Any], _Read], value: Any) -> _Read | None:
    return None if value is None else read(value)
