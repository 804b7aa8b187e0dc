"""The outbox of a registry in memory: a list, and a bell that threads can hear."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType

from mam_core.audit import warn
from mam_core.events.post import Post


class MemoryOutbox:
    """Posts by job and number; one relay at a time."""

    def __init__(self) -> None:
        self._posts: dict[tuple[int, str], Post] = {}
        self._bell: tuple[int, int] | None = None  #: a pipe, while there is a relay
        self._lanes: Mapping[str, bool] = {}
        self._lock = threading.Lock()
        self._relay = threading.Lock()

    def put(self, post: Post) -> None:
        self._posts[post.seq, post.job_id] = post

    def posts(self, limit: int, past: Mapping[str, int] = MappingProxyType({})) -> list[Post]:
        keys = sorted(key for key in list(self._posts) if key[0] > past.get(key[1], -1))
        return [self._posts[key] for key in keys[:limit]]

    def holds(self, job_id: str, seq: int) -> bool:
        return (seq, job_id) in self._posts

    def set_aside(self, post: Post, why: str) -> None:
        warn(f"event {post.seq} of job {post.job_id} is never sent: {why}")
        self.done([post])

    def done(self, posts: Iterable[Post]) -> None:
        for post in posts:
            self._posts.pop((post.seq, post.job_id), None)

    def ring(self) -> bool:
        with self._lock:
            if self._bell is None:
                return False
            with suppress(BlockingIOError):  # so full that nobody can miss it
                os.write(self._bell[1], b"!")
            return True

    def lanes(self) -> Mapping[str, bool]:
        return self._lanes

    def tell_lanes(self, lanes: Mapping[str, bool]) -> None:
        self._lanes = lanes

    def wait(self, timeout: float, others: Mapping[int, int] = MappingProxyType({})) -> bool:
        assert self._bell is not None, "only the relay waits"
        bell = self._bell[0]
        poll = select.poll()
        poll.register(bell, select.POLLIN)
        for fd, events in others.items():
            poll.register(fd, events)
        if not any(fd == bell for fd, _ in poll.poll(timeout * 1000)):
            return False
        with suppress(BlockingIOError):
            while os.read(bell, 4096):
                pass
        return True

    @contextmanager
    def relaying(self) -> Iterator[bool]:
        if not self._relay.acquire(blocking=False):
            yield False
            return
        try:
            bell = os.pipe()
            for end in bell:
                os.set_blocking(end, False)
            with self._lock:
                self._bell = bell
                self._lanes = {}
            try:
                yield True
            finally:
                with self._lock:
                    self._bell = None
                    for end in bell:
                        os.close(end)
        finally:
            self._relay.release()
