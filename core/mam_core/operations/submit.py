"""Register a job, run it, and follow it to its end: the whole walk in one command.

We listen before it begins, so that no event is missed. A job that names a
session is left to that session's workers and only followed; any other is run by
a worker of ours, under a label that nobody else serves.
"""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from mam_core.agents.commands import command_for
from mam_core.agents.profiles import Profile, PromptWay, profile_of, trouble_with
from mam_core.clock import stamp
from mam_core.config import Config
from mam_core.errors import ConfigError, JobNotFound, MamError, TransitionRefused
from mam_core.operations.ending import Limits
from mam_core.operations.endings import Endings
from mam_core.operations.register import register, with_defaults
from mam_core.operations.watch import Teller, Watch
from mam_core.records import DEFAULT_IDLE_TIMEOUT_SEC, DEFAULT_TIMEOUT_SEC, Job, Reason
from mam_core.registration import checked
from mam_core.registry import Registry
from mam_core.wiring import open_registry
from mam_core.work.decision import BackOff
from mam_core.work.screen import Screen
from mam_core.work.submissions import new_label, serving
from mam_core.work.worker import Stops, Until, Work, Worker

_HOLD_SEC = 30.0


class AgentMissing(MamError):
    """The program of an agent, or a variable that it needs, is not here."""

    title = "Agent missing"


class Plan(NamedTuple):
    """What is to be done, checked, and nothing of it done yet."""

    request: Mapping[str, Any]
    profile: Profile
    is_own: bool  #: run by ourselves

    @property
    def label(self) -> str:
        return str(self.request["agent_session"])

    def told(self) -> Iterator[str]:
        """Line by line, for a person; the prompt itself is not shown."""
        request = self.request
        bare = replace(self.profile, prompt=PromptWay.STDIN)
        command = command_for(bare, prompt_path="", model=request.get("model"))
        prompt = str(request["prompt"]).encode("utf-8", "surrogatepass")
        yield f"command: {shlex.join(command.argv)}"
        yield f"prompt: {len(prompt)} bytes by {self.profile.prompt}"
        yield f"folder: {request['workdir']}"
        yield f"session: {'a worker of its own' if self.is_own else self.label}"
        yield f"time: {request.get('timeout_sec', DEFAULT_TIMEOUT_SEC):g} s"
        yield f"silence: {request.get('idle_timeout_sec', DEFAULT_IDLE_TIMEOUT_SEC):g} s"
        for artifact in request.get("expected_artifacts", ()):
            yield f"artifact: {artifact}"
        if validate := request.get("validate"):
            yield f"validate: {validate}"


class Submitted(NamedTuple):
    """How it went."""

    job: Job
    endings: Endings
    audit_folder: str

    @property
    def is_timeout(self) -> bool:
        late = self.job.reason in (Reason.TIMEOUT, Reason.IDLE_TIMEOUT)
        return late or any(ending.is_timeout for ending in self.endings.endings.values())


def plan(config: Config, request: Mapping[str, Any], now: float) -> Plan:
    """Checks the request as a registration would. Raises `UnknownAgent` and `InvalidField`."""
    is_own = "agent_session" not in request
    own = {"agent_session": new_label()} if is_own else {}
    merged = with_defaults({**request, **own}, config.job_defaults())
    values = checked(merged, now)
    profile = profile_of(config, values["agent"])
    if is_own and not profile.is_headless:
        raise ConfigError(f"{profile.name} is interactive: name a session with --agent-session")
    return Plan({**merged, "workdir": values.get("workdir", os.getcwd())}, profile, is_own)


def check_agent(planned: Plan) -> None:
    """Raises `AgentMissing` when the agent of a job that we run ourselves cannot be started."""
    workdir = str(planned.request["workdir"])
    if planned.is_own and (trouble := trouble_with(planned.profile, os.environ, workdir)):
        raise AgentMissing(trouble)


def submit(
    registry: Registry,
    registry_path: str,
    config: Config,
    planned: Plan,
    teller: Teller,
    *,
    registered: Callable[[str], None],
    is_interrupted: Callable[[], bool],
    screen: Screen,
    config_path: str | None = None,
    allow_network: bool = False,
) -> Submitted:
    """`registered` is told the job's id. An interrupt cancels a job of our own, and stops
    following any other."""
    with serving(registry, registry_path, planned.label) if planned.is_own else nullcontext():
        request, later = dict(planned.request), planned.request.get("not_before")
        if not planned.is_own and later is None:
            # Its session may be waiting for it: not before we listen, nor much later if we die.
            request["not_before"] = stamp(registry.clock.now() + _HOLD_SEC)
        job_id = register(registry, request).job_id
        registered(job_id)
        if planned.is_own:
            opened = partial(
                open_registry, registry_path, config=config, allow_network=allow_network
            )
            beside = _at_work(registry_path, config, planned, opened, screen)
        else:
            beside = _released(registry, job_id, later)
        watch = Watch(
            registry,
            registry_path,
            config,
            teller,
            is_stopped=_stopping(registry, job_id, planned, is_interrupted),
            config_path=config_path,
            allow_network=allow_network,
            beside=beside,
        )
        # Our own worker looks at the clocks, with better eyes than a follower has.
        try:
            endings = watch.named([job_id], Limits(by_record=not planned.is_own))
        finally:
            screen.close()
    folder = os.path.join(registry.store.audit.path, job_id)
    return Submitted(registry.get(job_id), endings, folder)


def _stopping(
    registry: Registry, job_id: str, planned: Plan, is_interrupted: Callable[[], bool]
) -> Callable[[], bool]:
    """Whether to follow it no longer; one of our own is cancelled once, and followed to its end."""
    asked = False

    def is_stopped() -> bool:
        nonlocal asked
        if not is_interrupted():
            return False
        if not planned.is_own:
            return True
        if not asked:
            asked = True
            registry.request_cancel(job_id, why="the submission was interrupted")
        return False

    return is_stopped


@contextmanager
def _released(registry: Registry, job_id: str, not_before: str | None) -> Iterator[None]:
    """We listen: its session may have it."""
    with suppress(TransitionRefused, JobNotFound):  # somebody has cancelled it already
        registry.edit(job_id, {"not_before": not_before})
    yield


@contextmanager
def _at_work(
    registry_path: str,
    config: Config,
    planned: Plan,
    opened: Callable[[], Registry],
    screen: Screen,
) -> Iterator[None]:
    """A worker of one slot for the label of this job, until it has ended: it may come back."""
    stops = Stops()
    defaults = config.defaults
    work = Work(
        planned.label,
        (planned.profile.name,),
        1,
        Until.STOPPED,
        defaults.heartbeat_sec,
        defaults.lease_sec,
        defaults.grace_sec,
        registry_path,
        None,
        BackOff(defaults.retry_sec, defaults.retry_factor, defaults.retry_max_sec),
        defaults.output_max,
        tool_timeout_sec=defaults.tool_timeout_sec,
    )
    worker = Worker(work, opened, partial(profile_of, config), screen, stops)
    thread = threading.Thread(target=worker.run, name="mam-submit")
    thread.start()
    try:
        yield
    finally:
        stops.hand_back()
        thread.join()
