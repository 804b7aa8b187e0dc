"""Two hours of work: some sixty attempts in eight sessions, made with the registry's own verbs.

Some fail and are tried again, some are cancelled, some wait for a person, two sessions work on
two jobs at a time, and the last ones still run.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import count

from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.audit import AuditEvent
from mam_core.clock import fine_stamp
from mam_core.leases import LeaseTerms
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from tests.console.detail_story import note
from tests.support.clock import FakeClock

_AGENTS = ("claude-code", "codex", "gemini")
_SESSIONS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
_PROMPTS = ("Write tests for the parser", "Sort the imports", "Count the stars 별", "Fix the build")


def busy_hours(
    registry: Registry, clock: FakeClock, hours: float = 2, *, seed: int = 7
) -> list[str]:
    """The clock stands at their end then; the jobs, in the order of their beginning."""
    chance, jobs = random.Random(seed), list[str]()
    plan: list[tuple[float, int, Callable[[], object]]] = []
    began, numbers = clock.now(), count()
    end = began + hours * 3600

    def at(moment: float, do: Callable[[], object]) -> None:
        plan.append((moment, next(numbers), do))

    for n in range(8):
        label, agent = f"tmux:{_SESSIONS[n]}", n % 3
        for lane in range(2 if n in (1, 4) else 1):
            moment = began + chance.uniform(0, 900)
            while moment < end - 60:
                life = _Life(registry, clock, label, _AGENTS[agent], f"worker-{n}-{lane}", jobs)
                length = chance.choice((70, 300, 700, 1500)) * chance.uniform(0.6, 1.4)
                life.plan(at, moment, min(length, end - moment + 60), chance, end)
                moment += length + chance.uniform(5, 400)
    for moment, _, do in sorted(plan, key=lambda one: one[:2]):
        if moment <= end:
            clock.pass_time(moment - clock.now())
            do()
    clock.pass_time(end - clock.now())
    return jobs


class _Life:
    """One job: it waits, is claimed, perhaps asks, and ends."""

    def __init__(
        self,
        registry: Registry,
        clock: FakeClock,
        label: str,
        agent: str,
        worker: str,
        jobs: list[str],
    ) -> None:
        self._registry, self._clock, self._jobs = registry, clock, jobs
        self._label, self._agent, self._worker = label, agent, worker
        self._job_id = ""

    def plan(
        self,
        at: Callable[[float, Callable[[], object]], None],
        begin: float,
        length: float,
        chance: random.Random,
        end: float,
    ) -> None:
        at(begin - chance.uniform(1, 240), self._register)
        at(begin, self._claim)
        if chance.random() < 0.25:
            at(begin + length * 0.4, lambda: self._say(AgentState.WAITING))
            at(begin + length * 0.7, lambda: self._say(AgentState.WORKING))
        luck = chance.random()
        if luck < 0.14:
            at(begin + length * 0.5, lambda: self._end(Status.ERROR, Reason.EXIT))
            at(begin + length * 0.5 + 20, self._again)
            at(begin + length, lambda: self._end(Status.COMPLETED, None))
        elif luck < 0.22:
            at(begin + length, lambda: self._end(Status.CANCELLED, Reason.CANCELLED))
        elif luck < 0.3:
            at(begin + length, lambda: self._end(Status.ERROR, Reason.TIMEOUT))
        else:
            at(begin + length, lambda: self._end(Status.COMPLETED, None))

    def _register(self) -> None:
        request = {
            "prompt": _PROMPTS[len(self._jobs) % len(_PROMPTS)],
            "agent": self._agent,
            "agent_session": self._label,
            "group": ("nightly", "docs", None)[len(self._jobs) % 3],
        }
        self._job_id = self._registry.register([request])[0].job_id
        self._jobs.append(self._job_id)

    def _claim(self) -> None:
        claimed = self._registry.claim(self._label, lease=LeaseTerms(self._worker, 86400.0))
        if claimed is not None:
            self._job_id = claimed.job_id

    def _again(self) -> None:
        if self._registry.get(self._job_id).status is not Status.ERROR:
            return  # the other lane of its label has it
        self._registry.retry(self._job_id)
        self._claim()

    def _end(self, status: Status, reason: Reason | None) -> None:
        job = self._registry.get(self._job_id)
        if job.status is not Status.RUNNING:
            return
        tokens = {"input": 900 * len(self._jobs), "output": 4000}
        note(
            self._registry,
            self._job_id,
            AuditEvent.ATTEMPT_ENDED,
            attempt=job.attempt,
            cost=0.01 * len(self._jobs),
            tokens=tokens,
        )
        self._registry.finish(self._job_id, status, attempt=job.attempt, reason=reason)

    def _say(self, state: AgentState) -> None:
        """And a relay has written it down."""
        if self._registry.get(self._job_id).status is not Status.RUNNING:
            return
        sign = Sign(state, Channel.HOOK, "rule", self._clock.now(), "May I?")
        self._registry.publish(self._job_id, "state", data=sign.to_dict())
        for post in self._registry.store.outbox.posts(1000):
            line = {
                "timestamp": fine_stamp(self._clock.now()),
                "event": "published",
                "job_id": post.job_id,
                "attempt": 1,
                "seq": post.seq,
                "payload": json.loads(post.payload),
            }
            self._registry.store.audit.append(post.job_id, line)
            self._registry.store.outbox.done([post])
