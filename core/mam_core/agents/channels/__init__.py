"""The agents' own channels: how each is set up, and what is read from it.

An agent that says itself what it does is believed before its screen is. What it
needs for that (a settings file with hooks, a plugin) is written into a folder of
the session and given to the program by flag or variable: nothing of the user's
own configuration is ever touched, and what the user has set there stays in
force. An agent without such a channel gets nothing, and its screen is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from mam_core.agents.calls import OpenCall
from mam_core.agents.kinds import kind_of
from mam_core.agents.profiles import Profile
from mam_core.agents.signs import Sign
from mam_core.agents.streams import StreamFormat


class Prepared(NamedTuple):
    """What is added to an agent's command; the files that it names are written."""

    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


class Reader(Protocol):
    """What one agent says of itself, by whatever channels it has."""

    def started(self, pid: int) -> None:
        """The agent runs as this process, or below it."""

    def heard(self, data: bytes, now: float) -> list[Sign]:
        """Bytes that the agent wrote to its terminal, cut anywhere."""

    def look(self, now: float) -> list[Sign]:
        """What came by files since the last look; cheap when nothing did."""

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The tool calls that run, as far as this agent tells of them."""

    @property
    def speaks_for_itself(self) -> bool:
        """It has a channel that is better than its screen."""


def prepare(profile: Profile, folder: str) -> Prepared:
    """Write what the agent needs below `folder` (0700, the session's own), and say what to add.

    What an earlier agent left there is thrown away: call it before each start.
    """
    from mam_core.agents.channels import claude, codex, gemini, opencode

    match kind_of(profile):
        case StreamFormat.CLAUDE:
            return claude.prepare(profile, folder)
        case StreamFormat.CODEX:
            return codex.prepare(profile, folder)
        case StreamFormat.GEMINI | StreamFormat.GEMINI_DOCUMENT:
            return gemini.prepare(profile, folder)
        case StreamFormat.OPENCODE:
            return opencode.prepare(profile, folder)
    return Prepared()


def reader_for(profile: Profile, folder: str) -> Reader:
    """Reads what an agent says that was started with `prepare`'s words for the same folder."""
    from mam_core.agents.channels import claude, codex, gemini, opencode, reading

    match kind_of(profile):
        case StreamFormat.CLAUDE:
            return claude.reader(profile, folder)
        case StreamFormat.CODEX:
            return codex.reader(folder)
        case StreamFormat.GEMINI | StreamFormat.GEMINI_DOCUMENT:
            return gemini.reader(folder)
        case StreamFormat.OPENCODE:
            return opencode.reader(folder)
    return reading.Mute()
