"""A registry with many sessions at work: on record, in tmux, each with a worker and a leased job.

The workers are sleepers in real panes, whose marks and leases are written as real workers write
them: what is measured is what it costs to look at them, and not what they cost.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.figures import Wrong
from bench.ground import Ground
from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.clock import SystemClock, fine_stamp, stamp
from mam_core.config import Config, load
from mam_core.leases import LeaseTerms
from mam_core.operations.panes import Panes
from mam_core.operations.session_looks import SessionLooks, SessionsNow
from mam_core.operations.spawn import Wanted, plan, spawn
from mam_core.process_mark import ProcessMark, pid_namespace
from mam_core.records import Job
from mam_core.registry import Registry
from mam_core.sessions import WORKER, Session, SessionFolder
from mam_core.tmux.facts import PaneFact, PaneLabel
from mam_core.tmux.server import TmuxServer
from mam_core.wiring import open_registry

#: Of the audit log of each job, before the first look.
_LINES = 10
_LEASE_SEC = 30.0


class HurriedClock(SystemClock):
    """Looks follow each other at once here, and a second apart in use: so it is put forward."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead_sec = 0.0

    def now(self) -> float:
        return super().now() + self.ahead_sec

    def since_boot(self) -> float:
        return super().since_boot() + self.ahead_sec


class Fleet:
    """The sessions of one registry, and the product's own look at them."""

    def __init__(self, ground: Ground, path: str, server: TmuxServer) -> None:
        self.path = path
        self._server = server
        config = _settings(ground, server.socket)
        self.registry: Registry = open_registry(self.path, config=config)
        self._clock = HurriedClock()
        self.registry.clock = self._clock
        self._panes = Panes(self.path, config)
        self._jobs: list[Job] = []
        self._looks = SessionLooks(self.registry, self.path, self._panes)
        self._turn = 0
        self.paused_sec = 0.0  #: processor time of what others do in real use

    def man(self, ground: Ground, panes: list[PaneFact]) -> None:
        """A record, a worker's mark, a leased job and its history for each of these panes."""
        self.registry.register(
            [
                {**request, "agent_session": pane.label}
                for request, pane in zip(ground.new_jobs(len(panes)), panes, strict=True)
            ]
        )
        # These wait, for labels that have no session.
        self.registry.register(ground.new_jobs(ground.effort.claimable))
        folder = SessionFolder(self.path)
        for pane in panes:
            folder.put(_session(pane, self.registry.node))
            mark = ProcessMark.of(pane.pid)
            if mark is None:
                raise Wrong("a session has no process")
            said = {**mark.to_dict(), "namespace": pid_namespace()}
            with open(os.path.join(folder.path, pane.session + WORKER), "w") as file:
                json.dump(said, file)
            owner = f"{self.registry.node}:{mark.pid}:{mark.started}:0"
            job = self.registry.claim(pane.label, lease=LeaseTerms(owner, _LEASE_SEC))
            if job is None:
                raise Wrong("a session has no job")
            label = PaneLabel.of([(job.job_id, job.attempt)])
            self._server.label(pane.pane_id, job_id=label.job_id, attempt=label.attempt)
            self._jobs.append(job)
        for number in range(_LINES):
            self._say(self._jobs, number)

    def look(self) -> SessionsNow:
        """The product's; wrong when it does not see every session with its job at work."""
        seen = self._looks.look()
        if len(seen.seen) != len(self._jobs) or len(seen.shown) != len(self._jobs):
            raise Wrong("not every session is seen with its job")
        if any(one.channel != Channel.HOOK for one in seen.shown.values()):
            raise Wrong("a job is not shown by its agent's word")
        return seen

    def live(self, share: int) -> None:
        """A second goes by: one of so many workers renews its lease and says something."""
        began = time.process_time()
        self._turn += 1
        self._clock.ahead_sec += 1.0
        ours = self._jobs[self._turn % share :: share]
        for job in ours:
            assert job.lease is not None
            terms = LeaseTerms(job.lease.owner, _LEASE_SEC)
            self.registry.heartbeat(job.job_id, terms, attempt=job.attempt)
        self._say(ours, self._turn)
        self.paused_sec += time.process_time() - began

    def close(self) -> None:
        self._panes.close()
        self.registry.store.close()

    def _say(self, jobs: list[Job], number: int) -> None:
        """A state event each, as a broker has taken it."""
        state = AgentState.WORKING if number % 2 else AgentState.IDLE
        sign = Sign(state, Channel.HOOK, "PreToolUse", self.registry.clock.now(), "a tool")
        for job in jobs:
            self.registry.publish(job.job_id, "state", data=sign.to_dict(), attempt=job.attempt)
        posts = self.registry.store.outbox.posts(10_000)
        for post in posts:
            line = {
                "timestamp": fine_stamp(self.registry.clock.now()),
                "event": "published",
                "attempt": post.attempt,
                "seq": post.seq,
                "topic": post.topic,
                "payload": json.loads(post.payload),
            }
            self.registry.store.audit.append(post.job_id, line)
        self.registry.store.outbox.done(posts)


@contextmanager
def no_processes() -> Iterator[None]:
    """A process that is started in the block is *wrong*."""
    real = subprocess.Popen.__init__

    def refused(self: object, *words: object, **options: object) -> None:
        raise Wrong("a process was started for a look")

    subprocess.Popen.__init__ = refused  # type: ignore[method-assign]
    try:
        yield
    finally:
        subprocess.Popen.__init__ = real  # type: ignore[method-assign]


def crew(ground: Ground, socket: str, count: int) -> int:
    """The whole command: records, panes, Python workers, and the proof that each is at work.

    Each call has a registry of its own; whoever ends the sessions ends their workers.
    """
    path = ground.path(f"crew-{secrets.token_hex(4)}")
    config = _settings(ground, socket)
    wanted = Wanted("tmux:crew", "shell", count, ground.root)
    return len(spawn(plan(path, config, wanted), config, lambda _: None))


def _settings(ground: Ground, socket: str) -> Config:
    place = os.path.join(ground.root, f"{socket}.toml")
    with open(place, "w", encoding="utf-8") as file:
        file.write(f'[tmux]\nsocket = "{socket}"\n')
    return load(place)


def _session(pane: PaneFact, node: str) -> Session:
    began = stamp(pane.created)
    return Session(pane.session, pane.label, pane.agent, "stream", "/", "/", began, "bench", node)
