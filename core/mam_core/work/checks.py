"""The checks of a job that seems to be done, owned as its agent was.

A job's own check is a program like any other: it runs under a supervisor, so
that nothing of it outlives a worker that is killed, and it is ended when
somebody cancels the job. The lease is renewed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mam_core.clock import Clock
from mam_core.pace import paced
from mam_core.records import Job
from mam_core.work.bounded_process import TAIL_BYTES
from mam_core.work.caps import bounds_of
from mam_core.work.decision import Cause
from mam_core.work.hold import Hold
from mam_core.work.orders import Orders, new_token
from mam_core.work.reports import Ended, NotStarted, Why
from mam_core.work.running import Running
from mam_core.work.validate_command import SHELL, sentence
from mam_core.work.validation import Check, Verdict, judge

_LOOK_SEC = 0.5
#: A worker that is asked to end lets a check finish that takes no longer: the agent's work is
#: done, and would be done again for nothing.
_LAST_CHECK_SEC = 20.0


class Checks:
    """Of one attempt."""

    def __init__(
        self, hold: Hold, clock: Clock, start: Callable[[Orders], Running], grace_sec: float
    ) -> None:
        self._hold = hold
        self._clock = clock
        self._start = start
        self._grace_sec = grace_sec
        self.broken: Ended | None = None  #: a check whose supervisor was ended by somebody else
        self._stop_at: float | None = None

    def judge(
        self, job: Job, registry_path: str, store_url: str, *, strict: bool
    ) -> Verdict | None:
        """None when it was broken off: `broken` or the hold says why."""
        verdict = judge(
            job, registry_path=registry_path, store_url=store_url, run=self._run, strict=strict
        )
        return verdict if self._hold.cause is None and self.broken is None else None

    def _run(
        self, line: str, workdir: str, environ: Mapping[str, str], timeout_sec: float
    ) -> Check:
        orders = Orders(
            (SHELL, "-c", line),
            workdir,
            environ,
            new_token(),
            grace_sec=self._grace_sec,
            **bounds_of(self._hold.job).to_orders(),
            label=f"check of job {self._hold.job.job_id} attempt {self._hold.job.attempt}",
        )
        running = self._start(orders)
        try:
            return self._listen(running, line, timeout_sec)
        finally:
            running.close()

    def _listen(self, running: Running, line: str, timeout_sec: float) -> Check:
        tail = b""
        deadline = self._clock.since_boot() + timeout_sec
        is_late = False
        not_started: NotStarted | None = None
        while not running.is_over:
            now = self._clock.since_boot()
            heard = running.turn(min(paced(_LOOK_SEC), self._hold.next_look(now), deadline - now))
            for printed in heard.output:
                tail = (tail + printed.data)[-TAIL_BYTES:]
            for report in heard.reports:
                not_started = report if isinstance(report, NotStarted) else not_started
            now = self._clock.since_boot()
            self._heed_wishes(now)
            is_late = is_late or (now > deadline and running.ended is None)
            if self._hold.cause is not None or is_late:
                running.stop(self._grace_sec)
        said = tail.decode("utf-8", "replace")
        ended = running.ended or Ended(Why.LOST)
        is_late = is_late or ended.why is Why.TIMEOUT
        if ended.why is Why.LEASE_OVER:
            self._hold.heed(ended)
        if not_started is not None:
            return Check(line, False, f"the validate command cannot be run: {not_started.words}")
        if ended.was_oom:
            return Check(line, False, "the validate command ran out of memory", said)
        if ended.why in (Why.LOST, Why.SIGNALLED):
            self.broken = ended
        code = ended.code if ended.signal is None else -ended.signal
        return sentence(line, None if is_late else code, said, timeout_sec)

    def _heed_wishes(self, now: float) -> None:
        self._hold.keep(now)
        if self._hold.is_stopping:
            self._stop_at = self._stop_at or now + _LAST_CHECK_SEC
            if now > self._stop_at:
                self._hold.stop(Cause.STOPPED)
