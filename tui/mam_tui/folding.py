"""Many arrivals, few changes: of each job only its newest record and the sum of its news count.

A thousand events a second are a few dozen jobs that changed; folding them first
is what keeps the cost of a burst near that of a trickle. It also keeps what waits
within bounds, however long nobody looks: an editor may have the terminal for hours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from mam_core.board.why import Evidence
from mam_core.events.feed import EventHeard, JobChanged, Notice
from mam_core.records import Job
from mam_core.summaries import Summary, Unreadable, used_of
from mam_tui.arrivals import Arrival, Loaded, Removal, Trouble
from mam_tui.moments import seconds
from mam_tui.state_watch import States

if TYPE_CHECKING:
    from mam_core.operations.shown import Shown

#: So many events wait for tails, and so much of their text; the registry has the others.
MOST_EVENTS = 2_000
MOST_CHARS = 8_000_000


class Folded(NamedTuple):
    """What is left of a batch."""

    loaded: Loaded | None
    records: dict[str, Summary | Unreadable | None]  #: None: the record is gone
    news: dict[str, dict[str, Any]]
    heard: list[EventHeard]  #: for tails
    notices: list[Notice | Trouble]  #: the newest of each kind, in their order
    evidence: Evidence | None = None  #: why pending jobs do not run, if that is another now
    missed: frozenset[str] = frozenset()  #: jobs of which not all events are in `heard`
    shown: Mapping[str, Shown] = MappingProxyType({})  #: what is in `news` of states, whole
    removal: str = ""  #: what a person must know about a registry that was here before


class Pile:
    """Arrivals that wait, already folded. Not for two threads at once."""

    def __init__(self, most_events: int = MOST_EVENTS, most_chars: int = MOST_CHARS) -> None:
        self._most_events = most_events
        self._most_chars = most_chars
        self._notices: dict[str, Notice | Trouble] = {}
        self._clear()

    def _clear(self) -> None:
        self._loaded: Loaded | None = None
        self._removal = ""
        self._records: dict[str, Summary | Unreadable | None] = {}
        self._news: dict[str, dict[str, Any]] = {}
        self._heard: deque[tuple[int, EventHeard]] = deque()
        self._chars = 0
        self._missed: set[str] = set()
        self._shown: dict[str, Shown] = {}
        self._evidence: Evidence | None = None
        self.count = 0  #: how many records and events were told

    def add(self, arrivals: Iterable[Arrival]) -> None:
        """In the order of arrival; a list of all jobs makes what came before it old."""
        for one in arrivals:
            if isinstance(one, JobChanged):
                job = one.job
                self._records[one.job_id] = Summary.of(job) if isinstance(job, Job) else job
                self.count += 1
            elif isinstance(one, EventHeard):
                self._hear(one)
                self.count += 1
            elif isinstance(one, States):
                self._see(one)
            elif isinstance(one, Loaded):
                self._loaded = one
                self._records = {}
            elif isinstance(one, Removal):
                self._removal = one.text
            else:
                kind = one.kind.value if isinstance(one, Notice) else f"trouble {one.is_blind}"
                self._notices.pop(kind, None)
                self._notices[kind] = one

    def take(self) -> Folded:
        """All of it; the pile is empty then."""
        folded = Folded(
            self._loaded,
            self._records,
            self._news,
            [one for _, one in self._heard],
            list(self._notices.values()),
            self._evidence,
            frozenset(self._missed),
            self._shown,
            self._removal,
        )
        self._notices = {}
        self._clear()
        return folded

    def take_notices(self) -> Folded:
        """Only what is said about the way here, which is shown also while the picture is held."""
        notices, self._notices = list(self._notices.values()), {}
        return Folded(None, {}, {}, [], notices)

    def _hear(self, one: EventHeard) -> None:
        self._news.setdefault(one.event.job_id, {}).update(news_of(one))
        weight = len(one.event.detail) + (len(str(one.event.data)) if one.event.data else 0)
        self._heard.append((weight, one))
        self._chars += weight
        while len(self._heard) > self._most_events or self._chars > self._most_chars:
            weight, oldest = self._heard.popleft()
            self._chars -= weight
            self._missed.add(oldest.event.job_id)

    def _see(self, states: States) -> None:
        for job_id, shown in states.shown.items():
            news = self._news.setdefault(job_id, {})
            news.update(state=shown.state.word, words=shown.words[:400], channel=shown.channel)
            if shown.at is not None:
                news["at"] = shown.at
            if shown.memory is not None:
                news.update(memory=shown.memory.now, peak_memory=shown.memory.peak)
            if shown.limit is not None:
                news.update(limit=str(shown.limit.limit), ends_at=shown.limit.ends_at)
        self._shown.update(states.shown)
        self._evidence = states.evidence or self._evidence


def fold(arrivals: Iterable[Arrival]) -> Folded:
    """All at once."""
    pile = Pile()
    pile.add(arrivals)
    return pile.take()


def news_of(heard: EventHeard) -> dict[str, Any]:
    """What an event changes of a row; all of it is foreign, so all of it is looked at."""
    event = heard.event
    news: dict[str, Any] = {"event": event.event[:40]}
    at = seconds(event.timestamp)
    if at is not None:
        news["heard_at"] = at
    if event.detail:
        news["detail"] = event.detail[:400]
    told = used_of(event.data)._asdict()
    if memory := told.pop("memory"):
        news.update(memory=memory.now, peak_memory=memory.peak)
    return news | {name: figure for name, figure in told.items() if figure is not None}
