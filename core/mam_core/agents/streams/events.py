"""What of an agent's doings becomes an event, and how often.

An agent makes a thousand happenings a second when it streams; an event costs a
transaction and travels. So activity is not told, progress is told at a pace
with the latest winning, and what a person must know is told at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mam_core.agents.streams.base import Happening, Kind, ToolState
from mam_core.agents.streams.discretion import PromptGuard, short
from mam_core.clock import stamp
from mam_core.events.event import EventName

#: Progress and log events of one attempt, each.
PER_SECOND = 1.0
#: Urgent ones: so many at once, and so many a second after that.
_BURST = 20
#: Totals, which a later event without them must not lose.
_TOTALS = ("tokens", "cost", "memory", "peak_memory")


class Told(NamedTuple):
    """An event to be published."""

    name: EventName
    detail: str
    data: Mapping[str, Any]
    urgent: bool = False


def told(happening: Happening) -> Told | None:
    """The event of a happening; None for mere activity. Holds no path and no key (G23)."""
    kind, text, data = happening
    detail = short(text)
    if kind is Kind.TEXT:
        return Told(EventName.PROGRESS, detail, {}) if detail else None
    if kind is Kind.TOOL:
        return _tool(detail, data)
    if kind is Kind.TOKENS:
        return Told(EventName.PROGRESS, "", {"tokens": dict(data)})
    if kind is Kind.COST:
        return Told(EventName.PROGRESS, "", {"cost": data.get("cost")})
    if kind is Kind.RETRY:
        return Told(EventName.PROGRESS, detail, {"retry": dict(data)})
    if kind is Kind.QUESTION:
        return _question(detail, data)
    if kind is Kind.STATE:
        return Told(EventName.STATE, detail, data, urgent=True)
    if kind is Kind.DENIAL:
        return Told(EventName.LOG, detail, {"denied": short(data.get("tool", ""), 60)}, urgent=True)
    if kind is Kind.QUOTA:
        until = data.get("until")
        moment = stamp(until) if until is not None else None
        return Told(EventName.LOG, detail, {"level": "error", "quota_until": moment}, urgent=True)
    if kind is Kind.ERROR:
        return Told(EventName.LOG, detail, {"level": "error"}, urgent=True)
    if kind is Kind.RESULT:
        return Told(EventName.PROGRESS, detail, {"result": bool(data.get("ok"))})
    if kind is Kind.LOG:
        return Told(EventName.LOG, detail, {}) if detail else None
    return None  # SESSION is the worker's to keep; the rest is activity


def _question(detail: str, data: Mapping[str, Any]) -> Told:
    name = EventName.PERMISSION_REQUIRED if data.get("waits") else EventName.LOG
    content: dict[str, Any] = {"tool": short(data.get("tool", ""), 60)}
    if "request" in data:
        content["question"] = data["request"]  # by which it is answered
    if "input" in data:
        content["input"] = data["input"]
    return Told(name, detail, content, urgent=True)


def _tool(detail: str, data: Mapping[str, Any]) -> Told:
    tool, state = short(data.get("tool", ""), 60), data.get("state")
    if file := data.get("file"):
        return Told(EventName.ARTIFACT, short(file), {"tool": tool}, urgent=True)
    content: dict[str, Any] = {"tool": tool}
    if state is not ToolState.STARTED:
        content["state"] = str(state)
    return Told(EventName.PROGRESS, f"{tool}: {detail}" if detail else tool, content)


class Pace:
    """The rule for one attempt: who may speak now.

    Progress and log have a lane each: one event per interval, and of those that
    came too early only the latest. Urgent ones pass at once while their bucket
    lasts, and queue with the log after that. Whatever leaves has been rid of the
    prompt here: only what is told must be looked through.
    """

    def __init__(self, prompt: str = "", per_second: float = PER_SECOND) -> None:
        self._guard = PromptGuard(prompt)
        self._interval = 1.0 / per_second
        self._lanes = {EventName.PROGRESS: _Lane(), EventName.LOG: _Lane()}
        self._bucket = float(_BURST)
        self._filled_at: float | None = None

    def offer(self, event: Told, now: float) -> list[Told]:
        """What is to be published now, on account of this event."""
        if event.urgent and self._take(now):
            # In its order: what was held back happened before.
            return [*self.rest(now), self._discreet(event)]
        lane = self._lanes.get(event.name, self._lanes[EventName.LOG])
        lane.hold(event)
        return self.due(now)

    def due(self, now: float) -> list[Told]:
        """What was held back and may go now; asked from time to time while nothing happens."""
        return self._release(now, self._interval)

    def rest(self, now: float) -> list[Told]:
        """All that is held back, for the end."""
        return self._release(now, 0.0)

    def _release(self, now: float, interval: float) -> list[Told]:
        held = [lane.release(now, interval) for lane in self._lanes.values()]
        return [self._discreet(event) for event in held if event is not None]

    def _discreet(self, event: Told) -> Told:
        return event._replace(detail=self._guard.hide(event.detail))

    def _take(self, now: float) -> bool:
        passed = 0.0 if self._filled_at is None else max(0.0, now - self._filled_at)
        self._filled_at = now
        self._bucket = min(float(_BURST), self._bucket + passed / self._interval)
        if self._bucket < 1:
            return False
        self._bucket -= 1
        return True


class _Lane:
    """Holds one event at most."""

    def __init__(self) -> None:
        self._held: Told | None = None
        self._last: float | None = None

    def hold(self, event: Told) -> None:
        if self._held is not None:
            totals = {name: self._held.data[name] for name in _TOTALS if name in self._held.data}
            detail = event.detail or self._held.detail
            event = event._replace(detail=detail, data={**totals, **event.data})
        self._held = event

    def release(self, now: float, interval: float) -> Told | None:
        if self._held is None or (self._last is not None and now - self._last < interval):
            return None
        self._last = now
        event, self._held = self._held, None
        return event
