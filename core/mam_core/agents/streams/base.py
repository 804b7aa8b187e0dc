"""What an agent's output is turned into, whichever agent wrote it.

Bytes go in, `Happening`s come out while it runs, one `Outcome` at its end. A
parser believes nothing and survives everything: any chunking, torn UTF-8, broken
JSON, unknown types and endless lines cost it a happening at most, never an
exception and never more memory than its limits say.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mam_core.records import Reason

if TYPE_CHECKING:
    from mam_core.agents.calls import OpenCall

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Kind(StrEnum):
    """What happened."""

    TEXT = "text"  #: the agent said something
    TOOL = "tool"  #: a tool began, ended or failed: data has tool, state, perhaps file
    TOKENS = "tokens"  #: what was used since the attempt began; never to be added up
    COST = "cost"  #: the same in dollars
    RETRY = "retry"  #: it asks its model again
    ERROR = "error"
    DENIAL = "denial"  #: a tool was not permitted
    QUESTION = "question"  #: it asks a person; data has waits: whether it stands still until then
    QUOTA = "quota"  #: a usage limit was met: data has until
    SESSION = "session"  #: data has the id by which it can be resumed
    RESULT = "result"  #: its last word on a turn: data has ok
    THINKING = "thinking"  #: activity only
    PARTIAL = "partial"  #: activity only: a piece of a text that comes whole later
    STATE = "state"  #: it works, waits or rests from now on, or a question was settled
    LOG = "log"
    SKIPPED = "skipped"  #: so many lines of text were not read: data has lines


class ToolState(StrEnum):
    """Where a tool's run stands."""

    STARTED = "started"
    ENDED = "ended"
    FAILED = "failed"


class Happening(NamedTuple):
    """One thing that the agent did; its text is foreign and may be long."""

    kind: Kind
    text: str = ""
    data: Mapping[str, Any] = _NOTHING


class Tokens(NamedTuple):
    """What the attempt has used, counted alike for all agents."""

    input: int = 0  #: all that was sent, from a cache or not
    output: int = 0  #: all that came, thoughts included
    cached: int = 0  #: the part of the input that a cache held
    reasoning: int = 0  #: the part of the output that was thought, where it is told

    @property
    def total(self) -> int:
        return self.input + self.output

    def plus(self, other: Tokens) -> Tokens:
        return Tokens(*(mine + more for mine, more in zip(self, other, strict=True)))


class Outcome(NamedTuple):
    """How an attempt ended, by the agent's own words and its exit together.

    REFUSED means that it came to an end but was denied a tool on the way: checks
    of the job that pass may overrule it.
    """

    ok: bool
    reason: Reason | None
    detail: str  #: short, and fit to be told
    tokens: Tokens
    cost: float | None
    session_id: str | None
    quota_until: float | None
    denials: tuple[str, ...]  #: the tools, in order


class StreamParser(Protocol):
    """Reads one attempt's output."""

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The tool calls that run, as far as this agent tells of them before they have ended."""

    def feed(self, data: bytes, *, aside: bool = False) -> list[Happening]:
        """What these bytes say; `aside` where they come from standard error.

        A caller that joins both streams in one pipe leaves `aside` alone.
        """

    def close(self) -> list[Happening]:
        """The output is over: what its last, unfinished line says. Nothing is fed afterwards."""

    def end(self, exit_code: int | None, signal: int | None) -> Outcome:
        """The judgement, from all that was fed and how the process ended."""
