"""A long day of a whole installation: sessions in tmux, a console, people, and misfortune.

Twenty workers claim jobs of stand-in agents; jobs are registered, cancelled and retried; now and
then a worker, a supervisor, an agent, the broker or the tmux server is killed, or the index
removed; somebody restores what is missing. Meanwhile figures are taken.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections import Counter
from contextlib import suppress
from typing import NamedTuple

import psutil

from mam_core.errors import MamError, TransitionRefused
from mam_core.records import Status
from mam_core.stores.base import Query
from mam_core.summaries import Summary
from tests.support.brokers import kill_server, processes_in
from tests.support.sessions import SessionShop
from tests.support.supervision import end_surely, with_word

LABEL = "tmux:storm"
#: What an agent does: reads its prompt, waits a little, says something.
_WORK = "read line; sleep 0.$((RANDOM % 4 + 1)); echo did: $line"
_MEGABYTE = 1 << 20


class Sample(NamedTuple):
    """How it stood at one moment."""

    second: float
    memory_mb: float  #: of the console, which lives through it all
    workers_mb: float  #: of a worker, on average
    files: int  #: open in the console
    processes: int  #: all that is at work in the folder
    answer_ms: float  #: until a registration was acknowledged


class Storm:
    """One run on one project folder."""

    def __init__(self, shop: SessionShop, console: psutil.Process, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self.samples: list[Sample] = []
        self.acknowledged: list[str] = []
        self._shop = shop
        self._console = console
        self._dice = random.Random(seed)
        self._began = time.monotonic()

    @property
    def age(self) -> float:
        return time.monotonic() - self._began

    def play(self, seconds: float, most_jobs: int, live: int) -> None:
        """Until the time is over; never more than `live` jobs wait or run at once."""
        sampled = restored = struck = 0.0
        while self.age < seconds:
            waiting = len(self.live())
            while waiting < live and len(self.acknowledged) < most_jobs:
                self._submit()
                waiting += 1
            self._person()
            if self.age > struck:
                self._strike()
                struck = self.age + self._dice.uniform(0.3, 1.5)
            if self.age - restored > 3:
                self.restore()
                restored = self.age
            if self.age - sampled > seconds / 120:
                self._take_sample()
                sampled = self.age
            time.sleep(self._dice.uniform(0.05, 0.4))

    # -- what people do ----------------------------------------------------------------------

    def _submit(self) -> float:
        number = len(self.acknowledged)
        begun = time.perf_counter()
        job_id = self._shop.add("storm", f"job {number}\n", agent_session=LABEL, max_attempts=3)
        self.acknowledged.append(job_id)
        return time.perf_counter() - begun

    def _person(self) -> None:
        here = self._here()
        if not here:
            return
        job = self._dice.choice(here)
        with suppress(TransitionRefused):
            if job.status.is_live and self._dice.random() < 0.3:
                self._shop.registry.request_cancel(job.job_id, "not needed")
                self.counts["cancels"] += 1
            elif job.status in (Status.ERROR, Status.CANCELLED):
                self._shop.registry.retry(job.job_id)
                self.counts["retries"] += 1

    def restore(self) -> None:
        """What died comes back; a worker that hands back at this moment is left to the next."""
        self._shop.say("restore")

    # -- misfortune --------------------------------------------------------------------------

    def _strike(self) -> None:
        victims = ("worker", "supervisor", "agent", "agent", "broker", "index", "tmux server")
        weights = (6, 6, 6, 6, 2, 2, 1)
        (victim,) = self._dice.choices(victims, weights)
        if getattr(self, "_kill_" + victim.replace(" ", "_"))():
            self.counts[f"{victim} killed"] += 1

    def _kill_worker(self) -> bool:
        names = [row["name"] for row in self._shop.rows() if row["state"] == "alive"]
        if not names:
            return False
        with suppress(AssertionError):
            return self._shop.worker_in(self._dice.choice(names)).send(signal.SIGKILL)
        return False

    def _kill_supervisor(self) -> bool:
        return self._kill_one([process.pid for process in self._shop.supervisors()])

    def _kill_agent(self) -> bool:
        return self._kill_one(with_word(self._shop.word))

    def _kill_one(self, pids: list[int]) -> bool:
        if pids:
            end_surely(self._dice.choice(pids))
        return bool(pids)

    def _kill_broker(self) -> bool:
        try:
            return bool(kill_server(self._shop.path))
        except (AssertionError, MamError, OSError, psutil.Error, ValueError):
            return False  # it is only just coming back

    def _kill_index(self) -> bool:
        shutil.rmtree(self._shop.path / ".index", ignore_errors=True)
        return True

    def _kill_tmux_server(self) -> bool:
        with suppress(ValueError):
            os.kill(self._shop.server_pid(), signal.SIGKILL)
            return True
        return False

    # -- what is seen ------------------------------------------------------------------------

    def _here(self) -> list[Summary]:
        return self._shop.registry.store.find(Query())[0]

    def live(self) -> list[str]:
        return [job.job_id for job in self._here() if job.status.is_live]

    def _take_sample(self) -> None:
        answer = self._submit()
        there = processes_in(self._shop.folder)
        workers = []
        for process in there:
            with suppress(psutil.Error):
                if "work" in process.cmdline():
                    workers.append(process.memory_info().rss)
        with self._console.oneshot():
            self.samples.append(
                Sample(
                    self.age,
                    self._console.memory_info().rss / _MEGABYTE,
                    sum(workers) / max(1, len(workers)) / _MEGABYTE,
                    self._console.num_fds(),
                    len(there),
                    answer * 1000,
                )
            )


def agent_of(shop: SessionShop) -> str:
    """In plain shell: five thousand of them shall cost little."""
    return shop.agent("storm", "/bin/bash", "-c", _WORK, shop.word, prompt="stdin")
