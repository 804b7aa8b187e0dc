"""The console's one list of what needs a person, kept up by every batch of changes.

The list itself is the core's. Here it is told what the board is told, and the board is told
which of its jobs are in it, so that they can be filtered like anything else. It begins
after the first jobs are on the screen: reading its modules would hold them up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mam_core.summaries import Summary
from mam_tui.folding import Folded
from mam_tui.model import Board

if TYPE_CHECKING:
    from mam_core.operations.attention import Need
    from mam_core.operations.needs import Needs
    from mam_core.operations.shown import Shown

#: Between two looks for those that only time takes away.
_OLD_SEC = 60.0
#: Between two looks for jobs that nobody will claim: at least this, and many times what one took.
_PACE_SEC = 0.5
_SHARE = 30
#: After so long without a change one more look, for time alone.
_AGAIN_SEC = 5.0


class Needing:
    """Of one board; for the console's own thread."""

    def __init__(self, board: Board, clock: Callable[[], float]) -> None:
        self.version = 0  #: another number: the list is another
        self._board = board
        self._clock = clock
        self._needs: Needs | None = None
        self._shown: dict[str, Shown] = {}  #: told before the list began
        self._looked_at = 0.0
        self._stuck_at = 0.0  #: when to look for them again, by a clock that does not jump
        self._stuck_in = -1  #: the board's version that was looked at

    @property
    def has_begun(self) -> bool:
        return self._needs is not None

    @property
    def is_behind(self) -> bool:
        """The board has changed since jobs that nobody will claim were looked for."""
        return self._needs is not None and self._board.version != self._stuck_in

    def begin(self) -> Folded:
        """With all jobs that the board has; what it should be told of them."""
        from mam_core.operations.needs import Needs

        self._needs = made = Needs()
        now = self._looked_at = self._clock()
        rows = self._board.rows
        made.load((row.summary for row in rows.values() if row.summary is not None), now)
        for job_id, shown in self._shown.items():
            row = rows.get(job_id)
            if row is not None and row.summary is not None:
                made.put(row.summary, now, shown=shown)
        self._shown.clear()
        self.version += 1
        return _only_news(self._news(need.job_id for need in made))

    def take(self, folded: Folded) -> Folded:
        """The same batch, and with it which jobs need a person now, or no longer do."""
        needs = self._needs
        if needs is None:
            self._shown.update(folded.shown)
            return folded
        now, loaded = self._clock(), folded.loaded
        changed: set[str] = set()
        told: Mapping[str, Summary] = {}
        if loaded is not None:
            jobs = loaded.jobs.jobs
            changed.update(need.job_id for need in needs)
            needs.load(jobs, now)
            changed.update(need.job_id for need in needs)
            told = {job.job_id: job for job in jobs if job.job_id in folded.shown}
        for job_id, record in folded.records.items():
            if not isinstance(record, Summary):
                differs = needs.remove(job_id)
            else:
                differs = needs.put(record, now, shown=folded.shown.get(job_id))
            if differs:
                changed.add(job_id)
        for job_id, shown in folded.shown.items():
            if job_id in folded.records:
                continue
            summary = told[job_id] if job_id in told else self._summary(job_id)
            if summary is not None and needs.put(summary, now, shown=shown):
                changed.add(job_id)
        return self._with(folded, changed)

    def put_aside(self, job_id: str) -> Folded:
        """The operator knows of it."""
        gone = self._needs is not None and self._needs.put_aside(job_id)
        return self._changed({job_id} if gone else ())

    def grow_older(self) -> Folded | None:
        """Once a minute: those that ended long ago, and quotas that are over; None: no other."""
        needs, now = self._needs, self._clock()
        if needs is None or now - self._looked_at < _OLD_SEC:
            return None
        self._looked_at = now
        before = {need.job_id for need in needs}
        needs.forget_old(now)
        for need in [need for need in needs if need.kind == "quota"]:
            if (summary := self._summary(need.job_id)) is not None:
                needs.put(summary, now)
        gone = before - {need.job_id for need in needs}
        return self._changed(gone) if gone else None

    def look(self) -> Folded | None:
        """For jobs that nobody will ever claim: when something changed, and where nobody serves
        now and then, since such a job needs a person only after a while. None: no other."""
        needs, board, now = self._needs, self._board, time.monotonic()
        if needs is None or now < self._stuck_at:
            return None
        if board.version == self._stuck_in and now < self._stuck_at + _AGAIN_SEC:
            return None
        from mam_core.operations.attention import need_of

        rows = board.rows.values()
        jobs = (row.summary for row in rows if row.summary is not None)
        stuck = board.reasons.stuck(jobs, self._clock())
        self._stuck_in = board.version
        over = time.monotonic()
        self._stuck_at = over + max(_PACE_SEC, _SHARE * (over - now))
        changed = needs.put_stuck(map(need_of, stuck))
        return self._changed(changed) if changed else None

    # -- what it says --------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._needs) if self._needs is not None else 0

    def __iter__(self) -> Iterator[Need]:
        return iter(self._needs if self._needs is not None else ())

    def __getitem__(self, line: int) -> Need:
        if self._needs is None:
            raise IndexError(line)
        return self._needs[line]

    def get(self, job_id: str) -> Need | None:
        return self._needs.get(job_id) if self._needs is not None else None

    def line_of(self, job_id: str) -> int | None:
        return self._needs.line_of(job_id) if self._needs is not None else None

    @property
    def counts(self) -> dict[str, int]:
        """By kind, the most urgent first; only those that there are."""
        if self._needs is None or not len(self._needs):
            return {}
        from mam_core.operations.attention import NeedKind

        counts = self._needs.counts
        return {str(kind): counts[kind] for kind in NeedKind if counts[kind]}

    # -- what the board is told ----------------------------------------------------------------

    def _summary(self, job_id: str) -> Summary | None:
        row = self._board.rows.get(job_id)
        return row.summary if row is not None else None

    def _changed(self, job_ids: Iterable[str]) -> Folded:
        return self._with(_only_news({}), set(job_ids))

    def _with(self, folded: Folded, changed: set[str]) -> Folded:
        if not changed:
            return folded
        self.version += 1
        news = dict(folded.news)
        for job_id, need in self._news(changed).items():
            news[job_id] = {**news.get(job_id, {}), **need}
        return folded._replace(news=news)

    def _news(self, job_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        found = ((job_id, self.get(job_id)) for job_id in job_ids)
        return {
            job_id: {"need": str(need.kind) if need is not None else ""} for job_id, need in found
        }


def _only_news(news: dict[str, dict[str, Any]]) -> Folded:
    return Folded(None, {}, news, [], [])
