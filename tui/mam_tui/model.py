"""The board as data: every job by id, and the order in which those that fit the filter are shown.

No Textual in here. The view is a sorted list of keys, found by bisection: one
changed job costs the same among a hundred jobs and among a hundred thousand, and
nothing is sorted again unless the operator asks for another order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from mam_core.board.why import BlockReasons, Evidence
from mam_core.records import Status
from mam_core.summaries import Summary, Unreadable
from mam_tui.filters import Filter
from mam_tui.rows import Row

Key = tuple[Any, ...]


class Effect(StrEnum):
    """What a change does to what is seen."""

    NONE = "none"  #: it is not in the view
    LINE = "line"  #: one line looks different
    MOVED = "moved"  #: lines have moved


class Order(NamedTuple):
    """By what the view is sorted; `name` is a column's."""

    name: str
    reverse: bool = False


class Board:
    """All jobs, one view on them, the cursor and the marks; these stick to ids, never to lines."""

    def __init__(self, sort_key: Callable[[Row, str], Any], order: Order) -> None:
        self.rows: dict[str, Row] = {}
        self.counts: Counter[str] = Counter()  #: by shown state, of all jobs
        self.marks: set[str] = set()
        self.filter = Filter()
        self.order = order
        self.cursor: str | None = None
        self.reasons = BlockReasons(self._summary)
        self.is_loaded = False  #: all jobs were read once
        self.version = 0  #: another number: some job is another
        self.used: set[str] = set()  #: columns that hold something for at least one job
        self._nodes: set[str] = set()
        self._sort_key = sort_key
        self._keys: list[Key] = []
        self._now = 0.0

    # -- what changes ------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """The time that filters go by."""
        self._now = now

    def load(self, told: Iterable[Summary | Unreadable]) -> None:
        """Every job that there is; of those that were known, the others are gone."""
        rows, bound = self.rows, list[Summary]()
        gone = set(rows)
        for one in told:
            row = rows.get(one.job_id)
            if row is None:
                rows[one.job_id] = Row(one, self.reasons)
            else:
                gone.discard(one.job_id)
                row.tell(one)
            if isinstance(one, Summary):
                self.note_use(one.group, one.node)
                if one.parents or one.not_before:
                    bound.append(one)
        for job_id in gone:
            del rows[job_id]
        self.marks -= gone
        self.is_loaded = True
        self.version += 1
        self.reasons.load(bound)
        self._judge_all()
        self._recount()
        self.rearrange()

    def put(self, told: Summary | Unreadable) -> Effect:
        """A job is new or different."""
        if isinstance(told, Summary):
            self.note_use(told.group, told.node)
        row = self.rows.get(told.job_id)
        is_new, before, was = row is None, "", None
        if row is None:
            row = self.rows[told.job_id] = Row(told, self.reasons)
        else:
            before, was = row.word, row.summary
            row.tell(told)
        followers = self._tell_reasons(was, row.summary)
        self._judge(row)
        if is_new:
            self.counts[row.word] += 1
            effect = self._place(row)
        else:
            effect = self._changed(row, before)
        return Effect.MOVED if self._judge_again(followers) else effect

    def hear(self, job_id: str, **news: Any) -> Effect:
        """Something was heard of a job; of one that is not known nothing is shown."""
        row = self.rows.get(job_id)
        if row is None:
            return Effect.NONE
        before = row.word
        live = row.live._replace(**news)
        if live == row.live:
            return Effect.NONE
        row.live = live
        self.note_news(live.progress, live.tokens, live.cost, bool(live.peak_memory))
        return self._changed(row, before)

    def show(self, row: Row, before: str) -> Effect:
        """A row that somebody else keeps is new, or has changed; `before` is the word it had."""
        if row.job_id not in self.rows:
            self.rows[row.job_id] = row
            self.counts[row.word] += 1
            return self._place(row)
        return self._changed(row, before)

    def gather(self, evidence: Evidence) -> None:
        """Other pauses, slots or workers are known now; seldom, so everything is looked at."""
        self.reasons.gather(evidence)
        self.version += 1
        self._judge_all()
        self._recount()
        self.rearrange()

    def wake(self, now: float) -> bool:
        """Jobs whose moment has come are held no more; whether there were any."""
        self._now = now
        return self._judge_again(list(self.reasons.due(now)))

    def remove(self, job_id: str) -> Effect:
        """The record is gone."""
        row = self.rows.get(job_id)
        if row is None:
            return Effect.NONE
        effect = self.drop(job_id)
        others = self._judge_again(self._tell_reasons(row.summary, None))
        return Effect.MOVED if others else effect

    def drop(self, job_id: str) -> Effect:
        """As `remove`, for a caller that judges the jobs after it itself."""
        row = self.rows.pop(job_id, None)
        if row is None:
            return Effect.NONE
        self.counts[row.word] -= 1
        self.marks.discard(job_id)
        at = self._find(row)
        if at is None:
            return Effect.NONE
        if self.cursor == job_id:
            self._leave(at)
        del self._keys[at]
        return Effect.MOVED

    def show_many(self, changed: Mapping[str, Row | None], before: Iterable[str]) -> None:
        """As `show`, and as `remove` for None, with the words that they had: what did not change
        is not looked at, and keeps its place in the order."""
        rows = self.rows
        for job_id, row in changed.items():
            if row is None:
                rows.pop(job_id, None)
            else:
                rows[job_id] = row
        self.marks &= rows.keys()
        self.counts.subtract(before)
        self.counts.update(row.word for row in changed.values() if row is not None)
        if self.filter.follows_time:
            self.rearrange()
            return
        keys = [key for key in self._keys if key[-1] not in changed]
        keys += sorted(self._keys_of(row for row in changed.values() if row is not None))
        keys.sort()  # two sorted parts: next to nothing
        self._arrange(keys)

    def note_news(
        self, progress: float | None, tokens: int | None, cost: float | None, memory: bool
    ) -> None:
        if progress:
            self.used.add("progress")
        if tokens:
            self.used.add("tokens")
        if cost:
            self.used.add("cost")
        if memory:
            self.used.add("memory")

    def note_use(self, group: str | None, node: str | None) -> None:
        if group:
            self.used.add("group")
        if node and "node" not in self.used:
            self._nodes.add(node)
            if len(self._nodes) > 1:  # one host's name on every line would tell nobody anything
                self.used.add("node")

    # -- why pending jobs do not run -------------------------------------------------------------

    def _summary(self, job_id: str) -> Summary | None:
        row = self.rows.get(job_id)
        return row.summary if row is not None else None

    def _tell_reasons(self, was: Summary | None, now: Summary | None) -> list[str]:
        """The answer names the jobs that may be held otherwise for it."""
        self.version += 1
        return list(self.reasons.put(was, now))

    def _judge(self, row: Row) -> None:
        summary = row.summary
        row.held = summary is not None and self.reasons.is_held(summary, self._now)

    def _judge_all(self) -> None:
        """Those that wait for nothing of their own are alike where label, agent and group are."""
        alike: dict[tuple[str, str, str | None], bool] = {}
        for row in self.rows.values():
            job = row.summary
            if job is None or job.status is not Status.PENDING or job.parents or job.not_before:
                self._judge(row)
                continue
            kind = job.agent_session, job.agent, job.group
            held = alike.get(kind)
            if held is None:
                held = alike[kind] = self.reasons.is_held(job, self._now)
            row.held = held

    def _judge_again(self, job_ids: Iterable[str]) -> bool:
        """Whether lines may look different: what a pending one waits for stands on it."""
        is_any = False
        for job_id in job_ids:
            row = self.rows.get(job_id)
            if row is not None and row.is_pending:
                before = row.word
                self._judge(row)
                self._changed(row, before)
                is_any = True
        return is_any

    def _changed(self, row: Row, before: str) -> Effect:
        after = row.word
        if after != before:
            self.counts[before] -= 1
            self.counts[after] += 1
        fits = self.filter.fits(row, self._now)
        key = self._key(row)
        if fits and key == row.key:
            return Effect.LINE
        at = self._find(row)
        if at is not None:
            if not fits and self.cursor == row.job_id:
                self._leave(at)
            del self._keys[at]
            row.key = None
        if not fits:
            return Effect.NONE if at is None else Effect.MOVED
        return self._place(row)

    def _place(self, row: Row) -> Effect:
        if not self.filter.fits(row, self._now):
            return Effect.NONE
        row.key = self._key(row)
        self._keys.insert(bisect_left(self._keys, row.key), row.key)
        if self.cursor is None:
            self.cursor = row.job_id
        return Effect.MOVED

    def _leave(self, at: int) -> None:
        """The cursor goes to a neighbour: the line that takes the place, else the one before."""
        step = -1 if self.order.reverse else 1
        for near in (at + step, at - step):
            if 0 <= near < len(self._keys):
                self.cursor = self._keys[near][-1]
                return
        self.cursor = None

    # -- the view ----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, line: int) -> Row:
        at = len(self._keys) - 1 - line if self.order.reverse else line
        return self.rows[self._keys[at][-1]]

    def view(self) -> Iterator[Row]:
        """Those that are shown, in their order."""
        keys = reversed(self._keys) if self.order.reverse else iter(self._keys)
        return (self.rows[key[-1]] for key in keys)

    def ids(self, lines: range) -> list[str]:
        """Of the jobs that stand there; many at once."""
        start, stop = lines.start, max(lines.start, lines.stop)
        if self.order.reverse:
            start, stop = len(self._keys) - stop, len(self._keys) - start
        return [key[-1] for key in self._keys[start:stop]]

    def line_of(self, job_id: str | None) -> int | None:
        """Where a job stands in the view; None when it is not in it."""
        row = self.rows.get(job_id) if job_id is not None else None
        at = None if row is None else self._find(row)
        if at is None:
            return None
        return len(self._keys) - 1 - at if self.order.reverse else at

    def narrow(self, chosen: Filter) -> None:
        self.filter = chosen
        self.rearrange()

    def sort(self, order: Order) -> None:
        self.order = order
        self.rearrange()

    def rearrange(self) -> None:
        """The view anew; marks of jobs that are not shown stay."""
        self._arrange(sorted(self._keys_of(self.rows.values())))

    def _keys_of(self, rows: Iterable[Row]) -> Iterator[Key]:
        """Of those that fit."""
        for row in rows:
            if self.filter.fits(row, self._now):
                row.key = self._key(row)
                yield row.key
            else:
                row.key = None

    def _arrange(self, keys: list[Key]) -> None:
        self._keys = keys
        if self.line_of(self.cursor) is None:
            self.cursor = self[0].job_id if keys else None

    def _key(self, row: Row) -> Key:
        value = self._sort_key(row, self.order.name)
        # An equal value leaves the older job first; reversed, the newer one.
        return (value is None, value if value is not None else 0, row.order, row.job_id)

    def _find(self, row: Row) -> int | None:
        if row.key is None:
            return None
        at = bisect_left(self._keys, row.key)
        if at < len(self._keys) and self._keys[at] == row.key:
            return at
        return None

    def _recount(self) -> None:
        self.counts = Counter(row.word for row in self.rows.values())

    # -- cursor and marks --------------------------------------------------------------------

    @property
    def row(self) -> Row | None:
        """The one under the cursor."""
        return self.rows.get(self.cursor) if self.cursor is not None else None

    def move_to(self, line: int) -> None:
        if self._keys:
            self.cursor = self[max(0, min(line, len(self._keys) - 1))].job_id

    def toggle_mark(self, job_id: str) -> None:
        self.marks ^= {job_id}

    def mark_shown(self) -> None:
        self.marks |= {key[-1] for key in self._keys}

    def chosen(self) -> list[str]:
        """What an act applies to: the marked ones in their order, else the one at the cursor."""
        if self.marks:
            shown = [row.job_id for row in self.view() if row.job_id in self.marks]
            return shown + sorted(self.marks - set(shown))
        return [self.cursor] if self.cursor is not None else []
