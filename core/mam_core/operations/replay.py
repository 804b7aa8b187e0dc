"""The registry as it was at a moment: once, for the command line, or to move about in.

`replay` reads every log once and keeps one state a job. `Loading` fills a `Past` that
answers any number of such questions, for the console; both fold the same lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any, NamedTuple

from mam_core.board.why import BlockReasons, Hold
from mam_core.clock import fine_stamp
from mam_core.errors import InvalidField
from mam_core.fields import parse_duration, parse_moment
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.replay.folding import Change, Fold, seconds
from mam_core.replay.loading import Loading, Progress, posted
from mam_core.replay.past import Cursor, Past, Place
from mam_core.replay.standing import Contract, Stand, Then, Word
from mam_core.replay.unlogged import fold_of, lines_of, unlogged
from mam_core.summaries import Summary

__all__ = [
    "Contract",
    "Cursor",
    "Loading",
    "Past",
    "Place",
    "Progress",
    "Replay",
    "SessionThen",
    "Span",
    "Stand",
    "Then",
    "Word",
    "loading",
    "moment",
    "replay",
    "sessions_of",
    "span",
]


class SessionThen(NamedTuple):
    """What the jobs of a label say of its session; what tmux showed is in no log."""

    label: str
    agents: tuple[str, ...]
    running: tuple[str, ...]  #: ids
    queued: int
    nodes: tuple[str, ...]  #: where its running jobs ran

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()


class Replay(NamedTuple):
    """All of it at one moment."""

    at: float
    jobs: list[Then]  #: in order of registration
    sessions: list[SessionThen]
    damaged: int  #: lines that could not be read
    holds: Mapping[str, tuple[Hold, ...]]  #: what kept each blocked job from being claimed

    @property
    def counts(self) -> dict[Status, int]:
        found = Counter(job.status for job in self.jobs)
        return {status: found[status] for status in Status}


class Span(NamedTuple):
    """From when to when there is something to be seen."""

    begin: float
    end: float
    jobs: int

    def to_dict(self) -> dict[str, Any]:
        return {"from": fine_stamp(self.begin), "to": fine_stamp(self.end), "jobs": self.jobs}


def moment(text: str, now: float) -> float:
    """``-10m`` before now, ``14:05`` on the wall, or what a moment is elsewhere; without a zone
    it is the wall's, too. Raises `InvalidField`."""
    try:
        if text.startswith("-"):
            return now - parse_duration(text[1:])
        if text == "now":
            return now
        on_the_wall = _on_the_wall(text, now)
        return parse_moment(text, now) if on_the_wall is None else on_the_wall
    except ValueError as problem:
        raise InvalidField(str(problem).replace("or +10m", "or -10m")) from None


def _on_the_wall(text: str, now: float) -> float | None:
    """The last time that a clock here showed this; None for what names a zone, or is no time."""
    try:
        if len(text) <= _LONGEST_TIME:
            today = datetime.fromtimestamp(now, UTC).astimezone()
            found = datetime.combine(today.date(), time.fromisoformat(text))
            yesterday = found - timedelta(days=1)
            found = found if found.timestamp() <= now else yesterday
        else:
            found = datetime.fromisoformat(text)
        return found.timestamp() if found.tzinfo is None else None
    except (ValueError, OverflowError, OSError):
        return None


def loading(registry: Registry) -> Loading:
    """Reads nothing yet: whoever runs it does so on a thread of its own."""
    return Loading(registry.store, registry.clock)


def replay(registry: Registry, at: float) -> Replay:
    """Made from the audit log and from what is on its way into it; of the records only those of
    jobs without a history are looked at."""
    now = registry.clock.now()
    waiting: dict[str, list[dict[str, Any]]] = {}
    for job_id, line in posted(registry.store):
        waiting.setdefault(job_id, []).append(line)
    found: list[Then] = []
    logged: set[str] = set()
    damaged = 0
    with registry.store.audit.logs() as logs:
        for job_id in logs.names():
            kept = _Kept(job_id, Fold(logs.meta(job_id)), at)
            for piece in logs.pieces(job_id):
                damaged += piece.damaged
                kept.read(piece.lines, now)
                logged.add(job_id)
            if job_id not in logged:
                continue
            kept.read(waiting.get(job_id, ()), now)
            if (then := kept.then()) is not None:
                found.append(then)
    for job in unlogged(registry.store, logged):
        kept = _Kept(job.job_id, fold_of(job), at)
        kept.read([*lines_of(job), *waiting.get(job.job_id, ())], now)
        if (then := kept.then()) is not None:
            found.append(then)
    found.sort(key=lambda then: (then.stand.contract.order, then.job_id))
    sessions = sessions_of((job.job_id, job.stand) for job in found)
    return Replay(at, found, sessions, damaged, _holds(found, at))


def _holds(jobs: Iterable[Then], at: float) -> dict[str, tuple[Hold, ...]]:
    """By today's rules, from other jobs and start times. The log does not record which pauses were
    in force or who served a label."""
    by_id = {job.job_id: job for job in jobs}
    known: dict[str, Summary] = {}

    def look_up(job_id: str) -> Summary | None:
        if job_id in by_id and job_id not in known:
            known[job_id] = by_id[job_id].summary
        return known.get(job_id)

    reasons, found = BlockReasons(look_up), {}
    for job_id, job in by_id.items():
        summary = look_up(job_id) if job.stand.may_be_held else None
        if summary is not None and (holds := reasons.why(summary, at).holds):
            found[job_id] = holds
    return found


def sessions_of(jobs: Iterable[tuple[str, Stand]]) -> list[SessionThen]:
    """The sessions that jobs were for, by label."""
    by_label: dict[str, _Session] = {}
    for job_id, stand in jobs:  # may be ten thousand, ten times a second
        label = stand.contract.agent_session
        session = by_label.get(label)
        if session is None:
            session = by_label[label] = _Session(set(), [], [])
        session.agents.add(stand.contract.agent)
        if stand.status is Status.PENDING:
            session.queued.append(job_id)
        elif stand.status is Status.RUNNING:
            session.running.append((job_id, stand.node))
    return [by_label[label].then(label) for label in sorted(by_label)]


def span(registry: Registry) -> Span | None:
    """None where nothing was ever logged. Reads the ends of each log, and of none the middle."""
    begin, end, jobs = float("inf"), 0.0, 0
    logged: set[str] = set()
    audit = registry.store.audit
    now = registry.clock.now()
    for job_id in audit.job_ids():
        first = next(audit.events(job_id), None)
        _, tail = audit.news(job_id, None, _TAIL_BYTES)
        moments = [seconds(first.get("timestamp"))] if first else []
        moments += [_moment_in(raw) for raw in tail[-1:]]
        begin, end, known = _spanned(begin, end, moments, now)
        jobs += known
        if first:
            logged.add(job_id)
    for job in unlogged(registry.store, logged):
        moments = [seconds(line["timestamp"]) for line in lines_of(job)]
        begin, end, known = _spanned(begin, end, moments, now)
        jobs += known
    return Span(begin, end, jobs) if jobs else None


def _spanned(
    begin: float, end: float, moments: list[float], now: float
) -> tuple[float, float, bool]:
    """The span with these in it, and whether there was one to be counted."""
    known = [at for at in moments if 0 < at <= now]
    return min(begin, *known, begin), max(end, *known, end), bool(known)


_TAIL_BYTES = 64 * 1024
#: `14:05:12`; a day is longer.
_LONGEST_TIME = 8
_STAMP = b'"timestamp": "'


def _moment_in(raw: bytes) -> float:
    """Of a line, without the payload that it may carry."""
    _, found, rest = raw.partition(_STAMP)
    return seconds(rest.partition(b'"')[0].decode("ascii", "replace")) if found else 0.0


class _Kept:
    """One job while its log is read: the newest of each chain until the moment."""

    def __init__(self, job_id: str, fold: Fold, at: float) -> None:
        self._job_id = job_id
        self._fold = fold
        self._at = at
        self._stand: Change | None = None
        self._word: Change | None = None

    def read(self, lines: Iterable[dict[str, Any]], now: float) -> None:
        for line in lines:
            change = self._fold.read(line, now)
            if change is None or change.at > self._at:
                continue
            if change.stand is not None:
                self._stand = change
            else:
                self._word = change

    def then(self) -> Then | None:
        stand = self._stand.stand if self._stand is not None else None
        if stand is None or stand.gone:
            return None
        return Then(self._job_id, stand, self._word.word if self._word is not None else None)


class _Session(NamedTuple):
    """One label while its jobs are gone through."""

    agents: set[str]
    queued: list[str]
    running: list[tuple[str, str | None]]  #: with their nodes

    def then(self, label: str) -> SessionThen:
        nodes = tuple(sorted({node for _, node in self.running if node}))
        running = tuple(job_id for job_id, _ in self.running)
        return SessionThen(label, tuple(sorted(self.agents)), running, len(self.queued), nodes)
