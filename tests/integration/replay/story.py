"""A registry that goes through everything it can go through, and what was shown at each step.

The steps are drawn by a seed; the clock moves between them; what a list would have
shown is written down after each. Some events are taken by a broker at once, some late.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from mam_core.config import load
from mam_core.errors import MamError
from mam_core.events.tellings import Tellings
from mam_core.leases import LeaseTerms
from mam_core.messages import MessageKind
from mam_core.operations.shown import Showing, Shown
from mam_core.records import Job, Reason, Status
from mam_core.registry import Registry
from mam_core.stores.base import Query
from mam_core.summaries import Summary
from mam_core.wiring import open_registry
from tests.support.clock import FakeClock
from tests.support.handles import close_later
from tests.support.jobs import request

LABELS = ("alpha", "beta")
#: Never late in these stories: how fresh a lease was is in no log.
LASTING = LeaseTerms("worker-1", 10_000_000.0)


class Sight(NamedTuple):
    """What a person saw at a moment."""

    at: float
    jobs: dict[str, Summary]
    shown: dict[str, Shown]
    records: dict[str, Job]


class Story:
    """One registry and what was seen of it."""

    def __init__(self, folder: Path, clock: FakeClock, seed: int) -> None:
        self.clock = clock
        self.path = str(folder / "jobs")
        self.registry: Registry = close_later(open_registry(str(folder / "jobs"), config=load()))
        self.registry.clock = clock
        self.sights: list[Sight] = []
        self._dice = random.Random(seed)
        self._showing = Showing(self.registry)

    def play(self, steps: int) -> None:
        acts = [act for act, weight in self._acts() for _ in range(weight)]
        for _ in range(steps):
            self.clock.pass_time(self._dice.choice([0.004, 0.3, 1.0, 7.25, 90.0]))
            # Not every act fits where a job stands, and a refusal may be logged, too.
            with suppress(MamError):
                self._dice.choice(acts)()
            self.look()

    def look(self) -> None:
        jobs, unreadable = self.registry.store.find(Query())
        assert not unreadable
        by_id = {job.job_id: job for job in jobs}
        records = {job_id: self.registry.get(job_id) for job_id in by_id}
        self.sights.append(Sight(self.clock.now(), by_id, self._showing.of(jobs), records))

    def deliver(self) -> None:
        """A broker is there for a moment, and takes all that waits."""
        store = self.registry.store
        tellings = Tellings(store.audit, store.outbox, self.clock)
        for post in store.outbox.posts(10_000):
            tellings.tell(post.job_id, [(post, json.loads(post.payload))])

    def any_job(self, *statuses: Status) -> Job:
        jobs, _ = self.registry.store.find(Query(frozenset(statuses)))
        if not jobs:
            raise MamError("there is none")
        # By registration: ids are drawn anew in each run, and the seed alone is to tell the story.
        in_order = sorted(jobs, key=lambda job: job.order)
        return self.registry.get(self._dice.choice(in_order).job_id)

    def _acts(self) -> list[tuple[Callable[[], object], int]]:
        registry, dice = self.registry, self._dice
        ended = (Status.COMPLETED, Status.ERROR, Status.CANCELLED)

        def register() -> None:
            group = dice.choice([None, "night"])
            words = f"count the stars of part {dice.random()} " * dice.choice([1, 9])
            label, priority = dice.choice(LABELS), dice.randrange(3)
            asked = request(words, agent_session=label, group=group, priority=priority)
            waits: dict[str, Any] = {"not_before": dice.choice([None, "+10s", "+5m"])}
            if known := sorted(registry.store.find(Query())[0], key=lambda job: job.order):
                upstream = dice.sample(known, min(len(known), dice.randrange(3)))
                waits["after"] = [job.job_id for job in upstream]
            registry.register([asked | waits | {"max_attempts": 3}])

        def publish() -> None:
            job = self.any_job(Status.RUNNING)
            event = dice.choice(["progress", "progress", "permission_required", "log"])
            registry.publish(job.job_id, event, detail=f"step {dice.random()} \ud800 별")

        def tell_state() -> None:
            sign: dict[str, Any] = {"state": dice.choice(["working", "waiting", "idle"])}
            sign["channel"] = "hook"
            sign |= {"rule": "Stop", "at": self.clock.now(), "words": "may I?"}
            registry.publish(self.any_job(Status.RUNNING).job_id, "state", data=sign)

        def finish() -> None:
            job = self.any_job(Status.RUNNING)
            told = dice.choice([None, {"elapsed_sec": 3}])
            status, reason = dice.choice([(Status.COMPLETED, None), (Status.ERROR, Reason.EXIT)])
            registry.finish(job.job_id, status, attempt=job.attempt, reason=reason, told=told)

        def give_back() -> None:
            job = self.any_job(Status.RUNNING)
            reason = dice.choice([Reason.LOST, Reason.QUOTA])
            told = dice.choice([None, {"witness": "lease"}])
            later = dice.choice([None, self.clock.now() + 60])
            registry.requeue(
                *(job.job_id, reason),
                attempt=job.attempt,
                detail="gone",
                not_before=later,
                told=told,
            )

        def say_the_end() -> None:
            job = self.any_job(Status.RUNNING, Status.PENDING)
            registry.publish(job.job_id, dice.choice(["started", "completed", "error"]))

        def edit() -> None:
            values = {"priority": dice.randrange(9), "agent": dice.choice(["shell", "codex"])}
            values |= {"prompt": f"anew {dice.random()}", "group": dice.choice([None, "day"])}
            values |= {"not_before": dice.choice([None, "+20s"])}
            registry.edit(self.any_job(Status.PENDING).job_id, values)

        def send() -> None:
            registry.send(self.any_job(Status.RUNNING).job_id, MessageKind.SAY, "go on")

        def claim() -> None:
            registry.claim(dice.choice(LABELS), lease=dice.choice([None, LASTING, LASTING]))

        return [
            (register, 6),
            (claim, 7),
            (publish, 8),
            (tell_state, 4),
            (finish, 3),
            (give_back, 2),
            (say_the_end, 3),
            (edit, 3),
            (send, 2),
            (lambda: registry.request_cancel(self.any_job().job_id, "enough"), 2),
            (lambda: registry.retry(self.any_job(*ended).job_id), 3),
            (lambda: registry.set_status(self.any_job().job_id, dice.choice(list(Status))), 1),
            (lambda: registry.archive([self.any_job(*ended).job_id]), 1),
            (registry.restore, 1),
            (self.deliver, 3),
        ]
