"""What is said about messages that were dropped: the first of each reason, then a sum.

Anyone who may publish can send rubbish as fast as the broker takes it. The counts
are exact, the lines are few, and a flood of one reason never hides another reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mam_core.events.event import Drop
from mam_core.events.inbox import Dropped
from mam_core.events.items import Notice, NoticeKind

#: Messages dropped for one reason are reported singly up to this number within `_SPAN_SEC`.
_SINGLE = 5
_SPAN_SEC = 1.0
#: The sums are told of each job, as long as there are not more of them.
_JOBS = 20


class DropNotices:
    """Turns drops into notices, a bounded number of them."""

    def __init__(self) -> None:
        self._span_began = float("-inf")
        self._said: Counter[Drop] = Counter()
        self._more: dict[str | None, Counter[Drop]] = {}

    def of(self, dropped: Dropped, at: float) -> list[Notice]:
        notices = self.due(at)
        if at - self._span_began >= _SPAN_SEC:
            self._span_began = at
            self._said.clear()
        if self._said[dropped.drop] >= _SINGLE:
            is_told = dropped.job_id in self._more or len(self._more) < _JOBS
            sums = self._more.setdefault(dropped.job_id if is_told else None, Counter())
            sums[dropped.drop] += 1
            return notices
        self._said[dropped.drop] += 1
        repeat = dropped.drop is Drop.REPLAYED
        kind = NoticeKind.REPEAT if repeat else NoticeKind.DROPPED
        about = f" about job {dropped.job_id}" if dropped.job_id else ""
        text = f"a message{about} was dropped ({dropped.drop}): {dropped.why}"
        return [*notices, Notice(kind, dropped.job_id, text, at, reason=dropped.drop)]

    def due(self, now: float) -> list[Notice]:
        """The sums of those that were not spoken of, once their time is over."""
        if not self._more or now - self._span_began < _SPAN_SEC:
            return []
        more, self._more = self._more, {}
        return [notice for job_id, sums in more.items() for notice in _summed(job_id, sums, now)]

    @property
    def next_due(self) -> float | None:
        return self._span_began + _SPAN_SEC if self._more else None


def _summed(job_id: str | None, sums: Counter[Drop], now: float) -> Iterator[Notice]:
    about = f" about job {job_id}" if job_id else ""
    repeats = sums.pop(Drop.REPLAYED, 0)
    if repeats:
        text = f"{repeats} more messages{about} were dropped ({Drop.REPLAYED})"
        yield Notice(NoticeKind.REPEAT, job_id, text, now, repeats)
    if sums:
        kinds = ", ".join(f"{count} × {drop}" for drop, count in sorted(sums.items()))
        text = f"more messages{about} were dropped: {kinds}"
        yield Notice(NoticeKind.DROPPED, job_id, text, now, sums.total())
