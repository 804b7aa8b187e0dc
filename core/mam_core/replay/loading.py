"""How the past gets into memory: a little at a time, on a thread, and never twice.

The logs are read once from the beginning, afterwards from where the last look ended.
Whoever runs it takes the progress as it comes and may stop at any time: what was read
stays read, and the next run goes on. Events that no broker has taken yet are on their
way into the log, and are read from the outbox.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from mam_core.audit import AuditEvent
from mam_core.audit_base import Logs
from mam_core.clock import Clock
from mam_core.errors import MamError
from mam_core.events.event import BadEvent, parse
from mam_core.replay.folding import Fold
from mam_core.replay.past import Past
from mam_core.replay.unlogged import fold_of, lines_of, unlogged
from mam_core.stores.base import Store
from mam_core.summaries import Summary

#: So many jobs without much of a log are one step of the progress.
_JOBS_A_STEP = 100
#: So many posts of the outbox are looked at.
_MAX_POSTS = 5_000
#: Changes in one run; of fewer nobody notices that they are looked through.
_MANY = 50_000


class Progress(NamedTuple):
    """How far a run is; the second half puts in order what the first has read."""

    done: int  #: bytes while reading, changes while sorting
    total: int
    is_sorting: bool = False

    @property
    def share(self) -> float:
        """0 to 1, reading and sorting together; sorting takes about a tenth of the time."""
        part = min(1.0, self.done / self.total) if self.total else 1.0
        return 0.9 + part / 10 if self.is_sorting else part * 0.9


class _Reader:
    """One job: its number, its fold, and how far its log was read."""

    __slots__ = ("fold", "number", "recorded", "until")

    def __init__(self, number: int, fold: Fold) -> None:
        self.number = number
        self.fold = fold
        self.until = 0
        self.recorded: Summary | None = None  #: that it was read from, while there is no log


class Loading:
    """Fills a `Past`. For one thread at a time; the past may be looked at by another."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.past = Past()
        self.lines = 0
        self.damaged = 0  #: lines that were passed over
        #: A log became shorter or is gone: somebody replaced or removed it, and only a new
        #: `Loading` shows what there is now.
        self.is_outdated = False
        self._store = store
        self._clock = clock
        self._readers: dict[str, _Reader] = {}

    def run(self, job_ids: Iterable[str] | None = None) -> Iterator[Progress]:
        """Read what is new, of all jobs or of those that are known to have changed."""
        posts = posted(self._store)  # first: what has left the outbox by then is in the log
        with self._store.audit.logs() as logs:
            sizes = logs.sizes(job_ids)
            if job_ids is None:
                self.is_outdated |= any(
                    reader.until and job_id not in sizes for job_id, reader in self._readers.items()
                )
            starts = {job_id: self._start(job_id, size) for job_id, size in sizes.items()}
            total = sum(sizes.values()) - sum(starts.values())
            done = 0
            for count, (job_id, since) in enumerate(starts.items()):
                if since < sizes[job_id]:
                    for read in self._read(logs, job_id, since):
                        done += read
                        yield Progress(done, total)
                if count % _JOBS_A_STEP == 0:
                    yield Progress(done, total)
        if job_ids is None:
            self._take_unlogged({job_id for job_id, size in sizes.items() if size})
        self._take(posts)
        fresh = len(self.past.columns) - self.past.changes
        for sorted_by_now in self.past.settle():
            yield Progress(sorted_by_now, fresh, is_sorting=True)
        if fresh > _MANY:
            # It stays as long as the past does. A collector that looks through all of it makes
            # a pause of a tenth of a second, in the middle of somebody's step.
            gc.freeze()

    def finish(self) -> Past:
        """Run to the end, for whoever needs no progress."""
        for _ in self.run():
            pass
        return self.past

    def _start(self, job_id: str, size: int) -> int:
        reader = self._readers.get(job_id)
        if reader is None:
            return 0
        if size < reader.until:
            self.is_outdated = True
            return size
        return reader.until

    def _read(self, logs: Logs, job_id: str, since: int) -> Iterator[int]:
        reader = self._readers.get(job_id)
        if reader is None:
            number = self.past.columns.new_job(job_id)
            reader = self._readers[job_id] = _Reader(number, Fold(logs.meta(job_id)))
        now = self._clock.now()
        add = self.past.columns.add
        for piece in logs.pieces(job_id, since):
            for line in piece.lines:
                if (change := reader.fold.read(line, now)) is not None:
                    add(reader.number, change)
            self.lines += len(piece.lines)
            self.damaged += piece.damaged
            read, reader.until = piece.until - reader.until, piece.until
            yield read

    def _take_unlogged(self, logged: set[str]) -> None:
        now = self._clock.now()
        for job in unlogged(self._store, logged):
            reader = self._readers.get(job.job_id)
            if reader is None:
                number = self.past.columns.new_job(job.job_id)
                reader = self._readers[job.job_id] = _Reader(number, fold_of(job))
            lines = lines_of(job)
            if reader.recorded is not None:  # another tool has changed it since
                lines = lines[-1:] if reader.recorded != job else []
            reader.recorded = job
            for line in lines:
                if (change := reader.fold.read(line, now)) is not None:
                    self.past.columns.add(reader.number, change)

    def _take(self, posts: list[tuple[str, dict[str, Any]]]) -> None:
        now = self._clock.now()
        for job_id, line in posts:
            reader = self._readers.get(job_id)
            if reader is not None and (change := reader.fold.read(line, now)) is not None:
                self.past.columns.add(reader.number, change)


def posted(store: Store) -> list[tuple[str, dict[str, Any]]]:
    """The events that wait in the outbox, as the lines that they will be; the oldest first."""
    try:
        posts = store.outbox.posts(_MAX_POSTS)
    except (OSError, MamError):
        return []
    lines = []
    for post in posts:
        try:
            content = parse(post.payload).content
        except BadEvent:
            continue
        line = {"event": AuditEvent.PUBLISHED, "payload": content, "said_at": post.said_at}
        lines.append((post.job_id, line | {"timestamp": content.get("timestamp")}))
    return lines
