"""Gemini CLI: ``-o stream-json``, and the one document of ``-o json``.

`result` with `status` decides; exit codes are HTTP statuses cut to a byte, and 0
after a signal or an empty answer. A text comes in pieces only, and after a lost
connection its pieces come again, so the whole is put together here, bounded.
Retries are told on standard error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mam_core.agents.calls import OpenCall
from mam_core.agents.streams.base import Happening, Kind, Tokens, ToolState
from mam_core.agents.streams.json_lines import JsonLines
from mam_core.agents.streams.lines import Line
from mam_core.agents.streams.values import (
    api_words,
    count,
    doing,
    file_name,
    label,
    session,
    table,
    text,
    tokens,
    topic,
)

_WRITERS = frozenset({"write_file", "replace"})
#: Not offered to the model where the approval mode would have to ask a person.
_GUARDED = _WRITERS | {"run_shell_command", "web_fetch", "save_memory"}
_ATTEMPT = re.compile(r"Attempt (\d{1,4}) failed(?: with status (\d{3}))?[.:]? *(.*)")
_WAIT = re.compile(r"Retrying after (\d{1,9})ms")
_WRAPPED = re.compile(r"\[API Error: (.*)\](?:\n(.*))?", re.DOTALL)
_FRAME = "    at "
_MAX_ANSWER_CHARS = 64 * 1024
_MAX_DOCUMENT_CHARS = 4 * 1024 * 1024


class GeminiStream(JsonLines):
    """Reads the lines of one run."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._pieces: list[str] = []
        self._length = 0
        self._answer = ""
        self._complaint = ""

    def read(self, entry: Mapping[str, Any]) -> Iterable[Happening]:
        self.evidence.spoke = True
        kind = entry.get("type")
        if kind == "init":
            return self.evidence.begin(session(entry.get("session_id")))
        if kind == "message":
            return self._message(entry)
        if kind == "tool_use":
            return self._tool_use(entry)
        if kind == "tool_result":
            return self._tool_result(entry)
        if kind == "error":
            return self._error(entry)
        if kind == "result":
            return self._result(entry)
        return ()

    def hear(self, line: str) -> Iterable[Happening]:
        if line.startswith(_FRAME):
            return ()
        if again := _ATTEMPT.match(line):
            data = {"attempt": int(again[1])}
            if again[2]:
                data["status"] = int(again[2])
            return (Happening(Kind.RETRY, again[3], data),)
        if wait := _WAIT.search(line):
            return (Happening(Kind.RETRY, "", {"wait_sec": round(int(wait[1]) / 1000, 1)}),)
        return super().hear(line)

    def close(self) -> list[Happening]:
        return [*super().close(), *self._said()]

    def _message(self, entry: Mapping[str, Any]) -> Iterator[Happening]:
        if entry.get("role") != "assistant":
            return  # the prompt, which is nobody's news
        piece = text(entry.get("content"))
        if piece and self._length < _MAX_ANSWER_CHARS:
            self._pieces.append(piece[: _MAX_ANSWER_CHARS - self._length])
            self._length += len(self._pieces[-1])
        yield Happening(Kind.PARTIAL, piece)
        if entry.get("delta") is not True:
            yield from self._said()

    def _said(self) -> Iterator[Happening]:
        """The text so far, at the point where something else begins."""
        if whole := "".join(self._pieces):
            self._answer = whole
            yield Happening(Kind.TEXT, whole)
        self._pieces, self._length = [], 0

    def _tool_use(self, entry: Mapping[str, Any]) -> Iterator[Happening]:
        yield from self._said()
        name, given = label(entry.get("tool_name")), entry.get("parameters")
        writes = file_name(given) if name in _WRITERS else ""
        self.calls.begin(OpenCall(label(entry.get("tool_id")), name, doing(given), "", writes))
        yield Happening(Kind.TOOL, topic(given), {"tool": name, "state": ToolState.STARTED})

    def _tool_result(self, entry: Mapping[str, Any]) -> Iterator[Happening]:
        call = self.calls.end(label(entry.get("tool_id"))) or OpenCall("", "")
        name = call.tool
        data: dict[str, Any] = {"tool": name, "state": ToolState.ENDED}
        problem = table(entry.get("error"))
        if entry.get("status") == "error":
            data["state"] = ToolState.FAILED
        elif call.writes:
            data["file"] = call.writes
        yield Happening(Kind.TOOL, text(problem.get("message")), data)
        kind = label(problem.get("type"))
        if (kind == "tool_not_registered" and name in _GUARDED) or kind == "policy_violation":
            yield from self.evidence.deny(name, text(problem.get("message")))

    def _error(self, entry: Mapping[str, Any]) -> Iterator[Happening]:
        words = text(entry.get("message"))
        if entry.get("severity") == "error":
            self._complaint = words
        yield Happening(Kind.LOG, words)

    def _result(self, entry: Mapping[str, Any]) -> Iterator[Happening]:
        self.calls.forget()
        yield from self._said()
        stats = table(entry.get("stats"))
        sent, came = count(stats.get("input_tokens")), count(stats.get("output_tokens"))
        # Thoughts are in the total only.
        thoughts = max(0, count(stats.get("total_tokens")) - sent - came)
        yield from self.evidence.spend(
            tokens(
                input=sent, output=came + thoughts, cached=stats.get("cached"), reasoning=thoughts
            )
        )
        if entry.get("status") == "success":
            yield from self.evidence.succeed(self._answer)
            return
        words = _unwrapped(text(table(entry.get("error")).get("message")))
        words = words or self._complaint or "it failed"
        yield from self.evidence.fail(words)
        yield Happening(Kind.RESULT, words, {"ok": False})


class GeminiDocument(GeminiStream):
    """Reads the one object of ``-o json``, which is printed over many lines.

    A failed run prints its object on standard error, among other lines.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._document: list[str] | None = None
        self._size = 0

    def read(self, entry: Mapping[str, Any]) -> Iterable[Happening]:
        return self._whole(entry)

    def _take(self, line: Line) -> Iterable[Happening]:
        if self._document is None and line.data != b"{":
            return super()._take(line)
        return self.hear(line.text())

    def hear(self, line: str) -> Iterable[Happening]:
        if line == "{":
            self._document, self._size = [], 0
        if self._document is None:
            return super().hear(line)
        self._size += len(line)
        if self._size > _MAX_DOCUMENT_CHARS:
            self._document = None
            return (Happening(Kind.LOG, "its answer is too long to be read"),)
        self._document.append(line)
        if line != "}":
            return ()
        lines, self._document = self._document, None
        try:
            entry = json.loads("\n".join(lines))
        except (ValueError, RecursionError):
            return (Happening(Kind.LOG, "its answer is no JSON"),)
        return self._whole(table(entry))

    def _whole(self, entry: Mapping[str, Any]) -> Iterator[Happening]:
        yield from self.evidence.begin(session(entry.get("session_id")))
        used = Tokens()
        for model in map(table, table(table(entry.get("stats")).get("models")).values()):
            told = table(model.get("tokens"))
            thoughts = count(told.get("thoughts"))
            used = used.plus(
                tokens(
                    input=told.get("prompt"),
                    output=count(told.get("candidates")) + thoughts,
                    cached=told.get("cached"),
                    reasoning=thoughts,
                )
            )
        yield from self.evidence.spend(used)
        if problem := table(entry.get("error")):
            words = _unwrapped(text(problem.get("message"))) or "it failed"
            yield from self.evidence.fail(words)
            yield Happening(Kind.RESULT, words, {"ok": False})
        elif isinstance(entry.get("response"), str):
            answer = text(entry.get("response"))
            yield Happening(Kind.TEXT, answer)
            yield from self.evidence.succeed(answer)


def _unwrapped(message: str) -> str:
    """The API's own sentence out of the brackets and objects that it comes in."""
    advice = ""
    if found := _WRAPPED.match(message):
        message, advice = found[1], found[2] or ""
    return f"{api_words(message)} {advice}".strip()
