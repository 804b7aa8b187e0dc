"""One attempt of one job, from its prompt file to what the registry is told of its end.

What is needed before anything is started is looked at first; then the agent is
tended, its promises are checked, and the job is ended or given back. It is given
back only when nothing of the attempt is left.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from mam_core.agents.commands import command_for
from mam_core.agents.dialogue import dialogue_for
from mam_core.agents.profiles import Profile, trouble_with
from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.agents.streams.events import Told
from mam_core.audit import AuditEvent, warn
from mam_core.disk import Folder
from mam_core.errors import InvalidField, JobNotFound, MamError, StoreError, TransitionRefused
from mam_core.events.event import EventName
from mam_core.process_mark import ProcessMark
from mam_core.records import Job, Reason, Status
from mam_core.registry import Registry
from mam_core.work.caps import bounds_of, words
from mam_core.work.checks import Checks
from mam_core.work.counterpart import Counterpart
from mam_core.work.decision import Decision, Facts, decide, not_here, wants_checks
from mam_core.work.git_state import GitState, git_state, left_words
from mam_core.work.hold import Hold, Terms
from mam_core.work.marks import AttemptMark, end_leftovers, is_gone
from mam_core.work.orders import FOREVER, Deadlines, Orders, new_token
from mam_core.work.output import OUTPUT, OutputLog
from mam_core.work.running import Running, Way
from mam_core.work.screen import Screen
from mam_core.work.tending import Tending
from mam_core.work.validation import environment
from mam_core.work.voice import Voice
from mam_core.work.witnesses import ATTEMPTS, PROMPT, tidy_attempt


class Attempt:
    """Run it once."""

    def __init__(
        self,
        registry: Registry,
        job: Job,
        profile: Profile,
        terms: Terms,
        screen: Screen,
        is_stopping: Callable[[], bool],
    ) -> None:
        self.could_not_begin = False  #: for want of something that the job has no part in
        self.counterpart: Counterpart | None = None  #: told when its process runs
        self._registry = registry
        self._job = job
        self._profile = profile
        self._terms = terms
        self._is_stopping = is_stopping
        self._clock = registry.clock
        self._voice = Voice(registry, job, screen)
        self._hold = Hold(registry, job, terms, self._voice, is_stopping)
        self._dialogue = dialogue_for(profile, registry.clock.now)
        self._tending = Tending(
            registry, profile, self._hold, self._voice, screen, terms, self._dialogue
        )
        self._mark: AttemptMark | None = None
        self._until = FOREVER  #: of what was started last

    def run(self) -> Job | None:
        """The job as it stands afterwards; None when it was no longer ours to change."""
        try:
            return self._tried()
        except (TransitionRefused, JobNotFound) as problem:
            # Somebody else has it now, or it is gone: what it says is not ours to say.
            self._voice.mention(problem.message)
            return None

    def _tried(self) -> Job | None:
        try:
            with self._opened_place() as folder:
                return self._run(folder)
        except (TransitionRefused, JobNotFound):
            raise
        except InvalidField as problem:  # what it asks for cannot be given to its agent
            return self._end(Decision(Status.ERROR, Reason.OTHER, problem.message), {})
        except (OSError, MamError) as problem:
            # A full disk, no more processes: whatever it is, it would meet every other job, too.
            self.could_not_begin = True
            return self._give_back(_words(problem))

    def _opened_place(self) -> Folder:
        """The folder of this attempt, step by step: a link on the way leads nobody elsewhere."""
        with (
            Folder.open(self._registry.store.audit.path, create=True) as log,
            log.subfolder(self._job.job_id, create=True) as history,
            history.subfolder(ATTEMPTS, create=True) as attempts,
        ):
            self._tidy_earlier(attempts)
            return attempts.subfolder(str(self._job.attempt), create=True)

    def _tidy_earlier(self, attempts: Folder) -> None:
        """Nobody may have seen them end: the sweep of another host, or a person's override."""
        for name in attempts.names():
            if name.isdecimal() and int(name) < self._job.attempt:
                with suppress(OSError, StoreError), attempts.subfolder(name) as folder:
                    tidy_attempt(folder)

    # -- the walk --------------------------------------------------------------------------

    def _run(self, folder: Folder) -> Job | None:
        job = self._relocated(self._job)
        workdir = os.path.abspath(job.workdir or ".")
        environ = {
            **environment(job, self._terms.registry_path, store_url=self._registry.store.url),
            **(self.counterpart.environ if self.counterpart else {}),
            **self._profile.env,
        }
        if trouble := self._trouble_before(workdir, environ):
            return self._end(Decision(Status.ERROR, Reason.NOT_FOUND, trouble), {})
        if self._dialogue is not None:
            self._dialogue.begin(job.prompt)
        self._hold.confirm()  # git may take its time
        before = git_state(workdir, f"{job.job_id}/{job.attempt}/start")
        folder.write(PROMPT, job.prompt.encode("utf-8", "surrogatepass"))
        try:
            command = command_for(
                self._profile,
                prompt_path=os.path.join(folder.path, PROMPT),
                model=job.model,
                resume_session=job.resume,
            )
            orders = Orders(
                command.argv,
                workdir,
                environ,
                new_token(),
                stdin=command.stdin_path if self._dialogue is None else None,
                grace_sec=self._terms.grace_sec,
                **bounds_of(job).to_orders(),
                label=f"job {job.job_id} attempt {job.attempt}",
            )
            self._tend(orders, folder, before)
        finally:
            folder.remove(PROMPT)
        return self._conclude(folder, workdir, before)

    def _relocated(self, job: Job) -> Job:
        """As it is run here: a worker with a worktree of its own works in the same place there."""
        relocation = self._terms.relocation
        if relocation is None or job.workdir is None:
            return job
        return job.evolve(workdir=relocation.place(os.path.realpath(job.workdir)))

    def _trouble_before(self, workdir: str, environ: Mapping[str, str]) -> str:
        """What is not there and must be before anything is started."""
        if not os.path.isdir(workdir):
            return f"its folder is not there: {workdir}"
        return trouble_with(self._profile, environ, workdir)

    def _tend(self, orders: Orders, folder: Folder, git: GitState | None) -> None:
        way = Way.PIPES if self._dialogue is None else Way.DIALOGUE
        running = self._start(orders, folder, way)
        try:
            self._note_start(running.supervisor, orders, folder, git)
            with OutputLog(folder, cap_bytes=self._terms.output_max) as log:
                self._tending.tend(running, log)
        finally:
            running.close()

    def _note_start(
        self, supervisor: int, orders: Orders, folder: Folder, git: GitState | None
    ) -> None:
        given = dict(self.counterpart.environ) if self.counterpart else None
        self._voice.note(
            AuditEvent.ATTEMPT_STARTED,
            supervisor=supervisor,
            workdir=orders.cwd,
            git=git.to_dict() if git else None,
            memory=words(self._job.memory_cap),
            given=given,
        )
        if self.counterpart is not None:
            self.counterpart.started(supervisor, os.path.join(folder.path, OUTPUT))

    def _start(self, orders: Orders, folder: Folder, way: Way = Way.PIPES) -> Running:
        def remember(supervisor: ProcessMark) -> Deadlines:
            return self._remember(
                AttemptMark.of(orders.token, supervisor, self._registry.node), folder
            )

        return self._bound(Running.start(orders, self._clock, remember, way))

    def _remember(self, mark: AttemptMark, folder: Folder) -> Deadlines:
        mark.write(folder)
        self._mark = mark
        return self._confirmed()

    def _confirmed(self) -> Deadlines:
        """Until when what is started now may run: known only once the job is surely still ours."""
        self._hold.confirm()
        self._until = self._hold.deadlines
        return self._until

    def _bound(self, running: Running) -> Running:
        self._hold.bind(running, self._until)
        return running

    # -- the end ---------------------------------------------------------------------------

    def _conclude(self, folder: Folder, workdir: str, before: GitState | None) -> Job | None:
        hold, ended = self._hold, self._tending.ended
        hold.heed(ended)
        outcome = self._tending.outcome()
        facts = Facts(ended, outcome, hold.cause, hold.words, self._tending.not_started)
        if wants_checks(facts) and (hold.job.expected_artifacts or hold.job.validate):
            facts = self._checked(facts, folder)
        is_gone = facts.ended.tree_empty or self._bury()
        after = git_state(workdir, f"{self._job.job_id}/{self._job.attempt}/end")
        left = left_words(before, after)
        told = {
            "exit_code": ended.code,
            "signal": ended.signal,
            "elapsed_sec": round(self._tending.elapsed_sec, 1),
            "cpu_sec": round(ended.cpu_sec, 2),
            "peak_memory": ended.peak,
            "tokens": outcome.tokens._asdict() if outcome.tokens.total else None,
            "cost": outcome.cost,
        }
        known = {name: value for name, value in told.items() if value is not None}
        self._voice.note(
            AuditEvent.ATTEMPT_ENDED,
            **known,
            why=str(ended.why),
            killed=ended.killed,
            session_id=outcome.session_id,
            git=after.to_dict() if after else None,
            left=left or None,
            checks=facts.verdict.to_list() if facts.verdict else None,
        )
        if not is_gone or not hold.is_ours:
            return None
        now, back_off = self._clock.now(), self._terms.back_off
        decision = decide(hold.job, facts, now, back_off=back_off)._replace(left_behind=left)
        if decision.status is Status.CANCELLED and left:
            decision = decision._replace(detail=f"{decision.detail}; {left}")
        return self._end(decision, known)

    def _checked(self, facts: Facts, folder: Folder) -> Facts:
        over = Sign(AgentState.ENDED, Channel.PROCESS, "exit", self._clock.now())
        self._voice.tell(Told(EventName.STATE, "", over.to_dict()))
        checks = Checks(
            self._hold,
            self._clock,
            lambda orders: self._start(orders, folder),
            self._terms.grace_sec,
        )
        verdict = checks.judge(
            self._relocated(self._hold.job),
            self._terms.registry_path,
            self._registry.store.url,
            strict=self._registry.strict_checks,
        )
        return facts._replace(
            verdict=verdict,
            ended=checks.broken or facts.ended,
            cause=self._hold.cause,
            words=self._hold.words,
        )

    def _bury(self) -> bool:
        """End whatever the supervisor left; False when something is still there, and we cannot
        stay: then the lease runs out, and a sweep goes on with it."""
        mark = self._mark
        while mark is not None and is_gone(mark, node=self._registry.node) is False:
            end_leftovers(mark, self._terms.grace_sec)
            self._hold.keep(self._clock.since_boot())
            if self._hold.is_stopping or not self._hold.is_ours:
                return is_gone(mark, node=self._registry.node) is not False
        return True

    def _give_back(self, why: str) -> Job | None:
        if not self._bury():
            return None
        warn(f"job {self._job.job_id} cannot be run here: {why}")
        return self._end(not_here(self._hold.job, why, self._clock.now()), {})

    def _end(self, decision: Decision, told: Mapping[str, Any]) -> Job | None:
        return self._voice.apply(decision, told, self._is_stopping)


def _words(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.strerror:
        where = f": {problem.filename}" if isinstance(problem.filename, str) else ""
        return f"{problem.strerror.lower()}{where}"
    return str(problem)
