"""How requests become jobs: ids, order, keys, twins and parents, for one transaction.

A batch is registered whole, so a request may meet not only the jobs that are
there but also those before it in its own batch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from mam_core import fields
from mam_core.audit import warn
from mam_core.clock import stamp
from mam_core.errors import InvalidField, TransitionRefused
from mam_core.events.public_brokers import public_warning
from mam_core.record_parts import Broker
from mam_core.records import Job, Status
from mam_core.stores.base import Transaction

#: Without characters that people confuse; 32 of them, so a byte gives one without a bias.
_ID_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
_ID_LENGTH = 8


class Registered(NamedTuple):
    """The answer to a registration: the id, and whether it is that of a job already there."""

    job_id: str
    existed: bool = False
    twin: str | None = None  #: a live job with the same label and prompt


def checked(request: Mapping[str, Any], now: float) -> dict[str, Any]:
    """What a request says, checked before any lock is taken."""
    values = fields.checked(request, now=now)
    for name in ("prompt", "agent", "agent_session"):
        if name not in values:
            raise InvalidField(f"{name}: it is missing")
    if values.get("validate"):
        from mam_core.work.check_files import digests

        values["check_files"] = digests(values["validate"], values.get("workdir"))
    return values


class Registration:
    """A batch in the making: `jobs` are to be inserted, `answers` go back to the caller."""

    def __init__(
        self,
        tx: Transaction,
        now: float,
        *,
        allow_collision: bool = False,
        broker: Callable[[], Broker] = Broker,
    ) -> None:
        self._tx = tx
        self._allow_collision = allow_collision
        self._broker = broker
        self._by_place: dict[str, str] = {}
        self._now = now
        self._order = max(tx.last_order(), int(now * 1_000_000) - 1)
        self._by_key: dict[str, str] = {}
        self._by_words: dict[tuple[str, str], str] = {}
        self.jobs: dict[str, Job] = {}
        self.answers: list[Registered] = []

    def add(self, values: dict[str, Any]) -> None:
        """One more job, or the live one that has its key."""
        key = values.get("key")
        live = (self._by_key.get(key) or self._tx.live_with_key(key)) if key else None
        if live is not None:
            self.answers.append(Registered(live, existed=True))
            return
        check_parents(self._tx, values.get("after", ()))
        if "broker" not in values:
            values = {**values, "broker": self._broker()}
        job_id = self._fresh_id()
        self._order += 1
        job = self.jobs[job_id] = Job(
            job_id=job_id,
            status=Status.PENDING,
            order=self._order,
            revision=1,
            created_at=stamp(self._now),
            updated_at=stamp(self._now),
            **{"topic_prefix": f"python/mqtt/jobs/{job_id}", **values},
        )
        if not self._allow_collision:
            self._check_places(job)
        self._by_place |= dict.fromkeys(job.artifact_paths, job_id)
        if warning := public_warning(job.broker.host, f"the events of job {job_id}"):
            warn(warning)
        if key:
            self._by_key[key] = job_id
        words = values["agent_session"], values["prompt"]
        twin = self._by_words.get(words) or self._tx.live_twin(*words)
        self._by_words[words] = job_id
        self.answers.append(Registered(job_id, twin=twin))

    def _check_places(self, job: Job) -> None:
        """Two live jobs that write one file would each be judged by the other's work."""
        for path in job.artifact_paths:
            other = self._by_place.get(path) or self._tx.live_writer(path)
            if other is not None:
                raise TransitionRefused(
                    f"job {other} is to write {path} as well; wait for it, or --allow-collision"
                )

    def _fresh_id(self) -> str:
        while True:
            job_id = "".join(_ID_ALPHABET[byte & 31] for byte in os.urandom(_ID_LENGTH))
            if job_id not in self.jobs and not self._tx.exists(job_id):
                return job_id


def check_parents(tx: Transaction, after: Iterable[str], child: str | None = None) -> None:
    """Every parent is there, and none comes, directly or not, after `child`."""
    ahead = list(after)
    for parent in ahead:
        if tx.status_of(parent) is None:
            raise InvalidField(f"after: there is no job {parent}")
    seen: set[str] = set()
    while child is not None and ahead:
        job_id = ahead.pop()
        if job_id == child:
            raise InvalidField(f"after: job {child} would come after itself")
        if job_id not in seen and tx.status_of(job_id) is not None:
            seen.add(job_id)
            ahead.extend(tx.get(job_id).after)
