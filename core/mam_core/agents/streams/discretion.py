"""Foreign text as the world may see it: short, one line, without keys and places."""

from __future__ import annotations

from mam_core.discretion import PromptGuard, without_keys, without_paths

__all__ = ["SHORT", "PromptGuard", "short"]

#: As long as a detail of an event or a record should be.
SHORT = 200


def short(text: str, limit: int = SHORT) -> str:
    """One line of at most `limit` characters."""
    # Cut generously first: a foreign text may have megabytes.
    text = " ".join(text[: 8 * limit].replace("file://", "").split())
    text = without_paths(without_keys(text))
    return text if len(text) <= limit else text[: limit - 1] + "…"
