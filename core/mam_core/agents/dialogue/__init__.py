"""Agents that speak JSON both ways: what they ask is answered, and one turn follows the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from mam_core.agents.dialogue.base import Dialogue
from mam_core.agents.profiles import Mode, Profile, PromptWay
from mam_core.agents.streams import StreamFormat

if TYPE_CHECKING:
    from datetime import tzinfo

__all__ = ["Dialogue", "dialogue_for", "is_two_way"]

_INPUT = "--input-format"


def is_two_way(profile: Profile) -> bool:
    """By its command: one that does not ask for JSON as its input gets the prompt as it is."""
    return (
        profile.mode is Mode.STREAM
        and profile.stream is StreamFormat.CLAUDE
        and profile.prompt is PromptWay.STDIN
        and _input_format(profile.command) == StreamFormat.CLAUDE
    )


def dialogue_for(
    profile: Profile, now: Callable[[], float] = time.time, local: tzinfo | None = None
) -> Dialogue | None:
    """For one attempt; None when its agent only listens once."""
    if not is_two_way(profile):
        return None
    from mam_core.agents.dialogue.claude import ClaudeDialogue

    return ClaudeDialogue(now, local)


def _input_format(command: tuple[str, ...]) -> str:
    """What the last such option says, as programs read them."""
    found = ""
    for word, following in zip(command, (*command[1:], ""), strict=True):
        if word == _INPUT:
            found = following
        elif word.startswith(f"{_INPUT}="):
            found = word.partition("=")[2]
    return found
