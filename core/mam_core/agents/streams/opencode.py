"""opencode: ``opencode run --format json``.

There is no line for the end of a session: the last `step_finish` with reason
"stop" is it. Tokens and cost are told per step and added up here. Retries are
silent, and an answer that breaks off is asked for again without end, so broken
steps are counted and told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mam_core.agents.quota import Limit, find_reset
from mam_core.agents.streams.base import Happening, Kind, ToolState
from mam_core.agents.streams.json_lines import JsonLines
from mam_core.agents.streams.values import (
    count,
    file_name,
    label,
    number,
    session,
    table,
    text,
    tokens,
    topic,
)

_WRITERS = frozenset({"write", "edit", "patch", "multiedit"})
_REJECTED = ("rejected permission", "prevents you from using")
_GOES_ON = frozenset({"tool-calls", "tool_calls"})
#: So many answers in a row that broke off: the next one will not be better (400 were seen).
HOPELESS = 20


class OpencodeStream(JsonLines):
    """Reads the lines of one run."""

    _answer = ""
    _broken = 0

    def read(self, entry: Mapping[str, Any]) -> Iterable[Happening]:
        found = [*self.evidence.begin(session(entry.get("sessionID")))]
        kind, part = entry.get("type"), table(entry.get("part"))
        if kind == "step_start":
            self.evidence.go_on()
            found.append(Happening(Kind.PARTIAL))
        elif kind == "text":
            self._answer = text(part.get("text"))
            found.append(Happening(Kind.TEXT, self._answer))
        elif kind == "reasoning":
            found.append(Happening(Kind.THINKING, text(part.get("text"))))
        elif kind == "tool_use":
            found += self._tool(part)
        elif kind == "step_finish":
            found += self._step(part)
        elif kind == "error":
            found += self._error(table(entry.get("error")))
        return found

    def _tool(self, part: Mapping[str, Any]) -> Iterator[Happening]:
        state, name = table(part.get("state")), label(part.get("tool"))
        given, problem = state.get("input"), text(state.get("error"))
        data: dict[str, Any] = {"tool": name, "state": ToolState.ENDED}
        # A command's own failure is a completed tool.
        if state.get("status") == "error" or count(table(state.get("metadata")).get("exit")):
            data["state"] = ToolState.FAILED
        elif name in _WRITERS and (writes := file_name(given)):
            data["file"] = writes
        yield Happening(Kind.TOOL, topic(given), data)
        if any(words in problem for words in _REJECTED):
            yield from self.evidence.deny(name, topic(given))

    def _step(self, part: Mapping[str, Any]) -> Iterator[Happening]:
        yield from self._spend(part)
        reason = label(part.get("reason"))
        if reason == "unknown":
            self._broken += 1
            yield Happening(Kind.RETRY, "its answer broke off", {"attempt": self._broken})
            if self._broken == HOPELESS:
                words = f"its answer broke off {HOPELESS} times in a row"
                yield Happening(Kind.ERROR, words, {"hopeless": True})
            return
        self._broken = 0
        if reason == "stop":
            yield from self.evidence.succeed(self._answer)
        elif reason not in _GOES_ON:
            yield from self.evidence.fail(f"its answer ended early: {reason or 'no reason'}")

    def _spend(self, part: Mapping[str, Any]) -> Iterable[Happening]:
        used = table(part.get("tokens"))
        cache = table(used.get("cache"))
        read, thought = count(cache.get("read")), count(used.get("reasoning"))
        step = tokens(
            input=count(used.get("input")) + read + count(cache.get("write")),
            output=count(used.get("output")) + thought,
            cached=read,
            reasoning=thought,
        )
        cost = number(part.get("cost"))
        total = None if cost is None else (self.evidence.cost or 0.0) + cost
        return self.evidence.spend(self.evidence.tokens.plus(step), total)

    def _error(self, problem: Mapping[str, Any]) -> Iterable[Happening]:
        data = table(problem.get("data"))
        words = text(data.get("message")) or text(problem.get("name")) or "it failed"
        limit = self.evidence.limit_in(words)
        if limit is not None or data.get("statusCode") == 429:
            limit = Limit(words, self._reset(data) or (limit.until if limit else None))
        return self.evidence.fail(words, limit=limit)

    def _reset(self, data: Mapping[str, Any]) -> float | None:
        """What the server told besides its sentence."""
        now = self.evidence.now()
        headers = table(data.get("responseHeaders"))
        hints = [text(data.get("responseBody"))]
        hints += [
            f"{name}: {text(value)}"
            for name, value in headers.items()
            if name.endswith(("reset-after-seconds", "retry-after"))
        ]
        return next(
            (moment for hint in hints if (moment := find_reset(hint, now)) is not None), None
        )
