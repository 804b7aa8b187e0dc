"""What an agent asks before it goes on, in words for a person, and the reply to it.

A permission shows what would be done (the command itself, not the agent's
description of it), cut short and without keys and places, as events are. Yes
lets it go on with its input as it came; anything else is a no that the agent
reads. A question with choices takes the answer itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from mam_core.agents.streams.discretion import short
from mam_core.agents.streams.values import label, listed, table, text
from mam_core.messages import Message

_ASK = "AskUserQuestion"
_PLAN = "ExitPlanMode"
_NO = "The operator does not permit this."
#: Where a tool's input says what it would do, the most telling first.
_DEEDS = (
    "command", "file_path", "notebook_path", "path", "url", "query", "pattern", "plan", "prompt",
    "description",
)  # fmt: skip
#: So much of an input is told with the question.
_MAX_KEYS = 6
_MAX_CHOICES = 9


class Question(NamedTuple):
    """One open request; `given` is the tool's input as JSON, which is smaller than as objects."""

    request_id: str
    tool: str
    tool_use_id: str
    words: str
    given: str

    def data(self) -> dict[str, Any]:
        """For the event: short, and safe to be told."""
        told = {
            short(name, 40): short(value if isinstance(value, str) else json.dumps(value))
            for name, value in list(table(json.loads(self.given)).items())[:_MAX_KEYS]
        }
        return {"tool": self.tool, "waits": True, "request": self.request_id, "input": told}

    def reply(self, message: Message) -> dict[str, Any]:
        """What the agent is told."""
        given = json.loads(self.given)
        if self.tool == _ASK and (answered := _answered(given, message.text.strip())):
            return {"behavior": "allow", "updatedInput": answered}
        if message.verdict:
            return {"behavior": "allow", "updatedInput": given}
        return {"behavior": "deny", "message": _NO if message.verdict is False else message.text}

    def verb(self, reply: Mapping[str, Any]) -> str:
        if self.tool == _ASK:
            return "answered"
        return "allowed" if reply["behavior"] == "allow" else "denied"


def asked(request_id: str, request: Mapping[str, Any]) -> Question:
    tool, given = label(request.get("tool_name")), request.get("input")
    words = _choices(given) if tool == _ASK else _deed(tool, given)
    return Question(
        request_id, tool, label(request.get("tool_use_id")), words, json.dumps(table(given))
    )


def _deed(tool: str, given: Any) -> str:
    found = next((found for key in _DEEDS if (found := text(table(given).get(key)))), "")
    name = "its plan" if tool == _PLAN else tool
    return f"{name}: {found}" if found else name


def _choices(given: Any) -> str:
    questions = [table(one) for one in listed(table(given).get("questions"))]
    words = []
    for question in questions[:_MAX_KEYS]:
        options = _labels(question)
        listing = ", ".join(f"{n} {option}" for n, option in enumerate(options, 1))
        words.append(text(question.get("question")) + (f" ({listing})" if listing else ""))
    return "; ".join(filter(None, words)) or _ASK


def _labels(question: Mapping[str, Any]) -> list[str]:
    options = listed(question.get("options"))[:_MAX_CHOICES]
    return [label(table(option).get("label")) for option in options]


def _answered(given: Any, words: str) -> dict[str, Any] | None:
    """The input with the answer in it; None where there is not exactly one question: then the
    words go back as a refusal, which the agent reads."""
    questions = [table(one) for one in listed(table(given).get("questions"))]
    if len(questions) != 1 or not (name := text(questions[0].get("question"))):
        return None
    labels = _labels(questions[0])
    if words.isdecimal() and 1 <= int(words[:4]) <= len(labels):
        words = labels[int(words[:4]) - 1]
    return {**given, "answers": {name: words}}
