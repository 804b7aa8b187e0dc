"""The loop that `watch` and `wait` share: a feed is taken from until the jobs have ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack

from mam_core.audit import status_of
from mam_core.errors import JobNotFound, MamError
from mam_core.events.feed import EventHeard, Feed, Item, JobChanged, Notice, Origin
from mam_core.operations.ending import Ending, Limits
from mam_core.operations.endings import Endings
from mam_core.pace import paced
from mam_core.records import Job, Status
from mam_core.registry import Registry

#: Clocks and the wish to stop are looked at this often.
LOOK_SEC = 0.25
#: More jobs than this are not asked for one by one: everything is heard and the rest left out.
_MANY = 100

#: Begins to listen: to these jobs, or to all.
Listen = Callable[[frozenset[str] | None], AbstractContextManager[Feed]]


def follow(
    registry: Registry,
    jobs: Sequence[Job],
    limits: Limits,
    listen: Listen,
    *,
    tell: Callable[[Sequence[Item]], None],
    end: Callable[[Ending], None],
    is_stopped: Callable[[], bool],
    hears: bool,
) -> Endings:
    """To their ends, or until somebody wishes to stop; what is not over then is left.

    With `hears` a job is over when its last events have come as well.
    """

    def logged(job_id: str) -> Status | None:
        return status_of(registry.store.audit.status(job_id))

    live = frozenset(job.job_id for job in jobs if job.is_live)
    with ExitStack() as stack:
        feed = None
        if live:
            feed = stack.enter_context(listen(live if len(live) <= _MANY else None))
        endings = Endings(jobs, limits, time.monotonic(), logged=logged, hears=hears)
        for ending in endings.endings.values():
            end(ending)
        # Once more: a record may have changed before the feed began.
        items: Sequence[Item] = list(_as_they_are(registry, [job.job_id for job in jobs]))
        while True:
            for item in items:
                endings.hear(item)
            if items:
                tell(items)
            for ending in endings.due(time.monotonic()):
                end(ending)
            if feed is None or not endings.left or is_stopped():
                return endings
            items = [item for item in feed.take(paced(LOOK_SEC)) if _is_about(item, endings)]


def _is_about(item: Item, endings: Endings) -> bool:
    if isinstance(item, Notice):
        return item.job_id is None or item.job_id in endings
    return (item.event.job_id if isinstance(item, EventHeard) else item.job_id) in endings


def _as_they_are(registry: Registry, job_ids: Iterable[str]) -> Iterator[Item]:
    for job_id in job_ids:
        try:
            yield JobChanged(job_id, registry.get(job_id), Origin.RESCAN, time.monotonic())
        except JobNotFound:
            yield JobChanged(job_id, None, Origin.RESCAN, time.monotonic())
        except MamError:
            continue  # the feed will say what is wrong with it
