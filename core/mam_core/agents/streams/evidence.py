"""What a stream has said about how it goes, and the judgement at its end.

One rule for every agent: done needs the good last line *and* exit 0. A stream
that stops without its last line is not done whatever the exit code says, and an
exit code alone proves nothing (measured: four agents of five end failed runs
with 0 somewhere).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import tzinfo
from signal import Signals

from mam_core.agents.quota import Limit, find_limit
from mam_core.agents.streams.base import Happening, Kind, Outcome, Tokens
from mam_core.agents.streams.discretion import short
from mam_core.records import Reason

_NOT_FOUND = 127
#: Codes above this are a signal's number more, by the habit of shells and of agents.
_SIGNAL_BASE = 128
_HABITUAL = frozenset({1, 2, 3, 6, 9, 11, 13, 14, 15})
#: An agent that is denied without end must not fill our memory.
_MAX_DENIALS = 50
#: Of a text that is kept for the judgement.
_KEPT_CHARS = 2000
_OUT_OF_MEMORY = re.compile(r"heap out of memory|memory allocation of \d+ bytes failed")


_CONTRADICTED = "its output reports success and failure of one turn"


class Evidence:
    """Gathered while the stream runs."""

    def __init__(self, now: Callable[[], float], local: tzinfo | None = None) -> None:
        self._now = now
        self._local = local
        self.session_id: str | None = None
        self.tokens = Tokens()
        self.cost: float | None = None
        self.done: bool | None = None  #: what the last line says; None while there is none
        self.failure: Reason | None = None
        self.words = ""
        self.answer = ""  #: the beginning of what it said last
        self.limit: Limit | None = None
        self.spoke = False  #: a line of its own form was there
        self._denials: list[str] = []
        self._said = ""  #: the last line that was not of its form
        self._side_limit: Limit | None = None
        self._out_of_memory = False
        self._is_contradicted = False  #: one turn ended well and badly: who wrote what is unknown
        self._told = ""

    # -- what the parsers note ---------------------------------------------------------------

    def now(self) -> float:
        return self._now()

    def limit_in(self, text: str) -> Limit | None:
        return find_limit(text, self._now(), self._local)

    def begin(self, session_id: str | None) -> list[Happening]:
        """A session has this id; agents repeat it with every turn."""
        self.spoke = True
        if session_id is None or session_id == self.session_id:
            return []
        self.session_id = session_id
        return [Happening(Kind.SESSION, "", {"session": session_id})]

    def spend(self, tokens: Tokens | None = None, cost: float | None = None) -> list[Happening]:
        """The totals of the attempt; told when they have changed."""
        told: list[Happening] = []
        if tokens is not None and tokens != self.tokens:
            self.tokens = tokens
            told.append(Happening(Kind.TOKENS, "", tokens._asdict()))
        if cost is not None and round(cost, 9) != self.cost:
            self.cost = round(cost, 9)
            told.append(Happening(Kind.COST, "", {"cost": self.cost}))
        return told

    def deny(self, tool: str, text: str = "") -> list[Happening]:
        if len(self._denials) >= _MAX_DENIALS:
            return []
        self._denials.append(tool)
        return [Happening(Kind.DENIAL, text, {"tool": tool})]

    def succeed(self, answer: str) -> list[Happening]:
        """Its good last line, until another one follows."""
        self._is_contradicted |= self.spoke and self.done is False
        self.done, self.failure, self.limit = True, None, None
        self.answer = answer[:_KEPT_CHARS]
        return [Happening(Kind.RESULT, answer, {"ok": True})]

    def fail(
        self, text: str, reason: Reason = Reason.AGENT, limit: Limit | None = None
    ) -> list[Happening]:
        """Something that it will not get over, told once: agents repeat such lines."""
        self._is_contradicted |= self.spoke and self.done is True
        limit = limit or (self.limit_in(text) if reason is Reason.AGENT else None)
        self.done, self.failure, self.words = False, reason, text[:_KEPT_CHARS]
        if limit is not None:
            self.limit = limit
        if text[:_KEPT_CHARS] == self._told:
            return []
        self._told = text[:_KEPT_CHARS]
        if limit is not None:
            return [Happening(Kind.QUOTA, text, {"until": limit.until})]
        return [Happening(Kind.ERROR, text)]

    def go_on(self) -> None:
        """A new turn began: whatever was said to be the end was none."""
        self.done = None
        self._is_contradicted = False

    def note(self, line: str) -> None:
        """A line of text that may be the last thing it says."""
        self._said = line
        if "memory" in line and _OUT_OF_MEMORY.search(line):
            self._out_of_memory = True

    def skim(self, data: bytes) -> None:
        """Text that is not read line by line: only what explains an end whenever it was said."""
        if b"memory" in data and _OUT_OF_MEMORY.search(data.decode("utf-8", "replace")):
            self._out_of_memory = True

    def say(self, line: str) -> list[Happening]:
        """A line that is not of the stream's form: mostly from standard error."""
        if not line.strip():
            return []
        self.note(line)
        self._side_limit = self.limit_in(line) or self._side_limit
        return [Happening(Kind.LOG, line)]

    # -- the judgement -----------------------------------------------------------------------

    def outcome(self, exit_code: int | None, signal: int | None) -> Outcome:
        reason, detail = self._verdict(exit_code, signal)
        if self._is_contradicted:
            detail = "; ".join(filter(None, (_CONTRADICTED, detail)))
        until = self.limit.until if self.limit and reason is Reason.QUOTA else None
        return Outcome(
            ok=reason is None,
            reason=reason,
            detail=short(detail),
            tokens=self.tokens,
            cost=self.cost,
            session_id=self.session_id,
            quota_until=until,
            denials=tuple(self._denials),
        )

    def _verdict(self, exit_code: int | None, signal: int | None) -> tuple[Reason | None, str]:
        if exit_code == _NOT_FOUND and not self.spoke:
            return Reason.NOT_FOUND, self._said or "the command was not found"
        if self.done and exit_code == 0 and not signal:
            if self._denials:
                return Reason.REFUSED, f"not permitted: {self._denied()}"
            return None, "" if self.answer.strip() else "it answered nothing"
        if self.limit is None and self.done is None:
            # Said on the side and never confirmed: it explains an end that nothing else does.
            self.limit = self._side_limit
        if self.limit is not None:
            return Reason.QUOTA, self.limit.text
        if self.failure is not None:
            return self.failure, self.words
        if self._out_of_memory:
            return Reason.OOM, self._said
        if signal:
            return Reason.SIGNAL, f"ended by {_name(signal)}"
        if exit_code and exit_code - _SIGNAL_BASE in _HABITUAL:
            return Reason.SIGNAL, f"ended with {exit_code} ({_name(exit_code - _SIGNAL_BASE)})"
        if exit_code:
            said = f": {self._said}" if self._said else ""
            return Reason.EXIT, f"ended with exit code {exit_code}{said}"
        if self._denials:
            return Reason.REFUSED, f"not permitted: {self._denied()}"
        return Reason.AGENT, "it ended with 0, but its output stopped before its last line"

    def _denied(self) -> str:
        return ", ".join(dict.fromkeys(self._denials))


def _name(signal: int) -> str:
    try:
        return Signals(signal).name
    except ValueError:
        return f"signal {signal}"
