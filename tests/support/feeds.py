"""A registry, a broker and a feed for tests; and a hand that publishes as a relay would."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mam_core.clock import fine_stamp
from mam_core.config import load
from mam_core.events.embedded import Role, address, credentials
from mam_core.events.event import Event, EventName
from mam_core.events.feed import EventHeard, Feed, Item, JobChanged, Notice, NoticeKind
from mam_core.events.post import Post
from mam_core.registry import Registry
from mam_core.wiring import client_for, open_registry
from tests.support.brokers import Ear, embedded
from tests.support.handles import close_later
from tests.support.patience import PATIENCE_SEC


class Listener:
    """The consumer of a feed: takes items until it has what a test waits for."""

    def __init__(self, feed: Feed, registry: Registry) -> None:
        self.feed = feed
        self._registry_has = registry.get
        self.items: list[Item] = []

    def until(self, is_so: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + PATIENCE_SEC
        while not (answer := is_so()):
            assert time.monotonic() < deadline, f"not in time: {what}; last: {self.items[-5:]}"
            self.items += self.feed.take(0.2)
        return answer

    def quiet(self, seconds: float = 0.5) -> list[Item]:
        """What still comes; for what must not come."""
        before = len(self.items)
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.items += self.feed.take(left)
        return self.items[before:]

    def events(self, job_id: str | None = None) -> list[EventHeard]:
        heard = [item for item in self.items if isinstance(item, EventHeard)]
        return [one for one in heard if job_id in (None, one.event.job_id)]

    def hears_all(self, job_id: str, count: int) -> None:
        """Wait for so many events of a job, and for the record that they left."""
        self.until(lambda: len(self.events(job_id)) >= count, f"{count} events")
        now = self._registry_has(job_id)
        self.until(lambda: [one.job for one in self.changes(job_id)][-1:] == [now], "the record")

    def seqs(self, job_id: str) -> list[int]:
        return [one.event.seq for one in self.events(job_id)]

    def changes(self, job_id: str | None = None) -> list[JobChanged]:
        changed = [item for item in self.items if isinstance(item, JobChanged)]
        return [one for one in changed if job_id in (None, one.job_id)]

    def notices(self, *kinds: NoticeKind) -> list[Notice]:
        said = [item for item in self.items if isinstance(item, Notice)]
        return [one for one in said if not kinds or one.kind in kinds]

    def hears(self, *kinds: NoticeKind) -> Notice:
        """Wait for such a notice that was not there before."""
        before = len(self.notices(*kinds))
        self.until(lambda: len(self.notices(*kinds)) > before, f"{kinds}")
        return self.notices(*kinds)[-1]

    def is_up(self) -> None:
        self.until(lambda: self.feed.state.broker_up, "the broker is up")
        self.until(lambda: self.notices(NoticeKind.BROKER_UP), "and it was said")


class Station:
    """One registry in a private folder, its broker, and a connection of our own to it."""

    def __init__(self, root: Path, kind: str | None) -> None:
        self.path = root / "jobs"
        self.registry = open_registry(str(self.path))
        self.broker = None if kind is None else embedded(self.path, kind)

    @contextmanager
    def feed(self, **more: Any) -> Iterator[Feed]:
        """A feed with a handle of its own, as a console makes it."""
        config, path = load(), str(self.path)
        if self.broker is not None:
            more = {
                "connect": lambda: client_for(path, config),
                "connect_to": lambda broker: client_for(path, config, broker),
                **more,
            }
        more = {"connect": None, **more}
        with open_registry(path) as registry, Feed(registry, registry_path=path, **more) as feed:
            yield feed

    @contextmanager
    def listening(self, **more: Any) -> Iterator[Listener]:
        with self.feed(**more) as feed:
            yield Listener(feed, self.registry)

    def registry_of(self, path: Path) -> Registry:
        """The same kind of registry at another place: a folder that was moved aside."""
        return close_later(open_registry(str(path)))

    def close(self) -> None:
        self.registry.store.close()


class Hand:
    """Publishes: numbers an event, sends it, writes it down; in order, and again until it went."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    def post(self, job_id: str, *names: EventName | str, **more: Any) -> list[Post]:
        """Into the outbox, as a publisher does while the broker is down."""
        posts = []
        for name in names:
            with self.registry.store.transaction() as tx:
                job = tx.get(job_id)
                seq = job.last_seq + 1
                tx.put(job.evolve(last_seq=seq, revision=job.revision + 1), None)
                event = Event(job_id, max(1, job.attempt), seq, name, "", f"number {seq}", **more)
                payload = event.encode(job.auth_token)
                posts.append(
                    Post(job_id, event.attempt, seq, job.events_topic, job.broker, payload)
                )
                tx.post(posts[-1])
        return posts

    def taken(self, posts: Iterable[Post]) -> None:
        """A broker has them: into the audit log, out of the outbox."""
        for post in posts:
            line = {"timestamp": fine_stamp(time.time()), "event": "published"}
            line |= {"job_id": post.job_id, "payload": json.loads(post.payload)}
            self.registry.store.audit.append(post.job_id, line)
            self.registry.store.outbox.done([post])

    def publish(self, ear: Ear, job_id: str, *names: EventName | str, **more: Any) -> None:
        for post in self.post(job_id, *names, **more):
            ear.client.publish(post.topic, post.payload, qos=1).wait_for_publish(PATIENCE_SEC)
            self.taken([post])


def ear_of(station: Station, role: Role = Role.OPERATOR) -> Ear:
    """A client at the station's broker, not yet connected."""
    path = str(station.path)
    return Ear(address(path).port, credentials(path, role))
