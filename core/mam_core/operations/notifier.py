"""When a person who does not look is called, and with which sentence.

Only for what is new, at most once in a while, several needs in one call, and never twice
for the same. Nothing is rung or run here: time and needs go in, a call comes out, so that
a story of hours is a test of milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mam_core.operations.attention import Need, NeedKind, Urgency
from mam_core.safe_text import clip, one_line

#: So long the first of several waits for the others.
GATHER_SEC = 1.0
#: A notice of a terminal or a desktop shows no more.
TEXT_CELLS = 240
#: So many jobs are named in a call for several.
_NAMED = 4

_Name = tuple[str, int, str, str]

_PHRASES = {
    NeedKind.PERMISSION: "asks for a permission",
    NeedKind.QUESTION: "asks a question",
    NeedKind.LOST: "was lost",
    NeedKind.VALIDATION: "failed its validation",
    NeedKind.BUDGET: "used up its budget",
    NeedKind.RETRIES: "failed",
    NeedKind.STUCK: "cannot run",
    NeedKind.UNSERVED: "has no worker",
    NeedKind.QUOTA: "waits for its agent's quota",
}


class Call(NamedTuple):
    """One call for a person; `text` is one line in which nothing foreign can act."""

    needs: tuple[Need, ...]  #: the most urgent first; never empty
    text: str

    @property
    def first(self) -> Need:
        return self.needs[0]


class Notifier:
    """Takes the needs as they are, again and again, and answers with a call when one is due."""

    def __init__(self, debounce_sec: float, least: Urgency = Urgency.NORMAL) -> None:
        self._debounce_sec = debounce_sec
        self._least = least
        self._known: dict[_Name, float] = {}  #: told or seen, and when it was last there
        self._since: dict[_Name, float] = {}  #: new, and when it came
        self._called_at: float | None = None

    def go_by(self, debounce_sec: float, least: Urgency) -> None:
        """What the settings say now."""
        self._debounce_sec, self._least = debounce_sec, least

    def update(self, needs: Iterable[Need], now: float, *, focused: bool) -> Call | None:
        """`now` may be any clock that does not jump. Whoever looks is not called, and has seen
        what there is."""
        there = {need.name: need for need in needs if need.urgency.rank >= self._least.rank}
        self._forget(there, now)
        for name in there:
            if name in self._known or focused:
                self._known[name] = now
                self._since.pop(name, None)
            else:
                self._since.setdefault(name, now)
        due = self.due_at()
        if due is None or now < due:
            return None
        called = sorted((there[name] for name in self._since), key=lambda need: need.place)
        self._known.update(dict.fromkeys(self._since, now))
        self._since.clear()
        self._called_at = now
        return Call(tuple(called), sentence(called))

    def due_at(self) -> float | None:
        """When `update` should be called again, if nothing changes until then."""
        if not self._since:
            return None
        gathered = min(self._since.values()) + GATHER_SEC
        if self._called_at is None:
            return gathered
        return max(gathered, self._called_at + self._debounce_sec)

    def _forget(self, there: dict[_Name, Need], now: float) -> None:
        """What went away before it was told needs nobody. What was told may be asked anew, but
        not within the pause: a state that flickers is no second question."""
        for name in [name for name in self._since if name not in there]:
            del self._since[name]
        gone = [
            name
            for name, seen in self._known.items()
            if name not in there and now - seen > self._debounce_sec
        ]
        for name in gone:
            del self._known[name]


def sentence(needs: list[Need]) -> str:
    """What is called for, in one line; the beginning is always our own words."""
    if len(needs) == 1:
        need = needs[0]
        where = f" in {need.session}" if need.session else ""
        words = f": {need.words}" if need.words else ""
        text = f"job {need.job_id}{where} {_PHRASES[need.kind]}{words}"
    else:
        named = ", ".join(f"{need.job_id} {_PHRASES[need.kind]}" for need in needs[:_NAMED])
        rest = len(needs) - _NAMED
        more = f" and {rest} more" if rest > 0 else ""
        text = f"{len(needs)} jobs need you: {named}{more}"
    return clip(one_line(text), TEXT_CELLS)
