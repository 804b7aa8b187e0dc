"""What a terminal's title says of the agent that set it.

The rest of a title is words of a model: only its mark is read, at its begin. Each
rule was recorded (Claude Code 2.1.197, codex-cli 0.166.0, Gemini CLI 0.61.0);
opencode and aider show no state in theirs.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mam_core.agents.signs import AgentState


class Mark(NamedTuple):
    """A state that a title shows, and the rule by which it was read."""

    state: AgentState
    rule: str


_BRAILLE = re.compile("[\u2800-\u28ff]")

_CLAUDE_WORKING = Mark(AgentState.WORKING, "title: spinner")
#: The same mark stands there when nothing is to be done and when a person is asked.
_CLAUDE_STILL = Mark(AgentState.UNKNOWN, "title: no spinner")

_CODEX_WORKING = Mark(AgentState.WORKING, "title: spinner")
_CODEX_ASKING = Mark(AgentState.WAITING, "title: Action Required")
_CODEX_STILL = Mark(AgentState.IDLE, "title: no spinner")

_GEMINI = (
    ("◇", "Ready", Mark(AgentState.IDLE, "title: Ready")),
    ("✦", "Working", Mark(AgentState.WORKING, "title: Working")),
    ("✋", "Action Required", Mark(AgentState.WAITING, "title: Action Required")),
)


def claude(title: str) -> Mark | None:
    if _BRAILLE.match(title):
        return _CLAUDE_WORKING
    return _CLAUDE_STILL if title.startswith("✳") else None


def codex(title: str) -> Mark | None:
    if _BRAILLE.match(title):
        return _CODEX_WORKING
    if re.match(r"\[ [!.] \] Action Required", title):
        return _CODEX_ASKING
    return _CODEX_STILL if title.strip() else None  # it empties the title when it leaves


def gemini(title: str) -> Mark | None:
    for sign, word, mark in _GEMINI:
        if title.startswith(sign) and title[len(sign) :].lstrip().startswith(word):
            return mark
    return None
