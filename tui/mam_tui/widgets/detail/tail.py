"""The events of a job as they come: first what the registry has kept, then what is heard."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from mam_core.events.feed import EventHeard
from mam_core.operations.told import told_events
from mam_core.safe_text import pad
from mam_core.summaries import Summary
from mam_tui.moments import seconds, time_of_day
from mam_tui.widgets.detail.log import RING, Log
from mam_tui.widgets.detail.spans import Line, Span, line_of
from mam_tui.widgets.detail.tab import Question, Setting, Tab

if TYPE_CHECKING:
    from mam_core.operations.replay import Then

_NAME = 12
_MOST_KEYS = 8
_MOST_OF_A_VALUE = 80
_STYLES = {
    "completed": "good",
    "error": "bad",
    "permission_required": "warning",
    "started": "news",
    "state": "key",
    "cancelled": "muted",
    "heartbeat": "muted",
}


class Told(Protocol):
    """An event, as far as it is shown."""

    @property
    def attempt(self) -> int: ...
    @property
    def seq(self) -> int: ...
    @property
    def event(self) -> str: ...
    @property
    def timestamp(self) -> str: ...
    @property
    def detail(self) -> str: ...
    @property
    def data(self) -> Any: ...


class TailTab(Tab):
    """Follows the newest until one scrolls up."""

    name: ClassVar[str] = "tail"

    def __init__(self, setting: Setting) -> None:
        self._log = Log(event_line)
        super().__init__(setting, self._log)
        self._heard: deque[Told] = deque(maxlen=RING)
        self._last = 0  #: the number of the newest event that is shown
        self._is_loaded = False

    def forget(self) -> None:
        self._log.clear()
        self._heard.clear()
        self._last = 0
        self._is_loaded = False

    def question(self) -> Question:
        job_id = self.job_id
        return lambda registry: told_events(registry, job_id, RING)

    def question_then(self, then: Then, at: float) -> Question:
        job_id, until = self.job_id, then.last_seq
        return lambda registry: told_events(registry, job_id, RING, until)

    def renew(self) -> None:
        self._is_loaded = False

    def answer(self, answer: Any) -> None:
        if not self._is_loaded:
            self._log.clear()
            self._last = 0
        self._is_loaded = True
        self._add([event for event in answer if event.seq > self._last])
        self.flush()
        self._log.say("no event of this job was told yet")

    def is_stale(self, was: Summary | None, now: Summary | None) -> bool:
        return not self._is_loaded  # whatever comes after is heard

    def hear(self, heard: Sequence[EventHeard]) -> bool:
        self._heard.extend(one.event for one in heard)
        return self._is_loaded and bool(heard)

    def flush(self) -> None:
        new = [event for event in self._heard if event.seq > self._last]
        self._heard.clear()
        self._add(new)
        below = self._log.below
        state = "following" if self._log.following else "end follows again"
        self.note = f"{state}, {below} new below" if below else state

    def _add(self, events: Sequence[Told]) -> None:
        if events:
            self._log.extend(events)
            self._last = max(event.seq for event in events)


def event_line(event: Told) -> Line:
    """Time, attempt, name, words and data, each of which somebody else may have written."""
    at = seconds(event.timestamp[:40])
    when = time_of_day(at) if at is not None else "?"
    name = pad(line_of(event.event[:40])[0].text, _NAME)
    parts: list[Span] = [
        Span(f"{when:<8} ", "muted"),
        Span(f"#{event.attempt} ", "muted"),
        Span(f"{name} ", _STYLES.get(event.event, "")),
    ]
    parts += line_of(event.detail[:4000])
    if data := _short(event.data):
        parts += (Span("  "), *line_of((data, "muted")))
    return tuple(parts)


def _short(data: Any) -> str:
    if not isinstance(data, Mapping):
        return ""
    known = [(name, value) for name, value in data.items() if value not in (None, "", {}, [])]
    told = " ".join(f"{str(name)[:40]}={_value(value)}" for name, value in known[:_MOST_KEYS])
    return f"{told} …" if len(known) > _MOST_KEYS else told


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"({_short(dict(list(value.items())[:4]))})"[:_MOST_OF_A_VALUE]
    if isinstance(value, list):
        return f"[{len(value)}]"
    text = str(value)
    return text if len(text) <= _MOST_OF_A_VALUE else text[: _MOST_OF_A_VALUE - 1] + "…"
