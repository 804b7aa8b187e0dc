"""Between feed and consumer: bounded, in order, and never an old record after a newer one."""

from __future__ import annotations

import threading

from mam_core.events.drops import DropNotices
from mam_core.events.event import Drop, Event
from mam_core.events.inbox import Dropped
from mam_core.events.items import EventHeard, JobChanged, Notice, NoticeKind, Origin
from mam_core.events.outlet import MAX_NOTICES, Outlet


def event(seq: int, *, detail: str = "") -> EventHeard:
    return EventHeard(Event("job1", 1, seq, "progress", "", detail), {}, Origin.BROKER, 0.0, 0)


def change(job_id: str = "job1", at: float = 0.0) -> JobChanged:
    return JobChanged(job_id, None, Origin.DIRECTORY, at)


def seqs(items: list[object]) -> list[int]:
    return [item.event.seq for item in items if isinstance(item, EventHeard)]


def test_items_are_taken_in_the_order_in_which_they_were_told() -> None:
    outlet = Outlet()
    outlet.put([event(1), change(), event(2)])
    outlet.put([change("job2")])
    assert outlet.take(0) == [event(1), change(), event(2), change("job2")]
    assert outlet.take(0) == []


def test_of_a_record_only_the_newest_waits_behind_the_events_that_led_to_it() -> None:
    outlet = Outlet()
    outlet.put([change(at=1.0), event(1), change(at=2.0), event(2)])
    assert outlet.take(0) == [event(1), change(at=2.0), event(2)]


def test_a_sleeping_consumer_loses_the_oldest_events_and_is_told() -> None:
    outlet = Outlet(max_events=100)
    outlet.put([change(), *map(event, range(1, 1_001))])
    items = outlet.take(0)
    assert seqs([*items]) == list(range(901, 1_001))
    lost = [item for item in items if isinstance(item, Notice)]
    assert [one.kind for one in lost] == [NoticeKind.OVERFLOW]
    assert lost[0].text.startswith("900 events")
    assert change() in items
    outlet.put([event(1)])
    assert outlet.take(0) == [event(1)]


def test_long_events_are_counted_by_their_length() -> None:
    outlet = Outlet(max_bytes=100_000)
    outlet.put([event(seq, detail="x" * 30_000) for seq in range(10)])
    assert seqs([*outlet.take(0)]) == [7, 8, 9]


def test_notices_are_bounded_too() -> None:
    outlet = Outlet()
    outlet.put([Notice(NoticeKind.GAP, None, str(n), 0.0) for n in range(MAX_NOTICES + 50)])
    items = outlet.take(0)
    assert len(items) == MAX_NOTICES
    assert isinstance(items[-1], Notice)
    assert items[-1].text == str(MAX_NOTICES + 49)


def test_who_waits_is_woken_by_an_item_and_by_the_end() -> None:
    outlet = Outlet()
    threading.Timer(0.05, lambda: outlet.put([event(1)])).start()
    assert outlet.take(30) == [event(1)]
    threading.Timer(0.05, outlet.close).start()
    assert outlet.take(30) == []


def test_a_flood_of_drops_is_told_one_by_one_at_first_and_then_as_a_sum() -> None:
    """G15"""
    drops = DropNotices()
    forged = Dropped(Drop.FORGED, "job1", "its signature is not the job's")
    single = [notice for _ in range(1_000) for notice in drops.of(forged, 5.0)]
    assert len(single) == 5
    assert single[0].text == (
        "a message about job job1 was dropped (wrong signature): its signature is not the job's"
    )
    assert drops.due(5.5) == []
    assert drops.next_due == 6.0
    (more,) = drops.due(6.0)
    assert more.text == "more messages about job job1 were dropped: 995 × wrong signature"
    assert (more.job_id, more.times) == ("job1", 995)
    assert drops.due(6.5) == []
    for _ in range(1_000):
        drops.of(forged, 7.0)
    repeat = drops.of(Dropped(Drop.REPLAYED, "job1", "event 1 was told before"), 7.0)
    assert [notice.kind for notice in repeat] == [NoticeKind.REPEAT]  # a flood hides no other
