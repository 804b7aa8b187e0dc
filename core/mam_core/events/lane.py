"""A lane: the relay's way to one broker.

It touches no file. It sends what it is offered in that order, with many on the
way at once, and reports what the broker took. When the connection is lost,
everything that was not taken is reported as returned, and the relay offers it
again once the lane is up: nothing is kept here that is not on disk.

Only connecting has a thread of its own. All else happens in the relay's: two
threads that handed each other posts spent more time on the interpreter's lock
than on work.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from mam_core.events.connecting import (
    Connecting,
    Dial,
    Lost,
    Sender,
    hang_up,
    interest,
    wait_for,
    words,
)
from mam_core.events.post import Post
from mam_core.pace import paced_retry
from mam_core.record_parts import Broker

#: On the way at once: enough that the broker has work while we write the history of the last ones.
WINDOW = 200
_WINDOW_BYTES = 4 * 1024 * 1024

#: A broker that takes nothing for so long is hung up on.
_ACK_SEC = 20.0
#: Between two tries to connect: growing, and bounded.
_PAUSES_SEC = (0.1, 10.0)
#: How often a broker may hang up on one and the same post, sent alone, before it is blamed.
_STRIKES = 4
#: On our way out: how long to wait for what is on the way.
_LAST_ACKS_SEC = 1.0


class Report(NamedTuple):
    """What happened since the last one."""

    taken: list[Post]  #: by the broker, in the order they were offered
    returned: list[Post]  #: not taken; to be offered again
    hopeless: list[tuple[Post, str]]  #: never to be offered again, and why


class Lane:
    """One broker, for one thread."""

    def __init__(self, broker: Broker, dial: Dial, ring: Callable[[], object]) -> None:
        self.broker = broker
        self.trouble = ""  #: why it is not up, if that is known
        self._dial = dial
        self._ring = ring
        self._client: Sender | None = None
        self._queue: deque[Post] = deque()
        self._on_the_way: dict[int, Post] = {}
        self._acked: set[int] = set()
        self._heard_at = 0.0
        self._got_some = False
        self._suspect: Post | None = None
        self._strikes = 0
        self._blamed: set[str] = set()
        self._failures = 0
        self._try_at = 0.0
        self._up_since = 0.0
        self._connecting: Connecting | None = None

    @property
    def is_up(self) -> bool:
        return self._client is not None

    def offer(self, post: Post) -> None:
        """To be sent, after those that were offered before, by the next `work`."""
        self._queue.append(post)

    def watched(self) -> tuple[int, int] | None:
        """What to poll before the next `work`, and for what."""
        sock = self._client.socket() if self._client else None
        if self._client is None or sock is None:
            return None
        return sock.fileno(), interest(self._client)

    def is_impatient(self) -> bool:
        """There is work before anything happens on the network."""
        if self._client is None:
            return self._connecting is None and time.monotonic() >= self._try_at
        # A TLS socket may have read more than it gave us, of which poll knows nothing.
        pending = getattr(self._client.socket(), "pending", None)
        return bool(pending and pending())

    def work(self) -> Report:
        """Whatever can be done without waiting."""
        report = Report([], [], [])
        if self._client is None:
            self._look_for_connection()
        if self._client is not None:
            try:
                self._turn(self._client)
                self._settle(report)
                self._send(self._client, report)
            except (Lost, OSError, ValueError) as problem:
                self._settle(report)  # what it took before it hung up
                self._lose(words(problem), report)
        return report

    def close(self) -> Report:
        """Hang up, after a moment for what is on the way."""
        if self._connecting is not None:
            self._connecting.abandon()
        report = Report([], [], [])
        deadline = time.monotonic() + _LAST_ACKS_SEC
        with suppress(Lost, OSError, ValueError):
            while self._client and self._on_the_way and time.monotonic() < deadline:
                wait_for(self._client, 0.1)
                self._turn(self._client)
                self._settle(report)
        report.returned.extend([*self._on_the_way.values(), *self._queue])
        if self._client is not None:
            hang_up(self._client)
            self._client = None
        return report

    # -- sending ---------------------------------------------------------------------------

    def _turn(self, client: Sender) -> None:
        if client.socket() is None or client.loop_read() or client.loop_write():
            raise Lost("the connection was lost")
        if client.loop_misc():
            raise Lost("it does not answer")
        if self._on_the_way and time.monotonic() - self._heard_at > _ACK_SEC:
            raise Lost("it takes nothing")

    def _send(self, client: Sender, report: Report) -> None:
        window = WINDOW if self._suspect is None else 1
        size = sum(len(post.payload) for post in self._on_the_way.values()) if self._queue else 0
        while self._queue and len(self._on_the_way) < window and size < _WINDOW_BYTES:
            post = self._queue.popleft()
            if not self._on_the_way:
                self._heard_at = time.monotonic()
            try:
                sent = client.publish(post.topic, post.payload, 1)
            except ValueError as problem:
                report.hopeless.append((post, f"it cannot be sent: {problem}"))
                continue
            self._on_the_way[sent.mid] = post
            size += len(post.payload)
            if sent.rc != 0:
                raise Lost("the connection was lost")

    def _settle(self, report: Report) -> None:
        """What was taken, in the order of sending, so that no number is skipped."""
        if not self._acked:
            return
        self._heard_at = time.monotonic()
        self._got_some = True
        self._suspect, self._strikes, self._failures = None, 0, 0
        for mid in list(self._on_the_way):
            if mid not in self._acked:
                break
            self._acked.discard(mid)
            report.taken.append(self._on_the_way.pop(mid))

    def _lose(self, why: str, report: Report) -> None:
        assert self._client is not None
        hang_up(self._client)
        self._client = None
        self._blame(report)
        report.returned.extend([*self._on_the_way.values(), *self._queue])
        self._on_the_way.clear()
        self._queue.clear()
        self._acked.clear()
        if time.monotonic() - self._up_since > _PAUSES_SEC[1]:
            self._failures = 0  # it was up for a while: a new story
        self._fail(why)

    def _blame(self, report: Report) -> None:
        """A broker may hang up on what it does not like: then the lane goes on one by one.

        Whoever is hung up on again and again, alone, would keep the others waiting for ever.
        """
        head = next(iter(self._on_the_way.values()), None)
        if head is None or self._got_some:
            return
        if self._suspect is not None and head[:3] == self._suspect[:3]:
            self._strikes += 1
        else:
            self._suspect, self._strikes = head, 1
        # Mostly it is the topic, and then the next ones on it need no long trial.
        if self._strikes > (1 if head.topic in self._blamed else _STRIKES):
            self._blamed.add(head.topic)
            del self._on_the_way[next(iter(self._on_the_way))]
            report.hopeless.append((head, "the broker hangs up whenever it gets it"))
            self._suspect, self._strikes, self._failures = None, 0, 0

    # -- connecting ------------------------------------------------------------------------

    def _look_for_connection(self) -> None:
        if self._connecting is None:
            if time.monotonic() >= self._try_at:
                self._connecting = Connecting(self.broker, self._dial, self._ring)
            return
        result = self._connecting.result()
        if result is None:
            return
        self._connecting = None
        if isinstance(result, str):
            self._fail(result)
            return
        self._client = result
        self._client.on_publish = lambda c, u, mid, code, properties: self._acked.add(mid)
        self._got_some = False
        self._up_since = self._heard_at = time.monotonic()
        self.trouble = ""

    def _fail(self, why: str) -> None:
        """Try again later, and never at the same moment as all others that lost this broker."""
        least, most = _PAUSES_SEC
        pause = paced_retry(min(most, least * 2**self._failures)) * random.uniform(0.5, 1.0)
        self._failures += 1
        self._try_at = time.monotonic() + pause
        self.trouble = why
