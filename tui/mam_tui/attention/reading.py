"""What only the disk knows of the needs in sight, read on a thread and kept while it holds.

The list says the same of every need in few words. The view adds to those that somebody looks
at: to all in sight why they ended, to the one under the cursor its whole question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from mam_core.operations.attention import Need, NeedKind
from mam_core.operations.need_detail import NeedDetail, need_detail, why_of
from mam_core.registry import Registry
from mam_tui.desk import Desk
from mam_tui.widgets.detail.asking import Answer, Asking

#: So many are remembered: more than any screen has lines.
_KEPT = 500


class Read(NamedTuple):
    """Of one look."""

    need: Need | None  #: the one under the cursor, as it was when it was asked for
    detail: NeedDetail
    why: dict[str, str]  #: by job, of those in sight
    asked_for: Sequence[Need]


class NeedReading:
    """`deliver` is called on the asking thread."""

    def __init__(self, desk: Desk, deliver: Callable[[Answer], object]) -> None:
        self._desk = desk
        self._asking = Asking(desk, deliver)
        self._why: dict[str, tuple[Need, str]] = {}
        self._detail: tuple[Need, NeedDetail] | None = None
        self._wanted: tuple[Need | None, tuple[Need, ...]] | None = None

    @property
    def is_reading(self) -> bool:
        return self._asking.is_waiting

    def words_of(self, need: Need) -> str:
        """In the list: the need's own, and what was read of it."""
        known = self._why.get(need.job_id)
        if known is None or known[0] != need or not known[1]:
            return need.words
        return f"{need.words}: {known[1]}" if need.kind is NeedKind.RETRIES else known[1]

    def detail_of(self, need: Need) -> NeedDetail | None:
        """None: it was not read yet."""
        known = self._detail
        return known[1] if known is not None and known[0] == need else None

    def read(self, need: Need | None, in_sight: Sequence[Need]) -> None:
        """What is not known yet; the same question is not asked twice at a time."""
        new = tuple(one for one in in_sight if not one.can_be_answered and not self._knows(one))
        wanted = need if need is not None and self.detail_of(need) is None else None
        if wanted is None and not new:
            return
        if self._asking.is_waiting and self._wanted == (wanted, new):
            return
        if self._asking.is_busy:
            return
        self._wanted = wanted, new
        self._asking.ask(partial(_look, wanted, new, self._desk))

    def forget(self) -> None:
        """What was read of the one under the cursor: its screen may show something else now."""
        self._detail = None

    def take(self, answer: Answer) -> bool:
        """On the console's thread; True when something is known now that was not."""
        if not self._asking.takes(answer.ticket):
            return False
        read = answer.content
        if not isinstance(read, Read):
            if self._wanted is not None and self._wanted[0] is not None:
                self._detail = self._wanted[0], NeedDetail(detail=answer.trouble)
            return True
        if len(self._why) > _KEPT:
            self._why.clear()
        for need in read.asked_for:
            self._why[need.job_id] = need, read.why.get(need.job_id, "")
        if read.need is not None:
            self._detail = read.need, read.detail
        return True

    def rest(self) -> None:
        self._asking.give_up()

    def close(self) -> None:
        self._asking.close()

    def _knows(self, need: Need) -> bool:
        known = self._why.get(need.job_id)
        return known is not None and known[0] == need


def _look(need: Need | None, in_sight: Sequence[Need], desk: Desk, registry: Registry) -> Read:
    detail = NeedDetail()
    if need is not None:
        detail = need_detail(registry, need, desk.panes, desk.others)
    return Read(need, detail, why_of(registry, in_sight), in_sight)
