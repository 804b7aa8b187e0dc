"""Which jobs there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mam_core.records import Status, Summary, Unreadable
from mam_core.registry import Registry
from mam_core.stores.base import Query


class Listing(NamedTuple):
    """The jobs that were asked for, in order of registration, and the files that are none."""

    jobs: list[Summary]
    unreadable: list[Unreadable]


def query(
    statuses: Iterable[str] = (),
    *,
    agent_session: str | None = None,
    group: str | None = None,
    agent: str | None = None,
    text: str | None = None,
) -> Query:
    """A question from words as people give them; raises `BadStatus` for one that is none."""
    wanted = frozenset(map(Status.parse, statuses))
    return Query(wanted, agent_session, group, agent, text)


def listing(registry: Registry, which: Query) -> Listing:
    """Without a lock. A file that cannot be read fits no filter, so it is told with every one."""
    return Listing(*registry.store.find(which))


def full_listing(registry: Registry, which: Query) -> Iterator[bytes | Unreadable]:
    """The whole records as JSON, one after the other."""
    return registry.store.stored(which)
