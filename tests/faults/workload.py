"""The workload: players, each a process of its own, that use one registry at once.

    python -m tests.faults.workload ROLE ROOT [--player NAME.1] [--seed N]

A player goes on until it is killed and tells its diary what it was answered.
What a job asks for is a function of its key alone, so that whoever checks
afterwards knows the content of every acknowledged job.
"""

from __future__ import annotations

import argparse
import os
import random
import time
import traceback
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from mam_core.errors import JobNotFound, LockTimeout, StoreError, TransitionRefused
from mam_core.leases import LeaseTerms
from mam_core.records import Job, Reason, Status
from mam_core.registry import Registry
from mam_core.stores.base import GateKind, Query
from mam_core.summaries import Summary
from tests.faults.diary import Act, Diary, Phase, open_call
from tests.faults.ground import Ground
from tests.faults.weather import GroundClock

#: Whoever finds one of these outside a record has found a leak.
CANARY_PASSWORD = "canary-password-7d1f09"
CANARY_TOKEN = "canary-token-c2a45e88"

LABELS = ("alpha", "beta")
LEASE_SEC = 0.3
#: Enough for every role to find something, few enough for a scan of them all to stay cheap.
MOST_JOBS = 60

ENDED = frozenset({Status.COMPLETED, Status.ERROR, Status.CANCELLED})
LIVE = frozenset({Status.PENDING, Status.RUNNING})

T = TypeVar("T")


class Role(StrEnum):
    """Who plays."""

    SUBMITTER = "submitter"
    CLAIMER = "claimer"
    CANCELLER = "canceller"
    RETRIER = "retrier"
    EDITOR = "editor"
    READER = "reader"
    SEQ_TAKER = "seq-taker"
    SWEEPER = "sweeper"
    CLEANER = "cleaner"
    OVERRIDER = "overrider"


#: One cast of a run; equal roles compete.
CAST = (
    Role.SUBMITTER,
    Role.SUBMITTER,
    Role.CLAIMER,
    Role.CLAIMER,
    Role.CLAIMER,
    Role.CANCELLER,
    Role.RETRIER,
    Role.EDITOR,
    Role.READER,
    Role.SEQ_TAKER,
    Role.SWEEPER,
    Role.CLEANER,
    Role.OVERRIDER,
)


def wanted(key: str) -> dict[str, Any]:
    """What the job with this key asks for."""
    dice = random.Random(key)
    size = dice.choice((10, 10, 10, 3000, 30_000))
    request: dict[str, Any] = {
        "key": key,
        "prompt": f'job {key}: 별 "{dice.random()}"\n' + "x" * size,
        "agent": dice.choice(("shell", "codex")),
        "agent_session": dice.choice(LABELS),
        "timeout_sec": dice.randint(10, 5000),
        "max_attempts": dice.randint(1, 5),
        "priority": dice.randint(-2, 2),
        "group": dice.choice((None, "night")),
    }
    if dice.random() < 0.3:
        request["broker"] = {"host": "127.0.0.1", "port": 1883, "password": CANARY_PASSWORD}
    if dice.random() < 0.3:
        request["auth_token"] = CANARY_TOKEN
    return request


def facts_of(job: Job) -> dict[str, Any]:
    """What an acknowledgement says of a job."""
    return {
        "job": job.job_id,
        "revision": job.revision,
        "attempt": job.attempt,
        "status": job.status,
        "cancelling": job.is_cancelling,
    }


class Player:
    """One process's part: it acts at random, from a seed that can be played again."""

    def __init__(self, ground: Ground, name: str, seed: str) -> None:
        self.name = name
        self.ground = ground
        self.dice = random.Random(f"{seed}/{name}")
        self.registry: Registry = ground.open()
        self.registry.clock = GroundClock(ground)
        self.diary = Diary(ground.diaries_dir, name)
        self._count = 0

    def play(self, role: Role) -> None:
        """One move after the other, until killed."""
        move: Callable[[], None] = getattr(self, f"_{role.name.lower()}")
        if role is Role.SUBMITTER:
            self._submit_again()
        while True:
            move()
            time.sleep(self.dice.choice((0, 0, 0.001, 0.005)))

    # -- the roles -------------------------------------------------------------------------

    def _submitter(self) -> None:
        if len(self._list()) >= MOST_JOBS:
            time.sleep(0.02)
            return
        self._count += 1
        stem = f"{self.name}-{self._count}"
        if self.dice.random() < 0.75:
            self._submit([stem])
        else:
            # From 16 files on the store takes another way.
            size = self.dice.choice((2, 3, 5, 18))
            self._submit([f"{stem}-b{size}-{number}" for number in range(size)])

    def _submit_again(self) -> None:
        """A client whose answer was lost asks again with the same key."""
        slot, _, number = self.name.rpartition(".")
        before = open_call(self.ground.diaries_dir, f"{slot}.{int(number) - 1}")
        if before is not None:
            self._submit(before.facts["keys"])

    def _submit(self, keys: list[str]) -> None:
        requests = [wanted(key) for key in keys]
        self._call(
            Act.REGISTER,
            lambda: self.registry.register(requests),
            lambda answers: {"ids": [answer.job_id for answer in answers]},
            keys=keys,
        )

    def _claimer(self) -> None:
        lease = LeaseTerms(self.name, LEASE_SEC) if self.dice.random() < 0.6 else None
        label = self.dice.choice(LABELS)
        job = self._call(
            Act.CLAIM,
            lambda: self.registry.claim(label, lease=lease, pid=os.getpid()),
            lambda job: facts_of(job) if job else {},
        )
        if job is None:
            time.sleep(0.005)
            return
        for _ in range(self.dice.randint(0, 2)):
            # Now and then too late, so that the sweeper and a zombie meet.
            time.sleep(self.dice.choice((0, 0.002, 0.01, LEASE_SEC * 1.3 if lease else 0)))
            if lease is not None:
                beat = self._on(job, Act.HEARTBEAT, self._heart(job, lease))
                if beat is not None and beat.is_cancelling:
                    self._on(job, Act.FINISH, self._finish(job, Status.CANCELLED))
                    return
            self._take_seq(job.job_id, job.attempt)
        throw = self.dice.random()
        if throw < 0.45:
            self._on(job, Act.FINISH, self._finish(job, Status.COMPLETED))
        elif throw < 0.75:
            self._on(job, Act.FINISH, self._finish(job, Status.ERROR))
        else:
            again = self.dice.random() < 0.5
            call = self._requeue(job, Reason.QUOTA, failed=again)
            self._on(job, Act.REQUEUE, call)

    def _canceller(self) -> None:
        if found := self._some(LIVE):
            job_id, why = found.job_id, self.dice.choice(("", "not needed any more"))
            self._call(
                Act.CANCEL, lambda: self.registry.request_cancel(job_id, why), facts_of, job=job_id
            )
        time.sleep(0.03)

    def _retrier(self) -> None:
        if found := self._some(frozenset({Status.ERROR, Status.CANCELLED})):
            job_id = found.job_id
            self._call(Act.RETRY, lambda: self.registry.retry(job_id), facts_of, job=job_id)
        time.sleep(0.01)

    def _editor(self) -> None:
        if found := self._some(frozenset({Status.PENDING})):
            self._count += 1
            job_id = found.job_id
            values = {"model": f"{self.name}-{self._count}", "priority": self.dice.randint(-2, 2)}
            self._call(
                Act.EDIT,
                lambda: self.registry.edit(job_id, values),
                facts_of,
                job=job_id,
                values=values,
            )
        time.sleep(0.01)

    def _reader(self) -> None:
        for found in self._list():
            self._read(found.job_id)

    def _seq_taker(self) -> None:
        if found := self._some():
            self._take_seq(found.job_id, None)

    def _sweeper(self) -> None:
        for found in self._list(frozenset({Status.RUNNING})):
            job = self._read(found.job_id)
            if job and job.lease and self.registry.lease_expired(job.lease):
                self._on(job, Act.REQUEUE, self._requeue(job, Reason.LOST))
        time.sleep(0.02)

    def _cleaner(self) -> None:
        ended = [found.job_id for found in self._list(ENDED)]
        if len(ended) > 5:
            chosen = self.dice.sample(ended, self.dice.randint(1, 3))
            self._call(
                Act.ARCHIVE,
                lambda: self.registry.archive(chosen),
                lambda batch: {"batch": batch},
                jobs=chosen,
            )
        if self.dice.random() < 0.3:
            self._call(Act.RESTORE, lambda: self.registry.restore(), lambda ids: {"jobs": ids})
        time.sleep(0.02)

    def _overrider(self) -> None:
        if found := self._some():
            job_id, status = found.job_id, self.dice.choice(list(Status))
            self._call(
                Act.OVERRIDE, lambda: self.registry.set_status(job_id, status), facts_of, job=job_id
            )
        if self.dice.random() < 0.2:
            self._call(
                Act.PAUSE,
                lambda: self.registry.pause(GateKind.AGENT, "nobody", why="a file of its own"),
                None,
            )
        time.sleep(0.05)

    # -- calls -----------------------------------------------------------------------------

    def _read(self, job_id: str) -> Job | None:
        return self._call(Act.READ, lambda: self.registry.get(job_id), None, quiet=True, job=job_id)

    def _take_seq(self, job_id: str, attempt: int | None) -> None:
        self._call(
            Act.SEQ,
            lambda: self.registry.next_seq(job_id, attempt=attempt),
            lambda seq: {"seq": seq},
            job=job_id,
        )

    def _heart(self, job: Job, lease: LeaseTerms) -> Callable[[], Job]:
        return lambda: self.registry.heartbeat(job.job_id, lease, attempt=job.attempt)

    def _finish(self, job: Job, status: Status) -> Callable[[], Job]:
        reason = {Status.ERROR: Reason.EXIT, Status.CANCELLED: Reason.CANCELLED}.get(status)
        return lambda: self.registry.finish(
            job.job_id, status, attempt=job.attempt, reason=reason, detail="the end"
        )

    def _requeue(self, job: Job, reason: Reason, *, failed: bool = False) -> Callable[[], Job]:
        return lambda: self.registry.requeue(job.job_id, reason, attempt=job.attempt, failed=failed)

    def _on(self, job: Job, act: Act, call: Callable[[], Job]) -> Job | None:
        return self._call(act, call, facts_of, job=job.job_id, attempt=job.attempt)

    def _call(
        self,
        act: Act,
        call: Callable[[], T],
        tell: Callable[[T], dict[str, Any]] | None,
        *,
        quiet: bool = False,
        **facts: Any,
    ) -> T | None:
        """Make a call and keep the diary; `quiet` ones are written down only when they break."""
        if not quiet:
            self.diary.write(Phase.BEGUN, act, facts)
        try:
            answer = call()
        except (TransitionRefused, JobNotFound, LockTimeout) as refusal:
            if not quiet:
                said = {"error": type(refusal).__name__, "message": str(refusal)}
                self.diary.write(Phase.REFUSED, act, facts | said)
            return None
        except Exception as problem:
            if isinstance(problem, StoreError) and self.ground.may_be_cut_off:
                time.sleep(0.05)  # as if we had been killed: whether it was done, nobody knows
                return None
            self.diary.write(Phase.BROKEN, act, facts | {"traceback": traceback.format_exc()})
            return None
        if not quiet:
            self.diary.write(Phase.DONE, act, facts | (tell(answer) if tell else {}))
        return answer

    def _list(self, statuses: frozenset[Status] = frozenset()) -> list[Summary]:
        found = self._call(
            Act.READ, lambda: self.registry.store.find(Query(statuses=statuses)), None, quiet=True
        )
        if found is None:
            return []
        summaries, unreadable = found
        for row in unreadable:
            self.diary.write(Phase.BROKEN, Act.READ, {"traceback": f"a reader saw {row}"})
        return summaries

    def _some(self, statuses: frozenset[Status] = frozenset()) -> Summary | None:
        found = self._list(statuses)
        return self.dice.choice(found) if found else None


def play(role: str, root: str, name: str, seed: str) -> None:
    """The body of a player's process."""
    ground = Ground(Path(root))
    Player(ground, name, seed).play(Role(role))


def main() -> None:
    parser = argparse.ArgumentParser(description="one player of the fault workload, until killed")
    parser.add_argument("role", choices=list(Role))
    parser.add_argument("root", help="a private folder; the registry is made below it")
    parser.add_argument("--player", default="hand.1", help="its name and incarnation")
    parser.add_argument("--seed", default="0")
    arguments = parser.parse_args()
    Ground(Path(arguments.root)).diaries_dir.mkdir(parents=True, exist_ok=True)
    play(arguments.role, arguments.root, arguments.player, arguments.seed)


if __name__ == "__main__":
    main()
