"""What an attempt printed, from its log: the end of it, and whatever is added while one looks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from mam_core.errors import JobNotFound, MamError
from mam_core.operations.elsewhere import is_elsewhere
from mam_core.operations.output import NoOutput, Piece, Place, attempts_with_output, read_output
from mam_core.operations.seen import printed
from mam_core.records import Job
from mam_core.registry import Registry
from mam_core.safe_text import one_line
from mam_core.summaries import Summary
from mam_tui.desk import Desk
from mam_tui.moments import size
from mam_tui.widgets.detail.log import Log
from mam_tui.widgets.detail.sgr import PLAIN, Sgr, parse_all
from mam_tui.widgets.detail.spans import Line, Span
from mam_tui.widgets.detail.tab import Question, Setting, Tab

#: Of a line that has no end yet, so much is kept to be joined with what follows.
_MOST_UNENDED = 16 * 1024
#: Every piece between them is a line: a bar that draws over itself hides nothing here.
_LINE_END = re.compile(rb"\r\n|\n|\r")


_NEAR_SEC = 0.5
#: Each look is a question over the network.
_FAR_SEC = 1.5


class _At(NamedTuple):
    """How far an attempt's log was read."""

    attempt: int
    place: Place | None = None
    carried: Sgr = PLAIN
    unended: bytes = b""


class _Read(NamedTuple):
    attempts: Sequence[int]
    at: _At
    lines: list[Line]
    piece: Piece | None  #: None: this attempt has no output
    words: str = ""
    node: str = ""  #: the other host that was asked


class OutputTab(Tab):
    """The newest attempt's, until another is chosen."""

    name: ClassVar[str] = "output"
    look_sec: float | None = _NEAR_SEC

    def __init__(self, setting: Setting, desk: Desk) -> None:
        self._desk = desk
        self._log = Log()
        super().__init__(setting, self._log)
        self._attempts: Sequence[int] = ()
        self._chosen: int | None = None  #: None: always the newest
        self._at: _At | None = None

    def forget(self) -> None:
        self._log.clear()
        self._attempts = ()
        self._chosen = self._at = None

    def question(self) -> Question:
        desk, job_id, chosen, at = self._desk, self.job_id, self._chosen, self._at

        def ask(registry: Registry) -> _Read:
            job = _record(registry, job_id)
            if job is not None and is_elsewhere(registry, job):
                return _asked(desk, registry, job, chosen, at)
            attempts = attempts_with_output(registry, job_id)
            if not attempts:
                return _Read((), at or _At(0), [], None, _why_none(job))
            attempt = chosen if chosen in attempts else attempts[-1]
            known = at if at is not None and at.attempt == attempt else _At(attempt)
            try:
                piece = read_output(registry, job_id, attempt, known.place)
            except NoOutput as problem:
                return _Read(attempts, known, [], None, problem.message)
            return _read(attempts, known, piece)

        return ask

    def answer(self, answer: Any) -> None:
        read: _Read = answer
        self._attempts = read.attempts
        self.look_sec = _FAR_SEC if read.node else _NEAR_SEC
        if read.piece is None:
            self._log.clear()
            self._log.say(read.words)
            self.note = ""
            return
        was = self._at
        if was is None or was.attempt != read.at.attempt or read.piece.is_anew:
            self._log.clear()
            was = None
        self._log.extend(read.lines, instead_of_last=bool(was and was.unended))
        self._at = read.at
        self._log.say("it has printed nothing")
        self.note = self._note(read.piece, read.node)

    def is_stale(self, was: Summary | None, now: Summary | None) -> bool:
        return was is None or now is None or (was.attempt, was.status) != (now.attempt, now.status)

    def other_attempt(self, step: int) -> bool:
        if self._at is None or self._at.attempt not in self._attempts:
            return False
        at = list(self._attempts).index(self._at.attempt) + step
        if not 0 <= at < len(self._attempts):
            return False
        self._chosen = None if at == len(self._attempts) - 1 else self._attempts[at]
        return True

    def _note(self, piece: Piece, node: str) -> str:
        attempt = self._at.attempt if self._at else 0
        parts = [f"of attempt {attempt}"]
        if len(self._attempts) > 1:
            known = ", ".join(map(str, self._attempts))
            parts = [f"of attempt {attempt} out of {known} (< >)"]
        if node:
            parts.append(f"on {one_line(node)}")
        parts.append(size(piece.size))
        parts.append("following" if self._log.following else "end follows again")
        return ", ".join(parts)


def _asked(desk: Desk, registry: Registry, job: Job, chosen: int | None, at: _At | None) -> _Read:
    """Of another host's job: where one stands in the log is what that host said before."""
    attempt = chosen or job.attempt
    known = at if at is not None and at.attempt == attempt else _At(attempt)
    try:
        found = printed(registry, desk.others, job, attempt, known.place)
    except MamError as problem:
        attempts = attempts_with_output(registry, job.job_id)
        return _Read(attempts, known, [], None, problem.message, job.node or "")
    return _read(found.attempts, known, found.piece)._replace(node=job.node or "")


def _record(registry: Registry, job_id: str) -> Job | None:
    try:
        return registry.get(job_id)
    except JobNotFound:
        return None


def _why_none(job: Job | None) -> str:
    if job is None:
        return "its record is gone, and no output of it is kept here"
    if not job.attempt:
        return "no attempt was made yet: nothing was printed"
    return "no output is kept: no worker of ours on this host ran it, or it printed nothing"


def _read(attempts: Sequence[int], known: _At, piece: Piece) -> _Read:
    if piece.is_anew:
        known = _At(known.attempt)
    data = known.unended + piece.data
    if piece.skipped:
        known, data = known._replace(carried=PLAIN), piece.data
        data = data.partition(b"\n")[2] or data  # the first line is only a part of one
    # A lone CR at the very end may be half of a line end.
    held = b"\r" if data.endswith(b"\r") else b""
    *whole, unended = _LINE_END.split(data[: len(data) - len(held)])
    lines, carried = parse_all(known.carried, (_text(line) for line in whole))
    if piece.skipped:
        words = f"… {piece.skipped:,} bytes before this are not shown"
        lines.insert(0, (Span(words, "muted"),))
    rest = (unended + held)[:_MOST_UNENDED]
    if rest:
        shown, _ = parse_all(carried, [_text(unended)])
        lines += shown
    at = known._replace(place=piece.place, carried=carried, unended=rest)
    return _Read(attempts, at, lines, piece)


def _text(line: bytes) -> str:
    return line[: 4 * 4096].decode("utf-8", "replace")
