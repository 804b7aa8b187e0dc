"""Follow jobs: what is heard of them is told as it comes, until they have ended.

The first user of the feed. While it lasts it is on duty like every long-lived
command; it writes `received` lines, and of what it follows it changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, TypeGuard

from mam_core.config import Config
from mam_core.events.feed import EventHeard, Feed, Item, Notice, NoticeKind
from mam_core.operations.ending import Ending, Limits
from mam_core.operations.endings import Endings
from mam_core.operations.following import LOOK_SEC, follow
from mam_core.operations.on_duty import on_duty
from mam_core.operations.public_brokers import warning_of
from mam_core.operations.receipts import Receipts
from mam_core.pace import paced
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.stores.base import Query
from mam_core.wiring import open_feed

#: What is to begin once we listen waits no longer than this for a broker that does not answer:
#: the registry tells what no message brings.
_ANSWER_SEC = 5.0
_LIVE = frozenset({Status.PENDING, Status.RUNNING})


class Teller(Protocol):
    """Who is told."""

    def tell(self, items: Sequence[Item]) -> None: ...
    def end(self, ending: Ending) -> None: ...
    def warn(self, sentence: str) -> None: ...


class Watch:
    """One watch on one registry."""

    def __init__(
        self,
        registry: Registry,
        registry_path: str,
        config: Config,
        teller: Teller,
        *,
        is_stopped: Callable[[], bool] = lambda: False,
        config_path: str | None = None,
        allow_network: bool = False,
        beside: AbstractContextManager[object] | None = None,
    ) -> None:
        """`beside` is entered when the brokers tell us what happens, and left before we stop."""
        self._registry = registry
        self._path = registry_path
        self._config = config
        self._teller = teller
        self._is_stopped = is_stopped
        self._config_path = config_path
        self._allow_network = allow_network
        self._receipts = Receipts(registry)
        self._warned: set[str] = set()
        self._beside = beside

    def named(self, job_ids: Sequence[str], limits: Limits) -> Endings:
        """These jobs, to their ends. Raises `JobNotFound` before anything is begun."""
        return self._follow([self._registry.get(job_id) for job_id in job_ids], limits)

    def live(self, limits: Limits) -> Endings:
        """All jobs that are pending or running now, to their ends."""
        found = self._registry.store.bodies(Query(statuses=_LIVE))
        return self._follow([job for job in found if isinstance(job, Job)], limits)

    def everything(self, limits: Limits) -> bool:
        """Every job there is and will be; True when the time that was given is over."""
        self._warn_of_public_brokers([])
        with self._listening(None) as feed:
            began = heard = time.monotonic()
            while not self._is_stopped():
                items = feed.take(paced(LOOK_SEC))
                if items:
                    self._tell(items)
                heard = max([heard, *(i.seen_at for i in items if isinstance(i, EventHeard))])
                now = time.monotonic()
                for limit, since in ((limits.timeout, began), (limits.idle, heard)):
                    if limit is not None and now - since >= limit:
                        return True
        return False

    # -- inside ----------------------------------------------------------------------------

    def _follow(self, jobs: Sequence[Job], limits: Limits) -> Endings:
        if live := [job for job in jobs if job.is_live]:
            self._warn_of_public_brokers(live)
        return follow(
            self._registry,
            jobs,
            limits,
            self._listening,
            tell=self._tell,
            end=self._teller.end,
            is_stopped=self._is_stopped,
            hears=True,
        )

    def _tell(self, items: Sequence[Item]) -> None:
        said = [item for item in items if _is_warning(item)]
        for warning in said:
            self._warn(warning.text)
        try:
            self._teller.tell([item for item in items if item not in said] if said else items)
        finally:
            self._receipts.write(items)

    @contextmanager
    def _listening(self, jobs: frozenset[str] | None) -> Iterator[Feed]:
        network = self._allow_network
        duty = on_duty(
            self._path, self._config, config_path=self._config_path, allow_network=network
        )
        feed = open_feed(self._path, self._config, jobs=jobs, allow_network=network)
        with duty, feed:
            if self._beside is not None:
                feed.await_brokers(_ANSWER_SEC)
            with self._beside or nullcontext():
                yield feed

    def _warn_of_public_brokers(self, jobs: Iterable[Job]) -> None:
        """Of all that will be listened to: the usual one, and those that records name."""
        places = {job.broker[:5]: job.broker for job in jobs}
        for broker in (None, *places.values()):
            if warning := warning_of(broker, self._config, self._path):
                self._warn(warning)

    def _warn(self, sentence: str) -> None:
        if sentence not in self._warned:
            self._warned.add(sentence)
            self._teller.warn(sentence)


def _is_warning(item: Item) -> TypeGuard[Notice]:
    return isinstance(item, Notice) and item.kind is NoticeKind.PUBLIC_BROKER
