"""One attempt by a live agent: as any attempt, but the agent was there before and stays after it.

Its processes are those of the agent, so the mark of each attempt names the same
supervisor and token: a sweep that finds the job without its worker ends them. A
job goes back to the queue only when the agent is gone, since nobody could say
what it still does about it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from mam_core.agents.profiles import Profile
from mam_core.disk import Folder
from mam_core.process_mark import ProcessMark
from mam_core.records import Job
from mam_core.registry import Registry
from mam_core.work.attempt import Attempt
from mam_core.work.decision import Decision
from mam_core.work.git_state import GitState
from mam_core.work.hold import Terms
from mam_core.work.live.agent import Likeness, LiveAgent
from mam_core.work.live.instructions import line_for
from mam_core.work.live.session import LiveSession, surroundings
from mam_core.work.live.tending import LiveTending
from mam_core.work.marks import AttemptMark
from mam_core.work.orders import FOREVER, Deadlines, Orders
from mam_core.work.output import OutputLog
from mam_core.work.running import Running, Way
from mam_core.work.screen import Screen
from mam_core.work.witnesses import PROMPT


class LiveAttempt(Attempt):
    """Run it once, in the session."""

    def __init__(
        self,
        session: LiveSession,
        registry: Registry,
        job: Job,
        profile: Profile,
        terms: Terms,
        screen: Screen,
        is_stopping: Callable[[], bool],
    ) -> None:
        super().__init__(registry, job, profile, terms, screen, is_stopping)
        self._session = session
        self._live = LiveTending(registry, profile, self._hold, self._voice, screen, terms)
        self._tending = self._live

    def run(self) -> Job | None:
        try:
            job = super().run()
        except BaseException:  # nobody knows what it does now
            self._session.dismiss(self._terms.grace_sec)
            raise
        agent = self._session.agent
        if agent is None:
            return job
        # One that has ended, or whose job somebody else may have now, takes no other.
        if agent.ended or self._hold.cause is not None or self._hold.is_over:
            self._session.dismiss(self._terms.grace_sec)
        else:
            self._hold.unbind(agent.running)
        return job

    def _tend(self, orders: Orders, folder: Folder, git: GitState | None) -> None:
        prompt = os.path.join(folder.path, PROMPT)
        line = line_for(self._job, prompt, os.path.abspath(self._terms.registry_path))
        with OutputLog(folder, cap_bytes=self._terms.output_max) as log:
            agent = self._agent(orders, folder)
            self._note_start(agent.supervisor, orders, folder, git)
            self._live.attend(self._session, agent, log, line)
            # The time of its job is over with its turn; the lease is not.
            self._hold.bind(agent.running, FOREVER)

    def _agent(self, orders: Orders, folder: Folder) -> LiveAgent:
        """The one that lives, if it suits the job; else a fresh one."""
        session, job = self._session, self._job
        likeness = Likeness(
            self._profile.name, orders.cwd, job.model, orders.memory_max, job.resume
        )
        if session.agent is not None and session.suits(likeness) and session.mark is not None:
            self._remember(session.mark, folder)
            self._bound(session.agent.running)
            self._live.note_cap(session.agent.cap)
            return session.agent
        session.dismiss(self._terms.grace_sec, self._keep)
        prepared = session.prepare(self._profile)
        environ = {**surroundings(orders.environ, self._profile.name), **prepared.env}
        orders = orders._replace(
            argv=(*orders.argv, *prepared.argv),
            environ=environ,
            label=f"agent {self._profile.name} since job {job.job_id} attempt {job.attempt}",
        )

        def remember(supervisor: ProcessMark) -> Deadlines:
            session.mark = AttemptMark.of(orders.token, supervisor, self._registry.node)
            return self._remember(session.mark, folder)

        agent = session.start(orders, self._profile, likeness, remember)
        self._bound(agent.running)
        return agent

    def _keep(self) -> None:
        self._hold.keep(self._clock.since_boot())

    def _start(self, orders: Orders, folder: Folder, way: Way = Way.PIPES) -> Running:
        """A check beside a living agent carries the same token: the mark stands for both."""
        if self._session.agent is None or self._mark is None:
            return super()._start(orders, folder, way)

        def remember(_supervisor: ProcessMark) -> Deadlines:
            return self._confirmed()

        orders = orders._replace(token=self._mark.token)
        return self._bound(Running.start(orders, self._clock, remember, way))

    def _end(self, decision: Decision, told: Mapping[str, Any]) -> Job | None:
        if decision.status is None:
            self._session.dismiss(self._terms.grace_sec, self._keep)
        return super()._end(decision, told)
