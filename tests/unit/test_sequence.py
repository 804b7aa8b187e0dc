"""Events in their order, and gaps filled from outbox and audit log: by a clock that tests move."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mam_core.events.event import Event, Message, parse
from mam_core.events.inbox import Inbox
from mam_core.events.items import EventHeard, Item, Notice, NoticeKind, Origin
from mam_core.events.post import Post
from mam_core.events.sequence import PATIENCE_SEC, Sequence
from mam_core.records import Job
from mam_core.registry import Registry
from tests.support.clock import FakeClock
from tests.support.jobs import add


class Desk:
    """A sequence over a real registry."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.job_id = add(registry)
        self.clock = FakeClock()
        self.hears = True
        self.inbox = Inbox(lambda job_id: registry.get(job_id))
        self.sequence = Sequence(
            registry.store, self.inbox, lambda _: self.hears, now=self.clock.since_boot
        )

    @property
    def job(self) -> Job:
        return self.registry.get(self.job_id)

    def event(self, seq: int) -> Event:
        return Event(self.job_id, 1, seq, "progress", "", f"number {seq}")

    def number(self, count: int = 1) -> None:
        """Events that the registry has numbered, and that are nowhere."""
        for _ in range(count):
            self.registry.next_seq(self.job_id)

    def post(self, count: int = 1) -> None:
        """Events that wait in the outbox."""
        for _ in range(count):
            with self.registry.store.transaction() as tx:
                job = tx.get(self.job_id)
                seq = job.last_seq + 1
                tx.put(job.evolve(last_seq=seq, revision=job.revision + 1), None)
                payload = self.event(seq).encode(None)
                tx.post(Post(self.job_id, 1, seq, job.events_topic, job.broker, payload))

    def publish(self, count: int = 1, **more: Any) -> None:
        """Events that a broker took: they stand in the audit log."""
        for _ in range(count):
            seq = self.registry.next_seq(self.job_id)
            payload = json.loads(self.event(seq).encode(None))
            line = {"timestamp": "2026-06-19T09:30:00.000Z", "event": "published"}
            self.registry.store.audit.append(
                self.job_id, {**line, "job_id": self.job_id, "payload": payload, **more}
            )

    def hear(self, seq: int) -> list[Item]:
        job = self.job
        judged = self.inbox.judge(job.events_topic, self.event(seq).encode(None))
        assert isinstance(judged, Message)
        message = self.inbox.believe(judged, job, None)
        assert isinstance(message, Message)
        return [*self.sequence.arrived(message, job, self.clock.up), *self.sequence.tick()]

    def hear_next(self, seq: int) -> list[Item]:
        """The newest number is taken and used; until one before it is given up."""
        self.number(seq - self.job.last_seq)
        items = self.hear(seq)
        return items + self.wait(PATIENCE_SEC) + self.wait(PATIENCE_SEC)

    def look(self) -> list[Item]:
        return self.sequence.recorded([self.job])

    def wait(self, seconds: float) -> list[Item]:
        self.clock.pass_time(seconds)
        return self.sequence.tick()


@pytest.fixture
def desk(registry: Registry) -> Desk:
    return Desk(registry)


def told(items: list[Item]) -> list[tuple[int, str]]:
    return [(i.event.seq, i.origin.value) for i in items if isinstance(i, EventHeard)]


def kinds(items: list[Item]) -> list[NoticeKind]:
    return [item.kind for item in items if isinstance(item, Notice)]


def test_what_comes_in_order_is_told_at_once(desk: Desk) -> None:
    desk.number(3)
    assert [told(desk.hear(seq)) for seq in (1, 2, 3)] == [
        [(1, "broker")],
        [(2, "broker")],
        [(3, "broker")],
    ]
    assert desk.look() == []
    assert desk.sequence.next_due is None


def test_a_lost_message_is_read_from_the_audit_log_before_its_successor_is_told(
    desk: Desk,
) -> None:
    """G20"""
    desk.publish(4)
    desk.hear(1)
    items = desk.hear(4)
    assert told(items) == [(2, "registry"), (3, "registry"), (4, "broker")]
    assert kinds(items) == [NoticeKind.FILLED]
    heard = [item for item in items if isinstance(item, EventHeard)]
    assert [item.missing for item in heard] == [0, 0, 0]
    assert heard[0].event.detail == "number 2"
    assert desk.sequence.filled == 2


def test_what_still_waits_in_the_outbox_is_read_there(desk: Desk) -> None:
    desk.post(3)
    assert told(desk.hear(3)) == [(1, "registry"), (2, "registry"), (3, "broker")]


def test_what_is_in_outbox_and_audit_log_is_told_once(desk: Desk) -> None:
    """A relay that was killed between the audit line and the removal of the post."""
    desk.post()
    payload = json.loads(desk.event(1).encode(None))
    line = {"timestamp": "2026-06-19T09:30:00.000Z", "event": "published", "payload": payload}
    desk.registry.store.audit.append(desk.job_id, {**line, "job_id": desk.job_id})
    desk.hears = False
    assert told(desk.look()) == [(1, "registry")]
    assert desk.look() == []


def test_an_event_on_its_way_is_waited_for_and_told_in_its_place(desk: Desk) -> None:
    """G20: reordered by two publishers of the original, of whom the registry has no copy."""
    desk.number(3)
    desk.hear(1)
    assert told(desk.hear(3)) == []
    items = desk.hear(2)
    assert told(items) == [(2, "broker"), (3, "broker")]
    assert kinds(items) == [NoticeKind.LATE]
    assert desk.sequence.next_due is None


def test_what_does_not_come_at_all_holds_nobody_up_for_long(desk: Desk) -> None:
    """G20"""
    desk.number(3)
    desk.hear(1)
    assert told(desk.hear(3)) == []
    assert desk.wait(PATIENCE_SEC * 0.9) == []
    items = desk.wait(PATIENCE_SEC * 0.2)
    assert told(items) == [(3, "broker")]
    assert kinds(items) == [NoticeKind.GAP]
    assert [item.missing for item in items if isinstance(item, EventHeard)] == [1]
    # It is still news when it comes after all.
    assert told(desk.hear(2)) == [(2, "broker")]


def test_what_is_nowhere_is_given_up_and_delays_nobody_after_it(desk: Desk) -> None:
    """A script took numbers and died before it used them."""
    desk.number(2)
    assert desk.look() == []
    for _ in range(20):
        assert desk.wait(100) == []
    assert desk.sequence.next_due is None
    desk.number()
    assert told(desk.hear(3)) == [(3, "broker")]
    desk.number()
    assert told(desk.hear(4)) == [(4, "broker")]
    desk.publish()
    desk.hears = False
    assert told(desk.look()) == [(5, "registry")]


def test_a_hole_in_a_busy_job_delays_its_events_for_a_moment_and_then_no_more(desk: Desk) -> None:
    desk.number()
    items: list[Item] = []
    for seq in range(2, 102):
        desk.number()
        items = desk.hear(seq) + desk.look() + desk.wait(0.1)
    assert told(items) == [(101, "broker")]


def test_what_was_given_up_is_read_when_it_turns_up_with_the_next(desk: Desk) -> None:
    desk.number()
    desk.look()
    for _ in range(20):
        desk.wait(100)
    payload = json.loads(desk.event(1).encode(None))
    line = {"timestamp": "2026-06-19T09:30:00.000Z", "event": "published", "payload": payload}
    desk.registry.store.audit.append(desk.job_id, {**line, "job_id": desk.job_id})
    desk.publish()
    desk.hears = False
    assert told(desk.look()) == [(1, "registry"), (2, "registry")]


def test_a_gap_is_said_once_not_for_every_event_behind_it(desk: Desk) -> None:
    """G20: numbers that a foreign publisher took from the registry, and did not use in order."""
    assert kinds(desk.hear_next(1)) == []
    assert kinds(desk.hear_next(3)) == [NoticeKind.GAP]
    assert kinds(desk.hear_next(4)) == []
    assert kinds(desk.hear(2)) == [NoticeKind.LATE]
    assert kinds(desk.hear_next(5)) == []
    assert kinds(desk.hear_next(7)) == [NoticeKind.GAP]


def test_with_a_broker_the_registry_is_asked_only_after_a_second(desk: Desk) -> None:
    desk.publish(2)
    assert desk.look() == []
    assert desk.sequence.next_due == pytest.approx(desk.clock.up + PATIENCE_SEC)
    items = desk.wait(PATIENCE_SEC)
    assert told(items) == [(1, "registry"), (2, "registry")]
    assert kinds(items) == [NoticeKind.FILLED]


def test_without_a_broker_it_is_asked_at_once(desk: Desk) -> None:
    desk.hears = False
    desk.post(2)
    assert told(desk.look()) == [(1, "registry"), (2, "registry")]


def test_when_the_broker_goes_nobody_waits_for_messages_any_more(desk: Desk) -> None:
    desk.publish(2)
    desk.look()
    desk.sequence.hurry()
    assert told(desk.sequence.tick()) == [(1, "registry"), (2, "registry")]


def test_thousands_are_read_in_rounds(desk: Desk) -> None:
    seqs = range(1, 2_501)
    lines = [
        {
            "timestamp": "2026-06-19T09:30:00.000Z",
            "event": "published",
            "job_id": desk.job_id,
            "payload": json.loads(desk.event(seq).encode(None)),
        }
        for seq in seqs
    ]
    log = Path(desk.registry.store.audit.path) / desk.job_id / "events.ndjson"
    with log.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    with desk.registry.store.transaction() as tx:
        tx.put(tx.get(desk.job_id).evolve(last_seq=2_500), None)
    desk.hears = False
    items = desk.look()
    for _ in range(10):
        items += desk.wait(100)
    assert told(items) == [(seq, "registry") for seq in seqs]


@pytest.mark.parametrize(
    "payload",
    [
        None,
        "not json",
        {"schema_version": 2},
        {"schema_version": 1, "job_id": "another1", "seq": 1, "event": "started"},
        [],
    ],
)
def test_a_line_that_holds_no_event_of_this_job_is_passed_over(desk: Desk, payload: Any) -> None:
    """F18"""
    desk.hears = False
    desk.publish(payload=payload)
    assert told(desk.look()) == []
    desk.publish()
    assert told(desk.look() + desk.wait(100) + desk.wait(100)) == [(2, "registry")]


def test_the_text_of_a_payload_is_as_good_as_the_object(desk: Desk) -> None:
    desk.hears = False
    desk.publish(payload=desk.event(1).encode(None).decode())
    assert told(desk.look()) == [(1, "registry")]


def test_a_job_that_is_gone_leaves_nothing_behind(desk: Desk) -> None:
    desk.number(3)
    desk.hear(1)
    desk.hear(3)
    assert told(desk.sequence.forget(desk.job_id)) == [(3, "broker")]
    assert desk.sequence.next_due is None


def test_origin_and_content_are_those_of_the_payload(desk: Desk) -> None:
    desk.hears = False
    desk.post()
    heard = next(item for item in desk.look() if isinstance(item, EventHeard))
    assert heard.origin is Origin.REGISTRY
    assert heard.content == parse(desk.event(1).encode(None)).content
