"""The past of a registry in memory: any moment at once, and from one to the next step by step.

All changes stand in one line by their time. Every so often the line has a checkpoint:
where each job's two chains were. A moment is the checkpoint before it and the changes
since; a step touches only what changed in between, forwards and backwards alike.
"""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from mam_core.records import Status
from mam_core.replay.columns import WORD, Columns
from mam_core.replay.standing import Stand, Then, Word
from mam_core.summaries import NOTHING_TOLD, Used

#: A checkpoint after so many changes, or after as many as there are jobs: memory stays linear.
STEP = 8192
#: Sorted at once: nobody else runs meanwhile, so it must not take long.
_SORTED_AT_ONCE = 20_000


class _Mark(NamedTuple):
    """Where all jobs were after the first `position` changes of the line."""

    position: int
    stands: array[int]
    words: array[int]


class _Line(NamedTuple):
    """The changes by time. Never changed: a longer one takes its place."""

    order: array[int]
    when: array[float]
    marks: list[_Mark]


class Past:
    """What is known of the past; grown by `loading`, looked at through a `Cursor`."""

    def __init__(self, step: int = STEP) -> None:
        self.columns = Columns()
        self._step = step
        self._line = _Line(array("I"), array("d"), [_Mark(0, array("I"), array("I"))])

    @property
    def changes(self) -> int:
        """How many of them can be looked at."""
        return len(self._line.order)

    @property
    def span(self) -> tuple[float, float] | None:
        """From the first change to the last."""
        when = self._line.when
        return (when[0], when[-1]) if when else None

    def state_at(self, t: float) -> dict[str, Then]:
        """All jobs that the registry held at `t`, by id."""
        return {then.job_id: then for then in Cursor(self, t).jobs()}

    def between(self, t0: float, t1: float) -> set[str]:
        """The jobs that changed after the earlier of two moments and until the later."""
        line = self._line
        first, last = sorted((bisect_right(line.when, t0), bisect_right(line.when, t1)))
        columns = self.columns
        return {columns.job_ids[columns.job[change]] for change in line.order[first:last]}

    def beside(self, t: float) -> tuple[float | None, float | None]:
        """When something changed last before `t`, and when it does next."""
        when = self._line.when
        earlier, later = bisect_left(when, t), bisect_right(when, t)
        return (
            when[earlier - 1] if earlier else None,
            when[later] if later < len(when) else None,
        )

    def word(self, number: int) -> Word | None:
        """That a `Place` names; None: nothing had been said."""
        return self.columns.word(number - 1) if number else None

    def used(self, number: int) -> Used:
        """What had been told by then of its use; for all jobs at once, so without the words."""
        return self.columns.used(number - 1) if number else NOTHING_TOLD

    def crowds(self, edges: Sequence[float]) -> list[int]:
        """How many changes lie between each of these moments and the next."""
        when = self._line.when
        places = [bisect_left(when, edge) for edge in edges]
        return [after - before for before, after in pairwise(places)]

    def settle(self) -> Iterator[int]:
        """Bring what was added since into the line; answers now and then how much is done."""
        columns, old = self.columns, self._line
        at = columns.at
        fresh = range(len(old.order), len(columns))
        if not fresh:
            return
        parts: list[array[int]] = []
        for first in range(fresh.start, fresh.stop, _SORTED_AT_ONCE):
            part = range(first, min(first + _SORTED_AT_ONCE, fresh.stop))
            parts.append(array("I", sorted(part, key=at.__getitem__)))
            yield 0
        kept = bisect_right(old.when, min(at[part[0]] for part in parts))
        growing = _Growing(columns, old, kept, self._step)
        # What stood in the line already comes first among equals, as it did before.
        in_order = heapq.merge(old.order[kept:], *parts, key=at.__getitem__)
        for done, change in enumerate(in_order, 1):
            growing.add(change)
            if done % STEP == 0:
                yield done
        self._line = growing.line()

    @property
    def line(self) -> _Line:
        return self._line


class _Growing:
    """A line in the making: the first part of an old one, and what follows now."""

    def __init__(self, columns: Columns, old: _Line, kept: int, step: int) -> None:
        self._columns = columns
        self._order, self._when = old.order[:kept], old.when[:kept]
        self._marks = [mark for mark in old.marks if mark.position <= kept]
        self._step = max(step, len(columns.job_ids))
        self._stands, self._words = _at(columns, old, kept)

    def add(self, change: int) -> None:
        columns = self._columns
        job = columns.job[change]
        chain = self._stands if columns.kind[change] != WORD else self._words
        chain[job] = change + 1
        self._order.append(change)
        self._when.append(columns.at[change])
        position = len(self._order)
        if position - self._marks[-1].position >= self._step:
            self._marks.append(_Mark(position, self._stands[:], self._words[:]))

    def line(self) -> _Line:
        return _Line(self._order, self._when, self._marks)


def _at(columns: Columns, line: _Line, position: int) -> tuple[array[int], array[int]]:
    """Both chains of all jobs after so many changes."""
    mark = line.marks[bisect_right(line.marks, position, key=_position) - 1]
    missing = len(columns.job_ids) - len(mark.stands)
    stands, words = (chain + array("I", bytes(4 * missing)) for chain in mark[1:])
    job, kind = columns.job, columns.kind
    for change in line.order[mark.position : position]:
        chain = stands if kind[change] != WORD else words
        chain[job[change]] = change + 1
    return stands, words


def _position(mark: _Mark) -> int:
    return mark.position


class Place(NamedTuple):
    """A job at a moment, by number as far as that goes."""

    job_id: str
    stand: Stand | None  #: None: the registry did not hold it
    word: int  #: the number of the newest, for `Past.word`


class Cursor:
    """One place in the past, which can be moved. For one thread."""

    def __init__(self, past: Past, t: float) -> None:
        self._past = past
        self.at = t
        self._line = past.line
        self._position = bisect_right(self._line.when, t)
        self._stands, self._words = _at(past.columns, self._line, self._position)

    def move(self, t: float) -> dict[str, Then | None]:
        """Go there; the answer has the jobs that changed, None where the registry holds none."""
        job_ids = self._past.columns.job_ids
        return {job_ids[job]: self._get(job) for job in self.go(t)}

    def go(self, t: float) -> set[int]:
        """As `move`, for whoever looks at few of the jobs that changed: they are only numbered."""
        line = self._past.line
        target = bisect_right(line.when, t)
        self.at = t
        if line is not self._line or abs(target - self._position) > 2 * STEP:
            return self._jump(line, target)
        return self._forward(target) if target >= self._position else self._back(target)

    def places(self, jobs: Iterable[int]) -> Iterator[Place]:
        """Where these stand now, without a word of theirs made."""
        columns, stands, words = self._past.columns, self._stands, self._words
        job_ids = columns.job_ids
        for job in jobs:
            stand = columns.stand(stands[job] - 1) if stands[job] else None
            yield Place(job_ids[job], None if stand is None or stand.gone else stand, words[job])

    def all_places(self) -> Iterator[Place]:
        """Of all jobs, also of those that the registry does not hold now."""
        return self.places(range(len(self._stands)))

    def _jump(self, line: _Line, target: int) -> set[int]:
        old = self._stands, self._words
        self._line, self._position = line, target
        self._stands, self._words = _at(self._past.columns, line, target)
        known = len(old[0])
        both = zip(*old, self._stands, self._words, strict=False)
        touched = {job for job, (s0, w0, s1, w1) in enumerate(both) if s0 != s1 or w0 != w1}
        return touched | {job for job in range(known, len(self._stands)) if self._stands[job]}

    def _forward(self, target: int) -> set[int]:
        columns, touched = self._past.columns, set()
        kind, stands, words = columns.kind, self._stands, self._words
        for change in self._line.order[self._position : target]:
            job = columns.job[change]
            touched.add(job)
            (stands if kind[change] != WORD else words)[job] = change + 1
        self._position = target
        return touched

    def _back(self, target: int) -> set[int]:
        columns, touched = self._past.columns, set()
        kind, stands, words = columns.kind, self._stands, self._words
        for change in reversed(self._line.order[target : self._position]):
            job = columns.job[change]
            touched.add(job)
            (stands if kind[change] != WORD else words)[job] = columns.before[change]
        self._position = target
        return touched

    def _get(self, job: int) -> Then | None:
        return self._past.columns.then(job, self._stands[job], self._words[job])

    def jobs(self) -> Iterator[Then]:
        """All that the registry held, in no order."""
        for job in range(len(self._stands)):
            if (then := self._get(job)) is not None:
                yield then

    def counts(self) -> Counter[Status]:
        """How many in which status, without making anything of the rest."""
        stand = self._past.columns.stand
        stands = (stand(change - 1) for change in self._stands if change)
        return Counter(one.status for one in stands if not one.gone)
