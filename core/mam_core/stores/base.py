"""What a store is: transactions over records, and reading without a lock.

The registry's rules are written once, above this protocol. A store only has to
keep records, hand out the next claimable one in the right order, and make a
transaction happen whole or not at all. Every store passes the same contract
suite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mam_core.audit import AuditLine
from mam_core.audit_base import Audit
from mam_core.record_parts import Lease
from mam_core.records import Job, Status
from mam_core.summaries import Summary, Unreadable

if TYPE_CHECKING:
    from mam_core.events.post import Post
    from mam_core.events.watch import Watch

#: Told how many steps of how many are done.
Progress = Callable[[int, int], None]


class GateKind(StrEnum):
    """What a pause holds back."""

    ALL = "all"
    AGENT = "agent"
    GROUP = "group"
    NODE = "node"  #: what a host may claim, whichever job that would be
    SCHEDULE = "schedule"  #: what the clock would register; every schedule where it has no name


class Gate(NamedTuple):
    """A pause: who closed it, when, why, and until when if that is known."""

    kind: GateKind
    name: str  #: empty for `GateKind.ALL`, and for all schedules
    since: str
    by: str = ""
    why: str = ""
    until: str | None = None


class Gates(NamedTuple):
    """All that is kept about more than one job: pauses, slots changed while running, and up to
    which moment each schedule is settled."""

    closed: tuple[Gate, ...] = ()
    slots: Mapping[str, int] = MappingProxyType({})
    schedules: Mapping[str, Mapping[str, Any]] = MappingProxyType({})  #: see ``schedules.memory``

    def find(self, kind: GateKind, name: str) -> Gate | None:
        return next((g for g in self.closed if (g.kind, g.name) == (kind, name)), None)

    def without(self, kind: GateKind, name: str) -> Gates:
        kept = tuple(g for g in self.closed if (g.kind, g.name) != (kind, name))
        return self._replace(closed=kept)

    def with_gate(self, gate: Gate) -> Gates:
        return self._replace(closed=(*self.without(gate.kind, gate.name).closed, gate))

    def with_schedule(self, name: str, memory: Mapping[str, Any]) -> Gates:
        return self._replace(schedules={**self.schedules, name: memory})

    def with_slots(self, group: str, slots: int | None) -> Gates:
        """None: as the settings have them."""
        others = {name: count for name, count in self.slots.items() if name != group}
        return self._replace(slots=others if slots is None else {**others, group: slots})


class Paper(StrEnum):
    """A small document of the registry itself, which no claim has to read: bytes under a name."""

    ACTS = "acts"  #: what was done about groups, by whom, and by which figures


class NameKind(StrEnum):
    """A key of the record by which jobs name something that other jobs name, too."""

    AGENT = "agent"
    LABEL = "agent_session"
    GROUP = "group"
    NODE = "node"


class Want(NamedTuple):
    """What a claimer is looking for."""

    agent_session: str
    agents: frozenset[str] | None  #: the agents it serves; None for any
    now: float
    slots: Mapping[str, int]  #: running jobs allowed per group, where the group has a limit


class Bid(NamedTuple):
    """What a claim writes into a record, besides the number of the attempt."""

    now: float
    node: str
    pid: int | None
    lease: Lease | None


class Query(NamedTuple):
    """Which jobs to show. Empty means any."""

    statuses: frozenset[Status] = frozenset()
    agent_session: str | None = None
    group: str | None = None
    agent: str | None = None
    text: str | None = None  #: anywhere in id or prompt, case ignored

    def matches(self, job: Job) -> bool:
        return (
            (not self.statuses or job.status in self.statuses)
            and self.agent_session in (None, job.agent_session)
            and self.group in (None, job.group)
            and self.agent in (None, job.agent)
            and (self.text is None or _has_text(job, self.text))
        )


def _has_text(job: Job, text: str) -> bool:
    folded = text.casefold()
    return folded in job.prompt.casefold() or folded in job.job_id.casefold()


class Facts(Protocol):
    """What the claim rules ask of the rest of the registry."""

    def status_of(self, job_id: str) -> Status | None:
        """None for a job that is not in the registry."""

    def running_in(self, group: str) -> int: ...

    def gates(self) -> Gates: ...


class Transaction(Facts, Protocol):
    """Reads that stay true until the end, and writes that happen together at the end."""

    def get(self, job_id: str) -> Job:
        """Raises `JobNotFound` or `UnreadableRecord`."""

    def insert(self, jobs: Sequence[Job], lines: Sequence[AuditLine]) -> None:
        """New jobs, each with its first audit line."""

    def put(self, job: Job, line: AuditLine | None) -> None:
        """A new version of a job, with the line that tells of it."""

    def note(self, job_id: str, line: AuditLine) -> None:
        """An audit line about a job that does not change."""

    def post(self, post: Post) -> None:
        """Into the outbox, together with the record that numbers it: both, or neither."""

    def next_claimable(self, want: Want) -> Job | None:
        """The first pending job, in claim order, that `claims.refusals` lets through."""

    def live_with_key(self, key: str) -> str | None:
        """The live job registered with this key, if there is one."""

    def live_twin(self, agent_session: str, prompt: str) -> str | None:
        """A live job with the same label and the same prompt, if there is one."""

    def live_writer(self, path: str) -> str | None:
        """A live job that is to leave an artifact at this place, if there is one."""

    def awaited(self) -> frozenset[str]:
        """The jobs that some live job comes after."""

    def ended(self) -> Iterable[Summary]:
        """Every job that has ended, in order of registration."""

    def last_order(self) -> int:
        """The highest `order` ever given out."""

    def exists(self, job_id: str) -> bool:
        """The id is taken, by a record here, in the archive or in the audit log."""

    def gates_to_change(self) -> Gates:
        """As `gates`, and nobody else changes them before we are done."""

    def set_gates(self, gates: Gates) -> None: ...

    def paper(self, name: Paper) -> bytes | None:
        """To be changed: nobody else changes it before we are done. None: there is none yet."""

    def set_paper(self, name: Paper, data: bytes) -> None: ...

    def archive(self, jobs: Sequence[Job], batch: str, line: AuditLine) -> None:
        """Take ended jobs out of the registry, into a batch that `restore` brings back."""

    def restore(self, batch: str, line: AuditLine) -> list[str]: ...

    def batches(self) -> list[str]:
        """The archive's batches, oldest first."""


#: A relay that has not given a sign of life for so long is not counted on: whoever publishes
#: starts another one.
QUIET_SEC = 3.0
#: And after so long that one takes its place.
SILENT_SEC = 10.0


class RelaySign(NamedTuple):
    """Who is the relay, and how long it has been silent."""

    who: str
    silent_sec: float  #: infinite: its process is stopped

    @property
    def is_quiet(self) -> bool:
        return self.silent_sec > QUIET_SEC

    @property
    def is_silent(self) -> bool:
        return self.silent_sec > SILENT_SEC


class Outbox(Protocol):
    """Events that wait for a broker. Only transactions put something in."""

    def posts(self, limit: int, past: Mapping[str, int] = MappingProxyType({})) -> list[Post]:
        """At most so many; of each job the oldest come first.

        Of a job in `past` only those above the number there.
        """

    def holds(self, job_id: str, seq: int) -> bool:
        """No broker has taken this event yet."""

    def named(self, job_id: str, seqs: Iterable[int]) -> list[Post]:
        """These events of a job, as far as they are here."""

    def set_aside(self, post: Post, why: str) -> None:
        """No broker will ever take it; it is kept for a person to look at."""

    def done(self, posts: Iterable[Post]) -> None:
        """A broker has them: they are not sent again."""

    def ring(self) -> bool:
        """Wake the relay; False when none is alive, or the one there is gives no sign of life."""

    def wait(self, timeout: float, others: Mapping[int, int] = MappingProxyType({})) -> bool:
        """For the relay: until somebody rings; False when nobody did.

        `others` are files to poll meanwhile, and what for: they end the wait as well.
        """

    def lanes(self) -> Mapping[str, bool]:
        """Which brokers (`Broker.place`) the relay reaches, and which not; others it has not tried.

        True only while a relay is alive.
        """

    def tell_lanes(self, lanes: Mapping[str, bool]) -> None:
        """For the relay: what `lanes` is to say from now on."""

    def relaying(self) -> AbstractContextManager[bool]:
        """The right to be the relay; False when another one is.

        It is taken from one that is stopped or has been silent for `SILENT_SEC`.
        """

    def beat(self) -> bool:
        """For the relay, again and again: it lives. False when another one has taken over."""

    def relay(self) -> RelaySign | None:
        """The relay at work; None: there is none."""


class Store(Protocol):
    """A place for records."""

    @property
    def url(self) -> str:
        """How another process names this store, without a password; empty where it cannot, or
        needs only to know the registry folder."""

    @property
    def audit(self) -> Audit: ...

    @property
    def realm(self) -> str:
        """The same for everybody who works on these records, from whichever host."""

    @property
    def secret(self) -> str | None:
        """A key that all who work on these records have; None where these are of one host."""

    @property
    def outbox(self) -> Outbox: ...

    def transaction(
        self, *, create: bool = False, progress: Progress | None = None
    ) -> AbstractContextManager[Transaction]:
        """Exclusive. Written at the end of the block; an exception leaves everything as it was.

        Raises `RegistryMissing` where there is no registry yet, unless it is to be made.
        `progress` is told how far a long write has come.
        """

    def get(self, job_id: str) -> Job:
        """Without a lock. Raises `JobNotFound` or `UnreadableRecord`."""

    def raw(self, job_id: str) -> bytes:
        """The record's bytes, also of one that we cannot read."""

    def find(self, query: Query) -> tuple[list[Summary], list[Unreadable]]:
        """Without a lock, in order of registration."""

    def queued(self) -> Mapping[str, int]:
        """How many jobs wait, by label; a label without any is left out."""

    def has(self, kind: NameKind, name: str) -> bool:
        """Some job names it. Mostly one that is live, which is found without a look at the rest."""

    def names(self, kind: NameKind) -> list[str]:
        """Every one that some job names, to find the nearest."""

    def ahead(self, want: Want, job: Summary) -> int:
        """How many jobs a claim by `want` would take before this one. Without a lock."""

    def unreadable(self) -> list[Unreadable]:
        """The files that are named like records and are none."""

    def bodies(self, query: Query) -> Iterator[Job | Unreadable]:
        """The whole records, one after the other."""

    def stored(self, query: Query) -> Iterator[bytes | Unreadable]:
        """The same as JSON, as it is kept: for whoever hands it on without looking inside."""

    def facts(self) -> Facts: ...

    def claim_at_once(
        self, want: Want, bid: Bid, tell: Callable[[Job, Job], AuditLine]
    ) -> Job | None:
        """A claim without a transaction around it, where the store can judge it by itself.

        `tell` makes the audit line. None says nothing: then the claim is made in a transaction.
        """

    def paper(self, name: Paper) -> bytes | None:
        """Without a lock; None where there is none, or no registry yet."""

    def now(self) -> float | None:
        """The time of day by a clock that all hosts of this store share; None where one host
        has it for itself, and its own clocks are as good."""

    def watch(self, wake: Callable[[], None]) -> Watch:
        """Whoever sees the records change; `wake` is called when it has something to tell."""

    def remember(self) -> None:
        """It holds jobs from now on: `removal` speaks when it is gone."""

    def removal(self) -> str:
        """What a person must know about a registry that was here before; empty: nothing."""

    def forget_removal(self) -> None:
        """A person knows, or the jobs were moved."""

    def close(self) -> None: ...
