"""New code, brought in step by step: AUDIT, DECIDE, PULL, VERIFY, UPGRADE, RESTART, MONITOR.

Each call begins with an audit, and there is no way around it: a deploy that did not look what runs
is how jobs and their files were lost. From DECIDE to RESTART nothing new is claimed. What a step
runs stands in the operator's own settings, as program and arguments.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from mam_core.clock import stamp
from mam_core.operations import deploy_state as state
from mam_core.operations.audit_report import Report, Scope, audit, backlog, counted, totals
from mam_core.operations.cancel import cancel
from mam_core.operations.deploy_state import Choice, Deploy, DeployRefused, Step
from mam_core.operations.doctor import Ground, Look
from mam_core.operations.retry import retry
from mam_core.pace import paced
from mam_core.records import Status
from mam_core.rights import Right
from mam_core.stores.base import GateKind
from mam_core.version import __version__
from mam_core.work.bounded_process import last_line, run_bounded

_LOOK_SEC = 0.5


class Operator(Protocol):
    """Who is told and asked. Where nobody can be, every question is answered with no."""

    def audited(self, report: Report) -> None: ...

    def tell(self, words: str) -> None: ...

    def agrees(self, question: str) -> bool: ...


@dataclass(frozen=True)
class Plan:
    """What was asked for."""

    choice: Choice | None = None  #: what becomes of jobs that run; None: ask
    retry_failed: bool = False
    despite: bool = False  #: go on although something is out of order
    resume: bool = False
    only: Step | None = None  #: this step and no other


def scope_of(ground: Ground) -> Scope:
    settings = ground.config.deploy
    return Scope(settings.group, settings.agent_session)


def commands(ground: Ground) -> dict[Step, tuple[str, ...] | None]:
    """What each step runs of the operator's; None where it runs nothing of theirs."""
    settings = ground.config.deploy
    return {
        Step.AUDIT: None,
        Step.DECIDE: None,
        Step.PULL: settings.pull,
        Step.VERIFY: settings.verify,
        Step.UPGRADE: settings.upgrade,
        Step.RESTART: settings.restart,
        Step.MONITOR: settings.monitor,
    }


def rehearse(ground: Ground) -> tuple[Report, Deploy | None]:
    """What a deploy would find, and the one that is not over; changes nothing."""
    last = state.read(ground.registry_path)
    return audit(ground, scope_of(ground)), None if last is None or last.is_over else last


def abandon(ground: Ground) -> str:
    """End a deploy that stopped: nothing of it is undone, and claims are open again."""
    ground.registry.check_allowed(Right.DEPLOY)
    with state.one_at_a_time(ground.registry_path):
        last = state.read(ground.registry_path)
        if last is None or last.is_over:
            raise DeployRefused("there is no deploy that is not over")
        _open_claims(ground, last)
        ended = replace(last, ended_at=stamp(ground.registry.clock.now()))
        state.write(ground.registry_path, ended)
    at = f"before {last.next}" if last.next else "at its end"
    return f"the deploy of {last.deploy_id} is given up {at}; what it has done stays done"


def deploy(ground: Ground, plan: Plan, operator: Operator) -> Deploy:
    """Go through the steps that are left; raises `DeployRefused` at the first that fails."""
    ground.registry.check_allowed(Right.DEPLOY)
    with ground.registry.store.transaction(create=True):
        pass  # there is a registry, and it is one: what we keep stands beside its records
    with state.one_at_a_time(ground.registry_path) as lock:
        run = _Run(ground, plan, operator, _begun(ground, plan), lock)
        run.audit()
        for step in Step:
            if step in run.deploy.done or plan.only not in (None, step):
                continue
            run.step(step)
        return run.deploy


def _begun(ground: Ground, plan: Plan) -> Deploy:
    """The deploy to go on with, or a new one. Until it was decided nothing has been done, so that
    one may simply be begun again."""
    last = state.read(ground.registry_path)
    open_one = last if last is not None and not last.is_over else None
    if plan.resume and open_one is None:
        raise DeployRefused("there is no deploy to go on with: none was begun, or it is over")
    is_decided = open_one is not None and Step.DECIDE in open_one.done
    if open_one is not None and is_decided and not plan.resume and plan.only in (None, Step.AUDIT):
        where = open_one.begun or open_one.next
        raise DeployRefused(
            f"the deploy of {open_one.deploy_id} stopped in {where}: --resume goes on with it, "
            "--abandon ends it"
        )
    if open_one is None:
        if plan.only not in (None, Step.AUDIT):
            raise DeployRefused(f"{plan.only} is not the first step: begin with audit")
        return Deploy(stamp(ground.registry.clock.now()), ground.registry.actor)
    if plan.only not in (None, Step.AUDIT, open_one.next):
        raise DeployRefused(f"{plan.only} is not next: {open_one.next} comes first")
    return open_one


class _Run:
    """One call: what is left of a deploy, under the lock."""

    def __init__(
        self, ground: Ground, plan: Plan, operator: Operator, begun: Deploy, lock: int
    ) -> None:
        self.deploy = begun
        self._lock = lock
        self._ground = ground
        self._registry = ground.registry
        self._plan = plan
        self._operator = operator
        self._scope = scope_of(ground)

    def audit(self) -> None:
        """Anew in every call: what was true before a crash need not be true now."""
        self._report = audit(self._ground, self._scope)
        self._operator.audited(self._report)
        if Step.AUDIT not in self.deploy.done:
            self.deploy = replace(self.deploy, failed_before=len(self._report.failed.jobs))
        self._keep(self.deploy.with_done(Step.AUDIT, self._report.totals))

    def step(self, step: Step) -> None:
        self._keep(replace(self.deploy, begun=step))
        words = _ACTS[step](self)
        self._keep(self.deploy.with_done(step, words))
        self._operator.tell(f"{step}: {words}")
        if self.deploy.next is None:
            self._keep(replace(self.deploy, ended_at=stamp(self._registry.clock.now())))

    def _keep(self, deploy: Deploy) -> None:
        state.write(self._ground.registry_path, deploy)
        self.deploy = deploy

    # -- the steps -------------------------------------------------------------------------

    def _decide(self) -> str:
        count = len(self._report.wrong)
        wrong = f"{count} of the above {'is' if count == 1 else 'are'} out of order"
        is_accepted = not self._report.wrong or self._plan.despite
        if not is_accepted and not self._operator.agrees(f"{wrong}; go on?"):
            raise DeployRefused(f"{wrong}: mend it (`mam doctor --fix`), or say --despite")
        choice = self._chosen()
        failed = tuple(job.job_id for job in self._report.failed.jobs)
        again = bool(failed) and (
            self._plan.retry_failed
            or self._operator.agrees(f"retry the {len(failed)} that failed, after the restart?")
        )
        self._keep(replace(self.deploy, choice=choice, retry=failed if again else ()))
        self._close_claims()
        if choice is Choice.CANCEL:
            ids = [job.job_id for job in counted(self._ground, self._scope)[Status.RUNNING].jobs]
            for outcome in cancel(self._registry, ids, why=self.deploy.why):
                self._operator.tell(outcome.message)
        if choice in (Choice.WAIT, Choice.CANCEL):
            self._wait()
        fate = f"{len(self._report.running.jobs)} running: {choice}" if choice else "nothing ran"
        return f"{fate}; to retry: {len(self.deploy.retry)}; new claims are held back"

    def _chosen(self) -> Choice | None:
        running = self._report.running
        if not running.jobs:
            return None
        if (said := self._plan.choice or self.deploy.choice) is not None:
            return said
        labels = ", ".join(f"{label} {count}" for label, count in running.labels.items())
        asked = f"{len(running.jobs)} running ({labels})"
        for choice, question in (
            (Choice.WAIT, f"{asked}: wait until they are over?"),
            (Choice.KEEP, "or let them finish with the old code?"),
            (Choice.CANCEL, "or cancel them?"),
        ):
            if self._operator.agrees(question):
                return choice
        raise DeployRefused(f"{asked}: say --running wait, keep or cancel")

    def _wait(self) -> None:
        said = 0
        while jobs := counted(self._ground, self._scope)[Status.RUNNING].jobs:
            if len(jobs) != said:
                said = len(jobs)
                self._operator.tell(f"waiting for {said} running")
            time.sleep(paced(_LOOK_SEC))

    def _verify(self) -> str:
        """Whatever the operator's own command says, which mam that is has to be known."""
        code = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        return f"mam {__version__} ({os.path.dirname(code)}); {self._command(Step.VERIFY)}"

    def _restart(self) -> str:
        """A fresh attempt for what failed: an old one's words would be taken for new ones."""
        words = self._command(Step.RESTART)
        status_of = self._registry.store.facts().status_of
        ids = [job_id for job_id in self.deploy.retry if status_of(job_id) is Status.ERROR]
        for outcome in retry(self._registry, ids):
            self._operator.tell(outcome.message)
        _open_claims(self._ground, self.deploy)
        return f"{words}; {len(ids)} with a fresh attempt; claims are open"

    def _monitor(self) -> str:
        ended = self._command(Step.MONITOR)
        found = counted(self._ground, self._scope)
        now = totals(found, backlog(Look(self._ground), found[Status.PENDING].jobs))
        words, failed = f"{ended}; {self._scope.words}: {now}", len(found[Status.ERROR].jobs)
        if failed > self.deploy.failed_before:
            raise DeployRefused(
                f"{words}: more have failed than before ({self.deploy.failed_before})"
            )
        return words

    def _command(self, step: Step) -> str:
        command = commands(self._ground)[step]
        if command is None:
            return f"[deploy] {step} is not set: nothing is run"
        settings = self._ground.config.deploy
        folder = self._ground.config.folder_of("deploy", step) or os.getcwd()
        environ = {**os.environ, "MAM_DEPLOY": self.deploy.deploy_id, "MAM_DEPLOY_STEP": step}
        try:
            ended = run_bounded(
                command, folder, environ, settings.timeout_sec, holding=(self._lock,)
            )
        except OSError as problem:
            why = (problem.strerror or str(problem)).lower()
            raise _stopped(step, f"cannot run {command[0]}: {why}") from None
        for line in ended.output.splitlines():
            self._operator.tell(f"{step} | {line}")
        if ended.code != 0:
            raise _stopped(step, f"{command[0]} {ended.words}{last_line(ended.output)}")
        return f"{command[0]} ended well"

    # -- what is held back -----------------------------------------------------------------

    def _close_claims(self) -> None:
        kind, name = _gate(self._scope)
        if self._registry.store.facts().gates().find(kind, name) is None:
            self._registry.pause(kind, name, why=self.deploy.why)


def _gate(scope: Scope) -> tuple[GateKind, str]:
    """A label has no gate of its own, so that all claims are held back for it."""
    return (GateKind.GROUP, scope.group) if scope.group else (GateKind.ALL, "")


def _open_claims(ground: Ground, deploy: Deploy) -> None:
    """Only the pause that is ours: one that somebody else made is theirs to end."""
    kind, name = _gate(scope_of(ground))
    gate = ground.registry.store.facts().gates().find(kind, name)
    if gate is not None and gate.why == deploy.why:
        ground.registry.resume(kind, name)


def _stopped(step: Step, words: str) -> DeployRefused:
    return DeployRefused(f"{step}: {words}; --resume goes on from there, --abandon ends it")


#: What each step does; the audit is made by every call, before all of them.
_ACTS: dict[Step, Callable[[_Run], str]] = {
    Step.DECIDE: _Run._decide,
    Step.PULL: lambda run: run._command(Step.PULL),
    Step.VERIFY: _Run._verify,
    Step.UPGRADE: lambda run: run._command(Step.UPGRADE),
    Step.RESTART: _Run._restart,
    Step.MONITOR: _Run._monitor,
}
