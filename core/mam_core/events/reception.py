"""All brokers that are listened to: the usual one, and those that single records name.

One wildcard serves every job with a usual topic; a record with another prefix
adds its own. Brokers are counted, because each costs two threads and a record
can name any: beyond the bound, a job is followed by its record alone.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from mam_core.errors import MamError
from mam_core.events.client import Address, Client, address
from mam_core.events.public_brokers import is_public
from mam_core.events.subscription import Drained, Subscription, Turn
from mam_core.record_parts import Broker
from mam_core.records import Job

USUAL_FILTER = "python/mqtt/jobs/+/events"
_USUAL_TOPIC = re.compile(r"python/mqtt/jobs/[^/+#\0]+/events")

MAX_BROKERS = 8
MAX_TOPICS = 1_000
_MAX_TOPIC_CHARS = 1_000

#: A record's broker, without what two records at one broker may differ in.
_Named = tuple[str, int, bool, str | None]


class Line(NamedTuple):
    """A turn of one connection, with the broker it is about (None: the usual one)."""

    broker: Address | None
    turn: Turn


class Offline(NamedTuple):
    """A broker that some live job names, and that does not answer."""

    place: str
    since: float  #: `time.monotonic()`
    text: str


class Reception:
    """Which subscriptions there are, and which job is heard by which of them."""

    def __init__(
        self,
        connect: Callable[[], Client] | None,
        connect_to: Callable[[Broker], Client] | None,
        wake: Callable[[], None],
        jobs: Iterable[str] | None = None,
    ) -> None:
        self._connect = connect
        self._connect_to = connect_to
        self._wake = wake
        self._topics: set[str] = set()
        self._others: dict[Address, Subscription] = {}
        self._places: dict[_Named, Address | None] = {}
        self._followed: dict[str, Address] = {}  #: jobs at other brokers than the usual one
        self._users: Counter[Address] = Counter()
        self._refused: set[Address] = set()
        self._exposed: dict[str, str] = {}  #: jobs at public brokers, and at which
        self.public: tuple[str, ...] = ()  #: those brokers
        self.usual: Subscription | None = None
        self._wildcard = jobs is None
        if connect is not None:
            topics = [USUAL_FILTER] if jobs is None else [_usual_topic(job) for job in jobs]
            self.usual = Subscription(connect, topics, wake)

    def start(self) -> None:
        if self.usual is not None:
            self.usual.start()

    def await_answers(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        return all(
            subscription.answered.wait(max(0.0, deadline - time.monotonic()))
            for _, subscription in self._all()
        )

    def close(self) -> None:
        subscriptions = [subscription for _, subscription in self._all()]
        for subscription in subscriptions:
            subscription.close(wait=False)
        for subscription in subscriptions:
            subscription.close()

    def drain(self) -> tuple[list[Drained], list[Line]]:
        drained, lines = [], []
        for place, subscription in self._all():
            got = subscription.drain()
            drained.append(got)
            lines += [Line(place, turn) for turn in got.turns]
            if place is None and got.turns:
                self._places.clear()  # the usual broker may have moved
        return drained, lines

    @property
    def offline(self) -> tuple[Offline, ...]:
        """Of the brokers beside the usual one; each has a live job, or it would have been left."""
        return tuple(
            Offline(f"{place[0]}:{place[1]}", subscription.since, subscription.text)
            for place, subscription in sorted(self._others.items())
            if subscription.up is False
        )

    def hears(self, job: Job) -> bool:
        """A message about this job would reach us now."""
        place = self._followed.get(job.job_id)
        subscription = self.usual if place is None else self._others.get(place)
        return subscription is not None and bool(subscription.up)

    def follow(self, job: Job) -> str | None:
        """Listen where this job's events go; the answer is a sentence when that cannot be."""
        if self.usual is None:
            return None
        if not job.is_live:
            self.leave(job.job_id)
            return None
        place = self._place(job.broker)
        if self._followed.get(job.job_id) != place:
            self.leave(job.job_id)
        topic = job.events_topic
        if place is None:
            if not (self._wildcard and _USUAL_TOPIC.fullmatch(topic)):
                self._add(self.usual, topic)
            return None
        if place not in self._others and len(self._others) >= MAX_BROKERS - 1:
            if place in self._refused:
                return None
            self._refused.add(place)
            return (
                f"more than {MAX_BROKERS} brokers: jobs at {place[0]}:{place[1]} "
                "are followed by their records alone"
            )
        if job.job_id not in self._followed:
            self._followed[job.job_id] = place
            self._users[place] += 1
        self._add(self._other(place, job.broker), topic)
        return None

    def exposed(self, job: Job) -> str | None:
        """The public broker that this job's events go to, if it is the first job there."""
        host = self._host(job.broker)
        if not job.is_live or not is_public(host):
            self._cover(job.job_id)
            return None
        self._exposed[job.job_id] = host
        is_new = host not in self.public
        self.public = tuple(sorted(set(self._exposed.values())))
        return host if is_new else None

    def _cover(self, job_id: str) -> None:
        if self._exposed.pop(job_id, None) is not None:
            self.public = tuple(sorted(set(self._exposed.values())))

    def leave(self, job_id: str) -> None:
        """The job has ended or is gone; a broker that no other job names is left, too."""
        self._cover(job_id)
        place = self._followed.pop(job_id, None)
        if place is None:
            return
        self._users[place] -= 1
        if not self._users[place]:
            del self._users[place]
            self._others.pop(place).close(wait=False)

    def _all(self) -> list[tuple[Address | None, Subscription]]:
        everyone: list[tuple[Address | None, Subscription]] = [*self._others.items()]
        return everyone if self.usual is None else [(None, self.usual), *everyone]

    def _add(self, subscription: Subscription, topic: str) -> None:
        if topic in self._topics:
            subscription.add(topic)
        elif is_plain_topic(topic) and len(self._topics) < MAX_TOPICS:
            self._topics.add(topic)
            subscription.add(topic)

    def _other(self, place: Address, broker: Broker) -> Subscription:
        subscription = self._others.get(place)
        if subscription is None:
            connect_to = self._connect_to
            assert connect_to is not None
            subscription = Subscription(lambda: connect_to(broker), [], self._wake)
            self._others[place] = subscription
            subscription.start()
        return subscription

    def _host(self, broker: Broker) -> str:
        """Where events for a record's broker go, as far as that is known: settings may win."""
        named = _named(broker)
        if named not in self._places or self.usual is None:
            return broker.host
        place = self._places[named] or self.usual.address
        return broker.host if place is None else place[0]

    def _place(self, broker: Broker) -> Address | None:
        """Where a record's broker is; None for the usual one, and for one that we cannot reach."""
        if self._connect_to is None or self._connect is None or self.usual is None:
            return None
        named = _named(broker)
        if named not in self._places:
            try:
                usual = self.usual.address or address(self._connect())
                place = address(self._connect_to(broker))
            except (OSError, MamError, ValueError):
                return None
            self._places[named] = None if place == usual else place
        return self._places[named]


def _named(broker: Broker) -> _Named:
    return broker.host, broker.port, broker.tls, broker.username


def is_plain_topic(topic: str) -> bool:
    """A topic that can be listened to alone: a record that says ``#`` does not get everything."""
    if not 0 < len(topic) <= _MAX_TOPIC_CHARS or any(sign in topic for sign in "+#\0"):
        return False
    try:
        topic.encode()
    except UnicodeEncodeError:
        return False
    return True


def _usual_topic(job_id: str) -> str:
    return f"python/mqtt/jobs/{job_id}/events"
