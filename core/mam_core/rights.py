"""What may be done from inside an attempt, where ``MAM_JOB_ID`` (or ``MAM_LIVE_AGENT``) is set.

An agent reports on its own job, registers jobs and reads. What a person does with jobs
needs a grant: ``[agents.NAME] may``. This keeps a careless agent from ending other jobs or
calling itself completed. It does not stop a hostile one: it runs as the same user, can unset
a variable and can write any file of the registry.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from mam_core.errors import JobNotFound, MamError, RegistryMissing
from mam_core.locations import AGENT_VARIABLE, JOB_VARIABLE, REGISTRY_VARIABLE
from mam_core.records import Status

if TYPE_CHECKING:
    from mam_core.config import Config
    from mam_core.stores.base import Store


class Right(StrEnum):
    """What can be granted; of the first two, an agent needs a grant only for other jobs."""

    PUBLISH = "publish"
    HEARTBEAT = "heartbeat"
    STATUS = "status"  #: set a status by hand
    CANCEL = "cancel"
    RETRY = "retry"
    EDIT = "edit"
    ANSWER = "answer"
    SAY = "say"  #: also to interrupt and to broadcast
    CLEAN = "clean"
    PAUSE = "pause"  #: and resume: claims, groups, hosts, schedules
    STOP = "stop"  #: sessions
    DEPLOY = "deploy"
    INIT = "init"  #: a registry anew, in place of one that was removed
    DOCTOR = "doctor"  #: mend what the doctor finds: worktrees, processes, sessions of others
    MIGRATE = "migrate"
    RELEASE = "release"  #: dispatch tasks that somebody holds


_FOR_ITSELF = frozenset({Right.PUBLISH, Right.HEARTBEAT})
_WORDS: Mapping[Right, str] = {
    Right.PUBLISH: "publish events of other jobs",
    Right.HEARTBEAT: "send heartbeats for other jobs",
    Right.STATUS: "set the status of a job",
    Right.CANCEL: "cancel jobs",
    Right.RETRY: "retry jobs",
    Right.EDIT: "edit jobs",
    Right.ANSWER: "answer questions",
    Right.SAY: "speak to agents",
    Right.CLEAN: "clean jobs",
    Right.PAUSE: "pause or resume claims, or change slots",
    Right.STOP: "stop sessions",
    Right.DEPLOY: "deploy",
    Right.INIT: "replace a registry that was removed",
    Right.DOCTOR: "mend what the doctor finds",
    Right.MIGRATE: "migrate a registry",
    Right.RELEASE: "release tasks",
}


class NotAllowed(MamError):
    """This is not done from inside an attempt."""

    title = "Not allowed"


class Rights:
    """Those of a command inside an attempt, or in a live agent that takes job after job."""

    def __init__(
        self, registry_path: str, config: Config, *, own_job: str = "", live_agent: str = ""
    ) -> None:
        self._own_job = own_job
        self._live_agent = live_agent
        self._config = config
        named = os.environ.get(REGISTRY_VARIABLE)
        #: The attempt is one of this registry, even if its record is gone.
        self._is_home = not named or os.path.realpath(named) == os.path.realpath(registry_path)

    def check(self, store: Store, right: Right, job_id: str = "") -> None:
        """Raises `NotAllowed`."""
        if right in _FOR_ITSELF and self._is_own(store, job_id):
            return
        agent = self.agent_in(store)
        if agent is not None:
            self.check_agent(agent, right)

    def check_agent(self, agent: str, right: Right) -> None:
        """Raises `NotAllowed`."""
        settings = self._config.agents.get(agent)
        if settings is not None and right in (settings.may or ()):
            return
        inside = f"job {self._own_job}" if self._own_job else "its session"
        variable = JOB_VARIABLE if self._own_job else AGENT_VARIABLE
        raise NotAllowed(
            f"agent {agent or 'unknown'} may not {_WORDS[right]} from inside {inside}; "
            f'[agents.{agent or "NAME"}] may = ["{right}"] in mam.toml would allow it. '
            f"If you are a person in this shell: unset {variable}"
        )

    def _is_own(self, store: Store, job_id: str) -> bool:
        if self._own_job:
            return job_id == self._own_job
        try:  # which of its kind has it, the variable does not say
            job = store.get(job_id)
        except MamError:
            return False
        return job.status is Status.RUNNING and job.agent == self._live_agent

    def agent_in(self, store: Store) -> str | None:
        """The agent of the attempt; empty: the store does not say which; None: it is an attempt of
        another registry."""
        if not self._own_job:
            return self._live_agent if self._is_home else None
        try:
            return store.get(self._own_job).agent
        except (JobNotFound, RegistryMissing):
            return "" if self._is_home else None
        except MamError:
            return ""


def rights_here(registry_path: str, config: Config) -> Rights | None:
    """None for a person, who may do everything."""
    own_job, live_agent = os.environ.get(JOB_VARIABLE, ""), os.environ.get(AGENT_VARIABLE, "")
    if not (own_job or live_agent):
        return None
    return Rights(registry_path, config, own_job=own_job, live_agent=live_agent)


def check_move(ends: Iterable[tuple[Rights | None, Store]]) -> None:
    """Raises `NotAllowed` where jobs may not be moved from one of these to the other.

    At most one of them has the attempt's record, and so knows which agent asks.
    """
    asked = [(rights.agent_in(store), rights) for rights, store in ends if rights is not None]
    concerned = [(agent, rights) for agent, rights in asked if agent is not None]
    if concerned:
        agent, rights = max(concerned, key=lambda one: one[0])  # a name before none
        rights.check_agent(agent, Right.MIGRATE)
