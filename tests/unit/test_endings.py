"""When a followed job is over: records, last words and clocks, one after the other."""

from __future__ import annotations

from typing import Any

from mam_core.events.event import Event
from mam_core.events.items import EventHeard, JobChanged, Notice, NoticeKind, Origin
from mam_core.operations.ending import How, Limits
from mam_core.operations.endings import BELIEF_SEC, GONE_SEC, SETTLE_SEC, Endings
from mam_core.record_parts import Lease
from mam_core.records import Job, Reason, Status
from mam_core.summaries import Unreadable

NEVER = Limits(by_record=False)
BEGAN = 1000.0


def job(status: Status = Status.RUNNING, job_id: str = "a", **fields: Any) -> Job:
    return Job(job_id, status, **{"attempt": 1, **fields})


def changed(
    now: float, what: Job | Unreadable | None, job_id: str = "a", origin: Origin = Origin.DIRECTORY
) -> JobChanged:
    return JobChanged(job_id, what, origin, now)


def heard(now: float, seq: int, event: str, job_id: str = "a", **more: Any) -> EventHeard:
    attempt = more.pop("attempt", 1)
    content: dict[str, Any] = {"attempt": attempt} if attempt is not None else {}
    told = Event(job_id, 1 if attempt is None else attempt, seq, event, "1970-01-01T00:00:00Z")
    return EventHeard(told, content, more.pop("origin", Origin.BROKER), now, more.pop("missing", 0))


def notice(now: float, kind: NoticeKind, job_id: str | None = None) -> Notice:
    return Notice(kind, job_id, "words", now)


def following(*jobs: Job, limits: Limits = NEVER, **more: Any) -> Endings:
    return Endings(jobs or (job(),), limits, BEGAN, **more)


def over(endings: Endings, now: float) -> list[tuple[str, Status | None, How]]:
    return [(one.job_id, one.status, one.how) for one in endings.due(now)]


class TestTheRecord:
    def test_that_has_ended_is_the_end_once_its_events_have_come(self) -> None:
        endings = following()
        endings.hear(changed(1001, job(Status.COMPLETED, last_seq=2)))
        assert over(endings, 1001.5) == []
        endings.hear(heard(1002, 1, "started"))
        assert over(endings, 1002) == []
        endings.hear(heard(1002, 2, "completed"))
        assert over(endings, 1002) == [("a", Status.COMPLETED, How.EVENT)]
        assert endings.left == 0

    def test_is_believed_though_an_event_never_comes(self) -> None:
        endings = following()
        endings.hear(changed(1001, job(Status.COMPLETED, last_seq=2)))
        endings.hear(heard(1004, 1, "started"))
        assert over(endings, 1004 + SETTLE_SEC) == []
        assert over(endings, 1004.1 + SETTLE_SEC) == [("a", Status.COMPLETED, How.REGISTRY)]

    def test_that_has_ended_before_us_needs_no_waiting(self) -> None:
        endings = following(job(Status.ERROR, last_seq=7), job(job_id="b"))
        assert [one.how for one in endings.endings.values()] == [How.ALREADY]
        assert (endings.left, "a" in endings, "b" in endings, "c" in endings) == (1, True, True, 0)

    def test_weighs_more_than_the_word(self) -> None:
        endings = following()
        endings.hear(heard(1001, 1, "completed"))
        endings.hear(changed(1001, job(Status.ERROR, last_seq=1, reason=Reason.VALIDATION)))
        assert over(endings, 1001) == [("a", Status.ERROR, How.REGISTRY)]
        assert endings.endings["a"].words == "job a ended: error (validation)"

    def test_of_a_job_without_events_ends_it_at_once(self) -> None:
        endings = following(hears=False)
        endings.hear(changed(1001, job(Status.COMPLETED, last_seq=9)))
        assert over(endings, 1001) == [("a", Status.COMPLETED, How.REGISTRY)]

    def test_that_cannot_be_read_changes_nothing(self) -> None:
        endings = following()
        endings.hear(changed(1001, Unreadable("a", "it is empty")))
        assert over(endings, 1100) == []


class TestTheLastWord:
    def test_of_a_job_that_nobody_holds_is_believed_after_a_moment(self) -> None:
        for attempt in (1, None):
            endings = following()
            endings.hear(heard(1001, 1, "error", attempt=attempt))
            assert over(endings, 1001) == []
            assert over(endings, 1001.1 + BELIEF_SEC) == [("a", Status.ERROR, How.WORD)]

    def test_of_a_leased_job_is_a_report(self) -> None:
        endings = following(job(lease=Lease("worker", 30)))
        endings.hear(heard(1001, 1, "completed"))
        assert over(endings, 1100) == []

    def test_of_an_old_attempt_is_history(self) -> None:
        endings = following(job(attempt=2))
        endings.hear(heard(1001, 1, "error", attempt=1))
        assert over(endings, 1100) == []
        endings.hear(heard(1101, 2, "completed", attempt=None))  # the original's, who knows one
        assert over(endings, 1110) == [("a", Status.COMPLETED, How.WORD)]

    def test_is_taken_back_by_a_requeue(self) -> None:
        """A worker reported the error and will try again: the job goes on."""
        endings = following()
        endings.hear(heard(1001, 1, "error"))
        endings.hear(changed(1001, job(Status.PENDING, last_seq=1, failures=1)))
        assert over(endings, 1100) == []
        endings.hear(changed(1101, job(attempt=2, last_seq=1)))
        endings.hear(heard(1102, 2, "completed", attempt=2))
        endings.hear(changed(1102, job(Status.COMPLETED, attempt=2, last_seq=2)))
        assert over(endings, 1102) == [("a", Status.COMPLETED, How.EVENT)]

    def test_counts_once(self) -> None:
        """G14"""
        endings = following()
        endings.hear(heard(1001, 1, "completed"))
        endings.hear(heard(1001, 2, "error"))
        assert over(endings, 1010) == [("a", Status.COMPLETED, How.WORD)]
        endings.hear(heard(1011, 3, "error"))
        assert over(endings, 1020) == []

    def test_that_comes_before_the_claim_is_told_still_counts(self) -> None:
        """Events are told before the record that they changed, and that one jumps two steps."""
        endings = following(job(Status.PENDING, attempt=0))
        endings.hear(heard(1001, 1, "started"))
        endings.hear(heard(1001, 2, "completed"))
        endings.hear(changed(1001, job(Status.COMPLETED, last_seq=2)))
        assert over(endings, 1001) == [("a", Status.COMPLETED, How.EVENT)]


class TestTheClocks:
    def test_run_from_our_beginning_and_from_the_last_event(self) -> None:
        """G16, I4"""
        endings = following(job(timeout_sec=60, idle_timeout_sec=10), limits=Limits())
        assert over(endings, BEGAN + 9.9) == []
        endings.hear(heard(BEGAN + 9.9, 1, "progress"))
        assert over(endings, BEGAN + 19.8) == []
        assert over(endings, BEGAN + 19.9) == [("a", None, How.IDLE)]
        endings = following(job(timeout_sec=60, idle_timeout_sec=100), limits=Limits())
        assert over(endings, BEGAN + 60) == [("a", None, How.TIMEOUT)]

    def test_obey_the_person_before_the_record(self) -> None:
        endings = following(job(timeout_sec=1, idle_timeout_sec=1), limits=Limits(50, 40))
        assert over(endings, BEGAN + 39) == []
        assert over(endings, BEGAN + 40) == [("a", None, How.IDLE)]

    def test_of_idling_stand_still_while_a_person_is_asked(self) -> None:
        """Decision 23"""
        endings = following(limits=Limits(idle=10))
        endings.hear(heard(BEGAN + 1, 1, "permission_required"))
        assert over(endings, BEGAN + 100) == []
        endings.hear(heard(BEGAN + 101, 2, "progress"))
        assert over(endings, BEGAN + 110) == []
        assert over(endings, BEGAN + 111) == [("a", None, How.IDLE)]

    def test_of_idling_are_the_workers_where_one_holds_the_job(self) -> None:
        held = job(lease=Lease("worker", 30), idle_timeout_sec=1)
        assert over(following(held, limits=Limits()), BEGAN + 100) == []
        assert over(following(held, limits=Limits(idle=5)), BEGAN + 100) == [("a", None, How.IDLE)]

    def test_take_a_claim_for_a_sign_of_life(self) -> None:
        endings = following(job(Status.PENDING, attempt=0), limits=Limits(idle=10))
        endings.hear(changed(BEGAN + 8, job()))
        assert over(endings, BEGAN + 17) == []
        assert over(endings, BEGAN + 18) == [("a", None, How.IDLE)]

    def test_of_a_job_that_has_just_ended_do_not_hurry_its_events(self) -> None:
        endings = following(limits=Limits(timeout=10))
        endings.hear(changed(BEGAN + 9, job(Status.COMPLETED, last_seq=1)))
        assert over(endings, BEGAN + 11) == []
        endings.hear(heard(BEGAN + 12, 1, "completed"))
        assert over(endings, BEGAN + 12) == [("a", Status.COMPLETED, How.EVENT)]


class TestARecordThatIsGone:
    def test_is_not_the_end_while_others_are_followed(self) -> None:
        """N21"""
        endings = following(job(), job(job_id="b"))
        endings.hear(changed(1001, None))
        assert over(endings, 1100) == []
        endings.hear(changed(1101, job(Status.COMPLETED, job_id="b"), "b"))
        assert over(endings, 1101) == [("b", Status.COMPLETED, How.REGISTRY), ("a", None, How.GONE)]

    def test_may_come_back(self) -> None:
        endings = following()
        endings.hear(changed(1001, None))
        assert over(endings, 1001 + GONE_SEC) == []
        endings.hear(changed(1001.5, job()))
        assert over(endings, 1100) == []
        endings.hear(changed(1101, None))
        assert over(endings, 1101.1 + GONE_SEC) == [("a", None, How.GONE)]

    def test_ended_as_the_history_says(self) -> None:
        endings = following(logged=lambda _: Status.COMPLETED)
        endings.hear(changed(1001, None))
        assert over(endings, 1001) == [("a", Status.COMPLETED, How.REGISTRY)]

    def test_had_ended_if_it_said_so_before_it_was_cleaned_away(self) -> None:
        endings = following()
        endings.hear(changed(1001, job(Status.COMPLETED, last_seq=3)))
        assert over(endings, 1001) == []
        endings.hear(changed(1002, None))
        assert over(endings, 1002) == [("a", Status.COMPLETED, How.REGISTRY)]

    def test_is_not_gone_while_there_is_no_folder(self) -> None:
        endings = following()
        endings.hear(notice(1001, NoticeKind.DIRECTORY_LOST))
        endings.hear(changed(1001, None))
        assert over(endings, 2000) == []
        endings.hear(notice(2000, NoticeKind.DIRECTORY_BACK))
        assert over(endings, 2000 + GONE_SEC) == []
        endings.hear(changed(2001, job(Status.COMPLETED)))
        assert over(endings, 2001) == [("a", Status.COMPLETED, How.REGISTRY)]


def test_what_came_in_is_counted() -> None:
    endings = following()
    endings.hear(heard(1001, 1, "started"))
    endings.hear(heard(1001, 3, "progress", origin=Origin.REGISTRY, missing=1))
    for kind in (NoticeKind.REPEAT, NoticeKind.DROPPED, NoticeKind.LATE, NoticeKind.REPEAT):
        endings.hear(notice(1001, kind, "a"))
    endings.hear(notice(1001, NoticeKind.DROPPED, "somebody else"))
    endings.hear(changed(1002, job(Status.COMPLETED, last_seq=3)))
    endings.due(1002)
    assert endings.tallies["a"] == (2, 1, 1, 2, 1, 1)
    assert endings.tallies["a"].is_odd
