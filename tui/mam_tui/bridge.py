"""From the feed's threads to the console's one: everything comes over here, in order.

A thread of ours keeps the broker, drains the outbox, sweeps, lists the jobs and
listens to the feed. What it hears it adds to a pile, which stays small by itself,
and rings once; the console takes that at its own pace. So neither a broker that
hangs nor a disk that is slow ever holds a key back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from math import inf
from typing import TYPE_CHECKING

from mam_core.config import Config
from mam_core.errors import MamError
from mam_core.events.feed import EventHeard, Feed, FeedState, Item, JobChanged, Notice, NoticeKind
from mam_core.operations.listing import Listing, listing, query
from mam_core.operations.on_duty import on_duty
from mam_core.operations.panes import Panes
from mam_core.pace import PARTING_SEC, paced_retry
from mam_core.records import Job
from mam_core.summaries import Summary
from mam_core.wiring import open_feed, open_registry
from mam_tui.arrivals import Arrival, Loaded, Removal, Trouble
from mam_tui.folding import Folded, Pile
from mam_tui.state_watch import StateWatch

if TYPE_CHECKING:
    from mam_core.operations.evidence import Hosts
    from mam_core.registry import Registry

_TAKE_SEC = 0.5
#: A registry that is made anew, or brought back from a backup, is not whole at once.
_SETTLED_SEC = 1.0
_AGAIN_SEC = 2.0
#: How long the duties may take to end before the process is stopped all the same.
_LET_GO_SEC = 3.0
#: So many arrivals are added at once: the console's thread must not wait for more.
_SLICE = 200

#: What comes in a stream is taken up so often; the screen is drawn less often than that.
_PACE_SEC = 0.02


class Bridge:
    """Runs from `start` to `close`; `ring` is called from its thread, once for what waits."""

    def __init__(
        self,
        registry_path: str,
        config: Config,
        ring: Callable[[], None],
        *,
        config_path: str | None = None,
        allow_network: bool = False,
        with_duties: bool = True,
        read_only: bool = False,
        panes: Panes | None = None,
        hosts: Hosts | None = None,
    ) -> None:
        self._path = registry_path
        self._config = config
        self._config_path = config_path
        self._allow_network = allow_network
        self._with_duties = with_duties
        self._serves = not read_only
        self._rests = False
        self._turned = threading.Event()  #: whether we serve may be different now
        self._off_duty = threading.Event()  #: nothing is held that others wait for
        self._off_duty.set()
        self._ring = ring
        self._pile = Pile()
        self._rung = False
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._feed: Feed | None = None
        self._thread = threading.Thread(target=self._run, name="mam-bridge", daemon=True)
        self._duties = threading.Thread(target=self._serve, name="mam-duties", daemon=True)
        self._watch = StateWatch(registry_path, config, panes, hosts, self._put)
        self._states = threading.Thread(target=self._look, name="mam-states", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        if self._stop.is_set():
            return  # what has not ended since then will not be waited for twice
        self._stop.set()
        self._turned.set()
        self._watch.heard()
        feed = self._feed
        if feed is not None:
            feed.close()
        deadline = time.monotonic() + PARTING_SEC
        for thread in (self._thread, self._states, self._duties):
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))

    def take(self, *, only_notices: bool = False) -> Folded:
        """All that has arrived; the rest waits where it is. For the console's thread."""
        with self._lock:
            self._rung = False
            return self._pile.take_notices() if only_notices else self._pile.take()

    @property
    def waiting(self) -> int:
        """How many records and events were told since the last time all was taken."""
        return self._pile.count

    def serve(self, wanted: bool) -> None:
        """Whether the duties are done: a console that is read-only sweeps and sends nothing."""
        self._serves = wanted
        self._turned.set()

    @contextmanager
    def resting(self) -> Iterator[None]:
        """While the process is stopped: what others wait for is let go of before, and taken again.

        Not waited for without end: others take the relay over from one that does not move.
        """
        self._rests = True
        self._turned.set()
        self._off_duty.wait(_LET_GO_SEC)
        try:
            yield
        finally:
            self._rests = False
            self._turned.set()

    def rescan(self) -> None:
        """Look at everything anew: the operator does not believe what is shown."""
        if self._feed is not None:
            self._feed.rescan()

    @property
    def state(self) -> FeedState | None:
        """How the feed stands; None while there is none."""
        return self._feed.state if self._feed is not None else None

    # -- on threads of our own -----------------------------------------------------------------

    def _put(self, *arrivals: Arrival) -> None:
        for at in range(0, len(arrivals), _SLICE):
            with self._lock:
                self._pile.add(arrivals[at : at + _SLICE])
                rings = not self._rung
                self._rung = True
            if rings:
                self._ring()

    def _serve(self) -> None:
        """The duties of a long-lived command; entering may take as long as a broker's start."""
        while not self._stop.is_set():
            self._off_duty.clear()
            if not self._is_wanted:
                self._off_duty.set()
                self._until_turned()
                continue
            duty = on_duty(
                self._path,
                self._config,
                config_path=self._config_path,
                allow_network=self._allow_network,
            )
            try:
                with duty:
                    while self._is_wanted and not self._stop.is_set():
                        self._until_turned()
            except (MamError, OSError) as problem:
                self._off_duty.set()
                self._put(Trouble(str(problem), is_blind=False))
                self._stop.wait(paced_retry(_AGAIN_SEC))

    @property
    def _is_wanted(self) -> bool:
        return self._serves and not self._rests

    def _until_turned(self) -> None:
        self._turned.wait()
        self._turned.clear()

    def _run(self) -> None:
        said = ""
        while not self._stop.is_set():
            try:
                self._listen()
            except Exception as problem:  # never silent: the screen says it, and we begin again
                if str(problem) != said:
                    said = str(problem)
                    self._put(Trouble(said))
                self._begin_the_rest()
                self._stop.wait(paced_retry(_AGAIN_SEC))

    def _begin_the_rest(self) -> None:
        """What the first picture need not wait for; once."""
        for thread in (self._states, self._duties) if self._with_duties else (self._states,):
            if thread.ident is None and not self._stop.is_set():
                thread.start()

    def _look(self) -> None:
        while not self._stop.is_set():
            try:
                with self._opened() as registry:
                    self._watch.run(registry, self._stop)
            except (MamError, OSError):
                self._stop.wait(paced_retry(_AGAIN_SEC))  # the feed says what is wrong

    def _opened(self) -> Registry:
        return open_registry(self._path, config=self._config, allow_network=self._allow_network)

    def _listen(self) -> None:
        with ExitStack() as opened:
            feed = open_feed(
                self._path,
                self._config,
                allow_network=self._allow_network,
                pace_sec=_PACE_SEC,
            )
            opened.enter_context(feed)
            self._feed = feed
            opened.callback(self._forget_feed)
            registry = opened.enter_context(self._opened())
            # As of the feed's beginning: whatever changes from then on is told on top of this.
            opening = feed.take_opening()
            jobs = Listing(*opening) if opening is not None else listing(registry, query())
            self._put(Loaded(jobs))
            removal = self._tell_removal(registry, "")
            self._watch.heard(jobs.jobs)
            self._begin_the_rest()
            look_at = inf
            while not self._stop.is_set():
                if items := feed.take(_TAKE_SEC):
                    self._put(*items)
                    self._notice(items)
                    if any(map(_may_tell_of_removal, items)):
                        look_at = time.monotonic() + _SETTLED_SEC
                if time.monotonic() >= look_at:
                    look_at, removal = inf, self._tell_removal(registry, removal)

    def _tell_removal(self, registry: Registry, said: str) -> str:
        """Once; the answer is what is to be said of it now, for the next time."""
        removal = registry.store.removal()
        if removal and removal != said:
            self._put(Removal(removal))
        return removal

    def _notice(self, items: list[Item]) -> None:
        """Whatever may change what an agent is seen to do."""
        changed = [one.job for one in items if isinstance(one, JobChanged)]
        jobs = [Summary.of(job) for job in changed if isinstance(job, Job)]
        if changed or any(isinstance(one, EventHeard) for one in items):
            self._watch.heard(jobs)

    def _forget_feed(self) -> None:
        self._feed = None


def _may_tell_of_removal(item: Item) -> bool:
    """A folder is there again, which may be another one; or a record is gone."""
    if isinstance(item, Notice):
        return item.kind is NoticeKind.DIRECTORY_BACK
    return isinstance(item, JobChanged) and item.job is None
