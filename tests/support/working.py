"""A workshop for tests: a registry, a private ``mam.toml`` with stand-in agents, and workers.

Workers run in this process where that is enough, and as ``mam work`` where signals,
pipes or death are the point; agents are always real processes.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from mam_core.agents.profiles import profile_of
from mam_core.config import Config, load
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.stores.base import Query
from mam_core.wiring import open_registry
from mam_core.work.caps import Caps
from mam_core.work.decision import BackOff
from mam_core.work.screen import Screen
from mam_core.work.worker import Stops, Until, Work, Worker
from tests.support.patience import PATIENCE_SEC, eventually, until_gone
from tests.support.supervision import end_surely, stand_in, with_word
from tests.support.watching import MAM, Watched, running

#: No other test that runs now has it: `mam doctor` looks at the workers of the whole machine.
LABEL = f"bench-{os.getpid()}"
GRACE_SEC = 0.5


class Workshop:
    """One project folder; nothing that was started in it is alive when it is left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / ".mam" / "jobs"
        self.workdir = folder / "work"
        self.workdir.mkdir()
        self.word = f"word-{secrets.token_hex(8)}"  #: in the command line of every stand-in
        self.shown = folder / "shown"  #: what workers in this process put on their terminal
        self._shown = self.shown.open("w")
        self._settings = {
            "heartbeat_sec": 2.0,
            "lease_sec": 30.0,
            "sweep_sec": 1.0,
            "grace_sec": GRACE_SEC,
        }
        self._store = ""
        self._is_strict = False
        self._agents: dict[str, dict[str, Any]] = {}
        self._screens: list[Screen] = []
        self._config: Config | None = None
        self._registry: Registry | None = None

    # -- settings --------------------------------------------------------------------------

    def set(self, **settings: float) -> None:
        self._settings |= settings
        self._config = None

    def set_nothing(self) -> None:
        """As somebody has it who never wrote a line of settings."""
        self._settings.clear()
        self._config = None

    def be_strict(self) -> None:
        """No job is completed by a check that changed."""
        self._is_strict = True
        self._config = None

    def keep_in(self, url: str) -> None:
        """Not in a folder, but in the database there."""
        self._store = url
        self._config = None

    def agent(self, name: str, *command: object, **profile: Any) -> str:
        """A profile of mam.toml. A word without a slash is a stand-in's, which gets our word."""
        words = [str(word) for word in command]
        if os.sep not in words[0]:
            words = [*stand_in(words[0], *words[1:]), self.word]
        self._agents[name] = {"command": words, **profile}
        self._config = None
        return name

    def settle(self) -> None:
        """Put the settings where a command finds them."""
        self._config = self.config

    @property
    def config(self) -> Config:
        if self._config is None:
            lines = ["[defaults]", *(f"{name} = {value}" for name, value in self._settings.items())]
            if self._store:
                lines += ["[store]", f"url = {json.dumps(self._store)}"]
            if self._is_strict:
                lines += ["[checks]", "strict = true"]
            for name, profile in self._agents.items():
                lines.append(f"[agents.{name}]")
                for key, value in profile.items():
                    if isinstance(value, dict):
                        pairs = ", ".join(
                            f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value.items()
                        )
                        lines.append(f"{key} = {{ {pairs} }}")
                    else:
                        lines.append(f"{key} = {json.dumps(value)}")
            place = self.folder / "mam.toml"
            place.write_text("\n".join(lines) + "\n")
            self._config = load(str(place))
        return self._config

    # -- jobs ------------------------------------------------------------------------------

    @property
    def registry(self) -> Registry:
        if self._registry is None:
            self._registry = open_registry(str(self.path), config=self.config)
        return self._registry

    def add(self, agent: str, prompt: str = "count the stars", **fields: Any) -> str:
        request = {"prompt": prompt, "agent": agent, "agent_session": LABEL}
        request |= {"workdir": str(self.workdir), **fields}
        return self.registry.register([request])[0].job_id

    def job(self, job_id: str) -> Job:
        return self.registry.get(job_id)

    def audit(self, job_id: str, event: str = "") -> list[dict[str, Any]]:
        lines = self.registry.store.audit.events(job_id)
        return [line for line in lines if event in ("", line["event"])]

    def told(self, job_id: str) -> list[dict[str, Any]]:
        """The payloads of its events, brought on or not, by their numbers."""
        posts = [
            post for post in self.registry.store.outbox.posts(100_000) if post.job_id == job_id
        ]
        found = {post.seq: json.loads(post.payload) for post in posts}
        for line in self.audit(job_id, "published"):
            found.setdefault(line["seq"], line["payload"])
        return [found[seq] for seq in sorted(found)]

    def names(self, job_id: str) -> list[str]:
        return [content["event"] for content in self.told(job_id)]

    def attempt_folder(self, job_id: str, attempt: int = 1) -> Path:
        return Path(self.registry.store.audit.path) / job_id / "attempts" / str(attempt)

    def output(self, job_id: str, attempt: int = 1) -> str:
        return (self.attempt_folder(job_id, attempt) / "output.log").read_text()

    # -- workers ---------------------------------------------------------------------------

    def worker(
        self,
        *,
        agents: Sequence[str] = (),
        slots: int = 1,
        until: Until = Until.DRAINED,
        stops: Stops | None = None,
        label: str = LABEL,
        caps: Caps | None = None,
    ) -> Worker:
        config, defaults = self.config, self.config.defaults
        work = Work(
            label,
            tuple(agents or self._agents),
            slots,
            until,
            defaults.heartbeat_sec,
            defaults.lease_sec,
            defaults.grace_sec,
            str(self.path),
            None,
            BackOff(defaults.retry_sec, defaults.retry_factor, defaults.retry_max_sec),
            defaults.output_max,
            caps or Caps.of_settings(config),
            defaults.tool_timeout_sec,
        )
        opened = partial(open_registry, str(self.path), config=config)
        screen = Screen(self._shown)
        self._screens.append(screen)
        return Worker(work, opened, partial(profile_of, config), screen, stops or Stops())

    def drain(self, **how: Any) -> Worker:
        """A worker in this very process, until nothing can be claimed."""
        worker = self.worker(**how)
        worker.run()
        return worker

    def run(self, agent: str, prompt: str = "count the stars", **fields: Any) -> Job:
        """One job, registered, run and ended."""
        job_id = self.add(agent, prompt, **fields)
        self.drain()
        return self.job(job_id)

    @contextmanager
    def at_work(self, **how: Any) -> Iterator[Stops]:
        """A worker beside the test, which is asked to hand back when the block ends."""
        stops = Stops()
        worker = self.worker(stops=stops, until=Until.STOPPED, **how)
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            yield stops
        finally:
            stops.hand_back()
            thread.join(PATIENCE_SEC)
            assert not thread.is_alive(), "the worker does not end"

    @contextmanager
    def mam(self, *words: str, **options: Any) -> Iterator[Watched]:
        """A command as a process of its own."""
        self.settle()
        with running([*MAM, *words], self.folder, **options) as watched:
            yield watched

    @contextmanager
    def mam_work(self, *words: str, **options: Any) -> Iterator[Watched]:
        """``mam work`` for our label."""
        with self.mam("work", "--label", LABEL, *words, **options) as watched:
            yield watched

    # -- waiting ---------------------------------------------------------------------------

    def until_status(self, job_id: str, *statuses: Status) -> Job:
        eventually(
            lambda: self.job(job_id).status in statuses,
            f"{job_id} becomes {statuses}; it is {self.job(job_id)}",
        )
        return self.job(job_id)

    def until_said(self, job_id: str, word: str, attempt: int = 1) -> str:
        """Its output holds the word."""

        def said() -> bool:
            try:
                return word in self.output(job_id, attempt)
            except FileNotFoundError:
                return False

        eventually(said, f"{job_id} says {word}")
        return self.output(job_id, attempt)

    def survivors(self) -> list[int]:
        return with_word(self.word)

    def until_nobody_lives(self) -> None:
        until_gone(self.survivors)

    def supervisors(self) -> list[psutil.Process]:
        """Those whose label names one of our jobs."""
        ours = {summary.job_id for summary in self.registry.store.find(Query())[0]}
        found = []
        for process in psutil.process_iter():
            try:
                label = process.cmdline()[-1:]
            except psutil.Error:
                continue
            if label and label[0].startswith("job ") and label[0].split()[1] in ours:
                found.append(process)
        return found

    def close(self) -> None:
        for pid in self.survivors():
            end_surely(pid)
        for screen in self._screens:
            screen.close()
        self._shown.close()
        if self._registry is not None:
            self._registry.store.close()


@contextmanager
def workshop(folder: Path) -> Iterator[Workshop]:
    made = Workshop(folder)
    try:
        yield made
    finally:
        made.close()
