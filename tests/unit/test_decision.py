"""What becomes of a job when an attempt is over: every cause, every end, every outcome."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from mam_core.agents.streams.base import Outcome, Tokens
from mam_core.records import Job, Reason, Status
from mam_core.work import launch
from mam_core.work.decision import (
    BACK_OFF,
    NOT_HERE_SEC,
    QUOTA_BACK_OFF,
    QUOTA_SEC,
    BackOff,
    Cause,
    Decision,
    Facts,
    decide,
    not_here,
    wants_checks,
)
from mam_core.work.reports import Ended, NotStarted, Why
from mam_core.work.validation import Check, Verdict
from tests.support.rows import each_row

NOW = 1_800_000_000.0
ENOENT, EACCES, EAGAIN = 2, 13, 11

DONE = Ended(Why.AGENT_ENDED, code=0)
PASSED = Verdict((Check("a", True, "artifact a is there"),))
MISSING = Verdict((Check("a", False, "artifact a is missing"),))
NOTHING_PROMISED = Verdict(())


def job(**fields: Any) -> Job:
    return Job("abc12345", Status.RUNNING, attempt=1, **fields)


def outcome(reason: Reason | None = None, detail: str = "words", **more: Any) -> Outcome:
    said = Outcome(reason is None, reason, detail, Tokens(), None, None, None, ())
    return said._replace(**more)


def decided(facts: Facts, jitter: Callable[[], float] = lambda: 1.0, **fields: Any) -> Decision:
    return decide(job(**fields), facts, NOW, jitter)


GOOD = outcome(None, "it answered")

ENDS = [
    # by our own cause, whatever else is true
    (Facts(DONE, GOOD, Cause.CANCELLED), Status.CANCELLED, Reason.CANCELLED, False),
    (Facts(DONE, GOOD, Cause.STOPPED), None, Reason.STOPPED, False),
    (Facts(DONE, GOOD, Cause.TIMEOUT, "long"), Status.ERROR, Reason.TIMEOUT, True),
    (Facts(DONE, GOOD, Cause.IDLE_TIMEOUT, "quiet"), Status.ERROR, Reason.IDLE_TIMEOUT, True),
    (Facts(DONE, GOOD, Cause.BUDGET, "dear"), Status.ERROR, Reason.BUDGET, True),
    (Facts(DONE, GOOD, Cause.HOPELESS, "circles"), Status.ERROR, Reason.AGENT, True),
    (Facts(DONE, GOOD, Cause.CUT_OFF, "no answer"), None, Reason.LOST, False),
    (Facts(Ended(Why.LOST), GOOD, Cause.CANCELLED), Status.CANCELLED, Reason.CANCELLED, False),
    # by how its processes ended
    (Facts(Ended(Why.OVER_MEMORY), GOOD), Status.ERROR, Reason.OOM, True),
    (
        Facts(Ended(Why.AGENT_ENDED, signal=signal.SIGKILL, kernel_oom=True), GOOD),
        *(Status.ERROR, Reason.OOM, True),
    ),
    (Facts(Ended(Why.LOST), GOOD), None, Reason.LOST, False),
    (Facts(Ended(Why.SIGNALLED), GOOD), None, Reason.LOST, False),
    (
        Facts(Ended(Why.NOT_STARTED), GOOD, not_started=NotStarted(launch.COMMAND, ENOENT)),
        *(Status.ERROR, Reason.NOT_FOUND, False),
    ),
    (
        Facts(Ended(Why.NOT_STARTED), GOOD, not_started=NotStarted(launch.COMMAND, EACCES)),
        *(Status.ERROR, Reason.EXIT, False),
    ),
    (
        Facts(Ended(Why.NOT_STARTED), GOOD, not_started=NotStarted(launch.PROCESS, EAGAIN)),
        *(None, Reason.OTHER, False),
    ),
    # by what the agent said
    (Facts(DONE, GOOD), Status.COMPLETED, None, False),
    (Facts(DONE, outcome(Reason.EXIT)), Status.ERROR, Reason.EXIT, True),
    (Facts(DONE, outcome(Reason.SIGNAL)), Status.ERROR, Reason.SIGNAL, True),
    (Facts(DONE, outcome(Reason.AGENT)), Status.ERROR, Reason.AGENT, True),
    (Facts(DONE, outcome(Reason.NOT_FOUND)), Status.ERROR, Reason.NOT_FOUND, True),
    (Facts(DONE, outcome(Reason.REFUSED)), Status.ERROR, Reason.REFUSED, True),
    (Facts(DONE, outcome(Reason.QUOTA)), None, Reason.QUOTA, False),
    # and by its checks
    (Facts(DONE, GOOD, verdict=PASSED), Status.COMPLETED, None, False),
    (Facts(DONE, GOOD, verdict=MISSING), Status.ERROR, Reason.VALIDATION, True),
    (Facts(DONE, outcome(Reason.REFUSED), verdict=PASSED), Status.COMPLETED, None, False),
    (
        Facts(DONE, outcome(Reason.REFUSED), verdict=MISSING),
        *(Status.ERROR, Reason.VALIDATION, True),
    ),
    (
        Facts(DONE, outcome(Reason.REFUSED), verdict=NOTHING_PROMISED),
        *(Status.ERROR, Reason.REFUSED, True),
    ),
]


class TestTheTable:
    @each_row(("facts", "status", "reason", "failed"), ENDS)
    def test_every_end_has_one_meaning(
        self, facts: Facts, status: Status | None, reason: Reason | None, failed: bool
    ) -> None:
        decision = decided(facts)
        assert (decision.status, decision.reason, decision.failed) == (status, reason, failed)

    def test_every_cause_is_in_it(self) -> None:
        """TAKEN is none: such a job is not ours to decide."""
        assert {facts.cause for facts, *_ in ENDS} == {None, *Cause} - {Cause.TAKEN}

    def test_who_cancelled_is_said(self) -> None:
        facts = Facts(DONE, GOOD, Cause.CANCELLED)
        assert decided(facts, cancel_requested_by="ann").detail == "cancelled by ann"

    def test_why_is_said_too_where_it_is_known(self) -> None:
        decision = decided(
            Facts(DONE, GOOD, Cause.CANCELLED),
            cancel_requested_at="2026-06-19T09:30:00Z",
            cancel_requested_by="bea",
            detail="wrong branch",
        )
        assert decision.detail == "cancelled by bea: wrong branch"

    def test_words_of_a_cause_are_kept(self) -> None:
        assert (
            decided(Facts(DONE, GOOD, Cause.TIMEOUT, "it ran for 5 s")).detail == "it ran for 5 s"
        )


class TestChecks:
    @each_row(
        ("facts", "wanted"),
        [
            (Facts(DONE, GOOD), True),
            (Facts(DONE, outcome(Reason.REFUSED)), True),
            (Facts(DONE, outcome(Reason.EXIT)), False),
            (Facts(DONE, GOOD, Cause.CANCELLED), False),
            (Facts(Ended(Why.LOST), GOOD), False),
            (Facts(Ended(Why.OVER_MEMORY), GOOD), False),
            (Facts(DONE, GOOD, not_started=NotStarted(launch.COMMAND, ENOENT)), False),
        ],
    )
    def test_are_made_only_where_success_is_claimed(self, facts: Facts, wanted: bool) -> None:
        assert wants_checks(facts) is wanted


class TestRetries:
    FAILED = Facts(DONE, outcome(Reason.EXIT))

    def test_a_job_with_one_attempt_ends(self) -> None:
        assert decided(self.FAILED).status is Status.ERROR

    def test_budget_is_used_up_and_no_more(self) -> None:
        """Decision 17: `failures` counts, not `attempt`."""
        statuses = [decided(self.FAILED, max_attempts=3, failures=n).status for n in range(4)]
        assert statuses == [None, None, Status.ERROR, Status.ERROR]

    def test_each_pause_is_longer_up_to_a_bound(self) -> None:
        """N31: no storm, however many attempts are allowed."""
        pauses = [
            (decided(self.FAILED, max_attempts=1000, failures=n).not_before or 0) - NOW
            for n in range(40)
        ]
        assert pauses[0] == BACK_OFF.first_sec
        assert pauses == sorted(pauses)
        assert pauses[-1] == BACK_OFF.most_sec

    def test_the_settings_say_how_long(self) -> None:
        def pauses(back_off: BackOff) -> list[float]:
            kept = [job(max_attempts=1000, failures=n) for n in (0, 1, 2, 900)]
            ends = [decide(one, self.FAILED, NOW, lambda: 1.0, back_off) for one in kept]
            return [(end.not_before or 0) - NOW for end in ends]

        assert pauses(BackOff(2.0, 3.0, 15.0)) == [2.0, 6.0, 15.0, 15.0]
        assert pauses(BackOff(30.0, 1.0, 5.0)) == [5.0] * 4

    def test_no_two_come_back_at_the_same_moment(self) -> None:
        early = decided(self.FAILED, lambda: 0.0, max_attempts=2).not_before
        late = decided(self.FAILED, lambda: 1.0, max_attempts=2).not_before
        first = BACK_OFF.first_sec
        assert (early, late) == (NOW + first / 2, NOW + first)

    @pytest.mark.parametrize(
        "facts",
        [
            Facts(Ended(Why.NOT_STARTED), GOOD, not_started=NotStarted(launch.COMMAND, ENOENT)),
            Facts(DONE, GOOD, Cause.CANCELLED),
        ],
    )
    def test_what_would_end_the_same_way_is_not_tried_again(self, facts: Facts) -> None:
        assert decided(facts, max_attempts=5).status is not None

    @pytest.mark.parametrize(
        "facts",
        [
            Facts(DONE, outcome(Reason.QUOTA)),
            Facts(Ended(Why.LOST), GOOD),
            Facts(DONE, GOOD, Cause.STOPPED),
        ],
    )
    def test_what_is_nobodys_fault_costs_no_budget(self, facts: Facts) -> None:
        decision = decided(facts, max_attempts=1, failures=0)
        assert (decision.status, decision.failed) == (None, False)


class TestQuota:
    def test_the_agent_waits_until_the_limit_ends(self) -> None:
        decision = decided(Facts(DONE, outcome(Reason.QUOTA, quota_until=NOW + 60)))
        assert (decision.not_before, decision.quota_until) == (NOW + 60, NOW + 60)

    def test_one_without_an_end_is_waited_for_a_while(self) -> None:
        decision = decided(Facts(DONE, outcome(Reason.QUOTA)))
        assert decision.quota_until == NOW + QUOTA_SEC

    @pytest.mark.parametrize("said", [NOW - 3600, NOW - 1, NOW, NOW + 1])
    def test_a_reset_that_has_passed_or_is_about_to_is_waited_for_all_the_same(
        self, said: float
    ) -> None:
        """N31: it counts as no failure, so only its pause keeps it from going round."""
        waits = []
        for hits in range(40):
            decision = decided(
                Facts(DONE, outcome(Reason.QUOTA, quota_until=said)), quota_hits=hits
            )
            assert decision.not_before == decision.quota_until
            waits.append((decision.not_before or 0) - NOW)
        assert waits[0] == QUOTA_BACK_OFF.first_sec
        assert waits == sorted(waits)
        assert waits[-1] == QUOTA_BACK_OFF.most_sec == QUOTA_SEC

    def test_settings_for_retries_make_it_no_faster(self) -> None:
        facts = Facts(DONE, outcome(Reason.QUOTA, quota_until=NOW - 1))
        end = decide(job(), facts, NOW, lambda: 1.0, BackOff(0.01, 1.0, 0.01))
        assert end.not_before == NOW + QUOTA_BACK_OFF.first_sec

    def test_an_end_far_ahead_is_believed_however_often_it_was_met(self) -> None:
        facts = Facts(DONE, outcome(Reason.QUOTA, quota_until=NOW + 7200))
        assert decided(facts, quota_hits=9).not_before == NOW + 7200

    def test_a_cancelled_job_is_not_kept_for_it(self) -> None:
        facts = Facts(DONE, outcome(Reason.QUOTA), Cause.CANCELLED)
        assert decided(facts).status is Status.CANCELLED


class TestNotHere:
    def test_a_host_that_cannot_begin_gives_the_job_back_for_later(self) -> None:
        decision = not_here(job(), "no space left on device", NOW)
        assert (decision.status, decision.failed) == (None, False)
        assert decision.not_before == NOW + NOT_HERE_SEC
        assert "no space left" in decision.detail

    def test_a_wish_to_cancel_is_heard_all_the_same(self) -> None:
        wanted = job(cancel_requested_at="2026-06-19T09:30:00Z", cancel_requested_by="ann")
        assert not_here(wanted, "x", NOW).status is Status.CANCELLED
