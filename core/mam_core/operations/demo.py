"""A demonstration: a throw-away registry on which simulated agents work, and nothing of it stays.

The first jobs are there when the block begins; sessions, broker and further jobs come up beside
it, so that a console can open at once. At the end of the block, however that is reached, workers,
sessions, broker and folder are gone. A guard sees to the same when this process is killed.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from mam_core.config import Config
from mam_core.demo import clearing, place, project, settings
from mam_core.demo.crew import Crew
from mam_core.demo.place import Place
from mam_core.demo.script import Cue, cues
from mam_core.demo.upkeep import Upkeep
from mam_core.errors import MamError
from mam_core.operations.evidence import held_back
from mam_core.operations.listing import listing, query, shown_of
from mam_core.operations.on_duty import on_duty
from mam_core.operations.register import register
from mam_core.operations.starting import Tell
from mam_core.own_python import own_python
from mam_core.pace import paced
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.wiring import open_registry

#: A guard whose owner has gone has nothing to do but to look.
_GUARD_SEC = 10.0


#: To spawn and to end takes a while on a busy machine. What hangs for longer is cleared away.
_PLAY_SEC = 60.0


#: Between two looks whether a job is due, a question is old, or there is too much.
_LOOK_SEC = 0.5


class Staged(NamedTuple):
    """What is shown: a registry like any other."""

    registry_path: str
    config: Config
    config_path: str


class Seen(NamedTuple):
    """How one job stands, for a person who reads lines."""

    job_id: str
    words: str
    task: str


@contextmanager
def demo(jobs: int | None, tell: Tell) -> Iterator[Staged]:
    """While the block lasts; `tell` may be called from other threads. `jobs` None: as long as it
    lasts, more and more come, and the oldest go."""
    if count := clearing.clear_leftovers():
        tell(f"cleared away what {count} killed demonstration(s) had left")
    here, lock = place.make()
    guard: subprocess.Popen[bytes] | None = None
    try:
        guard = _guard(here)
        with place.surroundings(here):
            show = _Show(here, _settled(here), jobs, tell)
            try:
                show.begin()
                yield Staged(here.registry_path, show.config, here.config_path)
            finally:
                show.end()
    finally:
        try:
            clearing.clear(here)
        finally:
            os.close(lock)
            if guard is not None:
                with suppress(subprocess.TimeoutExpired):
                    guard.wait(_GUARD_SEC)


def seen(registry: Registry) -> list[Seen]:
    """Every job, by its registration, in words."""
    jobs = listing(registry, query()).jobs
    held, shown = held_back(registry, None, jobs), shown_of(registry, jobs)
    rows = []
    for job in jobs:
        words = str(job.status)
        if job.job_id in shown:
            words = str(shown[job.job_id].state)
        elif job.job_id in held:
            words = "blocked"
        if job.reason is not None and job.status is not Status.COMPLETED:
            words += f" ({job.reason})"
        if job.attempt > 1:
            words += f", attempt {job.attempt}"
        rows.append(Seen(job.job_id, words, job.head.partition("\n")[0]))
    return rows


def _settled(here: Place) -> Config:
    project.make(here.workdir)
    with open(here.config_path, "w", encoding="utf-8") as file:
        file.write(settings.text(here.root))
    return here.config()


def _guard(here: Place) -> subprocess.Popen[bytes]:
    """In a session of its own: what is sent to our whole group does not reach it."""
    return subprocess.Popen(
        [*own_python(), "-m", "mam_core.demo.guard", here.root],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


class _Show:
    """Registers what the script says, while workers run it."""

    def __init__(self, here: Place, config: Config, jobs: int | None, tell: Tell) -> None:
        self.config = config
        self._here = here
        self._tell = tell
        self._crew = Crew(here, config, tell)
        self._cues = cues(jobs)
        self._next = next(self._cues, None)
        self._ids: dict[str, str] = {}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._told, args=(part,), name=f"mam-demo-{part.__name__}", daemon=True
            )
            for part in (self._crew.come_up, self._play)
        ]
        self._began = time.monotonic()

    def begin(self) -> None:
        with self._registry() as registry:
            while self._next is not None and self._next.at <= 0:
                self._register(registry, self._next)
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """The workers go while the relay is still at work, so that no event is left behind."""
        self._stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(_PLAY_SEC)
        clearing.end_workers(self._here)  # should the play have broken off
        self._crew.bury()

    def _play(self) -> None:
        here = self._here
        with on_duty(here.registry_path, self.config, config_path=here.config_path):
            with self._registry() as registry:
                upkeep = Upkeep(registry, here)
                while not self._stop.wait(paced(_LOOK_SEC)):
                    with suppress(MamError, OSError):  # the next look may go better
                        self._look(registry, upkeep)
            self._threads[0].join(_PLAY_SEC)
            clearing.end_workers(here)

    def _look(self, registry: Registry, upkeep: Upkeep) -> None:
        has_room, cue = upkeep.look(), self._next
        if cue is not None and has_room and self._began + cue.at <= time.monotonic():
            self._register(registry, cue)

    def _told(self, part: Callable[[], None]) -> None:
        """A thread has nobody else to tell."""
        try:
            part()
        except (MamError, OSError) as problem:
            self._tell(f"the demonstration is not complete: {problem}")

    def _registry(self) -> Registry:
        return open_registry(self._here.registry_path, config=self.config)

    def _register(self, registry: Registry, cue: Cue) -> None:
        request = cue.request(self._here.workdir, self._ids)
        made = register(registry, request, self.config.job_defaults())
        if cue.name:
            self._ids[cue.name] = made.job_id
        self._next = next(self._cues, None)
