"""Why a job is not running: one answer for the board, the inbox, the graph and every command.

The rules are those of a claim (`claims`). Here they get what a person asks next: since when,
until when, whether the job can ever run, whether anybody would take it, and what helps.
Everything is computed from facts that `operations.evidence` gathered, so that a list of a hundred
thousand jobs can ask for each of them. The console reads this module before its first frame:
what only an answer needs is imported where it is given.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from heapq import heappop, heappush
from math import inf, isfinite
from time import localtime, strftime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from mam_core.records import Reason, Status

if TYPE_CHECKING:
    from mam_core.claims import Refusal, Rule
    from mam_core.stores.base import Gate, Gates
    from mam_core.summaries import Summary

#: A job that could be claimed for so long, and that nobody serves, needs a person.
PATIENCE_SEC = 60.0
#: Of a prompt: enough to know the job by.
_TITLE_CHARS = 40
#: So many upstream jobs of one job are described in full.
_DESCRIBED = 8
#: So many of them are named in a column.
_NAMED = 3

#: A label and an agent: what a session or a worker serves.
Pair = tuple[str, str]


class Help(NamedTuple):
    """What a person can do about it."""

    words: str  #: what it does
    command: str
    action: str = ""  #: of the console; empty: it has none for this
    key: str = ""  #: that action's usual key
    job_id: str = ""  #: the job that it is done to, if it is another one

    def sentence(self, key: str = "") -> str:
        """`key` is the one that the operator of a console has for it."""
        return f"{self.words}: {self.press(key)}run {self.command}"

    @property
    def by_command(self) -> str:
        """For a shell, where no key helps."""
        return f"{self.words}: run {self.command}"

    def press(self, key: str = "") -> str:
        """Which key to press, in that console or in any."""
        if not (key or self.key):
            return ""
        on = f" on {self.job_id}" if self.job_id else ""
        return f"press {key}{on}, or " if key else f"press {self.key}{on} in the console, or "


class Hold(NamedTuple):
    """One thing that keeps a pending job from being claimed."""

    rule: Rule
    words: str
    short: str  #: for a column: it grows no older
    name: str = ""  #: of the job, agent or group that holds it
    since: float | None = None
    until: float | None = None
    ends_itself: bool = True  #: False: only a person can end it
    help: Help | None = None

    def to_dict(self) -> dict[str, Any]:
        until = self.until if self.until is not None and isfinite(self.until) else None
        return {
            "rule": str(self.rule),
            "message": self.words,
            "name": self.name or None,
            "since": stamped(self.since),
            "until": stamped(until),
            "ends_itself": self.ends_itself,
        }


class Served(NamedTuple):
    """Whether a session or a worker would claim the jobs of one label and one agent."""

    by: bool | None = None  #: None: that cannot be seen from here
    others: tuple[str, ...] = ()  #: where nobody does: the agents that the label's workers serve
    missing: str = ""  #: the program of the agent, where it is not installed here
    unset: tuple[str, ...] = ()  #: the variables that the agent needs and that have no value here
    drained: str = ""  #: the host whose workers would, if it were to claim anything
    closed: str = ""  #: this host, where it is to claim nothing and has no such worker either
    is_unknown: bool = False  #: the settings here have no agent of that name
    near: str = ""  #: an agent that they have, where its name is nearly the same
    is_shared: bool = False  #: by hosts with settings and programs of their own
    stopped: int = 0  #: the process of a worker that would, if it were not stopped

    def words(self, label: str, agent: str) -> str:
        """Why nobody takes them."""
        instead = f" (its workers serve {', '.join(self.others)})" if self.others else ""
        if self.drained:
            return f"nobody serves label {label} with agent {agent}: host {self.drained} is drained"
        closed = f"; host {self.closed} is drained" if self.closed else ""
        if self.stopped:
            worker = f"its worker, process {self.stopped}, is stopped"
            return f"nobody serves label {label} with agent {agent}: {worker}{closed}"
        return f"nobody serves label {label} with agent {agent}{instead}{self._lack(agent)}{closed}"

    def _lack(self, agent: str) -> str:
        """What the agent is missing on this host."""
        if self.is_unknown:
            near = f" (did you mean {self.near}?)" if self.near else ""
            return f"; agent {agent[:60]!r} is unknown{' on this host' * self.is_shared}{near}"
        if self.missing:
            return f"; `{self.missing}` is not installed here"
        if self.unset:
            return (
                f"; {', '.join(self.unset)} {'is' if len(self.unset) == 1 else 'are'} not set here"
            )
        return ""


UNKNOWN = Served()


class Evidence(NamedTuple):
    """What was found out about the registry as a whole; gathered by `operations.evidence`."""

    gates: Gates  #: the pauses in force, and slots that were changed while running
    slots: Mapping[str, int] = MappingProxyType({})  #: of groups, by the settings
    running: Mapping[str, int] = MappingProxyType({})  #: jobs of groups that are full
    served: Mapping[Pair, Served] = MappingProxyType({})


class Root(NamedTuple):
    """The job at which a chain of upstream jobs is stuck."""

    job_id: str
    follower: str  #: the job that comes right after it


class Why(NamedTuple):
    """The answer for one pending job."""

    holds: tuple[Hold, ...] = ()  #: the one that decides first
    can_run: bool = True  #: False: never, unless a person does something about it
    served: bool | None = None
    unserved: str = ""  #: why nobody takes it, in words; empty where somebody does
    help: tuple[Help, ...] = ()

    @property
    def since(self) -> float | None:
        return self.holds[0].since if self.holds else None

    @property
    def until(self) -> float | None:
        """When it can be claimed, where that is known."""
        ends = [one.until for one in self.holds]
        known = [end for end in ends if end is not None and isfinite(end)]
        return max(known) if ends and len(known) == len(ends) else None

    @property
    def short(self) -> str:
        """For a column, without ages; in the order of the sentences, what decides first."""
        after = [one.short for one in self.holds if one.rule.is_upstream]
        more = f" and {len(after) - _NAMED:,} more" if len(after) > _NAMED else ""
        upstream = f"after {', '.join(after[:_NAMED])}{more}"
        said = dict.fromkeys(upstream if one.rule.is_upstream else one.short for one in self.holds)
        return "; ".join(said) or (_UNSERVED if self.unserved else "")

    def sentences(self, key: Callable[[Help], str]) -> list[str]:
        """What holds it and what helps; nothing for a job that will simply be claimed."""
        first, *more = [one.words for one in self.holds] or [""]
        said = [f"blocked: {first}"] if first else []
        said += [f"also: {words}" for words in more]
        if self.unserved and not any(one.words == self.unserved for one in self.holds):
            said.append(self.unserved)
        return [*said, *(one.sentence(key(one)) for one in self.help)]


class Stuck(NamedTuple):
    """Jobs that wait for a person, and for the same thing."""

    can_run: bool  #: False: something they come after failed; True: nobody serves them
    about: str  #: the same for as long as it is the same trouble
    first: Summary  #: the oldest of them
    jobs: int
    since: float | None
    words: str
    help: tuple[Help, ...]


class _Asked(NamedTuple):
    """A line of a list as the rules look at it."""

    status: Status
    agent: str
    group: str | None
    not_before: str | None = None
    after: tuple[str, ...] = ()


class BlockReasons:
    """The answers for many jobs; it keeps who comes after whom, and what the rules ask.

    `look_up` finds a job; each change of one is passed to `put`.
    """

    def __init__(
        self, look_up: Callable[[str], Summary | None], evidence: Evidence | None = None
    ) -> None:
        self._look_up = look_up
        self._followers: dict[str, dict[str, None]] = {}
        self._alarms: list[tuple[float, str]] = []
        self._has_never = False
        self._roots: dict[str, Root | None] = {}
        self._common: dict[tuple[str, str | None], bool] = {}
        self.evidence = evidence

    # -- what changes --------------------------------------------------------------------------

    def load(self, jobs: Iterable[Summary]) -> None:
        """Every job that there is."""
        self._followers.clear()
        self._alarms.clear()
        self._roots.clear()
        for job in jobs:
            if job.parents or job.not_before is not None:
                self.put(None, job)

    def put(self, before: Summary | None, now: Summary | None) -> Iterable[str]:
        """A job is another, new, or gone; the answer names the jobs that come after it."""
        known = before if before is not None else now
        if known is None:
            return ()
        self._link(before, now)
        if before is not None and now is not None and before.status is now.status:
            return ()
        followers = self._followers.get(known.job_id, ())
        if followers:
            self._roots.clear()
        return followers

    def _link(self, before: Summary | None, now: Summary | None) -> None:
        was, parents = (before.parents if before else ""), (now.parents if now else "")
        if was != parents:
            self._roots.clear()
            for upstream in was.split() if before else ():
                self._followers.get(upstream, {}).pop(before.job_id if before else "", None)
            for upstream in parents.split() if now else ():
                self._followers.setdefault(upstream, {})[now.job_id if now else ""] = None
        if now is None or now.not_before is None or now.status is not Status.PENDING:
            return
        self._has_never |= now.not_before == inf
        if (before is None or before.not_before != now.not_before) and isfinite(now.not_before):
            heappush(self._alarms, (now.not_before, now.job_id))

    def gather(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._common = {}  # a new one: the graph's thread may be about to write to the old

    def precedes(self, job_id: str) -> bool:
        """Whether another job comes after it."""
        return bool(self._followers.get(job_id))

    def due(self, now: float) -> Iterator[str]:
        """The jobs whose moment has come since this was asked last."""
        while self._alarms and self._alarms[0][0] <= now:
            yield heappop(self._alarms)[1]

    # -- what the rules of a claim ask -----------------------------------------------------------

    def status_of(self, job_id: str) -> Status | None:
        job = self._look_up(job_id)
        return job.status if job is not None else None

    def running_in(self, group: str) -> int:
        return self.evidence.running.get(group, 0) if self.evidence is not None else 0

    def gates(self) -> Gates:
        if self.evidence is not None:
            return self.evidence.gates
        from mam_core.stores.base import Gates

        return Gates()

    # -- the answers -----------------------------------------------------------------------------

    def is_held(self, job: Summary, now: float) -> bool:
        """Whether it is shown as blocked; cheap enough for every line of a board."""
        if job.status is not Status.PENDING:
            return False
        return self._others(job) or not self.is_ready(job, now)

    def why(self, job: Summary, now: float) -> Why:
        """Everything about a pending job; of any other there is nothing to say."""
        if job.status is not Status.PENDING:
            return Why()
        from mam_core.claims import Rule

        found = enumerate(self._refusals(job, now))
        holds = [self._hold(one, job, now, described=at < _DESCRIBED) for at, one in found]
        served, pair = self._served(job), (job.agent_session, job.agent)
        unserved = served.words(*pair) if served.by is False else ""
        if self._others(job):
            rule = Rule.AGENT_NOT_SERVED
            holds.append(Hold(rule, unserved, _UNSERVED, job.agent, ends_itself=False))
        holds.sort(key=_decides)
        root = self.root_of(job)
        help = [self._about_root(root)] if root is not None else []
        help += [one.help for one in holds if one.help is not None]
        help += about_service(pair, served, job.job_id) if unserved else ()
        return Why(tuple(holds), self.can_run(job), served.by, unserved, tuple(help))

    def can_run(self, job: Summary) -> bool:
        """False: a pending job never will, unless a person does something about it."""
        if job.status is not Status.PENDING:
            return True
        return job.not_before != inf and self.root_of(job) is None

    def is_unserved(self, job: Summary) -> bool:
        """Whether it is known that nobody would claim it."""
        return job.status is Status.PENDING and self._served(job).by is False

    def root_of(self, job: Summary) -> Root | None:
        """The upstream job, near or far, because of which this one can never run."""
        if not job.parents or job.status is not Status.PENDING:
            return None
        if job.job_id not in self._roots:
            self._find_root(job)
        return self._roots[job.job_id]

    def stuck(self, jobs: Iterable[Summary], now: float) -> list[Stuck]:
        """All that need a person, those of one trouble together."""
        known = self.evidence.served if self.evidence is not None else {}
        unserved = {pair for pair, served in known.items() if served.by is False}
        if not unserved and not self._has_never:
            jobs = self._dependent()
        dead: dict[str, list[Summary]] = {}
        waiting: dict[Pair, list[Summary]] = {}
        for job in jobs:
            if job.status is not Status.PENDING:
                continue
            if (root := self.root_of(job)) is not None:
                dead.setdefault(root.job_id, []).append(job)
            elif job.not_before == inf:
                dead.setdefault(job.job_id, []).append(job)
            elif (pair := (job.agent_session, job.agent)) in unserved:
                waiting.setdefault(pair, []).append(job)
        found = [self._dead(name, held) for name, held in dead.items()]
        idle = (self._waiting(pair, known[pair], held, now) for pair, held in waiting.items())
        return found + [one for one in idle if one is not None]

    def _dependent(self) -> Iterator[Summary]:
        """The jobs that come after others, without a look at all the rest."""
        names = dict.fromkeys(name for names in self._followers.values() for name in names)
        return (job for name in names if (job := self._look_up(name)) is not None)

    # -- one rule at a time ----------------------------------------------------------------------

    def is_ready(self, job: Summary, now: float) -> bool:
        """By the rules of a claim; a job that waits for nothing of its own is like all of its
        agent and group."""
        if self._shared(job, now):
            return False
        if not job.parents and (job.not_before is None or job.not_before <= now):
            return True
        return next(self._refusals(job, now), None) is None

    def _refusals(self, job: Summary, now: float) -> Iterator[Refusal]:
        from mam_core.claims import refusals
        from mam_core.clock import stamp

        not_before = None
        if job.not_before is not None:
            not_before = stamp(job.not_before) if isfinite(job.not_before) else _UNREADABLE
        asked = _Asked(job.status, job.agent, job.group, not_before, tuple(job.parents.split()))
        return refusals(asked, self, now=now, slots=self._slots)

    def _shared(self, job: Summary, now: float) -> bool:
        """Whether every pending job of this agent and group is held; worked out once."""
        if self.evidence is None:
            return False
        kind, common = (job.agent, job.group), self._common
        found = common.get(kind)
        if found is None:
            from mam_core.claims import refusals

            asked = _Asked(Status.PENDING, *kind)
            found = any(refusals(asked, self, now=now, slots=self._slots))
            common[kind] = found
        return found

    @property
    def _slots(self) -> Mapping[str, int]:
        return self.evidence.slots if self.evidence is not None else {}

    def _served(self, job: Summary) -> Served:
        if self.evidence is None:
            return UNKNOWN
        return self.evidence.served.get((job.agent_session, job.agent), UNKNOWN)

    def _others(self, job: Summary) -> bool:
        """The label has workers, and they pass this job over."""
        served = self._served(job)
        return served.by is False and bool(served.others)

    def _hold(self, one: Refusal, job: Summary, now: float, *, described: bool) -> Hold:
        from mam_core.claims import Rule

        if one.rule.is_upstream:
            return self._upstream(one, now, described=described)
        words = one.message
        if one.gate is not None:
            until = _moment(one.gate.until)
            help = None if until is not None else _about_pause(one.gate)
            since = _moment(one.gate.since)
            why = f": {one.gate.why}" if one.gate.why else ""
            short = f"{words.partition(' is paused')[0]} paused{why}"
            return Hold(one.rule, words, short, one.name, since, until, help is None, help)
        if one.rule is Rule.NOT_YET:
            if job.reason is Reason.QUOTA:
                words = f"agent {job.agent} met its usage limit; {words}"
            if job.not_before is None or job.not_before == inf:
                help = _start_time(job.job_id)
                return Hold(
                    one.rule, words, words, until=job.not_before, ends_itself=False, help=help
                )
            short = f"not before {_local(job.not_before, now)}"
            return Hold(one.rule, words, short, until=job.not_before)
        help = None
        # A name that begins with a dash cannot be given to `mam group`.
        if one.rule is Rule.GROUP_FULL and not one.name.startswith("-"):
            command = f"{shlex.join(['mam', 'group', one.name])} --slots N"
            help = Help("to run more of them at once", command)
        return Hold(one.rule, words, words, one.name, help=help)

    def _upstream(self, one: Refusal, now: float, *, described: bool) -> Hold:
        found = self._look_up(one.name)
        if found is None:
            return Hold(one.rule, one.message, f"{one.name} gone", one.name, ends_itself=False)
        since = _moment(found.ended_at or found.updated_at)
        ends_itself = found.status.is_live
        state = "blocked" if self.is_held(found, now) else STATUS_WORDS[found.status]
        short = f"{one.name} {state}"
        how = f"is {state}" if ends_itself else _ended(found, now)
        words = f"after {_titled(found)}, which {how}"
        if described and (root := self._root_through(found)) is not None and ends_itself:
            short, ends_itself = f"{one.name} cannot run", False
            words = f"after {_titled(found)}, which cannot run"
            if root.job_id != found.job_id:
                words = f"{words}: {self._trouble(root.job_id, now)}"
        return Hold(one.rule, words, short, one.name, since, None, ends_itself)

    def _root_through(self, upstream: Summary) -> Root | None:
        if upstream.status is Status.PENDING and upstream.not_before == inf:
            return Root(upstream.job_id, upstream.job_id)
        return self.root_of(upstream)

    def _trouble(self, job_id: str, now: float | None = None) -> str:
        """What is wrong with the job at which a chain is stuck; without `now` no age is shown."""
        found = self._look_up(job_id)
        if found is None:
            return f"{job_id} is not in the registry"
        if found.status.is_ended:
            return f"{_titled(found)} {_ended(found, now)}"
        if found.not_before == inf:
            return f"the start time of {_titled(found)} cannot be read"
        return f"{_titled(found)} comes after itself"

    # -- chains ----------------------------------------------------------------------------------

    def _find_root(self, job: Summary) -> None:
        """Depth first without recursion: a chain may be as long as a registry is large."""
        roots = self._roots
        path = [(job.job_id, iter(job.parents.split()))]
        on_path = {job.job_id}
        while path:
            name, left = path[-1]
            for upstream in left:
                if upstream in on_path:
                    root: Root | None = Root(upstream, name)
                elif upstream in roots:
                    root = roots[upstream]
                else:
                    found = self._look_up(upstream)
                    is_dead = found is None or found.status in (Status.ERROR, Status.CANCELLED)
                    waits = found is not None and found.status is Status.PENDING
                    if is_dead or (waits and found is not None and found.not_before == inf):
                        root = Root(upstream, name)
                    elif waits and found is not None and found.parents:
                        path.append((upstream, iter(found.parents.split())))
                        on_path.add(upstream)
                        break
                    else:
                        continue
                if root is not None:
                    roots.update((one, root) for one, _ in path)
                    return
            else:
                roots[name] = None
                on_path.discard(name)
                path.pop()

    def _about_root(self, root: Root) -> Help:
        found = self._look_up(root.job_id)
        if found is not None and found.status.is_ended:
            words = f"cannot run unless {root.job_id} is retried"
            command = shlex.join(["mam", "retry", root.job_id])
            return Help(words, command, "retry", "r", root.job_id)
        if found is not None and found.not_before == inf:
            words = f"cannot run unless {root.job_id} gets a readable start time"
            return Help(words, shlex.join(["mam", "edit", root.job_id, "--clear", "not_before"]))
        words = f"cannot run unless {root.follower} no longer comes after {root.job_id}"
        return Help(words, shlex.join(["mam", "edit", root.follower, "--clear", "after"]))

    # -- what needs a person ---------------------------------------------------------------------

    def _dead(self, name: str, held: list[Summary]) -> Stuck:
        first = min(held, key=lambda job: (job.order, job.job_id))
        found, root = self._look_up(name), self.root_of(first)
        since = _moment(first.created_at)
        if found is not None and found.status.is_ended:
            ended = _moment(found.ended_at or found.updated_at)
            since = max(filter(None, (since, ended)), default=None)
        many = "cannot run" if len(held) == 1 else f"{len(held):,} jobs cannot run"
        help = self._about_root(root) if root is not None else _start_time(name)
        words = f"{many}: {self._trouble(name)}"
        return Stuck(False, name, first, len(held), since, words, (help,))

    def _waiting(self, pair: Pair, served: Served, held: list[Summary], now: float) -> Stuck | None:
        ready = [job for job in held if self.is_ready(job, now)]
        if not ready:
            return None
        since, _, at = min((self._ready_since(job), job.order, at) for at, job in enumerate(ready))
        if now - since < PATIENCE_SEC:
            return None
        count = "1 job waits" if len(ready) == 1 else f"{len(ready):,} jobs wait"
        words = f"{served.words(*pair)}; {count}"
        about, first = "\0".join(pair), ready[at]
        help = about_service(pair, served, first.job_id)
        return Stuck(True, about, first, len(ready), since, words, help)

    def _ready_since(self, job: Summary) -> float:
        """Since when it could have been claimed, as far as records tell."""
        since = _moment(job.updated_at) or 0.0
        if job.not_before is not None:
            since = max(since, job.not_before)
        for upstream in job.parents.split():
            if (found := self._look_up(upstream)) is not None:
                since = max(since, _moment(found.ended_at or found.updated_at) or 0.0)
        return since


_UNREADABLE = "an unreadable moment"
#: Beside it stand the label and the agent.
_UNSERVED = "nobody serves this label with this agent"
#: What a person calls them; a pending job may be *blocked* as well.
STATUS_WORDS: Mapping[Status, str] = {
    Status.PENDING: "queued",
    Status.RUNNING: "running",
    Status.COMPLETED: "completed",
    Status.ERROR: "failed",
    Status.CANCELLED: "cancelled",
}


def _decides(hold: Hold) -> tuple[int, float]:
    """What only a person ends comes first, pauses last of it; then what ends nobody knows when,
    then the latest."""
    if not hold.ends_itself:
        return (1 if hold.rule == "paused" else 0), 0.0
    return (2, 0.0) if hold.until is None else (3, -hold.until)


def _about_pause(gate: Gate) -> Help:
    from mam_core.sessions import option

    which = option(f"--{gate.kind}", gate.name) if gate.name else [f"--{gate.kind}"]
    return Help("to resume", shlex.join(["mam", "resume", *which]))


def _start_time(job_id: str) -> Help:
    words = "cannot run unless it gets another start time"
    return Help(words, shlex.join(["mam", "edit", job_id, "--clear", "not_before"]))


def about_service(pair: Pair, served: Served, job_id: str) -> tuple[Help, ...]:
    """What a person can do so that a label is served, in order; `job_id` is a job of that label
    and agent."""
    from mam_core.sessions import command_to_serve, command_to_work, names_session, option

    label, agent = pair
    if host := served.drained or served.closed:
        resume = Help("to let it claim again", shlex.join(["mam", "node", "resume", host]))
        if served.drained:
            return (resume,)
        # What is started on a drained host claims nothing.
        return (resume, *about_service(pair, served._replace(closed=""), job_id))
    if served.stopped:
        return (Help("to let it go on", f"kill -CONT {served.stopped}"),)
    if served.others or not names_session(label):
        # The session that a label has for another agent leaves no room for a second one.
        start = Help("to start a worker", command_to_work(label, agent))
    else:
        start = Help("to start a session", command_to_serve(label, agent), "spawn", "s")
    if served.is_unknown:
        edit = shlex.join(["mam", "edit", job_id, *option("--agent", served.near or "NAME")])
        change = Help("to change its agent", edit, "edit", "E", job_id)
        if served.is_shared:
            there = f"{start.words} on a host that has agent {agent}"
            return (change, start._replace(words=there, action="", key=""))
        return (change, Help("to see which agents exist", "mam doctor"))
    if served.missing or served.unset:
        mend = f"install `{served.missing}`" if served.missing else f"set {', '.join(served.unset)}"
        check = Help(f"{mend}, then check", "mam doctor")
        then = "then, or now on a host that has it" if served.is_shared else "then"
        return (check, start._replace(words=f"{then}, {start.words}"))
    return (start,)


def _ended(job: Summary, now: float | None) -> str:
    """How an upstream job came to its end."""
    how = "failed" if job.status is Status.ERROR else f"was {job.status}"
    ended = _moment(job.ended_at or job.updated_at)
    return how if now is None or ended is None else f"{how} {ago_in_words(now - ended)}"


def _titled(job: Summary) -> str:
    """A job as a person knows it: id and the beginning of its prompt."""
    line = job.head.strip().partition("\n")[0]
    short = line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1] + "…"
    return f'{job.job_id} "{short}"' if short else job.job_id


def ago_in_words(seconds: float) -> str:
    """``just now``, ``40 s ago``, ``4 min ago``, ``3 h ago``, ``5 days ago``."""
    whole = int(max(0.0, seconds))
    if whole < 5:
        return "just now"
    if whole < 60:
        return f"{whole} s ago"
    if whole < 3600:
        return f"{whole // 60} min ago"
    return f"{whole // 3600} h ago" if whole < 2 * 86400 else f"{whole // 86400} days ago"


def stamped(at: float | None) -> str | None:
    from mam_core.clock import stamp

    return None if at is None else stamp(at)


def _local(at: float, now: float) -> str:
    """A moment by the operator's own clock; the day, where it is another."""
    try:
        then, today = localtime(at), localtime(now)
        return strftime("%H:%M" if then[:3] == today[:3] else "%Y-%m-%d %H:%M", then)
    except (OverflowError, OSError, ValueError):  # a year that the system's clock does not have
        return str(stamped(at))


@lru_cache(maxsize=4096)
def _moment(text: str | None) -> float | None:
    from mam_core.clock import parse_stamp

    try:
        return parse_stamp(text) if text else None
    except ValueError:
        return None
