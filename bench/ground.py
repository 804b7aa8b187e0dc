"""The ground that is measured on: registries and folders of one run, made when first asked for.

Jobs come in by bulk register, with their audit log, as in production. Only the
large backlog is written as bare files: its jobs are never claimed, and their
history would be half a million files that take minutes to make and to remove.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from bench.effort import Effort
from bench.rounds import Runner, Samples, run
from bench.yardsticks import RawLoop
from mam_core import codec, fields
from mam_core.clock import stamp
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.stores.base import Query
from mam_core.stores.catalogue import record_name
from mam_core.stores.index import INDEX_FOLDER
from mam_core.summaries import Summary
from mam_core.wiring import open_registry

LABELS = [f"tmux:agent-{number}" for number in range(10)]

#: Makes a record of about 1 KB.
_PROMPT = (
    "Find out why the nightly import is slow, fix it, and leave a test that would have told us."
)


class Ground:
    """One folder, and all that a run makes in it."""

    def __init__(self, root: str, effort: Effort) -> None:
        self.root = root
        self.effort = effort
        self._jobs_made = 0

    # -- places and words ------------------------------------------------------------------

    def path(self, name: str) -> str:
        """A registry folder with its audit log beside it."""
        return os.path.join(self.root, name, "jobs")

    def new_jobs(self, count: int) -> list[dict[str, Any]]:
        """So many jobs as a person would register them; no two prompts are the same."""
        first, self._jobs_made = self._jobs_made, self._jobs_made + count
        return [_request(number) for number in range(first, first + count)]

    @cached_property
    def record(self) -> bytes:
        """A record as it is on disk: what the yardsticks write and hold, too."""
        return codec.encode_job(_job(0, Status.PENDING))

    @cached_property
    def raw_loop(self) -> RawLoop:
        place = os.path.join(self.root, "raw")
        return RawLoop(place, self.record, files=self.effort.pending)

    # -- registries ------------------------------------------------------------------------

    @cached_property
    def crowded(self) -> str:
        """The registry with the usual backlog."""
        assert self.one_call
        return self.path("crowded")

    @cached_property
    def one_call(self) -> Samples:
        """The backlog registered in one call, beside single ones: a comparison of one round."""
        beside, here = self.path("beside"), self.path("crowded")
        with open_registry(beside) as other, open_registry(here) as registry:
            sides = [self.one_by_one(other), self.together(registry, self.effort.pending)]
            samples = run(sides, 1)
        os.sync()
        return samples

    def one_by_one(self, registry: Registry) -> Runner:
        def register(count: int) -> int:
            for request in self.new_jobs(count):
                registry.register([request])
            return count

        return Runner("single", lambda: register(self.effort.registers), lambda: register(1))

    def together(self, registry: Registry, count: int) -> Runner:
        return Runner("bulk", lambda: len(registry.register(self.new_jobs(count))))

    def top_up(self, path: str, pending: int) -> None:
        """Bring the backlog back to `pending`, after others have claimed from it."""
        with open_registry(path) as registry:
            if missing := max(0, pending - len(_waiting(registry))):
                registry.register(self.new_jobs(missing))

    @cached_property
    def small(self) -> str:
        return self._registered("small", self.effort.claimable)

    @cached_property
    def few(self) -> str:
        """A few pending jobs and no history."""
        return self._registered("few", self.effort.few)

    @cached_property
    def large(self) -> str:
        """As `small`, with a large backlog behind those that are claimed first."""
        path = self._registered("large", self.effort.claimable)
        bare_jobs(path, self.effort.large - self.effort.claimable)
        return path

    @cached_property
    def old(self) -> str:
        """As `few`, with a large history. Made of `large`, which is gone afterwards."""
        path = self.large
        del self.large
        for job in self._backlog(Status.COMPLETED):
            _write(path, job)
        shutil.rmtree(os.path.join(path, INDEX_FOLDER))
        with open_registry(path) as registry:
            kept: Counter[str] = Counter()
            for waiting in _waiting(registry):
                kept[waiting.agent_session] += 1
                if kept[waiting.agent_session] > self.effort.few // len(LABELS):
                    registry.set_status(waiting.job_id, Status.COMPLETED)
        os.sync()
        return path

    def _registered(self, name: str, count: int) -> str:
        path = self.path(name)
        with open_registry(path) as registry:
            registry.register(self.new_jobs(count))
        os.sync()
        return path

    def _backlog(self, status: Status) -> Iterator[Job]:
        for number in range(self.effort.large - self.effort.claimable):
            yield _job(number, status)


def bare_jobs(path: str, count: int) -> None:
    """So many jobs that wait and are never claimed, with an index that knows them."""
    for number in range(count):
        _write(path, _job(number, Status.PENDING))
    _look(path)


def _request(number: int) -> dict[str, Any]:
    return {
        "prompt": f"{_PROMPT} ({number})",
        "agent": "claude-code",
        "agent_session": LABELS[number % len(LABELS)],
    }


def _job(number: int, status: Status) -> Job:
    """A job whose turn comes after every job that was registered in the usual way."""
    far_away = 4_000_000_000
    values = fields.checked(_request(number), now=far_away)
    moment = stamp(far_away)
    ended = moment if status.is_ended else None
    return Job(
        f"far{number:08d}",
        status,
        created_at=moment,
        updated_at=moment,
        topic_prefix=f"python/mqtt/jobs/far{number:08d}",
        order=far_away * 1_000_000 + number,
        revision=1,
        started_at=ended,
        ended_at=ended,
        **values,
    )


def _waiting(registry: Registry) -> list[Summary]:
    return registry.store.find(Query(statuses=frozenset({Status.PENDING})))[0]


def _write(path: str, job: Job) -> None:
    """A record put there, or changed in place, by somebody who is not the registry."""
    place = os.path.join(path, record_name(job.job_id))
    # Not O_TRUNC: ext4 flushes a file that was cut to nothing and written again as it is closed.
    with open(os.open(place, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
        file.write(codec.encode_job(job))
        file.truncate()


def _look(path: str) -> None:
    """Let the index see files that it did not write; then wait for the disk."""
    with open_registry(path) as registry:
        registry.store.find(Query(agent_session=LABELS[0]))
    os.sync()
