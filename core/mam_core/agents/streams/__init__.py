"""Agents' output, read: one module per format."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import tzinfo
from enum import StrEnum

from mam_core.agents.streams.base import Happening, Kind, Outcome, StreamParser, Tokens, ToolState

__all__ = [
    "Happening",
    "Kind",
    "Outcome",
    "StreamFormat",
    "StreamParser",
    "Tokens",
    "ToolState",
    "parser_for",
]


class StreamFormat(StrEnum):
    """The forms of output that are understood; the words of ``stream`` in mam.toml."""

    CLAUDE = "stream-json"
    CODEX = "codex-json"
    GEMINI = "gemini-stream-json"
    GEMINI_DOCUMENT = "gemini-json"
    OPENCODE = "opencode-json"
    AIDER = "aider"
    PLAIN = "plain"


def parser_for(
    form: StreamFormat, now: Callable[[], float] = time.time, local: tzinfo | None = None
) -> StreamParser:
    """A parser for one attempt. `local` is the zone of the agent's clock; None: this machine's."""
    return _parser(form)(now, local)


def _parser(form: StreamFormat) -> Callable[[Callable[[], float], tzinfo | None], StreamParser]:
    if form is StreamFormat.CLAUDE:
        from mam_core.agents.streams.claude import ClaudeStream

        return ClaudeStream
    if form is StreamFormat.CODEX:
        from mam_core.agents.streams.codex import CodexStream

        return CodexStream
    if form is StreamFormat.GEMINI:
        from mam_core.agents.streams.gemini import GeminiStream

        return GeminiStream
    if form is StreamFormat.GEMINI_DOCUMENT:
        from mam_core.agents.streams.gemini import GeminiDocument

        return GeminiDocument
    if form is StreamFormat.OPENCODE:
        from mam_core.agents.streams.opencode import OpencodeStream

        return OpencodeStream
    if form is StreamFormat.AIDER:
        from mam_core.agents.streams.aider import AiderText

        return AiderText
    from mam_core.agents.streams.plain import PlainText

    return PlainText
