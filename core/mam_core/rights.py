"""What may be done from inside an attempt, where ``MAM_JOB_ID`` is set.

An agent reports on its own job, registers jobs and reads. What a person does with jobs
needs a grant: ``[agents.NAME] may``. This keeps a careless agent from ending other jobs or
calling itself completed. It does not stop a hostile one: it runs as the same user, can unset
a variable and can write any file of the registry.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from mam_core.errors import JobNotFound, MamError, RegistryMissing
from mam_core.locations import JOB_VARIABLE, REGISTRY_VARIABLE

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
}


class NotAllowed(MamError):
    """This is not done from inside an attempt."""

    title = "Not allowed"


class Rights:
    """Those of whoever runs inside an attempt."""

    def __init__(self, own_job: str, registry_path: str, config: Config) -> None:
        self._own_job = own_job
        self._config = config
        named = os.environ.get(REGISTRY_VARIABLE)
        #: The attempt is one of this registry, even if its record is gone.
        self._is_home = not named or os.path.realpath(named) == os.path.realpath(registry_path)

    def check(self, store: Store, right: Right, job_id: str) -> None:
        """Raises `NotAllowed`."""
        if right in _FOR_ITSELF and job_id == self._own_job:
            return
        agent = self._agent(store)
        if agent is None:
            return
        settings = self._config.agents.get(agent)
        if settings is not None and right in (settings.may or ()):
            return
        raise NotAllowed(
            f"agent {agent or 'unknown'} may not {_WORDS[right]} from inside job {self._own_job}; "
            f'[agents.{agent or "NAME"}] may = ["{right}"] in mam.toml would allow it. '
            f"If you are a person in this shell: unset {JOB_VARIABLE}"
        )

    def _agent(self, store: Store) -> str | None:
        """The agent of the attempt; None: it is an attempt of another registry."""
        try:
            return store.get(self._own_job).agent
        except (JobNotFound, RegistryMissing):
            return "" if self._is_home else None
        except MamError:
            return ""


def rights_here(registry_path: str, config: Config) -> Rights | None:
    """None outside of an attempt: a person, who may do everything."""
    own_job = os.environ.get(JOB_VARIABLE)
    return Rights(own_job, registry_path, config) if own_job else None
