"""Codex: ``codex exec --json``.

Only `turn.completed` and `turn.failed` end a turn: an `error` line may be a retry
("Reconnecting... 2/5"), and an item of type `error` is a warning. A command that
is refused leaves no line in the stream at all; the one trace is a line on
standard error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mam_core.agents.calls import OpenCall
from mam_core.agents.streams.base import Happening, Kind, ToolState
from mam_core.agents.streams.json_lines import JsonLines
from mam_core.agents.streams.values import (
    api_words,
    count,
    file_name,
    label,
    listed,
    session,
    table,
    text,
    tokens,
)

_RECONNECTING = re.compile(r"Reconnecting\.\.\. (\d{1,4})/(\d{1,4})(?: \((.*)\))?", re.DOTALL)
_STATUS = re.compile(r"\bstatus:? (\d{3})\b")
_REFUSED = "reject command"
_STARTED = "item.started"
#: Items that are a tool's run, and the name of the tool.
_TOOLS = {
    "command_execution": "shell",
    "file_change": "edit",
    "mcp_tool_call": "mcp",
    "web_search": "search",
}


class CodexStream(JsonLines):
    """Reads the lines of one run."""

    _answer = ""

    def read(self, entry: Mapping[str, Any]) -> Iterable[Happening]:
        self.evidence.spoke = True
        kind = entry.get("type")
        if kind == "thread.started":
            return self.evidence.begin(session(entry.get("thread_id")))
        if kind == "turn.started":
            self.calls.forget()
            self.evidence.go_on()
            return ()
        if kind in (_STARTED, "item.completed"):
            return self._item(table(entry.get("item")), kind == _STARTED)
        if kind == "item.updated":
            return (Happening(Kind.PARTIAL),)
        if kind == "error":
            return self._error(text(entry.get("message")))
        if kind == "turn.completed":
            return self._completed(table(entry.get("usage")))
        if kind == "turn.failed":
            return self._failed(text(table(entry.get("error")).get("message")))
        return ()

    def hear(self, line: str) -> Iterable[Happening]:
        if _REFUSED in line and "approval policy" in line:
            return self.evidence.deny("shell", "it may not ask for more permissions")
        return super().hear(line)

    def _item(self, item: Mapping[str, Any], begins: bool) -> Iterator[Happening]:
        kind = text(item.get("type"))
        if kind in _TOOLS:
            happening = _tool(kind, item, begins)
            call_id = label(item.get("id"))
            if begins:
                self.calls.begin(OpenCall(call_id, _TOOLS[kind], happening.text))
            else:
                self.calls.end(call_id)
            yield happening
        elif begins:
            return
        elif kind == "agent_message":
            self._answer = text(item.get("text"))
            yield Happening(Kind.TEXT, self._answer)
        elif kind == "reasoning":
            yield Happening(Kind.THINKING, text(item.get("text")))
        elif kind == "error":
            yield Happening(Kind.LOG, text(item.get("message")))

    def _error(self, message: str) -> Iterator[Happening]:
        if (again := _RECONNECTING.match(message)) is None:
            yield from self.evidence.fail(api_words(message))
            return
        data = {"attempt": int(again[1]), "of": int(again[2])}
        if status := _STATUS.search(message):
            data["status"] = int(status[1])
        yield Happening(Kind.RETRY, again[3] or "", data)

    def _completed(self, usage: Mapping[str, Any]) -> Iterator[Happening]:
        self.calls.forget()
        used = tokens(
            input=usage.get("input_tokens"),
            output=usage.get("output_tokens"),
            cached=usage.get("cached_input_tokens"),
            reasoning=usage.get("reasoning_output_tokens"),
        )
        yield from self.evidence.spend(self.evidence.tokens.plus(used))
        yield from self.evidence.succeed(self._answer)

    def _failed(self, message: str) -> Iterator[Happening]:
        self.calls.forget()
        message = api_words(message) or "the turn failed"
        yield from self.evidence.fail(message)
        yield Happening(Kind.RESULT, message, {"ok": False})


def _tool(kind: str, item: Mapping[str, Any], begins: bool) -> Happening:
    changes = [table(change) for change in listed(item.get("changes"))]
    names = ", ".join(filter(None, map(file_name, changes)))
    words = text(item.get("command")) or names or text(item.get("query")) or text(item.get("tool"))
    data: dict[str, Any] = {"tool": _TOOLS[kind], "state": ToolState.STARTED}
    if not begins:
        failed = item.get("status") == "failed" or count(item.get("exit_code")) > 0
        data["state"] = ToolState.FAILED if failed else ToolState.ENDED
        if names and not failed:
            data["file"] = names
    return Happening(Kind.TOOL, words, data)
