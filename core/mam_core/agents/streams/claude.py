"""Claude Code: ``-p --output-format stream-json --verbose``, with partial messages or without.

The last `result` line decides, by `is_error` and not by its subtype: "success" is
also said of an API error. One answer comes as a line per block, each repeating
the opening usage, so only the partial messages' own totals and `modelUsage` of
the result are counted. A run may have several results, when something goes on
in the background.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mam_core.agents.calls import OpenCall
from mam_core.agents.quota import Limit, plausible
from mam_core.agents.streams.base import Happening, Kind, Tokens, ToolState
from mam_core.agents.streams.json_lines import JsonLines
from mam_core.agents.streams.values import (
    count,
    doing,
    file_name,
    label,
    listed,
    number,
    session,
    table,
    text,
    tokens,
    topic,
)
from mam_core.records import Reason

_WRITERS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
_ASKS = frozenset({"AskUserQuestion", "ExitPlanMode"})
#: Answers that stream at once; more than this is no agent of ours.
_MAX_OPEN = 256


class ClaudeStream(JsonLines):
    """Reads the lines of one run."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._spent = Tokens()  #: of the answers that are finished
        self._streaming: dict[str, Tokens] = {}  #: of those that are not, by who speaks
        self._denied: set[str] = set()
        self._resets_at: float | None = None  #: told ahead of the error

    def read(self, entry: Mapping[str, Any]) -> Iterable[Happening]:
        self.evidence.spoke = True
        kind = entry.get("type")
        if kind == "assistant":
            return self._assistant(entry)
        if kind == "user":
            return self._user(entry)
        if kind == "stream_event":
            return self._partial(entry)
        if kind == "system":
            return self._system(entry)
        if kind == "result":
            return self._result(entry)
        if kind == "rate_limit_event":
            return self._rate_limit(table(entry.get("rate_limit_info")))
        if kind == "control_request":
            return self._control(table(entry.get("request")), label(entry.get("request_id")))
        return ()

    # -- what is said and done ---------------------------------------------------------------

    def _assistant(self, entry: Mapping[str, Any]) -> Iterator[Happening]:
        blocks = [table(block) for block in listed(table(entry.get("message")).get("content"))]
        error = text(entry.get("error"))
        if error:
            # Not the model's words: the CLI puts its own error in an answer's place.
            words = "\n".join(filter(None, (text(block.get("text")) for block in blocks))) or error
            limit = self._limit(words) if error == "rate_limit" else None
            yield from self.evidence.fail(words, limit=limit)
            return
        within = label(entry.get("parent_tool_use_id"))
        for block in blocks:
            kind = block.get("type")
            if kind == "text":
                yield Happening(Kind.TEXT, text(block.get("text")))
            elif kind == "tool_use":
                yield self._tool(block, within)
            elif kind in ("thinking", "redacted_thinking"):
                yield Happening(Kind.THINKING, text(block.get("thinking")))

    def _tool(self, block: Mapping[str, Any], within: str) -> Happening:
        name, given = label(block.get("name")), block.get("input")
        if name in _ASKS:
            return Happening(Kind.QUESTION, _question(given), {"tool": name, "waits": False})
        writes = file_name(given) if name in _WRITERS else ""
        self.calls.begin(OpenCall(label(block.get("id")), name, doing(given), within, writes))
        return Happening(Kind.TOOL, topic(given), {"tool": name, "state": ToolState.STARTED})

    def _user(self, entry: Mapping[str, Any]) -> Iterator[Happening]:
        content = table(entry.get("message")).get("content")
        for block in map(table, listed(content)):
            if block.get("type") == "tool_result":
                found = self.calls.end(label(block.get("tool_use_id")))
                if found is None:
                    continue
                data: dict[str, Any] = {"tool": found.tool, "state": ToolState.ENDED}
                if block.get("is_error") is True:
                    data["state"] = ToolState.FAILED
                elif found.writes:
                    data["file"] = found.writes
                yield Happening(Kind.TOOL, "", data)
            elif text(block.get("text")).startswith("[Request interrupted"):
                yield Happening(Kind.LOG, text(block.get("text")))

    def _control(self, request: Mapping[str, Any], request_id: str) -> Iterator[Happening]:
        if request.get("subtype") == "can_use_tool":
            name, given = label(request.get("tool_name")), request.get("input")
            words = _question(given) if name in _ASKS else topic(given)
            data = {"tool": name, "waits": True, "request": request_id}
            yield Happening(Kind.QUESTION, words, data)

    # -- while an answer streams -------------------------------------------------------------

    def _partial(self, entry: Mapping[str, Any]) -> Iterator[Happening]:
        event = table(entry.get("event"))
        kind = event.get("type")
        if kind == "content_block_delta":
            delta = table(event.get("delta"))
            if delta.get("type") == "thinking_delta":
                yield Happening(Kind.THINKING, text(delta.get("thinking")))
            else:
                yield Happening(Kind.PARTIAL, text(delta.get("text")))
        elif kind in ("message_start", "message_delta"):
            told = table(event.get("message")) if kind == "message_start" else event
            speaker = label(entry.get("parent_tool_use_id"))
            if kind == "message_start" and speaker in self._streaming:
                self._settle(speaker)
            elif len(self._streaming) >= _MAX_OPEN:
                self._settle(next(iter(self._streaming)))
            self._streaming[speaker] = _usage(table(told.get("usage")))
            yield from self.evidence.spend(self._so_far())

    def _settle(self, speaker: str) -> None:
        self._spent = self._spent.plus(self._streaming.pop(speaker))

    def _so_far(self) -> Tokens:
        total = self._spent
        for open_answer in self._streaming.values():
            total = total.plus(open_answer)
        return total

    # -- the frame ---------------------------------------------------------------------------

    def _system(self, entry: Mapping[str, Any]) -> Iterator[Happening]:
        kind = entry.get("subtype")
        if kind == "init":
            self.evidence.go_on()
            yield from self.evidence.begin(session(entry.get("session_id")))
        elif kind == "api_retry":
            yield self._retry(entry)
        elif kind in ("status", "thinking_tokens", "task_progress"):
            yield Happening(Kind.PARTIAL)
        elif kind == "hook_response" and entry.get("outcome") not in ("success", None):
            yield Happening(Kind.LOG, f"hook {label(entry.get('hook_name'))} failed")
        elif kind in ("task_started", "task_notification", "notification"):
            said = entry.get("summary") or entry.get("description") or entry.get("text")
            yield Happening(Kind.LOG, text(said))

    def _retry(self, entry: Mapping[str, Any]) -> Happening:
        attempt, most = count(entry.get("attempt")), count(entry.get("max_retries"))
        data: dict[str, Any] = {"attempt": attempt, "of": most}
        if status := count(entry.get("error_status")):
            data["status"] = status
        if (delay := number(entry.get("retry_delay_ms"))) is not None:
            data["wait_sec"] = round(delay / 1000, 1)
        return Happening(Kind.RETRY, text(entry.get("error")), data)

    def _rate_limit(self, info: Mapping[str, Any]) -> Iterator[Happening]:
        moment, status = number(info.get("resetsAt")), info.get("status")
        until = plausible(moment, self.evidence.now())
        name = label(info.get("rateLimitType"))
        if status == "rejected":
            self._resets_at = until
        elif status == "allowed_warning" and (used := number(info.get("utilization"))):
            yield Happening(Kind.LOG, f"{used:.0%} of the {name} limit is used", {"until": until})

    def _limit(self, words: str) -> Limit:
        found = self.evidence.limit_in(words)
        return Limit(words, self._resets_at or (found.until if found else None))

    def _result(self, entry: Mapping[str, Any]) -> Iterator[Happening]:
        self.calls.forget()
        yield from self.evidence.begin(session(entry.get("session_id")))
        if used := table(entry.get("modelUsage")):
            # Of the whole process, subagents too; it replaces what was counted on the way.
            self._spent, self._streaming = Tokens(), {}
            for model in map(table, used.values()):
                self._spent = self._spent.plus(_model_usage(model))
        yield from self.evidence.spend(self._so_far(), number(entry.get("total_cost_usd")))
        for denial in map(table, listed(entry.get("permission_denials"))):
            mark = label(denial.get("tool_use_id"))
            if mark not in self._denied and len(self._denied) < _MAX_OPEN:
                self._denied.add(mark)
                words = topic(denial.get("tool_input"))
                yield from self.evidence.deny(label(denial.get("tool_name")), words)
        if entry.get("is_error") is False:
            yield from self.evidence.succeed(text(entry.get("result")))
            return
        words = _complaint(entry)
        kind = text(entry.get("subtype"))
        reason = Reason.BUDGET if kind == "error_max_budget_usd" else Reason.AGENT
        limit = self._limit(words) if entry.get("api_error_status") == 429 else None
        yield from self.evidence.fail(words, reason, limit)
        yield Happening(Kind.RESULT, words, {"ok": False})


def _complaint(entry: Mapping[str, Any]) -> str:
    ended = text(entry.get("terminal_reason"))
    if ended.startswith("aborted"):
        return f"it was interrupted ({ended})"
    errors = "; ".join(filter(None, map(text, listed(entry.get("errors"))[:5])))
    return text(entry.get("result")) or errors or text(entry.get("subtype")) or "it failed"


def _question(given: Any) -> str:
    questions = listed(table(given).get("questions"))
    return text(table(questions[0]).get("question")) if questions else ""


def _usage(usage: Mapping[str, Any]) -> Tokens:
    fresh, cached = count(usage.get("input_tokens")), count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    return tokens(input=fresh + cached + written, output=usage.get("output_tokens"), cached=cached)


def _model_usage(usage: Mapping[str, Any]) -> Tokens:
    fresh, cached = count(usage.get("inputTokens")), count(usage.get("cacheReadInputTokens"))
    written = count(usage.get("cacheCreationInputTokens"))
    return tokens(input=fresh + cached + written, output=usage.get("outputTokens"), cached=cached)
