"""Messages to agents (H5), which say, answer and broadcast stand on, over every store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mam_core.errors import InvalidField, JobNotFound, StaleAttempt, TransitionRefused
from mam_core.messages import (
    KEPT_CHARS,
    KEPT_FINISHED,
    MAX_TEXT_BYTES,
    MAX_UNFINISHED,
    MessageKind,
    Stage,
)
from mam_core.messaging import NoSuchMessage
from mam_core.records import Job, Reason, Status
from mam_core.registry import Registry
from tests.contract.conftest import MakeRegistry
from tests.support.jobs import WORKER, add, in_status, running
from tests.support.rows import each_row

SAY, ANSWER = MessageKind.SAY, MessageKind.ANSWER


@pytest.fixture
def job(registry: Registry) -> Job:
    return running(registry, lease=WORKER)


def history(registry: Registry, job_id: str) -> list[dict[str, Any]]:
    lines = registry.store.audit.events(job_id)
    return [line for line in lines if str(line["event"]).startswith("message_")]


def stages(registry: Registry, job_id: str) -> dict[int, Stage]:
    return {message.n: message.stage for message in registry.get(job_id).messages}


class TestSending:
    def test_a_message_stands_in_the_record_and_in_history(
        self, make_registry: MakeRegistry
    ) -> None:
        registry = make_registry(actor="ben")
        job = running(registry, lease=WORKER)
        sent = registry.send(job.job_id, ANSWER, "y", to="question-1")
        (kept,) = make_registry().get(job.job_id).messages
        assert kept == sent, "another handle reads the same"
        assert (kept.n, kept.kind, kept.text, kept.by) == (1, ANSWER, "y", "ben")
        assert (kept.attempt, kept.stage, kept.to) == (1, Stage.SENT, "question-1")
        (line,) = history(registry, job.job_id)
        assert line["event"] == "message_sent"
        assert (line["message"], line["kind"], line["text"], line["by"]) == (
            1,
            "answer",
            "y",
            "ben",
        )
        assert line["to"] == "question-1"

    def test_a_record_without_messages_is_valid(self, registry: Registry, job: Job) -> None:
        """Decision 5."""
        data = job.to_dict()
        del data["messages"]
        assert Job.from_dict(data) == job

    def test_what_a_newer_tool_writes_into_a_message_survives(
        self, registry: Registry, job: Job
    ) -> None:
        registry.send(job.job_id, SAY, "go on")
        data = registry.get(job.job_id).to_dict()
        data["messages"][0]["colour"] = "blue"
        with registry.store.transaction() as tx:
            tx.put(Job.from_dict(data), None)
        registry.receipt(job.job_id, 1, Stage.TYPED, attempt=1)
        message = registry.get(job.job_id).to_dict()["messages"][0]
        assert (message["colour"], message["stage"]) == ("blue", "typed")

    @each_row("status", [s for s in Status if s is not Status.RUNNING])
    def test_only_an_agent_at_work_can_be_spoken_to(
        self, registry: Registry, status: Status
    ) -> None:
        job_id = in_status(registry, status) if status is not Status.PENDING else add(registry)
        with pytest.raises(TransitionRefused, match=f"is {status}: only an agent at work"):
            registry.send(job_id, SAY, "hello")
        assert registry.get(job_id).messages == ()

    def test_a_job_of_a_script_has_nobody_to_deliver_it(self, registry: Registry) -> None:
        """Decision 14: no lease, no worker."""
        job = running(registry)
        with pytest.raises(TransitionRefused, match="there is nobody to deliver it"):
            registry.send(job.job_id, SAY, "hello")

    def test_a_job_that_is_being_cancelled_is_past_talking(
        self, registry: Registry, job: Job
    ) -> None:
        registry.request_cancel(job.job_id)
        with pytest.raises(TransitionRefused, match="is being cancelled"):
            registry.send(job.job_id, SAY, "hello")

    def test_an_unknown_job_is_said_to_be_unknown(self, registry: Registry) -> None:
        with pytest.raises(JobNotFound):
            registry.send("nosuchjob", SAY, "hello")

    @each_row("text", ["", " \n", "\x1b[31m\x00"])
    def test_nothing_is_not_sent(self, registry: Registry, job: Job, text: str) -> None:
        with pytest.raises(InvalidField, match="there is no text"):
            registry.send(job.job_id, SAY, text)

    def test_a_megabyte_is_refused_with_its_size(self, registry: Registry, job: Job) -> None:
        with pytest.raises(InvalidField, match="1,048,576 bytes"):
            registry.send(job.job_id, SAY, "x" * 1024 * 1024)
        with pytest.raises(InvalidField, match="too long"):
            registry.send(job.job_id, SAY, "별" * (MAX_TEXT_BYTES // 3 + 1))
        assert registry.get(job.job_id).messages == ()

    def test_controls_do_not_even_reach_the_record(self, registry: Registry, job: Job) -> None:
        registry.send(job.job_id, SAY, "one\x1b[201~\rtwo\x07\tthree")
        assert registry.get(job.job_id).messages[0].text == "one\ntwo\tthree"

    def test_an_interrupt_needs_no_words(self, registry: Registry, job: Job) -> None:
        assert registry.send(job.job_id, MessageKind.INTERRUPT).text == ""

    def test_only_a_few_wait_at_once(self, registry: Registry, job: Job) -> None:
        for n in range(MAX_UNFINISHED):
            registry.send(job.job_id, SAY, f"number {n}")
        with pytest.raises(TransitionRefused, match="still on their way"):
            registry.send(job.job_id, SAY, "one more")
        registry.receipt(job.job_id, 1, Stage.ACCEPTED, attempt=1)
        assert registry.send(job.job_id, SAY, "one more").n == MAX_UNFINISHED + 1

    def test_a_secret_of_the_job_is_not_kept_in_history(self, registry: Registry) -> None:
        """Decision 10."""
        job = running(registry, lease=WORKER, auth_token="a-very-secret-token")
        registry.send(job.job_id, SAY, "use a-very-secret-token")
        (line,) = history(registry, job.job_id)
        assert line["text"] == "use [redacted]"


class TestReceipts:
    def test_each_stage_is_a_fact_of_its_own(self, registry: Registry, job: Job) -> None:
        registry.send(job.job_id, SAY, "go on")
        for stage in (Stage.TYPED, Stage.SUBMITTED):
            registry.receipt(job.job_id, 1, stage, attempt=1)
            assert stages(registry, job.job_id) == {1: stage}
        registry.receipt(job.job_id, 1, Stage.ACCEPTED, attempt=1, words="a turn began")
        (message,) = registry.get(job.job_id).messages
        assert (message.stage, message.words) == (Stage.ACCEPTED, "a turn began")
        told = [line.get("stage", "sent") for line in history(registry, job.job_id)]
        assert told == ["sent", "typed", "submitted", "accepted"]

    @pytest.mark.parametrize("late", [Stage.TYPED, Stage.ACCEPTED, Stage.UNCONFIRMED])
    def test_what_is_finished_stays_as_it_is(
        self, registry: Registry, job: Job, late: Stage
    ) -> None:
        registry.send(job.job_id, SAY, "go on")
        refused = registry.receipt(job.job_id, 1, Stage.REFUSED, attempt=1, words="not now")
        assert registry.receipt(job.job_id, 1, late, attempt=1) == refused
        assert len(history(registry, job.job_id)) == 2

    def test_a_message_that_never_was_has_no_receipt(self, registry: Registry, job: Job) -> None:
        with pytest.raises(NoSuchMessage, match="no message 7"):
            registry.receipt(job.job_id, 7, Stage.TYPED, attempt=1)

    def test_a_receipt_of_an_old_attempt_is_refused_and_audited(
        self, registry: Registry, job: Job
    ) -> None:
        """Decision 6: a worker that woke up late cannot say that the new agent took it."""
        registry.requeue(job.job_id, Reason.LOST, attempt=1)
        assert registry.claim("alpha", lease=WORKER) is not None
        registry.send(job.job_id, SAY, "to the second one")
        with pytest.raises(StaleAttempt):
            registry.receipt(job.job_id, 1, Stage.ACCEPTED, attempt=1)
        assert stages(registry, job.job_id) == {1: Stage.SENT}
        assert list(registry.store.audit.events(job.job_id))[-1]["event"] == "refused"

    def test_finished_ones_leave_the_record_and_their_numbers_are_not_used_again(
        self, registry: Registry, job: Job
    ) -> None:
        for n in range(1, 11):
            assert registry.send(job.job_id, SAY, f"{n} " + "x" * 1000).n == n
            registry.receipt(job.job_id, n, Stage.ACCEPTED, attempt=1)
        left = registry.get(job.job_id).messages
        assert [message.n for message in left] == list(range(11 - KEPT_FINISHED, 11))
        assert all(len(message.text) == KEPT_CHARS for message in left)
        assert len(history(registry, job.job_id)[-2]["text"]) > 1000, "history has all of it"


ENDS: dict[str, Callable[[Registry, str], object]] = {
    "requeue": lambda r, job_id: r.requeue(job_id, Reason.LOST, attempt=1),
    "error": lambda r, job_id: r.finish(job_id, Status.ERROR, attempt=1, reason=Reason.EXIT),
    "completed": lambda r, job_id: r.finish(job_id, Status.COMPLETED, attempt=1),
    "cancelled": lambda r, job_id: (
        r.request_cancel(job_id),
        r.finish(job_id, Status.CANCELLED, attempt=1),
    ),
    "override": lambda r, job_id: r.set_status(job_id, Status.PENDING),
}


class TestTheEndOfAnAttempt:
    @pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
    def test_takes_its_messages_with_it(
        self, registry: Registry, job: Job, end: Callable[[Registry, str], object]
    ) -> None:
        """What was not delivered is refused; what was given and not shown to be taken is not
        called refused, since the agent may have read it."""
        registry.send(job.job_id, SAY, "never seen")
        registry.send(job.job_id, SAY, "typed")
        registry.receipt(job.job_id, 2, Stage.TYPED, attempt=1)
        end(registry, job.job_id)
        assert stages(registry, job.job_id) == {1: Stage.REFUSED, 2: Stage.UNCONFIRMED}
        ended = [line for line in history(registry, job.job_id) if "words" in line]
        assert {(line["message"], line["stage"]) for line in ended} == {
            (1, "refused"),
            (2, "unconfirmed"),
        }
        assert all("the attempt ended" in line["words"] for line in ended)

    def test_the_next_attempt_was_not_spoken_to(self, registry: Registry, job: Job) -> None:
        registry.send(job.job_id, SAY, "to the first")
        registry.finish(job.job_id, Status.ERROR, attempt=1, reason=Reason.EXIT)
        registry.retry(job.job_id)
        again = registry.claim("alpha", lease=WORKER)
        assert again is not None
        assert [message.is_finished for message in again.messages] == [True]
        second = registry.send(job.job_id, SAY, "to the second")
        assert (second.n, second.attempt) == (2, 2), "numbers go on over attempts"

    def test_a_job_without_messages_ends_with_one_line(self, registry: Registry, job: Job) -> None:
        registry.finish(job.job_id, Status.COMPLETED, attempt=1)
        assert history(registry, job.job_id) == []
