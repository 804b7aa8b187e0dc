"""The list of needs as it is kept: one job changes, one place in the list does.

For whoever shows it all the time. A change costs the same with ten needs and with ten
thousand, and a need that was looked at in full stays so while it is the same one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mam_core.operations.asked import Asked
from mam_core.operations.attention import RECENT_SEC, Need, NeedKind, in_full, needs
from mam_core.operations.shown import Shown
from mam_core.records import Status
from mam_core.summaries import Summary

_Place = tuple[int, float, str]


class Needs:
    """All needs, in order; a person may put one aside, until the job asks for something else."""

    def __init__(self, recent_sec: float = RECENT_SEC) -> None:
        self.counts: Counter[NeedKind] = Counter()
        self._recent_sec = recent_sec
        self._needs: dict[str, Need] = {}
        self._places: list[_Place] = []
        self._shown: dict[str, tuple[int, Shown]] = {}  #: of running jobs, with their attempt
        self._aside: dict[str, Need] = {}  #: by job, or by what several hang together
        self._stuck: dict[str, Need] = {}  #: of jobs that nobody will claim, by the first of them

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Need]:
        return (self._needs[place[-1]] for place in self._places)

    def __getitem__(self, line: int) -> Need:
        return self._needs[self._places[line][-1]]

    def get(self, job_id: str) -> Need | None:
        return self._needs.get(job_id)

    def line_of(self, job_id: str) -> int | None:
        """Where a job stands in the list."""
        need = self._needs.get(job_id)
        return None if need is None else bisect_left(self._places, need.place)

    # -- what changes ------------------------------------------------------------------------

    def load(self, jobs: Iterable[Summary], now: float) -> None:
        """Every job there is; what was known of others is forgotten."""
        shown, self._shown = self._shown, {}
        self._needs.clear()
        for job in jobs:
            if job.status is Status.RUNNING and job.job_id in shown:
                self._shown[job.job_id] = shown[job.job_id]
            need = self._made(job, now, "") or self._stuck_in(job)
            if need is not None:
                self._needs[job.job_id] = need
        self._places = sorted(need.place for need in self._needs.values())
        self.counts = Counter(need.kind for need in self._needs.values())

    def put(
        self, job: Summary, now: float, *, shown: Shown | None = None, detail: str = ""
    ) -> bool:
        """A job is new or different, or is shown otherwise; True when the list has changed.

        Without `shown`, a running job is taken to be shown as it was.
        """
        if job.status is not Status.RUNNING:
            self._shown.pop(job.job_id, None)
        elif shown is not None:
            self._shown[job.job_id] = (job.attempt, shown)
        return self._set(job.job_id, self._made(job, now, detail) or self._stuck_in(job))

    def put_stuck(self, needs: Iterable[Need]) -> set[str]:
        """Those of jobs that nobody will claim, all of them; the answer names what changed."""
        found = list(needs)
        there = {need.about for need in found}
        gone = [name for name, aside in self._aside.items() if aside.about and name not in there]
        for name in gone:
            del self._aside[name]
        was = self._stuck
        self._stuck = {need.job_id: need for need in found if need.about not in self._aside}
        changed = {name for name in was | self._stuck if was.get(name) != self._stuck.get(name)}
        for name in changed:
            known = self._needs.get(name)
            if known is None or known.about:
                self._set(name, self._stuck.get(name))
        return changed

    def _stuck_in(self, job: Summary) -> Need | None:
        """While it still waits; the caller who changed it looks again soon."""
        return self._stuck.get(job.job_id) if job.status is Status.PENDING else None

    def remove(self, job_id: str) -> bool:
        """The record is gone."""
        self._shown.pop(job_id, None)
        self._aside.pop(job_id, None)
        self._stuck.pop(job_id, None)
        return self._set(job_id, None)

    def read(self, job_id: str, asked: Sequence[Asked]) -> bool:
        """What it asks was read in full."""
        need = self._needs.get(job_id)
        if need is None or not need.can_be_answered:
            return False
        return self._set(job_id, in_full(need, asked))

    def put_aside(self, job_id: str) -> bool:
        """A person knows of it, and does not want to be shown it again."""
        need = self._needs.get(job_id)
        if need is None:
            return False
        self._aside[need.about or job_id] = need
        self._stuck.pop(job_id, None)
        return self._set(job_id, None)

    def forget_old(self, now: float) -> bool:
        """Those that ended too long ago; seldom, since only time makes them go."""
        old = [
            need.job_id
            for need in self
            if need.job_id not in self._shown
            and not need.about
            and need.since is not None
            and now - need.since > self._recent_sec
        ]
        for job_id in old:
            self._set(job_id, None)
        return bool(old)

    def _made(self, job: Summary, now: float, detail: str) -> Need | None:
        attempt, shown = self._shown.get(job.job_id, (0, None))
        if attempt != job.attempt:
            shown = None  # an old attempt's state is never taken for the current one's
        need = needs(job, shown, now, detail=detail, recent_sec=self._recent_sec)
        return None if need is None or self._is_aside(need) else self._as_read(need)

    def _is_aside(self, need: Need) -> bool:
        aside = self._aside.get(need.job_id)
        if aside is None:
            return False
        if aside.name == need.name or (need.since is not None and aside.since == need.since):
            return True
        del self._aside[need.job_id]
        return False

    def _as_read(self, need: Need) -> Need:
        """The same question, told once more in short, keeps what was read of it in full."""
        known = self._needs.get(need.job_id)
        if known is None or known[:5] != need[:5] or known.since != need.since:
            return need
        if known.question and known.words.startswith(need.words[:_ALIKE]):
            return known
        return need

    def _set(self, job_id: str, need: Need | None) -> bool:
        known = self._needs.get(job_id)
        if known == need:
            return False
        if known is not None:
            del self._places[bisect_left(self._places, known.place)]
            del self._needs[job_id]
            self.counts[known.kind] -= 1
        if need is not None:
            self._needs[job_id] = need
            insort(self._places, need.place)
            self.counts[need.kind] += 1
        return True


#: Short and long form of a question begin alike for as long as this.
_ALIKE = 40


def told_in_words(counts: Mapping[NeedKind, int]) -> str:
    """For a badge: how many, and of which kinds."""
    kinds = [f"{count} {kind}" for kind in NeedKind if (count := counts.get(kind, 0))]
    return ", ".join(kinds)
