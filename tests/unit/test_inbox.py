"""The inbox: who is believed, what is dropped under which name, and what is missing."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mam_core.events.event import MAX_EVENT_BYTES, Drop, Event, EventName, Message, parse
from mam_core.events.inbox import Dropped, Inbox
from mam_core.events.numbers import MAX_RANGES, Numbers
from mam_core.records import Job, Status
from tests.support.rows import each_row

TOKEN = "the-token-of-this-job"


def a_job(job_id: str = "open1", **fields: Any) -> Job:
    prefix = f"python/mqtt/jobs/{job_id}"
    return Job(
        job_id, Status.RUNNING, **{"topic_prefix": prefix, "attempt": 1, "last_seq": 5, **fields}
    )


class Office:
    """An inbox over a handful of records, and a hand that writes letters."""

    def __init__(self, *jobs: Job, **more: Any) -> None:
        self.jobs = {job.job_id: job for job in jobs}
        self.asked: list[str] = []
        self.kept: dict[tuple[str, int], Message] = {}  #: what the registry has, as far as it has
        self.inbox = Inbox(self._lookup, **more)

    def _lookup(self, job_id: str) -> Job | None:
        self.asked.append(job_id)
        return self.jobs.get(job_id)

    def send(
        self,
        seq: int,
        job_id: str = "open1",
        *,
        token: str | None = None,
        topic: str = "",
        **more: Any,
    ) -> Message | Dropped:
        event = Event(job_id, more.pop("attempt", 1), seq, EventName.PROGRESS, "", **more)
        topic = topic or f"python/mqtt/jobs/{job_id}/events"
        answer = self.inbox.judge(topic, event.encode(token))
        if isinstance(answer, Dropped):
            return answer
        return self.inbox.believe(answer, self.jobs[job_id], self.kept.get((job_id, seq)))


def drop_of(answer: Message | Dropped) -> Drop:
    assert isinstance(answer, Dropped), answer
    return answer.drop


# -- who is believed ---------------------------------------------------------------------------


def test_an_event_of_a_known_job_is_passed_on() -> None:
    office = Office(a_job())
    answer = office.send(1, detail="it goes on")
    assert isinstance(answer, Message)
    assert answer.event.detail == "it goes on"
    assert not office.inbox.dropped


def test_rubbish_is_counted_under_its_name_and_no_record_is_asked_for() -> None:
    """G15"""
    office = Office(a_job())
    topic = "python/mqtt/jobs/open1/events"
    assert drop_of(office.inbox.judge(topic, b"x" * (MAX_EVENT_BYTES + 1))) is Drop.OVERSIZED
    assert drop_of(office.inbox.judge(topic, b"\xff")) is Drop.NOT_JSON
    assert drop_of(office.inbox.judge(topic, b'{"schema_version": 2}')) is Drop.OTHER_SCHEMA
    assert drop_of(office.inbox.judge(topic, b'{"schema_version": 1}')) is Drop.MALFORMED
    assert office.asked == []
    assert sum(office.inbox.dropped.values()) == 4


def test_an_event_of_a_job_that_is_not_there_is_dropped() -> None:
    """G27"""
    office = Office(a_job())
    answer = office.send(1, "stranger")
    assert drop_of(answer) is Drop.UNKNOWN_JOB
    assert isinstance(answer, Dropped)
    assert answer.job_id is None
    assert office.inbox.highest("stranger") == 0


@each_row(
    "topic",
    [
        "python/mqtt/jobs/open2/events",
        "python/mqtt/jobs/open1/events/",
        "python/mqtt/jobs/open1",
        "elsewhere",
        "",
    ],
)
def test_an_event_on_the_topic_of_another_job_is_dropped(topic: str) -> None:
    """A12: where a broker lets each agent write to its own topic only, this keeps them apart."""
    office = Office(a_job(), a_job("open2"))
    event = Event("open1", 1, 1, "started", "").encode(None)
    assert drop_of(office.inbox.judge(topic, event)) is Drop.MISPLACED


def test_a_changed_prefix_is_obeyed() -> None:
    """A12"""
    office = Office(a_job(topic_prefix="my/own"))
    assert drop_of(office.send(1)) is Drop.MISPLACED
    assert isinstance(office.send(1, topic="my/own/events"), Message)


def test_a_job_with_a_token_believes_only_those_who_know_it() -> None:
    """K3"""
    office = Office(a_job("shut1", auth_token=TOKEN))
    assert drop_of(office.send(1, "shut1")) is Drop.UNSIGNED
    assert drop_of(office.send(1, "shut1", token="guessed")) is Drop.FORGED
    assert isinstance(office.send(1, "shut1", token=TOKEN), Message)
    assert office.inbox.dropped == {Drop.UNSIGNED: 1, Drop.FORGED: 1}


def test_a_forger_does_not_use_up_the_numbers_of_the_true_sender() -> None:
    """K3"""
    office = Office(a_job("shut1", auth_token=TOKEN, last_seq=200))
    for seq in range(1, 200):
        office.send(seq, "shut1", token="guessed")
    assert isinstance(office.send(1, "shut1", token=TOKEN), Message)


def test_after_a_retry_the_old_token_opens_nothing() -> None:
    """K6"""
    office = Office(a_job("shut1", auth_token=TOKEN))
    assert isinstance(office.send(1, "shut1", token=TOKEN), Message)
    office.jobs["shut1"] = a_job("shut1", auth_token="a-new-one", attempt=2)
    assert drop_of(office.send(2, "shut1", token=TOKEN)) is Drop.FORGED
    assert isinstance(office.send(2, "shut1", token="a-new-one", attempt=2), Message)


def test_an_ended_job_is_heard_like_any_other() -> None:
    """Its last event comes after its record has ended."""
    office = Office(a_job().evolve(status=Status.COMPLETED))
    assert isinstance(office.send(1), Message)


# -- repeats -----------------------------------------------------------------------------------


def test_a_repeat_is_dropped_each_time_it_comes() -> None:
    """G14, G20, N12"""
    office = Office(a_job())
    assert isinstance(office.send(1), Message)
    assert drop_of(office.send(1)) is Drop.REPLAYED
    assert drop_of(office.send(1, detail="with other words")) is Drop.REPLAYED
    assert office.inbox.dropped[Drop.REPLAYED] == 2


def test_a_number_that_the_registry_never_issued_is_dropped() -> None:
    office = Office(a_job(last_seq=2))
    assert drop_of(office.send(3)) is Drop.UNISSUED
    assert drop_of(office.send(0)) is Drop.UNISSUED
    assert isinstance(office.send(2), Message)
    office.jobs["open1"] = a_job(last_seq=3)
    assert isinstance(office.send(3), Message)


def test_what_the_registry_has_under_a_number_wins() -> None:
    """Whoever comes first: a foreign event does not use the number up."""
    office = Office(a_job())
    office.kept["open1", 1] = parse(
        Event("open1", 1, 1, EventName.PROGRESS, "", detail="the true one").encode(None)
    )
    assert drop_of(office.send(1, detail="another one")) is Drop.CONFLICT
    assert isinstance(office.send(1, detail="the true one"), Message)
    assert drop_of(office.send(1, detail="the true one")) is Drop.REPLAYED
    assert drop_of(office.send(1, detail="another one")) is Drop.CONFLICT


def test_events_out_of_order_are_each_news_once() -> None:
    """G20: 1, 3, 2, 3"""
    office = Office(a_job())
    answers = [office.send(seq) for seq in (1, 3, 2, 3)]
    assert [isinstance(answer, Message) for answer in answers] == [True, True, True, False]


def test_old_messages_played_to_a_new_listener_are_dropped_for_a_signed_job() -> None:
    """K3"""
    asked = []

    def history(job: Job) -> list[int]:
        asked.append(job.job_id)
        return [1, 2, 3]

    office = Office(a_job("shut1", auth_token=TOKEN), a_job(), history=history)
    assert drop_of(office.send(2, "shut1", token=TOKEN)) is Drop.REPLAYED
    assert drop_of(office.send(3, "shut1", token=TOKEN)) is Drop.REPLAYED
    assert isinstance(office.send(4, "shut1", token=TOKEN), Message)
    # Anybody can speak for a job without one, so there is nothing to protect.
    assert isinstance(office.send(2), Message)
    assert asked == ["shut1"]


def test_an_event_that_was_read_before_it_came_is_no_repeat() -> None:
    office = Office(a_job(last_seq=2))
    assert office.inbox.filled("open1", 1)
    answer = office.send(1)
    assert isinstance(answer, Dropped)
    assert answer.expected
    assert not office.inbox.dropped
    assert isinstance(office.send(2), Message)
    assert not office.inbox.filled("open1", 2)


def test_a_record_that_begins_anew_brings_its_numbers_again() -> None:
    """A record edited or replaced by hand."""
    office = Office(a_job(last_seq=5))
    for seq in range(1, 6):
        office.send(seq)
    office.inbox.recorded(a_job(last_seq=5))
    office.inbox.recorded(a_job(last_seq=0))
    office.jobs["open1"] = a_job(last_seq=1)
    assert isinstance(office.send(1), Message)
    assert drop_of(office.send(1)) is Drop.REPLAYED


# -- gaps --------------------------------------------------------------------------------------


def test_what_has_not_come_is_missing_and_counted() -> None:
    """G20"""
    office = Office(a_job(last_seq=9))
    for seq in (1, 2, 5, 9):
        office.send(seq)
    assert office.inbox.missing("open1", 9, 100) == [3, 4, 6, 7, 8]
    assert office.inbox.missing("open1", 9, 3) == [3, 4, 6]
    assert office.inbox.missing("open1", 4, 100) == [3, 4]
    assert office.inbox.unheard_before("open1", 9) == 5
    assert office.inbox.unheard_before("open1", 5) == 2
    assert office.inbox.unheard_before("open1", 2) == 0


def test_events_from_before_we_began_are_not_missing_but_heard_when_they_come() -> None:
    """The broker was down, and the outbox is delivered late."""
    office = Office(a_job(last_seq=9), begin=lambda job: job.last_seq)
    assert isinstance(office.send(8), Message)
    assert office.inbox.missing("open1", 9, 100) == []
    assert office.inbox.unheard_before("open1", 8) == 0
    assert isinstance(office.send(9), Message)
    assert drop_of(office.send(8)) is Drop.REPLAYED


def test_a_job_that_has_told_nothing_costs_nothing() -> None:
    office = Office(a_job(last_seq=0))
    office.inbox.recorded(a_job(last_seq=0))
    assert office.inbox.missing("open1", 0, 10) == []
    assert not office.inbox._rows


def test_a_job_that_is_gone_is_forgotten() -> None:
    office = Office(a_job())
    office.send(1)
    office.inbox.forget("open1")
    assert not office.inbox._rows


def test_wild_numbers_of_a_stranger_take_no_memory() -> None:
    """Where the record has issued so many, and the registry has none of them."""
    office = Office(a_job(last_seq=2**53))
    dice = random.Random(4)
    for _ in range(20_000):
        office.send(dice.randrange(2**53))
    assert len(office.inbox._rows["open1"].came.ranges) <= MAX_RANGES


def test_a_million_events_in_order_are_one_range() -> None:
    numbers = Numbers()
    for number in range(1, 1_000_001):
        numbers.add(number)
    assert numbers.ranges == [(1, 1_000_000)]


@given(st.lists(st.integers(0, 60), max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_ranges_say_what_a_plain_set_says(given: list[int], after: int, upto: int) -> None:
    numbers, plain = Numbers(), set[int]()
    for number in given:
        assert numbers.add(number) == (number not in plain)
        plain.add(number)
    assert {n for low, high in numbers.ranges for n in range(low, high + 1)} == plain
    assert [n in numbers for n in range(62)] == [n in plain for n in range(62)]
    assert numbers.highest == max(plain, default=0)
    gaps = [n for low, high in numbers.gaps(after, upto) for n in range(low, high + 1)]
    assert gaps == [n for n in range(after + 1, upto + 1) if n not in plain]
    numbers.cut(upto)
    assert [n in numbers for n in range(62)] == [n in plain and n <= upto for n in range(62)]
