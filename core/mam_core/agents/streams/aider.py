"""aider: text for people, wrapped at 80 columns, and exit 0 whatever happened.

Its own lines stand between those of the model and are known by their form. The
line with tokens and cost ends an answer; an error that nothing follows is how a
run failed. Figures are rounded, with ``--stream`` estimated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from mam_core.agents.streams.base import Happening, Kind, Outcome, Tokens, ToolState
from mam_core.agents.streams.plain import PlainText

_USAGE = re.compile(r"Tokens: (.{1,120}?)\. Cost: \$[\d.,]+ message, \$([\d.,]+) session\.")
_USAGE_FREE = re.compile(r"Tokens: ([\d.,kM]+ sent, .{0,80}?[\d.,kM]+ received)\.?$")
_AMOUNT = re.compile(r"(\d[\d.,]{0,15})([kM]?) (sent|received|cache write|cache hit)")
_ERROR = re.compile(r"litellm\.\w{1,60}(?:Error|Exception|Timeout|Exceeded)\b")
_RETRYING = re.compile(r"Retrying in ([\d.]{1,12}) seconds\.\.\.")
_EDITED = re.compile(r"Applied edit to (.{1,300})")
_COMMITTED = re.compile(r"Commit ([0-9a-f]{7,40}) (.{0,200})")
_BANNER = re.compile(r"(?:Aider v\d|Model: |Main model: |Git repo: |Repo-map: |Weak model: )")
_EMPTY = "Empty response received from LLM."
_TOO_LONG = "has hit a token limit!"
_INTERRUPTED = "^C again to exit"
_EXPLAINED = "The API provider"
_MAX_COMPLAINT_CHARS = 1000


class AiderText(PlainText):
    """Reads the lines of one run."""

    reads_all = True

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._complaint: list[str] = []  #: the lines of an error that is being told
        self._complaining = False
        self._retries = 0
        self._empty = False

    def hear(self, line: str) -> Iterable[Happening]:
        if not line.strip():
            return self._give_up()
        self.evidence.note(line)
        return self._read(line)

    def close(self) -> list[Happening]:
        return [*super().close(), *self._give_up()]

    def _read(self, line: str) -> Iterator[Happening]:
        if _ERROR.match(line):
            self._complaint, self._complaining = [line], True
        elif again := _RETRYING.match(line):
            self._retries += 1
            data = {"attempt": self._retries, "wait_sec": _figure(again[1])}
            words, self._complaint, self._complaining = " ".join(self._complaint), [], False
            yield Happening(Kind.RETRY, words, data)
        elif usage := _USAGE.match(line) or _USAGE_FREE.match(line):
            yield from self._answered(usage)
        elif line.startswith(_EXPLAINED) and self._complaint:
            self._complaining = False
        elif self._complaining:
            if sum(map(len, self._complaint)) < _MAX_COMPLAINT_CHARS:
                self._complaint.append(line)
        elif edited := _EDITED.match(line):
            name = edited[1].rstrip("/").rpartition("/")[2]
            done = {"tool": "edit", "state": ToolState.ENDED, "file": name}
            yield Happening(Kind.TOOL, name, done)
        elif made := _COMMITTED.match(line):
            yield Happening(Kind.TOOL, made[2], {"tool": "commit", "state": ToolState.ENDED})
        elif line.startswith(_EMPTY):
            self._empty = True
            yield from self.evidence.fail(line)
        elif _TOO_LONG in line:
            yield from self.evidence.fail(line)
        elif line.strip() == _INTERRUPTED:
            yield from self.evidence.fail("it was interrupted")
        elif _BANNER.match(line):
            yield Happening(Kind.LOG, line)
        else:
            self.evidence.answer = line
            yield Happening(Kind.TEXT, line)

    def _give_up(self) -> list[Happening]:
        """After an empty line, or at the end: had it tried again, it would have said so."""
        words, self._complaint, self._complaining = " ".join(self._complaint), [], False
        return self.evidence.fail(words) if words else []

    def _answered(self, usage: re.Match[str]) -> Iterator[Happening]:
        self._complaint, self._complaining = [], False
        used = dict.fromkeys(("sent", "received", "cache write", "cache hit"), 0)
        for amount, unit, name in _AMOUNT.findall(usage[1]):
            used[name] = round(_figure(amount) * {"": 1, "k": 1000, "M": 1_000_000}[unit])
        message = Tokens(used["sent"], used["received"], used["cache hit"])
        cost = _figure(usage[2]) if usage.re is _USAGE else None
        yield from self.evidence.spend(self.evidence.tokens.plus(message), cost)
        if not self._empty:
            yield from self.evidence.succeed(self.evidence.answer)
        self._empty = False

    def end(self, exit_code: int | None, signal: int | None) -> Outcome:
        self.close()
        return self.evidence.outcome(exit_code, signal)


def _figure(words: str) -> float:
    try:
        return float(words.replace(",", "").rstrip("."))
    except ValueError:
        return 0.0
