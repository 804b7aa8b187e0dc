"""The feed with a real broker of either kind: heard live, once, in order, come what may."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from mam_core.events import sequence
from mam_core.events.embedded import BrokerFolder, Role, address, credentials
from mam_core.events.event import MAX_EVENT_BYTES, Drop, Event
from mam_core.events.feed import NoticeKind, Origin
from mam_core.events.post import Post
from mam_core.record_parts import Broker
from mam_core.records import Job, Reason, Status
from tests.support.brokers import Ear, embedded, kill_server, nothing_left
from tests.support.feeds import Hand, Station, ear_of
from tests.support.jobs import add, running
from tests.support.patience import PATIENCE_SEC, eventually

NEVER = 3600.0


@pytest.fixture(params=["nats", "mosquitto"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def quiet_station(tmp_path: Path, kind: str) -> Iterator[Station]:
    """A registry whose broker does not run."""
    with nothing_left(tmp_path):
        made = Station(tmp_path, kind)
        yield made
        made.close()


@pytest.fixture
def station(quiet_station: Station) -> Iterator[Station]:
    """The same with its broker, which is started again when it dies."""
    assert quiet_station.broker is not None
    with quiet_station.broker.ensure_running():
        yield quiet_station


@pytest.fixture
def hand(quiet_station: Station) -> Hand:
    return Hand(quiet_station.registry)


@pytest.fixture
def ear(station: Station) -> Iterator[Ear]:
    with ear_of(station) as made:
        yield made


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message may take its time: the registry is not asked instead."""
    monkeypatch.setattr(sequence, "PATIENCE_SEC", PATIENCE_SEC)


def send(ear: Ear, topic: str, payload: bytes) -> None:
    """As anybody could; the answer of the broker is waited for."""
    ear.client.publish(topic, payload, qos=1).wait_for_publish(PATIENCE_SEC)


def topic_of(job_id: str) -> str:
    return f"python/mqtt/jobs/{job_id}/events"


class Sender:
    """A small relay: sends in order, each post until a broker took it."""

    def __init__(self, station: Station, hand: Hand) -> None:
        self._station = station
        self._hand = hand
        self._ear: Ear | None = None

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._ear is not None:
            self._ear.__exit__()

    def send(self, posts: list[Post]) -> None:
        for post in posts:
            eventually(partial(self._took, post), "the broker takes it")
            self._hand.taken([post])

    def _took(self, post: Post) -> bool:
        try:
            if self._ear is None:
                self._ear = ear_of(self._station).__enter__()
            sent = self._ear.client.publish(post.topic, post.payload, qos=1)
            # As long as the broker is there it may take its time: sent again, it is a repeat.
            while self._ear.client.is_connected():
                sent.wait_for_publish(0.1)
                if sent.is_published():
                    return True
        except (OSError, RuntimeError, ValueError):
            pass
        if self._ear is not None:
            self._ear.__exit__()
            self._ear = None
        return False


class TestHearing:
    @pytest.mark.usefixtures("patient")
    def test_an_event_is_heard_and_then_the_record_that_it_changed(
        self, station: Station, hand: Hand, ear: Ear
    ) -> None:
        """O5"""
        job_id = add(station.registry)
        with station.listening(rescan_sec=NEVER) as listener:
            listener.is_up()
            hand.publish(ear, job_id, "started", data={"pid": 7})
            listener.hears_all(job_id, 1)
            heard = listener.events(job_id)[0]
            assert heard.origin is Origin.BROKER
            assert heard.event.data == {"pid": 7}
            assert heard.missing == 0
            assert len(listener.changes(job_id)) == 1
            assert listener.feed.state.heard == 1
            assert "listening" in listener.feed.state.broker_text

    def test_a_hundred_events_of_five_jobs_come_once_and_in_order(
        self, station: Station, hand: Hand, ear: Ear
    ) -> None:
        jobs = [add(station.registry) for _ in range(5)]
        with station.listening(rescan_sec=NEVER) as listener:
            listener.is_up()
            for _ in range(20):
                for job_id in jobs:
                    hand.publish(ear, job_id, "progress")
            for job_id in jobs:
                listener.hears_all(job_id, 20)
            listener.quiet(1.2)
            assert [listener.seqs(job_id) for job_id in jobs] == [[*range(1, 21)]] * 5
            assert listener.notices(NoticeKind.GAP, NoticeKind.REPEAT, NoticeKind.DROPPED) == []

    def test_two_feeds_at_once_hear_everything_both(
        self, station: Station, hand: Hand, ear: Ear
    ) -> None:
        """G21"""
        job_id = add(station.registry)
        with station.listening() as one, station.listening() as two:
            one.is_up()
            two.is_up()
            hand.publish(ear, job_id, *["progress"] * 50)
            for listener in (one, two):
                listener.hears_all(job_id, 50)
                assert listener.seqs(job_id) == list(range(1, 51))
                assert not listener.notices(NoticeKind.BROKER_DOWN)

    def test_a_changed_prefix_is_listened_to(self, station: Station, hand: Hand, ear: Ear) -> None:
        """A12"""
        early = running(station.registry, topic_prefix="other/place").job_id
        with station.listening(rescan_sec=NEVER) as listener:
            listener.is_up()
            late = running(station.registry, topic_prefix="one/more").job_id
            listener.until(lambda: listener.changes(late), "it is seen")
            for job_id in (early, late):
                for _ in range(3):
                    hand.publish(ear, job_id, "progress")
                listener.hears_all(job_id, 3)
                listener.until(
                    lambda: any(e.origin is Origin.BROKER for e in listener.events()), "live"
                )
                assert listener.seqs(job_id) == [1, 2, 3]

    def test_a_prefix_that_is_a_wildcard_is_not_listened_to(
        self, station: Station, hand: Hand, ear: Ear
    ) -> None:
        """A record edited by hand does not make us hear everything."""
        job = running(station.registry)
        record = station.path / f"{job.job_id}.json"
        record.write_text(json.dumps({**job.to_dict(), "topic_prefix": "#"}))
        with station.listening(rescan_sec=NEVER) as listener:
            listener.is_up()
            send(ear, "somebody/elses", b"x")
            hand.post(job.job_id, "progress")
            listener.until(lambda: listener.events(job.job_id), "from the registry")
            assert dict(listener.feed.state.dropped) == {}

    @pytest.mark.usefixtures("patient")
    def test_only_the_jobs_that_were_asked_for_are_heard(
        self, station: Station, hand: Hand, ear: Ear
    ) -> None:
        mine, other = add(station.registry), add(station.registry)
        with station.listening(jobs=frozenset({mine}), rescan_sec=NEVER) as listener:
            listener.is_up()
            hand.publish(ear, other, "started")
            hand.publish(ear, mine, "started")
            listener.hears_all(mine, 1)
            assert listener.events(other) == []
            assert listener.events(mine)[0].origin is Origin.BROKER

    @pytest.mark.usefixtures("patient")
    def test_a_record_that_names_another_broker_is_heard_there(
        self, station: Station, hand: Hand, kind: str, tmp_path: Path
    ) -> None:
        elsewhere = tmp_path / "elsewhere" / "jobs"
        with embedded(elsewhere, kind).ensure_running():
            login = credentials(str(elsewhere), Role.OPERATOR)
            port = address(str(elsewhere)).port
            broker = Broker("127.0.0.1", port, False, login.username, login.password)
            job = running(station.registry)
            with station.registry.store.transaction() as tx:
                tx.put(tx.get(job.job_id).evolve(broker=broker), None)
            with (
                Ear(port, login) as far,
                station.listening(rescan_sec=NEVER) as listener,
            ):
                listener.is_up()
                listener.until(
                    lambda: [n for n in listener.notices() if n.text.endswith(f":{port}")],
                    "both are up",
                )
                hand.publish(far, job.job_id, "progress")
                listener.hears_all(job.job_id, 1)
                assert listener.events(job.job_id)[0].origin is Origin.BROKER
                # When no live job is there any more, it is left.
                assert "mam-subscription" in _names()
                station.registry.finish(
                    job.job_id, Status.ERROR, attempt=job.attempt, reason=Reason.EXIT
                )
                eventually(lambda: _names().count("mam-subscription") == 1, "it is left")


def _names() -> list[str]:
    return [thread.name for thread in threading.enumerate()]


class TestTroubleWithTheBroker:
    def test_killed_and_restarted_in_the_middle_every_event_is_told_once_in_order(
        self, station: Station, hand: Hand
    ) -> None:
        """G9: 500 events, two kills."""
        job_id = add(station.registry)
        with station.listening(rescan_sec=NEVER) as listener:
            listener.is_up()
            with Sender(station, hand) as sender:
                for number in range(500):
                    if number in (170, 340):
                        kill_server(station.path)
                    sender.send(hand.post(job_id, "progress"))
            listener.until(lambda: len(listener.events(job_id)) >= 500, "all of them")
            listener.quiet(1.2)
            assert listener.seqs(job_id) == list(range(1, 501))
            assert not listener.notices(NoticeKind.GAP)
            assert len(listener.notices(NoticeKind.BROKER_DOWN)) >= 1
            assert len(listener.notices(NoticeKind.BROKER_UP)) >= 2
            live = [one for one in listener.events(job_id) if one.origin is Origin.BROKER]
            assert len(live) > 100

    def test_down_for_the_whole_run_nothing_is_missing(
        self, quiet_station: Station, hand: Hand
    ) -> None:
        """G25"""
        job_id = add(quiet_station.registry)
        with quiet_station.listening(rescan_sec=NEVER) as listener:
            listener.until(lambda: listener.notices(NoticeKind.BROKER_DOWN), "it is said")
            hand.post(job_id, *["progress"] * 30)
            quiet_station.registry.set_status(job_id, Status.COMPLETED)
            listener.hears_all(job_id, 30)
            assert listener.seqs(job_id) == list(range(1, 31))
            assert {one.origin for one in listener.events()} == {Origin.REGISTRY}
            assert len(listener.notices(NoticeKind.BROKER_DOWN)) == 1
            assert listener.feed.state.broker_up is False

    def test_started_late_it_is_found_and_late_messages_are_no_repeats(
        self, quiet_station: Station, hand: Hand
    ) -> None:
        """O17: told from the outbox first, then sent."""
        job_id = add(quiet_station.registry)
        with quiet_station.listening(rescan_sec=NEVER) as listener:
            listener.until(lambda: listener.notices(NoticeKind.BROKER_DOWN), "it is said")
            posts = hand.post(job_id, "started", "progress")
            listener.hears_all(job_id, 2)
            assert quiet_station.broker is not None
            with quiet_station.broker.ensure_running():
                listener.is_up()
                with Sender(quiet_station, hand) as sender:
                    sender.send(posts)
                with ear_of(quiet_station) as ear:
                    hand.publish(ear, job_id, "progress")
                listener.hears_all(job_id, 3)
                listener.quiet(0.5)
                assert listener.seqs(job_id) == [1, 2, 3]
                assert listener.notices(NoticeKind.REPEAT) == []
                assert dict(listener.feed.state.dropped) == {}

    @pytest.mark.usefixtures("patient")
    def test_a_broker_that_moved_is_found_again(self, quiet_station: Station, hand: Hand) -> None:
        """Decision 21: somebody else sits on its port now."""
        job_id = add(quiet_station.registry)
        assert quiet_station.broker is not None
        with quiet_station.listening(rescan_sec=NEVER) as listener:
            with quiet_station.broker.ensure_running():
                listener.is_up()
            listener.hears(NoticeKind.BROKER_DOWN)
            with BrokerFolder.open(str(quiet_station.path)) as home:
                old = home.address().port
                assert home.move().port != old
            with quiet_station.broker.ensure_running():
                listener.hears(NoticeKind.BROKER_UP)
                with ear_of(quiet_station) as ear:
                    hand.publish(ear, job_id, "progress")
                listener.hears_all(job_id, 1)
                assert listener.events()[0].origin is Origin.BROKER

    @pytest.mark.usefixtures("patient")
    def test_messages_lost_on_the_way_are_read_from_the_registry(
        self, station: Station, hand: Hand, ear: Ear, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """G20"""
        job_id = add(station.registry)
        with station.listening(rescan_sec=NEVER) as listener:
            listener.is_up()
            hand.publish(ear, job_id, "started")
            listener.hears_all(job_id, 1)
            hand.taken(hand.post(job_id, "progress", "progress"))  # nobody sent these
            number = station.registry.next_seq(job_id)  # by a message, and by nothing else
            last = Event(job_id, 1, number, "progress", "")
            send(ear, topic_of(job_id), last.encode(None))
            # They are there to be found, both: now they are not waited for any longer.
            monkeypatch.setattr(sequence, "PATIENCE_SEC", 0.1)
            station.registry.edit(job_id, {"priority": 1})
            listener.hears_all(job_id, 4)
            assert listener.seqs(job_id) == [1, 2, 3, 4]
            assert [one.origin for one in listener.events(job_id)].count(Origin.REGISTRY) == 2
            said = listener.notices(NoticeKind.FILLED)
            assert "2 events" in said[0].text
            assert "2 to 3" in said[0].text


class TestForeigners:
    @pytest.mark.parametrize("ended", [False, True], ids=["live", "ended"])
    def test_nobody_can_speak_for_a_signed_job_or_play_its_words_again(
        self, station: Station, hand: Hand, ear: Ear, ended: bool
    ) -> None:
        """K3, G14, G27: on a live job and on one that has ended; the record does not move."""
        job = running(station.registry, auth_token=True)
        token = job.auth_token
        assert token
        hand.publish(ear, job.job_id, "started")
        if ended:
            station.registry.finish(
                job.job_id, Status.ERROR, attempt=job.attempt, reason=Reason.EXIT
            )
        station.registry.next_seq(job.job_id)  # the second event is a foreign publisher's
        topic, record = topic_of(job.job_id), station.path / f"{job.job_id}.json"
        before = record.read_bytes()
        names = sorted(path.name for path in station.path.glob("*.json"))
        old = Event(job.job_id, 1, 1, "started", "", "number 1").encode(token)
        with station.listening(rescan_sec=NEVER) as listener:
            listener.is_up()
            send(ear, topic, Event(job.job_id, 1, 2, "completed", "").encode(None))
            send(ear, topic, Event(job.job_id, 1, 2, "completed", "").encode("guessed"))
            send(ear, topic, old)
            send(ear, topic, b"x" * (MAX_EVENT_BYTES + 1))
            send(ear, topic, b"\xff\xfe")
            send(ear, topic, b'{"schema_version": 9}')
            send(ear, topic, b'{"schema_version": 1, "job_id": "../x", "seq": 1, "event": "e"}')
            send(ear, topic, Event("stranger", 1, 1, "started", "").encode(None))
            send(ear, topic_of("stranger"), Event(job.job_id, 1, 2, "error", "").encode(token))
            good = Event(job.job_id, 1, 2, "progress", "", "it is me").encode(token)
            send(ear, topic, good)
            send(ear, topic, good)
            listener.until(lambda: listener.feed.state.dropped.get(Drop.REPLAYED) == 2, "all")
            assert dict(listener.feed.state.dropped) == {
                Drop.UNSIGNED: 1,
                Drop.FORGED: 1,
                Drop.REPLAYED: 2,
                Drop.OVERSIZED: 1,
                Drop.NOT_JSON: 1,
                Drop.OTHER_SCHEMA: 1,
                Drop.MALFORMED: 1,
                Drop.UNKNOWN_JOB: 1,
                Drop.MISPLACED: 1,
            }
            listener.quiet(0.2)
            assert [one.event.detail for one in listener.events()] == ["it is me"]
            assert len(listener.notices(NoticeKind.DROPPED)) == 8
            assert len(listener.notices(NoticeKind.REPEAT)) == 2
            assert not any(token in one.text for one in listener.notices())
        assert record.read_bytes() == before
        assert sorted(path.name for path in station.path.glob("*.json")) == names

    def test_a_flood_of_rubbish_is_counted_and_hardly_spoken_of(
        self, station: Station, hand: Hand, ear: Ear
    ) -> None:
        job_id = add(station.registry)
        with station.listening(rescan_sec=NEVER) as listener:
            listener.is_up()
            for n in range(1_000):
                ear.client.publish(topic_of(job_id), f"rubbish {n}", qos=1)
            hand.publish(ear, job_id, "progress")
            listener.until(lambda: listener.events(job_id), "the one that means something")
            listener.until(
                lambda: listener.feed.state.dropped.get(Drop.NOT_JSON) == 1_000, "all counted"
            )
            listener.until(
                lambda: sum(one.times for one in listener.notices(NoticeKind.DROPPED)) == 1_000,
                "and told, in exact numbers",
            )
            assert len(listener.notices(NoticeKind.DROPPED)) < 500
            assert any("more messages" in one.text for one in listener.notices())

    def test_the_registry_wins_over_a_foreign_event_of_the_same_number(
        self, station: Station, hand: Hand, ear: Ear
    ) -> None:
        """The foreign one comes first, while the number is issued and its event is on the way."""
        job_id = add(station.registry)
        with station.listening(rescan_sec=NEVER) as listener:
            listener.is_up()
            posts = hand.post(job_id, "progress")
            foreign = Event(job_id, 1, 1, "completed", "", "a foreign one").encode(None)
            send(ear, topic_of(job_id), foreign)
            said = listener.hears(NoticeKind.DROPPED)
            assert "differs from the registry" in said.text
            send(ear, topic_of(job_id), posts[0].payload)
            hand.taken(posts)
            listener.hears_all(job_id, 1)
            send(ear, topic_of(job_id), foreign)
            listener.hears(NoticeKind.DROPPED)
            assert [one.event.detail for one in listener.events()] == ["number 1"]
            assert listener.feed.state.dropped[Drop.CONFLICT] == 2

    def test_a_foreign_event_does_not_use_up_a_number_to_come(
        self, station: Station, hand: Hand, ear: Ear
    ) -> None:
        job_id = add(station.registry)
        with station.listening(rescan_sec=NEVER) as listener:
            listener.is_up()
            send(ear, topic_of(job_id), Event(job_id, 1, 1, "completed", "").encode(None))
            said = listener.hears(NoticeKind.DROPPED)
            assert "number not issued" in said.text
            hand.publish(ear, job_id, "progress")
            listener.hears_all(job_id, 1)
            assert [one.event.detail for one in listener.events()] == ["number 1"]

    def test_gaps_reorders_and_repeats_of_a_foreign_publisher_are_noticed(
        self, station: Station, ear: Ear
    ) -> None:
        """G20: publish 1, 3, 2, 3"""
        job_id = add(station.registry)
        with station.listening(rescan_sec=NEVER) as listener:
            listener.is_up()
            for seq in (1, 3, 2, 3):
                while station.registry.get(job_id).last_seq < seq:
                    station.registry.next_seq(job_id)
                send(ear, topic_of(job_id), Event(job_id, 1, seq, "progress", "").encode(None))
                if seq == 3:  # it waits for the second, until that is given up
                    listener.until(lambda: 3 in listener.seqs(job_id), "the third")
            listener.until(lambda: listener.notices(NoticeKind.REPEAT), "the repeat")
            assert sorted(listener.seqs(job_id)) == [1, 2, 3]
            assert len(listener.notices(NoticeKind.GAP)) == 1
            assert len(listener.notices(NoticeKind.LATE)) == 1

    def test_the_programs_of_mosquitto_speak_and_hear_beside_us(
        self, station: Station, ear: Ear
    ) -> None:
        """G1, G12: QoS 1, not retained; no event makes a record (G27)."""
        job_id = add(station.registry)
        port, login = address(str(station.path)).port, credentials(str(station.path), Role.OPERATOR)
        where = ["-h", "127.0.0.1", "-p", str(port), "-u", login.username, "-P", login.password]
        number = station.registry.next_seq(job_id)
        payload = Event(job_id, 1, number, "progress", "", "별…").encode(None).decode()
        stranger = Event("stranger", 1, 1, "started", "").encode(None).decode()
        with station.listening(rescan_sec=NEVER) as listener:
            listener.is_up()
            with subprocess.Popen(
                ["mosquitto_sub", *where, "-q", "1", "-t", "python/mqtt/jobs/+/events", "-C", "2"],
                stdout=subprocess.PIPE,
                text=True,
            ) as sub:
                try:
                    # It says nothing when it listens: speak until it has heard the first word.
                    stop = threading.Event()

                    def call() -> None:
                        while not stop.wait(0.1):
                            ear.publish("python/mqtt/jobs/hello/events", "are you there")

                    caller = threading.Thread(target=call)
                    caller.start()
                    assert sub.stdout is not None
                    assert sub.stdout.readline().strip() == "are you there"
                    stop.set()
                    caller.join()
                    for text in (payload, stranger):
                        topic = topic_of(json.loads(text)["job_id"])
                        pub = ["mosquitto_pub", *where, "-q", "1", "-t", topic, "-m", text]
                        subprocess.run(pub, check=True, timeout=PATIENCE_SEC)
                    line = sub.stdout.readline().strip()
                    assert line in (payload, "are you there")
                finally:
                    sub.kill()
            listener.until(lambda: listener.events(job_id), "the event")
            listener.until(
                lambda: listener.feed.state.dropped.get(Drop.UNKNOWN_JOB), "the stranger's"
            )
            assert listener.events(job_id)[0].event.detail == "별…"
            assert [row.job_id for row in listener.changes() if isinstance(row.job, Job)] in (
                [],
                [job_id],
            )
        assert not (station.path / "stranger.json").exists()
