"""Attempts over time: bars from logs and summaries, and the window that shows some of them."""

from __future__ import annotations

import json
import random
from pathlib import Path

from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.audit import AuditEvent
from mam_core.clock import fine_stamp, stamp
from mam_core.operations.bars import Bar, BarReader, Dimension, Outcome, Wait, bar_of
from mam_core.operations.lanes import Lanes, LanesThen
from mam_core.operations.packing import rows
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.summaries import Summary
from tests.console.story import NOW, summary
from tests.support.clock import NOON as T0
from tests.support.clock import FakeClock
from tests.support.jobs import LABEL, WORKER, add


def relay(registry: Registry) -> None:
    """What a relay does with the outbox once a broker has taken all of it."""
    for post in registry.store.outbox.posts(1000):
        line = {
            "timestamp": fine_stamp(registry.clock.now()),
            "event": "published",
            "job_id": post.job_id,
            "attempt": 1,
            "seq": post.seq,
            "payload": json.loads(post.payload),
        }
        registry.store.audit.append(post.job_id, line)
        registry.store.outbox.done([post])


def say(registry: Registry, job_id: str, state: AgentState) -> None:
    sign = Sign(state, Channel.HOOK, "rule", registry.clock.now(), "words")
    registry.publish(job_id, "state", data=sign.to_dict())
    relay(registry)


def now_of(registry: Registry, job_id: str) -> Summary:
    return Summary.of(registry.get(job_id))


class TestBars:
    def test_tell_a_life_with_its_queues_waits_and_costs(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        job_id = add(registry, group="night", max_attempts=3)
        reader = BarReader(registry)
        assert reader.read(now_of(registry, job_id)) == ()
        clock.pass_time(30)
        registry.claim(LABEL, lease=WORKER)
        say(registry, job_id, AgentState.WORKING)
        clock.pass_time(10)
        say(registry, job_id, AgentState.WAITING)
        (asking,) = reader.read(now_of(registry, job_id))
        assert (asking.waits, asking.outcome) == ((Wait(T0 + 40, None),), Outcome.RUNNING)
        clock.pass_time(20)
        say(registry, job_id, AgentState.WORKING)
        facts = {"tokens": {"input": 90, "output": 10}, "cost": 0.5}
        line = registry.note(AuditEvent.ATTEMPT_ENDED, attempt=1, **facts)
        registry.store.audit.append(job_id, line.to_dict(job_id))
        registry.requeue(job_id, Reason.EXIT, attempt=1, failed=True)
        clock.pass_time(5)
        registry.claim(LABEL, lease=WORKER)
        told = reader.read(now_of(registry, job_id))
        assert told == BarReader(registry).read(now_of(registry, job_id)), "read at once"
        assert told == (
            Bar(
                *(job_id, 1, "shell", LABEL, "night", "host", T0 + 30, T0 + 60),
                *(Outcome.GIVEN_BACK, "exit", T0, (Wait(T0 + 40, T0 + 60),), 100, 0.5),
            ),
            Bar(
                *(job_id, 2, "shell", LABEL, "night", "host", T0 + 65, None),
                *(Outcome.RUNNING, "", T0 + 60),
            ),
        )
        assert (told[0].waiting_sec, told[0].run_sec, told[1].run_sec) == (30, 30, None)

    def test_of_a_summary_cost_nothing_and_agree(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        job_id = add(registry)
        clock.pass_time(7)
        registry.claim(LABEL, lease=WORKER)
        assert (
            bar_of(now_of(registry, job_id))
            == BarReader(registry).read(now_of(registry, job_id))[0]
        )
        clock.pass_time(7)
        registry.finish(job_id, Status.COMPLETED, attempt=1)
        ended = now_of(registry, job_id)
        assert (bar_of(ended),) == BarReader(registry).read(ended)
        for odd in (summary(1), summary(1, Status.ERROR, started_at=None)):
            assert bar_of(odd) is None

    def test_know_of_a_question_that_only_an_event_asks(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        job_id = add(registry)
        registry.claim(LABEL)
        for event in ("permission_required", "heartbeat", "log", "progress", "progress"):
            clock.pass_time(10)
            registry.publish(job_id, event, detail="words")
            relay(registry)
        (told,) = BarReader(registry).read(now_of(registry, job_id))
        assert told.waits == (Wait(T0 + 10, T0 + 40),)

    def test_outlive_the_record(self, registry: Registry, clock: FakeClock) -> None:
        job_id = add(registry, group="night")
        registry.claim(LABEL)
        clock.pass_time(9)
        registry.finish(job_id, Status.ERROR, attempt=1, reason=Reason.EXIT)
        registry.archive([job_id])
        (bar,) = BarReader(registry).read_gone(job_id)
        assert (bar.session, bar.group, bar.outcome, bar.run_sec) == (LABEL, "night", "error", 9)
        assert BarReader(registry).read_gone("nobody") == ()
        assert BarReader(registry).gone(()) == [job_id]
        assert BarReader(registry).gone({job_id}) == []

    def test_are_right_where_the_log_has_gaps(
        self, registry: Registry, clock: FakeClock, tmp_path: Path
    ) -> None:
        job_id = add(registry)
        registry.claim(LABEL, lease=WORKER)
        log = Path(registry.store.audit.path, job_id, "events.ndjson")
        with log.open("ab") as file:
            file.write(b'{"event": "status_changed", "to": 7, "from": [], "timestamp": "x"}\n')
            file.write(b'{"event": "published", "timestamp": 3, "payload": "state"}\nno "state"\n')
            file.write(b'{"event": "status_chang')
        reader = BarReader(registry)
        assert [bar.outcome for bar in reader.read(now_of(registry, job_id))] == ["running"]
        log.write_bytes(b"")
        assert reader.read(now_of(registry, job_id))[0].attempt == 1, "the log is another one"
        clock.pass_time(3)
        registry.set_status(job_id, Status.COMPLETED)
        (bar,) = reader.read(now_of(registry, job_id))
        assert (bar.outcome, bar.run_sec) == (Outcome.COMPLETED, 3)

    def test_of_an_attempt_whose_end_was_never_written(self, registry: Registry) -> None:
        job_id = add(registry)
        folder = Path(registry.store.audit.path, job_id, "events.ndjson")
        moved = {"event": "status_changed", "from": "pending", "to": "running"}
        with folder.open("a") as file:
            for attempt, at in ((1, 10.0), (2, 50.0)):
                line = {**moved, "attempt": attempt, "timestamp": stamp(T0 + at)}
                file.write(json.dumps(line) + "\n")
        first, second = BarReader(registry).read_gone(job_id)
        assert (first.outcome, first.run_sec) == (Outcome.UNKNOWN, 40)
        assert (second.outcome, second.run_sec) == (Outcome.UNKNOWN, 0)


def bar(
    number: int, began: float, ended: float | None, session: str = "a", attempt: int = 1
) -> Bar:
    outcome = Outcome.RUNNING if ended is None else Outcome.COMPLETED
    return Bar(f"j{number}", attempt, "x", session, "", "", began, ended, outcome)


def seen(
    lanes: Lanes | LanesThen, begin: float, end: float, by: Dimension = Dimension.SESSION
) -> dict[str, list[Bar]]:
    """By lane, whatever the rows."""
    found: dict[str, list[Bar]] = {}
    for name, packed in lanes.packed(by):
        for row in packed:
            assert all(a <= b for a, b in zip(row.ends, row.begins[1:], strict=False)), "overlap"
            places = row.window(begin, min(end, lanes.until))
            for place in places:
                bar = row.bars[place]
                at = lanes.packed(by).place(bar.key)
                assert at is not None
                assert (at.lane, packed[at.row], at.at) == (name, row, place)
            if places:
                found.setdefault(name, []).extend(lanes.seen(row.bars[p] for p in places))
    return found


def all_of(lanes: Lanes, begin: float, end: float) -> list[Bar]:
    return [bar for bars in seen(lanes, begin, end).values() for bar in bars]


class TestLanes:
    def test_show_what_touches_the_window(self) -> None:
        lanes = Lanes(
            [
                bar(1, 0, 10, "a"),
                bar(2, 5, 500, "b"),
                bar(3, 12, 14, "a"),
                bar(4, 1, None, ""),
                bar(5, 90, None, "a"),
            ]
        )
        told = seen(lanes, 11, 20)
        assert [(name, [one.job_id for one in bars]) for name, bars in told.items()] == [
            ("a", ["j3"]),
            ("b", ["j2"]),
            ("", ["j4"]),
        ]
        assert list(seen(lanes, 0, 99, Dimension.GROUP)) == [""]
        assert lanes.reach() == (0, 500)
        assert Lanes().reach() is None

    def test_change_one_job_at_a_time(self) -> None:
        lanes = Lanes([bar(1, 0, None)])
        assert lanes.put("j1", [bar(1, 0, 8), bar(1, 9, None, attempt=2)])
        assert not lanes.put("j1", [bar(1, 0, 8), bar(1, 9, None, attempt=2)])
        assert [one.attempt for one in all_of(lanes, 0, 100)] == [1, 2]
        assert len(lanes.of("j1")) == 2
        assert lanes.remove("j1")
        assert (len(lanes), all_of(lanes, 0, 100)) == (0, [])

    def test_a_window_is_the_same_as_looking_at_everything(self) -> None:
        chance = random.Random(3)
        lanes, known = Lanes(), dict[str, list[Bar]]()
        for _ in range(400):
            number = chance.randrange(120)
            own = []
            for attempt in range(chance.randrange(4)):
                began = chance.uniform(0, 1e5)
                length = chance.choice([0.0, 0.5, 1, 64, 1e3, 9e4]) * chance.random()
                ended = None if chance.random() < 0.1 else began + length
                own.append(bar(number, began, ended, f"s{number % 7}", attempt))
            lanes.put(f"j{number}", own)
            known[f"j{number}"] = own
            if chance.random() < 0.3:
                lanes.packed(Dimension.SESSION)  # what is put from here on is put into this
        everything = [one for own in known.values() for one in own]
        for _ in range(60):
            begin = chance.uniform(-1e3, 1.1e5)
            end = begin + chance.choice([0, 10, 1e4])
            expected = {
                one
                for one in everything
                if one.began_at <= end and (one.ended_at is None or one.ended_at >= begin)
            }
            found = all_of(lanes, begin, end)
            assert set(found) == expected
            assert len(found) == len(expected)

    def test_what_happens_while_somebody_looks_packs_nothing_anew(self) -> None:
        """Attempts begin and end, in their order; ten thousand others stand where they stood."""
        lanes = Lanes(bar(n, n * 60.0, n * 60.0 + 50) for n in range(10_000))
        packing = lanes.packed(Dimension.SESSION)
        lanes.put("new", [began := bar(10_001, 600_000, None)._replace(job_id="new")])
        assert not packing.is_stale
        lanes.put("other", [bar(10_002, 600_001, None)._replace(job_id="other")])
        lanes.put("new", [began._replace(ended_at=600_005, outcome=Outcome.COMPLETED)])
        lanes.put("third", [bar(10_003, 600_007, None)._replace(job_id="third")])
        assert not packing.is_stale
        rows = {
            key: place.row
            for key in ("new", "other", "third")
            if (place := packing.place((key, 1)))
        }
        assert rows == {"new": 0, "other": 1, "third": 0}
        assert [one.job_id for one in all_of(lanes, 600_000, 600_100)] == ["new", "third", "other"]
        lanes.put("early", [bar(10_004, 30, 40)._replace(job_id="early")])
        assert lanes.packed(Dimension.SESSION) is packing
        assert {one.job_id for one in all_of(lanes, 0, 61)} == {"j0", "j1", "early"}

    def test_a_bar_stands_in_the_same_row_at_every_moment(self) -> None:
        chance = random.Random(5)
        begins = sorted(chance.uniform(0, 100) for _ in range(80))
        bars = [bar(n, began, began + chance.uniform(0, 30)) for n, began in enumerate(begins)]
        now = Lanes(bars).packed(Dimension.SESSION)
        for at in range(5, 130, 5):
            then = Lanes(one for bar in bars if (one := bar.then(at)) is not None)
            packing = then.packed(Dimension.SESSION)
            assert all(packing.place(bar.key) == now.place(bar.key) for bar in all_of(then, 0, at))

    def test_of_a_past_end_where_the_past_did(self) -> None:
        first = bar(1, 10, 60)._replace(waits=(Wait(20, 50),), cost=1.0)
        second = bar(2, 70, 80)
        lanes = Lanes([first, second])
        (then,) = seen(LanesThen(lanes, 40), 0, 100)["a"]
        assert then.is_running
        assert then.waits == (Wait(20, None),)
        assert then.cost is None
        assert (then.then(15) or then).waits == ()
        assert seen(LanesThen(lanes, 5), 0, 100) == {}
        assert LanesThen(lanes, 90).of(second.job_id) == lanes.of(second.job_id) == (second,)

    def test_rows_never_overlap_and_are_few(self) -> None:
        bars = [bar(1, 0, 10), bar(2, 5, None), bar(3, 10, 20), bar(4, 12, 13), bar(5, 14, 15)]
        assert [row for row, _ in rows(bars)] == [0, 1, 0, 2, 2]


def test_the_story_of_a_summary_that_was_given_back() -> None:
    again = summary(1, Status.PENDING, attempt=1, reason=Reason.LOST, started_at=None)
    assert bar_of(again) is None
    assert bar_of(summary(1, Status.RUNNING, started_at=stamp(NOW - 60), attempt=3)) is not None
