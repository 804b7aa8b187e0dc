"""A reader of any agent: brings what came by terminal and by files before its ear.

The ear is the agent's own part: it knows what a hook, a report or a title of this
program means, and remembers what was said before where that changes the meaning.
"""

from __future__ import annotations

from typing import Protocol

from mam_core.agents.calls import OpenCall, OpenCalls
from mam_core.agents.channels.osc import STATE, TITLES, Scanner
from mam_core.agents.channels.spool import Call, Spool
from mam_core.agents.signs import Sign
from mam_core.agents.streams.discretion import short
from mam_core.agents.streams.values import doing, label, listed, table, text, topic

#: As long as the words of a question are told; the whole question stands on the screen.
_WORDS = 300


class Ear(Protocol):
    """What the words of one program mean. Each answers with a sign where there is a new one."""

    calls: OpenCalls  #: that it tells of

    def started(self, pid: int) -> None: ...

    def hook(self, call: Call) -> Sign | None: ...

    def state(self, report: str, now: float) -> Sign | None: ...

    def title(self, title: str, now: float) -> Sign | None: ...

    def files(self, now: float) -> list[Sign]: ...


class SilentEar:
    """Hears nothing; agents override what they have."""

    calls = OpenCalls()

    def started(self, pid: int) -> None:
        return None

    def hook(self, call: Call) -> Sign | None:
        return None

    def state(self, report: str, now: float) -> Sign | None:
        return None

    def title(self, title: str, now: float) -> Sign | None:
        return None

    def files(self, now: float) -> list[Sign]:
        return []


class ChannelReader:
    """Reads all channels of one agent."""

    speaks_for_itself = True

    def __init__(self, ear: Ear, spool: Spool) -> None:
        self._ear = ear
        self._spool = spool
        self._scanner = Scanner()

    def started(self, pid: int) -> None:
        self._ear.started(pid)

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        return self._ear.calls.all()

    def heard(self, data: bytes, now: float) -> list[Sign]:
        signs: list[Sign | None] = []
        for report in self._scanner.feed(data):
            if report.code == STATE:
                signs.append(self._ear.state(report.text, now))
            elif report.code in TITLES:
                signs.append(self._ear.title(report.text, now))
        return [sign for sign in signs if sign is not None]

    def look(self, now: float) -> list[Sign]:
        signs = [self._ear.hook(call) for call in self._spool.take()]
        return [*(sign for sign in signs if sign is not None), *self._ear.files(now)]


class Mute:
    """An agent that has no channel of its own."""

    speaks_for_itself = False
    open_calls: tuple[OpenCall, ...] = ()

    def started(self, pid: int) -> None:
        return None

    def heard(self, data: bytes, now: float) -> list[Sign]:
        return []

    def look(self, now: float) -> list[Sign]:
        return []


def tool_call(call: Call, within: str = "") -> OpenCall:
    """That a hook tells of. Where it has no id, two of one tool are taken for one."""
    tool = label(call.data.get("tool_name"))
    call_id = label(call.data.get("tool_use_id")) or tool
    return OpenCall(call_id, tool, doing(call.data.get("tool_input")), within)


def about_tool(name: object, tool_input: object) -> str:
    """A tool call in a few words: `Bash: touch granted.txt`."""
    given = table(tool_input)
    question = table(next(iter(listed(given.get("questions"))), None))
    # A command before its description: it is what will be done.
    words = text(question.get("question")) or text(given.get("command")) or topic(given)
    words = words or text(given.get("plan"))
    return short(": ".join(part for part in (label(name), words) if part), _WORDS)


def in_short(words: object) -> str:
    """Foreign words as a sign may carry them."""
    return short(text(words), _WORDS)
