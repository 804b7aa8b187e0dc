"""One broker, listened to for as long as it takes.

A subscription owns a thread that connects, subscribes, and begins again with a
new client whenever the connection is lost: where the broker is, and with which
login, is asked anew each time, because the embedded one may have moved. What
comes in waits in a bounded row. Messages that are sent while nobody listens are
not asked of the broker (no session is kept there): the registry has them.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from mam_core.errors import MamError
from mam_core.events.client import Address, Client, address
from mam_core.events.event import MAX_EVENT_BYTES
from mam_core.pace import paced_retry

#: How much may wait to be read: whichever is reached first.
MAX_MESSAGES = 10_000
MAX_BYTES = 32 * 1024 * 1024

#: From the open socket to the broker's word that it will tell us: a black hole is left in time.
ANSWER_SEC = 10.0
PAUSES_SEC = (0.1, 5.0)

_FAREWELL_SEC = 0.5

_QOS = 1


class Arrived(NamedTuple):
    """A message as it came."""

    topic: str
    payload: bytes
    at: float


class Turn(NamedTuple):
    """The connection came up (we are listening) or went down, and why."""

    up: bool
    text: str
    at: float


class Drained(NamedTuple):
    """What has come since the last look."""

    arrived: list[Arrived]
    turns: list[Turn]
    lost: int  #: messages that had to go, because nobody looked for too long


class Subscription:
    """Listens to one broker; `wake` is called whenever there is something to drain.

    `connect` makes a client that knows where to go (`connect_async`) or has gone there already.
    """

    def __init__(
        self,
        connect: Callable[[], Client],
        filters: Iterable[str],
        wake: Callable[[], None],
        *,
        max_messages: int = MAX_MESSAGES,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._connect = connect
        self._wake = wake
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._filters = dict.fromkeys(filters)
        self._arrived: deque[Arrived] = deque()
        self._bytes = 0
        self._lost = 0
        self._turns: list[Turn] = []
        self._stop = threading.Event()
        self._session: _Session | None = None
        self._thread = threading.Thread(target=self._run, name="mam-subscription", daemon=True)
        self.up: bool | None = None  #: None until the first try has had an answer
        self.answered = threading.Event()
        self.since = time.monotonic()
        self.text = "connecting"
        self.address: Address | None = None

    def start(self) -> None:
        self._thread.start()

    def close(self, *, wait: bool = True) -> None:
        """The thread ends at once, or by itself once a connect that hangs has failed.

        That one is waited for a moment only: whoever pressed ^C wants to go.
        """
        self._stop.set()
        with self._lock:
            session = self._session
        if session is not None:
            session.over.set()
        if wait and self._thread.is_alive():
            self._thread.join(_FAREWELL_SEC)

    def add(self, topic: str) -> None:
        """Listen to one more topic."""
        with self._lock:
            if topic in self._filters:
                return
            self._filters[topic] = None
            session = self._session
        if session is not None:
            session.subscribe([topic])

    def drain(self) -> Drained:
        with self._lock:
            drained = Drained(list(self._arrived), self._turns, self._lost)
            self._arrived.clear()
            self._turns = []
            self._bytes = self._lost = 0
        return drained

    # -- on our own thread -----------------------------------------------------------------

    def _run(self) -> None:
        shortest, longest = PAUSES_SEC
        pause = shortest
        while not self._stop.is_set():
            text, was_up = self._listen()
            if self._stop.is_set():
                return
            self._turn(False, text)
            pause = shortest if was_up else min(longest, pause * 2)
            # Shortened at random, so that many listeners of one broker do not return as one.
            self._stop.wait(paced_retry(pause) * random.uniform(0.5, 1.0))

    def _listen(self) -> tuple[str, bool]:
        """One connection, from its beginning to its end: why it ended, and whether it was one."""
        try:
            client = self._connect()
        except (OSError, MamError, ValueError) as problem:
            return _words(problem), False
        session = _Session(client, self)
        with self._lock:
            self._session = session
            if self._stop.is_set():
                session.over.set()  # closed while we connected
        try:
            self.address = address(client)
            if client.socket() is None:
                client.reconnect()
            session.begin()
            if not session.over.wait(ANSWER_SEC) and not session.granted:
                session.give_up("the broker does not answer")
            elif not self._stop.is_set():
                session.over.wait()
        except (OSError, ValueError) as problem:
            session.give_up(_words(problem))
        finally:
            with self._lock:
                self._session = None
            session.end()
        return session.why, session.granted

    # -- on the client's thread ------------------------------------------------------------

    def filters(self) -> list[str]:
        with self._lock:
            return list(self._filters)

    def listening(self, client: Client) -> None:
        self._turn(True, f"listening to {client.host}:{client.port}")

    def arrive(self, topic: str, payload: bytes) -> None:
        # Of one that is too long only so much is kept as shows that it is.
        arrived = Arrived(topic, payload[: MAX_EVENT_BYTES + 1], time.monotonic())
        with self._lock:
            self._arrived.append(arrived)
            self._bytes += len(arrived.payload)
            while len(self._arrived) > self._max_messages or self._bytes > self._max_bytes:
                self._bytes -= len(self._arrived.popleft().payload)
                self._lost += 1
        self._wake()

    def _turn(self, up: bool, text: str) -> None:
        with self._lock:
            if up or self.up is not False:
                self.since = time.monotonic()
                self._turns.append(Turn(up, text, self.since))
            self.up, self.text = up, text
        self.answered.set()
        self._wake()


class _Session:
    """One client, from its connection to its end; callbacks come on the client's own thread."""

    def __init__(self, client: Client, owner: Subscription) -> None:
        self._client = client
        self._owner = owner
        self._connected = False
        self._asked: dict[int, list[str]] = {}
        self._lock = threading.Lock()
        self.over = threading.Event()
        self.granted = False
        self.why = "the connection was lost"

    def begin(self) -> None:
        client = self._client
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        client.loop_start()

    def end(self) -> None:
        with suppress(OSError, ValueError):
            self._client.disconnect()
        self._client.loop_stop()

    def subscribe(self, filters: list[str]) -> None:
        """Asked for on every connection: a broker that was restarted knows nothing of the last."""
        with self._lock, suppress(ValueError):
            if not filters or not self._connected:
                return  # all of them are asked for when the connection stands
            _, number = self._client.subscribe([(topic, _QOS) for topic in filters])
            if number is not None:
                self._asked[number] = filters

    def _on_connect(self, client: Client, _: Any, __: Any, code: Any, ___: Any) -> None:
        if code.is_failure:
            self.give_up(f"the broker refused us: {str(code).lower()}")
            return
        with self._lock:
            self._connected = True
        filters = self._owner.filters()
        if not filters:
            self._grant()
        self.subscribe(filters)

    def _on_subscribe(self, client: Client, _: Any, number: int, codes: Any, __: Any) -> None:
        with self._lock:
            filters = self._asked.pop(number, [])
        refused = [topic for topic, code in zip(filters, codes, strict=False) if code.is_failure]
        if self.granted:
            return  # a topic that came later; what it does not bring, the registry does
        if refused and len(refused) == len(filters):
            self.give_up(f"the broker does not let us listen to {refused[0]}")
            return
        self._grant()

    def _grant(self) -> None:
        self.granted = True
        self._owner.listening(self._client)

    def _on_disconnect(self, client: Client, _: Any, __: Any, code: Any, ___: Any) -> None:
        # Or the client would try again by itself, at the old place.
        client.disconnect()
        # Where the broker was killed, the client's words for it are "unspecified error".
        words = str(code).lower()
        why = "" if words == "unspecified error" else f": {words}"
        self.give_up(f"the connection was lost{why}")

    def _on_message(self, _: Client, __: Any, message: Any) -> None:
        try:
            topic = message.topic
        except UnicodeDecodeError:
            topic = ""  # no job's, and dropped as such
        self._owner.arrive(topic, bytes(message.payload))

    def give_up(self, why: str) -> None:
        """It is over; the first who says why is believed."""
        if not self.over.is_set():
            self.why = why
            self.over.set()


def _words(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror.lower()
    return str(problem)
