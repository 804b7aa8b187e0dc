"""Every attempt as a bar, for the views that show time: read while one of them is seen.

What the records tell is there at once; what only the logs know (earlier attempts, waits, costs,
jobs whose record is gone) follows, the newest first. Reading is done on a thread that takes no
more than its share of the machine; what it found is put in by the console's own thread.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from mam_core.operations.bars import Bar, BarReader, Dimension, bar_of
from mam_core.operations.lanes import Lanes
from mam_core.operations.statistics import Statistics
from mam_core.pace import paced_retry
from mam_core.records import Status
from mam_core.summaries import Summary
from mam_tui.folding import Folded
from mam_tui.threads import started

if TYPE_CHECKING:
    from mam_tui.desk import Desk

#: After a change, before its log is read: the log is written a moment later than it is told.
_PAUSE_SEC = 0.5
#: Of logs at a time: so many, for so long; then somebody else may have the machine for as long.
_SLICE = 200
_SLICE_SEC = 0.02
_AGAIN_SEC = 2.0
#: They may begin a wait for a person; in one, whatever is told ends it.
_WAITING_EVENTS = ("state", "permission_required")


class _Found(NamedTuple):
    """From the reading thread."""

    bars: dict[str, tuple[Bar, ...]]
    lanes: Lanes | None = None  #: all that the records tell, to begin with
    statistics: Statistics | None = None  #: the same, which takes longer


class BarFeed:
    """Of one desk. All of it is for the console's thread, but what is said to be otherwise."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.lanes = Lanes()
        self.statistics = Statistics()
        self.version = 0  #: another number: something in them is different
        self.is_loaded = False  #: they hold at least what the records tell
        self.trouble = ""
        self._asked: dict[str, Summary | None] = {}  #: what each job was when its bars were asked
        self._found: deque[_Found] = deque()
        self._changed = threading.Condition()
        self._wanted: dict[str, Summary | None] = {}  #: None: the record is gone
        self._everything: list[Summary] | None = None
        self._has_begun = self._has_read_all = self._is_reading = False
        self._is_watched = self._is_over = False
        self._ring: Callable[[], object] = lambda: None
        self._thread: threading.Thread | None = None
        self.logs_read = 0  #: for whoever measures

    @property
    def left(self) -> int:
        """How many logs are still to be read; a few that have grown are not worth a word."""
        left = len(self._wanted)
        return left if not self._has_read_all or left > _SLICE else 0

    @property
    def is_complete(self) -> bool:
        """Everything was read once, and all of it is put in."""
        return self._has_read_all and not self._found

    @property
    def is_busy(self) -> bool:
        """Something is still to be read, or to be taken."""
        with self._changed:
            waits = self._wanted or self._everything is not None
            return bool(waits or self._is_reading or self._found)

    # -- while it is seen ----------------------------------------------------------------------

    def watch(self, ring: Callable[[], object], *, is_loading: bool = False) -> None:
        """From now on; `ring` is called on the reading thread when there is something to take.

        While the board has no jobs yet, nothing is begun: they come as a batch.
        """
        self._ring = ring
        if not is_loading:
            self.catch_up()
        with self._changed:
            self._is_watched = True
            if self._thread is None and not self._is_over:
                self._thread = started("mam-bars", self._go_on)
            self._changed.notify()

    def rest(self, ring: Callable[[], object]) -> None:
        """Of whoever watched by this; another one may have begun to watch before that is heard."""
        with self._changed:
            if self._ring == ring:
                self._is_watched = False

    def close(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(1.0)

    def catch_up(self) -> None:
        """Whatever has changed while nobody looked; a comparison of what the board has."""
        rows = self._desk.live.rows
        if not self._has_begun:
            self._begin([row.summary for row in rows.values() if row.summary is not None])
            return
        wanted: dict[str, Summary | None] = {}
        for job_id, row in rows.items():
            now = row.summary
            if now is not None and (now is not self._asked.get(job_id) or row.is_running):
                wanted[job_id] = now
        for job_id, was in self._asked.items():
            if was is not None and job_id not in rows:
                wanted[job_id] = None
        self._want(wanted)

    def take(self, folded: Folded) -> None:
        """A batch of changes, after the board has taken it."""
        if folded.loaded is not None:
            self.catch_up()
        wanted: dict[str, Summary | None] = {}
        for job_id, record in folded.records.items():
            if record is None or isinstance(record, Summary):
                wanted[job_id] = record
        rows = self._desk.live.rows
        for job_id, news in folded.news.items():
            row = rows.get(job_id)
            if row is not None and row.is_running and self._may_wait(job_id, news):
                wanted[job_id] = row.summary
        self._want(wanted)

    def _may_wait(self, job_id: str, news: dict[str, object]) -> bool:
        if "state" in news or news.get("event") in _WAITING_EVENTS:
            return True
        last = self.lanes.of(job_id)[-1:]
        return any(wait.ended_at is None for bar in last for wait in bar.waits)

    def drain(self) -> bool:
        """What the thread has found is put in; True when something is different now."""
        before = self.version
        while self._found:
            found = self._found.popleft()
            if found.lanes is not None:
                self.lanes = found.lanes
                self.version += 1
            if found.statistics is not None:
                self.statistics = found.statistics
                self.is_loaded = True
                self.version += 1
            for job_id, bars in found.bars.items():
                self.version += self.lanes.put(job_id, bars)
                for bar in bars:
                    self.statistics.put(bar)
        return self.version != before

    def _begin(self, jobs: list[Summary]) -> None:
        self._has_begun = True
        self._asked = {job.job_id: job for job in jobs}
        with self._changed:
            self._everything = jobs
            self._changed.notify()

    def _want(self, wanted: dict[str, Summary | None]) -> None:
        if wanted:
            self._asked.update(wanted)
            with self._changed:
                self._wanted.update(wanted)
                self._changed.notify()

    # -- on the thread -------------------------------------------------------------------------

    def _go_on(self) -> None:
        with ExitStack() as opened:
            reader: BarReader | None = None
            while self._is_due():
                try:
                    if reader is None:
                        opened.close()
                        reader = BarReader(opened.enter_context(self._desk.open_registry()))
                    self._read(reader)
                    self.trouble = ""
                except Exception as problem:  # never silent, and never the end of reading
                    reader = None
                    self.trouble = str(problem) or type(problem).__name__
                    self._ring()
                    self._sleep(paced_retry(_AGAIN_SEC))

    def _is_due(self) -> bool:
        """Waits until there is something to read for somebody; False: it is over."""
        with self._changed:
            self._is_reading = False
            self._changed.wait_for(
                lambda: (
                    self._is_over
                    or (self._is_watched and (self._wanted or self._everything is not None))
                )
            )
            self._is_reading = not self._is_over
            return self._is_reading

    def _sleep(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_over, seconds)

    def _read(self, reader: BarReader) -> None:
        if self._everything is not None:
            self._read_records(reader)
        else:
            self._sleep(_PAUSE_SEC)
        while self._wanted and self._is_watched and not self._is_over:
            began = time.monotonic()
            self._read_slice(reader)
            self._ring()
            self._sleep(max(_SLICE_SEC, time.monotonic() - began))
        self._has_read_all = self._has_read_all or not self._wanted

    def _read_records(self, reader: BarReader) -> None:
        with self._changed:
            jobs, self._everything = self._everything or [], None
        bars = [bar for job in jobs if (bar := bar_of(job)) is not None]
        lanes = Lanes(bars)
        lanes.packed(Dimension.SESSION)  # here, and not when a key waits for it
        self._found.append(_Found({}, lanes=lanes))
        self._ring()
        self._found.append(_Found({}, statistics=Statistics(bars)))
        self._ring()
        wanted: dict[str, Summary | None] = {job.job_id: job for job in _newest_first(jobs)}
        wanted.update(dict.fromkeys(reader.gone({job.job_id for job in jobs})))
        with self._changed:
            self._wanted = {**self._wanted, **wanted, **self._wanted}

    def _read_slice(self, reader: BarReader) -> None:
        until = time.monotonic() + _SLICE_SEC
        bars: dict[str, tuple[Bar, ...]] = {}
        try:
            while len(bars) < _SLICE and time.monotonic() < until:
                with self._changed:
                    job_id = next(iter(self._wanted), None)
                    if job_id is None:
                        break
                    job = self._wanted.pop(job_id)
                bars[job_id] = reader.read_gone(job_id) if job is None else reader.read(job)
                self.logs_read += 1
        finally:
            self._found.append(_Found(bars))


def _newest_first(jobs: Iterable[Summary]) -> list[Summary]:
    """Those that were never claimed have no bars."""
    tried = [job for job in jobs if job.attempt]
    tried.sort(key=lambda job: (job.status is Status.RUNNING, job.updated_at), reverse=True)
    return tried
