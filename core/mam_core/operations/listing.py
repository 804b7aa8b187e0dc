"""Which jobs there are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from mam_core.records import Status
from mam_core.summaries import Summary, Unreadable

if TYPE_CHECKING:
    from mam_core.agents.states import Shown
    from mam_core.registry import Registry
    from mam_core.stores.base import Query

#: How a running record is stored, by whichever tool; in a text the quotes would be escaped.
_RUNS = re.compile(rb'"status"\s*:\s*"running"')


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
    from mam_core.stores.base import Query

    wanted = frozenset(map(Status.parse, statuses))
    return Query(wanted, agent_session, group, agent, text)


def listing(registry: Registry, which: Query) -> Listing:
    """Without a lock. A file that cannot be read fits no filter, so it is told with every one."""
    return Listing(*registry.store.find(which))


def shown_of(registry: Registry, jobs: Iterable[Summary]) -> dict[str, Shown]:
    """The states of those that run, by id; where none does, nothing is read or even imported."""
    running = [job for job in jobs if job.status is Status.RUNNING]
    if not running:
        return {}
    from mam_core.operations.shown import Showing

    return Showing(registry).of(running)


def full_listing(registry: Registry, which: Query) -> Iterator[bytes | Unreadable]:
    """The whole records as JSON, one after the other; one that runs says how it is `shown`."""
    wanted = not which.statuses or Status.RUNNING in which.statuses
    shown: dict[str, Shown] = {}
    if wanted:
        running = which._replace(statuses=frozenset({Status.RUNNING}))
        shown = shown_of(registry, registry.store.find(running)[0])
    stored = registry.store.stored(which)
    return _with_shown(stored, shown, registry.clock.now()) if shown else stored


def _with_shown(
    stored: Iterable[bytes | Unreadable], shown: Mapping[str, Shown], now: float
) -> Iterator[bytes | Unreadable]:
    """Only records of running jobs are looked into: the others pass by as they are kept."""
    from mam_core import codec

    for row in stored:
        if isinstance(row, bytes) and _RUNS.search(row):
            record = codec.loads(row)
            if (found := shown.get(str(record.get("job_id")))) is not None:
                row = codec.dumps({**record, "shown": found.to_dict(now)})
        yield row
