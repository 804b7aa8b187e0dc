"""A subscription to a real broker: listens again after every loss, holds a bounded number."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from mam_core.errors import ConfigError
from mam_core.events import subscription
from mam_core.events.broker import EmbeddedBroker
from mam_core.events.client import Client
from mam_core.events.connection import Connection
from mam_core.events.embedded import Role, address, credentials
from mam_core.events.event import MAX_EVENT_BYTES
from mam_core.events.keeper import Keeper
from mam_core.events.mqtt import new_client
from mam_core.events.reception import MAX_BROKERS, Reception, is_plain_topic
from mam_core.events.subscription import Arrived, Subscription, Turn
from mam_core.pace import paced_retry
from mam_core.record_parts import Broker
from mam_core.records import Job, Status
from tests.support.brokers import Ear, embedded, kill_server, nothing_left
from tests.support.patience import eventually


@pytest.fixture(params=["nats", "mosquitto"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with nothing_left(tmp_path):
        yield embedded(tmp_path / "jobs", request.param)


@pytest.fixture
def keeper(broker: EmbeddedBroker) -> Iterator[Keeper]:
    with broker.ensure_running() as kept:
        yield kept


@pytest.fixture
def ear(keeper: Keeper) -> Iterator[Ear]:
    with Ear(keeper.port, keeper.login(Role.OPERATOR)) as made:
        yield made


class Row:
    """A subscription and all that it ever drained."""

    def __init__(self, connect: Callable[[], Client], *filters: str, **more: Any) -> None:
        self.woken = threading.Event()
        self.subscription = Subscription(connect, filters, self.woken.set, **more)
        self.arrived: list[Arrived] = []
        self.turns: list[Turn] = []
        self.lost = 0

    def look(self) -> Row:
        drained = self.subscription.drain()
        self.arrived += drained.arrived
        self.turns += drained.turns
        self.lost += drained.lost
        return self

    @property
    def payloads(self) -> list[str]:
        return [one.payload.decode() for one in self.look().arrived]

    def is_up(self, times: int = 1) -> None:
        def up() -> bool:
            return len([turn for turn in self.look().turns if turn.up]) >= times

        eventually(up, "it listens")


@contextmanager
def listening(connect: Callable[[], Client], *filters: str, **more: Any) -> Iterator[Row]:
    row = Row(connect, *filters, **more)
    row.subscription.start()
    try:
        yield row
    finally:
        row.subscription.close()


def at(tmp_path: Path) -> Callable[[], Client]:
    """Where the broker is now, with the operator's login."""

    def connect() -> Client:
        login = credentials(str(tmp_path / "jobs"), Role.OPERATOR)
        port = address(str(tmp_path / "jobs")).port
        return new_client(
            Connection("127.0.0.1", port, username=login.username, password=login.password)
        )

    return connect


def test_what_is_sent_to_its_topics_arrives_in_order(
    keeper: Keeper, ear: Ear, tmp_path: Path
) -> None:
    with listening(at(tmp_path), "a/+/events", "b/events") as row:
        row.is_up()
        for number in range(50):
            ear.publish("a/x/events" if number % 2 else "b/events", str(number))
        ear.publish("c/events", "not for us")
        eventually(lambda: len(row.payloads) >= 50, "all of them")
        # Two filters are two streams to NATS: each is in order.
        for topic, first in (("b/events", 0), ("a/x/events", 1)):
            heard = [int(one.payload) for one in row.arrived if one.topic == topic]
            assert heard == list(range(first, 50, 2))
        assert row.woken.is_set()
        assert row.turns[0].text == f"listening to 127.0.0.1:{keeper.port}"


def test_after_a_kill_it_listens_again_without_being_asked(keeper: Keeper, tmp_path: Path) -> None:
    """G9"""
    with listening(at(tmp_path), "a/events") as row:
        row.is_up()
        for times in (2, 3):
            kill_server(tmp_path / "jobs")
            row.is_up(times)
            with Ear(keeper.port, keeper.login(Role.OPERATOR)) as ear:
                ear.publish("a/events", f"after kill {times}")
            eventually(lambda n=times: f"after kill {n}" in row.payloads, "it is heard")  # type: ignore[misc]
        assert [turn.up for turn in row.turns] == [True, False, True, False, True]
        assert "lost" in row.turns[1].text


def test_a_topic_can_be_added_before_the_broker_is_there_and_after(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with listening(at(tmp_path), "a/events") as row:
        row.subscription.add("b/events")
        eventually(lambda: row.look().turns, "it is down")
        assert row.subscription.up is False
        with broker.ensure_running() as keeper:
            row.is_up()
            row.subscription.add("c/events")
            row.subscription.add("c/events")
            with Ear(keeper.port, keeper.login(Role.OPERATOR)) as ear:

                def spoken() -> bool:
                    ear.publish("c/events", "c")
                    return "c" in row.payloads

                eventually(spoken, "the topic that came last")
                ear.publish("b/events", "b")
                eventually(lambda: "b" in row.payloads, "the topic that was added before")


def test_a_broker_that_is_down_is_said_once(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G7, G8"""
    tries: list[None] = []
    pauses: list[float] = []

    def connect() -> Client:
        tries.append(None)
        return at(tmp_path)()

    def paced(usual_sec: float) -> float:
        pauses.append(usual_sec)
        return paced_retry(usual_sec)

    monkeypatch.setattr(subscription, "paced_retry", paced)

    with listening(connect, "a/events") as row:
        eventually(lambda: len(tries) >= 4, "it is tried again")
        assert [turn.up for turn in row.look().turns] == [False]
        assert row.subscription.up is False
        assert 0 < max(pauses) <= subscription.PAUSES_SEC[1]


def test_when_nobody_reads_the_oldest_go_and_are_counted(
    keeper: Keeper, ear: Ear, tmp_path: Path
) -> None:
    with listening(at(tmp_path), "a/events", "b/events", max_messages=10) as row:
        row.is_up()
        row.woken.clear()
        for number in range(100):
            ear.publish("a/events", str(number))
        eventually(row.woken.is_set, "something came")
        eventually(lambda: _newest(row) == "99", "the last one is there")
        row.look()
        assert row.payloads == [str(number) for number in range(90, 100)]
        assert row.lost == 90


def _newest(row: Row) -> str:
    with row.subscription._lock:
        waiting = row.subscription._arrived
        return waiting[-1].payload.decode() if waiting else ""


def test_long_messages_take_bounded_memory(keeper: Keeper, ear: Ear, tmp_path: Path) -> None:
    with listening(at(tmp_path), "a/events", max_bytes=3 * MAX_EVENT_BYTES) as row:
        row.is_up()
        for _ in range(5):
            ear.publish("a/events", "x" * (MAX_EVENT_BYTES + 100))
        ear.publish("a/events", "last")
        eventually(lambda: _newest(row) == "last", "the last one is there")
        row.look()
        assert sum(len(one.payload) for one in row.arrived) <= 3 * MAX_EVENT_BYTES
        assert len(row.arrived[0].payload) == MAX_EVENT_BYTES + 1
        assert row.lost == 3


def test_a_wrong_password_is_said_and_not_shown(keeper: Keeper, tmp_path: Path) -> None:
    """K5"""
    wrong = Connection("127.0.0.1", keeper.port, username="operator", password="a-wrong-one")
    with listening(lambda: new_client(wrong), "a/events") as row:
        turn = eventually(lambda: row.look().turns, "it is refused")[0]
        assert not turn.up
        assert "refused" in turn.text
        assert "a-wrong-one" not in turn.text


def test_a_filter_that_is_not_allowed_is_said(keeper: Keeper, tmp_path: Path) -> None:
    """NATS refuses it; mosquitto grants it and delivers nothing, which nobody can tell."""
    login = keeper.login(Role.AGENT)
    agent = Connection("127.0.0.1", keeper.port, username=login.username, password=login.password)
    with listening(lambda: new_client(agent), "a/events") as row:
        turn = eventually(lambda: row.look().turns, "an answer")[0]
        assert turn.up or "does not let us listen to a/events" in turn.text


def test_a_place_that_takes_the_call_and_says_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G7"""
    monkeypatch.setattr(subscription, "ANSWER_SEC", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as hole:
        port = hole.getsockname()[1]
        with listening(lambda: new_client(Connection("127.0.0.1", port)), "a/events") as row:
            turn = eventually(lambda: row.look().turns, "it is given up")[0]
            assert turn == Turn(False, "the broker does not answer", turn.at)


@pytest.mark.parametrize(
    "problem", [ConfigError("the certificate is missing"), OSError(13, "no"), ValueError("no host")]
)
def test_what_goes_wrong_before_the_connection_is_a_turn_too(problem: Exception) -> None:
    def connect() -> Client:
        raise problem

    with listening(connect, "a/events") as row:
        turn = eventually(lambda: row.look().turns, "it is down")[0]
        assert turn.text in str(problem)


def test_closing_waits_for_no_broker(keeper: Keeper, tmp_path: Path) -> None:
    before = threading.active_count()
    with listening(at(tmp_path), "a/events") as row:
        row.is_up()
    assert threading.active_count() == before
    row.subscription.close()  # twice does no harm


# -- which brokers and topics there are --------------------------------------------------------


class Still:
    """A client that goes nowhere: only its address matters here."""

    def __init__(self, broker: Broker | None) -> None:
        self.host = broker.host if broker else "usual"
        self.port = broker.port if broker else 1883
        self.username = broker.username if broker else None

    def socket(self) -> None:
        return None

    def reconnect(self) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@pytest.fixture
def reception() -> Iterator[Reception]:
    made = Reception(lambda: Still(None), Still, lambda: None)
    made.start()
    yield made
    made.close()


def a_job(number: int, **fields: Any) -> Job:
    job_id = f"job{number:05}"
    values = {"topic_prefix": f"python/mqtt/jobs/{job_id}", "broker": Broker("usual"), **fields}
    return Job(job_id, Status.RUNNING, **values)


def threads() -> int:
    return [one.name for one in threading.enumerate()].count("mam-subscription")


def test_brokers_beyond_the_bound_are_said_once(reception: Reception) -> None:
    said = [
        reception.follow(a_job(number, broker=Broker(f"host{number % 20}"))) for number in range(60)
    ]
    assert len([text for text in said if text]) == 20 - (MAX_BROKERS - 1)
    assert f"more than {MAX_BROKERS} brokers" in next(filter(None, said))
    assert threads() == MAX_BROKERS


def test_a_broker_is_left_with_its_last_live_job(reception: Reception) -> None:
    one, two = (a_job(number, broker=Broker("elsewhere")) for number in (1, 2))
    for job in (one, two, one):
        reception.follow(job)
    assert threads() == 2
    reception.follow(one.evolve(status=Status.COMPLETED))
    assert threads() == 2
    reception.leave(two.job_id)
    eventually(lambda: threads() == 1, "it is left")


def test_a_job_that_changes_its_broker_is_followed_there(reception: Reception) -> None:
    reception.follow(a_job(1, broker=Broker("one")))
    reception.follow(a_job(1, broker=Broker("two")))
    eventually(lambda: threads() == 2, "the first is left")
    reception.follow(a_job(1))
    eventually(lambda: threads() == 1, "and the second")


def test_ten_thousand_usual_jobs_add_no_topic(reception: Reception) -> None:
    """G19: one wildcard."""
    for number in range(10_000):
        reception.follow(a_job(number))
    assert reception.usual is not None
    assert reception.usual.filters() == ["python/mqtt/jobs/+/events"]


def test_strange_prefixes_add_a_bounded_number_of_topics(reception: Reception) -> None:
    for number in range(3_000):
        reception.follow(a_job(number, topic_prefix=f"mine/{number}"))
    assert reception.usual is not None
    assert len(reception.usual.filters()) == 1_001


@pytest.mark.parametrize(
    "topic", ["#", "a/#", "+/events", "a/+/b", "", "x" * 2000, "a\0", "\ud800"]
)
def test_what_is_no_plain_topic_is_not_listened_to(topic: str) -> None:
    assert not is_plain_topic(topic)
    assert is_plain_topic("my/own place/events")


def test_without_a_broker_nothing_is_followed_and_nothing_heard() -> None:
    reception = Reception(None, None, lambda: None)
    reception.start()
    assert reception.follow(a_job(1, topic_prefix="mine")) is None
    assert not reception.hears(a_job(1))
    assert reception.drain() == ([], [])
    with suppress(Exception):
        reception.close()
