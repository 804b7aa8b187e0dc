"""Events on their way: from the outbox to a real broker, whichever of the two dies meanwhile."""

from __future__ import annotations

import gc
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from mam_core.audit import AuditEvent, AuditLine
from mam_core.config import load
from mam_core.doctor import broker as doctor_broker
from mam_core.doctor.ground import Ground, Look
from mam_core.events import lanes, tellings
from mam_core.events.embedded import Role
from mam_core.events.keeper import Keeper
from mam_core.events.post import Post
from mam_core.operations.publish import Prospect, publish, wait_until_taken
from mam_core.operations.relay import leave_behind, new_relay
from mam_core.record_parts import Broker
from mam_core.registry import Registry
from mam_core.stores.outbox_files import BAD, encode_post, post_name
from mam_core.wiring import open_registry
from tests.support.brokers import Ear, embedded, kill_server, nothing_left
from tests.support.children import run_all
from tests.support.jobs import add
from tests.support.patience import PATIENCE_SEC, eventually
from tests.support.relays import (
    PUBLISHER,
    RELAY,
    payload_of,
    published,
    relay_in_thread,
    until_empty,
    until_published,
    waiting,
)


@pytest.fixture(params=["nats", "mosquitto"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A registry folder in which no process stays."""
    path = tmp_path / "jobs"
    with nothing_left(tmp_path):
        yield path


@pytest.fixture
def broker(home: Path, kind: str) -> Iterator[Keeper]:
    with embedded(home, kind).ensure_running() as keeper:
        yield keeper


@pytest.fixture
def registry(home: Path) -> Iterator[Registry]:
    with open_registry(str(home)) as opened:
        yield opened


def drain(registry: Registry, home: Path, patience_sec: float = PATIENCE_SEC) -> Any:
    relay = new_relay(registry, str(home), load())
    return relay.drain(threading.Event(), patience_sec=patience_sec)


def given_up(registry: Registry, home: Path, why: str) -> Any:
    """What relays that are not to live long leave, once one of them has heard why."""

    def left() -> Any:
        found = drain(registry, home, 0.5)
        return found if why in found.trouble else None

    return eventually(left, why)


@contextmanager
def relay_process(home: Path, registry: Registry) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", RELAY, str(home)]) as process:
        try:
            eventually(lambda: registry.store.outbox.relay(), "it is the relay")
            yield process
        finally:
            process.kill()


class TestARelayThatIsStopped:
    """By ctrl+z, or by whatever stops the process that it is a thread of."""

    def test_gives_way_to_another_and_no_event_is_lost_or_told_twice(
        self, home: Path, broker: Keeper, registry: Registry
    ) -> None:
        job_id, path = add(registry), str(home)
        with relay_process(home, registry) as process:
            wait_until_taken(registry, publish(registry, path, load(), job_id, "progress"))
            process.send_signal(signal.SIGSTOP)
            eventually(lambda: not registry.store.outbox.ring(), "nobody counts on it")
            sent = publish(registry, path, load(), job_id, "progress")
            assert sent.prospect is Prospect.STARTED
            wait_until_taken(registry, sent)
            process.send_signal(signal.SIGCONT)
            for _ in range(3):
                wait_until_taken(registry, publish(registry, path, load(), job_id, "progress"))
            until_published(registry, job_id, 5)
            assert process.poll() is None
        assert published(registry, job_id) == [1, 2, 3, 4, 5]

    def test_is_named_by_the_doctor_and_relieved_by_hand(
        self, home: Path, broker: Keeper, registry: Registry
    ) -> None:
        job_id = add(registry)
        look = Look(Ground(registry, str(home), load()))
        with relay_process(home, registry) as process:
            assert list(doctor_broker.relay(look)) == []
            process.send_signal(signal.SIGSTOP)
            found = eventually(lambda: list(doctor_broker.relay(look)), "it is named")
            assert f"process {process.pid}, is stopped" in found[0].words
            registry.publish(job_id, "progress")
            left = drain(registry, home)
            assert left is not None
            assert not left.posts
        assert published(registry, job_id) == [1]


class TestAnEvent:
    def test_arrives_as_it_was_posted_and_is_in_the_history(
        self, home: Path, broker: Keeper, registry: Registry
    ) -> None:
        """F8, G1, G12: the exact payload, QoS 1, not retained; then the outbox is empty."""
        job_id = add(registry, auth_token=True)
        with Ear(broker.port, broker.login(Role.OPERATOR)) as ear:
            ear.subscribe(f"python/mqtt/jobs/{job_id}/events")
            registry.publish(job_id, "started", detail='별 "quoted"', data={"deep": [1, 2.5, None]})
            (post,) = registry.store.outbox.posts(10)
            assert drain(registry, home).posts == 0
            message = ear.messages.get(timeout=30)
        assert message.payload == post.payload
        assert (message.qos, message.retain) == (1, False)
        assert payload_of(registry, job_id, 1) == json.loads(post.payload)
        assert waiting(registry) == []

    def test_published_while_a_relay_lives_is_taken_at_once(
        self, home: Path, broker: Keeper, registry: Registry
    ) -> None:
        job_id = add(registry)
        with relay_in_thread(home):
            eventually(registry.store.outbox.ring, "a relay listens")
            for seq in (1, 2, 3):
                registry.publish(job_id, "progress")
                assert registry.store.outbox.ring()
                until_published(registry, job_id, seq)

    def test_of_one_megabyte_arrives(self, home: Path, broker: Keeper, registry: Registry) -> None:
        job_id = add(registry)
        registry.publish(job_id, "log", detail="x" * (2**20 - 300))
        assert drain(registry, home).posts == 0
        assert published(registry, job_id) == [1]

    def test_of_many_publishers_has_one_number(
        self, home: Path, broker: Keeper, registry: Registry
    ) -> None:
        """G3: two processes at once, without a hole and without a double."""
        job_id = add(registry)
        with relay_in_thread(home):
            answers = run_all(PUBLISHER, [[str(home), job_id, "40"]] * 2)
            until_empty(registry)
        seqs = [int(word) for answer in answers for word in answer.split() if word.isdigit()]
        assert sorted(seqs) == list(range(1, 81))
        assert published(registry, job_id) == list(range(1, 81))


class TestABrokerThatDies:
    def test_in_the_middle_of_500_events_costs_none(
        self, home: Path, broker: Keeper, registry: Registry
    ) -> None:
        """The issue: SIGKILLed and restarted; every event once in the timeline, in order."""
        jobs = [add(registry, f"part {n}") for n in range(5)]
        killer = threading.Thread(target=self._kill_twice, args=(home, registry, jobs))
        with relay_in_thread(home):
            killer.start()
            for number in range(100):
                for job_id in jobs:
                    registry.publish(job_id, "progress", detail=f"step {number}")
                registry.store.outbox.ring()
            killer.join()
            until_empty(registry)
        for job_id in jobs:
            assert published(registry, job_id) == list(range(1, 101))

    def _kill_twice(self, home: Path, registry: Registry, jobs: list[str]) -> None:
        for reached in (20, 60):
            until_published(registry, jobs[0], reached)
            kill_server(home)

    def test_before_the_first_event_finds_them_all_when_it_is_back(
        self, home: Path, kind: str, registry: Registry
    ) -> None:
        """Down for the whole run, then up: delivered in order, nothing lost (G24, G25)."""
        with embedded(home, kind).ensure_running():
            jobs = [add(registry, f"part {n}") for n in range(3)]
        eventually(lambda: not embedded(home, kind).status().running, "the broker is down")
        with relay_in_thread(home):
            eventually(registry.store.outbox.ring, "a relay listens")
            for _ in range(50):
                for job_id in jobs:
                    registry.publish(job_id, "progress")
            registry.store.outbox.ring()
            outbox = registry.store.outbox
            eventually(lambda: False in outbox.lanes().values(), "the relay finds no broker")
            assert [published(registry, job_id) for job_id in jobs] == [[], [], []]
            assert len(waiting(registry)) == 150
            with embedded(home, kind).ensure_running():
                until_empty(registry)
        for job_id in jobs:
            assert published(registry, job_id) == list(range(1, 51))

    def test_and_stays_down_is_given_up_by_a_relay_that_is_not_to_live_long(
        self, home: Path, kind: str, registry: Registry
    ) -> None:
        """Decision 13: the posts stay for the next one."""
        with embedded(home, kind).ensure_running():
            job_id = add(registry)
        eventually(lambda: not embedded(home, kind).status().running, "the broker is down")
        registry.publish(job_id, "started")
        left = given_up(registry, home, "no broker of ours listens there")
        assert left.posts == 1
        assert waiting(registry) == [(job_id, 1)]

    def test_while_nothing_waits_for_it_is_nobodys_business(
        self, home: Path, kind: str, registry: Registry, caplog: pytest.LogCaptureFixture
    ) -> None:
        """An idle relay does not say that events wait."""
        with embedded(home, kind).ensure_running(), relay_in_thread(home):
            job_id = add(registry)
            registry.publish(job_id, "started")
            registry.store.outbox.ring()
            until_empty(registry)
            kill_server(home)
            threading.Event().wait(1.0)
            assert "events wait" not in caplog.text
            registry.publish(job_id, "completed")
            registry.store.outbox.ring()
            until_empty(registry)


class TestOtherBrokers:
    def test_that_cannot_be_reached_keep_nobody_waiting(
        self, home: Path, broker: Keeper, registry: Registry, caplog: pytest.LogCaptureFixture
    ) -> None:
        """An unknown host and a closed port; the events of the good one go on meanwhile."""
        lost = [
            add(registry, "a", broker={"host": "no-such-host.invalid", "port": 1883}),
            add(registry, "b", broker={"host": "127.0.0.1", "port": 1, "username": "u"}),
        ]
        good = add(registry, "c")
        for job_id in (*lost, good):
            for _ in range(20):
                registry.publish(job_id, "progress")
        with relay_in_thread(home):
            until_published(registry, good, 20)
            registry.publish(good, "progress")
            registry.store.outbox.ring()
            until_published(registry, good, 21)
        assert [published(registry, job_id) for job_id in lost] == [[], []]
        assert len(waiting(registry)) == 40
        said = [record.message for record in caplog.records]
        assert any("no-such-host.invalid:1883" in words for words in said)
        assert any("127.0.0.1:1" in words for words in said)

    def test_that_refuse_the_login_say_so(
        self, home: Path, broker: Keeper, registry: Registry
    ) -> None:
        wrong = {"host": "127.0.0.1", "port": broker.port, "username": "ann", "password": "guess"}
        registry.publish(add(registry, broker=wrong), "progress")
        left = given_up(registry, home, "it answers")
        assert left.posts == 1
        assert "guess" not in left.trouble

    def test_a_job_that_moves_to_another_broker_keeps_its_order(
        self, home: Path, broker: Keeper, registry: Registry
    ) -> None:
        job_id = add(registry)
        registry.publish(job_id, "progress")
        away = Broker("127.0.0.1", 1, False, "u")
        registry.publish(job_id, "progress", route=lambda _: away)
        registry.publish(job_id, "progress")
        eventually(lambda: drain(registry, home, 0.5).posts == 2, "the first is taken")
        assert published(registry, job_id) == [1], "the third does not overtake the second"


class TestARelayThatWasKilled:
    def test_between_history_and_outbox_tells_nothing_twice(
        self, home: Path, broker: Keeper, registry: Registry
    ) -> None:
        job_id = add(registry)
        for _ in range(3):
            registry.publish(job_id, "progress")
        for post in registry.store.outbox.posts(2):
            told = {"seq": post.seq, "payload": json.loads(post.payload)}
            line = AuditLine(AuditEvent.PUBLISHED, "2026-06-19T09:30:00.000Z", told)
            registry.store.audit.append(job_id, line.to_dict(job_id))
        with Ear(broker.port, broker.login(Role.OPERATOR)) as ear:
            ear.subscribe(f"python/mqtt/jobs/{job_id}/events")
            assert drain(registry, home).posts == 0
            assert json.loads(ear.messages.get(timeout=30).payload)["seq"] == 3
            assert ear.messages.empty()
        assert published(registry, job_id) == [1, 2, 3]

    def test_is_replaced_by_another_that_waits(
        self, home: Path, broker: Keeper, registry: Registry
    ) -> None:
        job_id = add(registry)
        with ExitStack() as first:
            first.enter_context(relay_in_thread(home))
            eventually(registry.store.outbox.ring, "the first listens")
            with relay_in_thread(home):
                assert drain(registry, home) is None, "a third is told that there is one"
                first.close()
                registry.publish(job_id, "progress")
                registry.store.outbox.ring()
                until_published(registry, job_id, 1)


class TestWhatIsHostile:
    @pytest.mark.parametrize(
        "payload", [b"", b"not json", b"{}", b'{"schema_version": 1}', b"\xff" * 100]
    )
    def test_a_post_that_carries_no_event_is_set_aside(
        self, home: Path, broker: Keeper, registry: Registry, payload: bytes
    ) -> None:
        job_id = add(registry)
        registry.publish(job_id, "progress")
        (good,) = registry.store.outbox.posts(10)
        bad = good._replace(seq=0, payload=payload)
        (home / ".outbox" / post_name(bad)).write_bytes(encode_post(bad))
        assert drain(registry, home).posts == 0
        assert published(registry, job_id) == [1]
        assert [path.name for path in (home / ".outbox").glob(f"*{BAD}")] == [post_name(bad) + BAD]

    def test_a_broker_with_an_impossible_port_is_set_aside(
        self, home: Path, broker: Keeper, registry: Registry
    ) -> None:
        job_id = add(registry)
        registry.publish(job_id, "progress", route=lambda known: known._replace(port=70_000))
        registry.publish(job_id, "progress")
        assert drain(registry, home).posts == 0
        assert published(registry, job_id) == [2]

    def test_a_topic_at_which_the_broker_hangs_up_stops_nobody_for_long(
        self, home: Path, broker: Keeper, registry: Registry
    ) -> None:
        bad, good = add(registry, "a"), add(registry, "b")
        record = home / f"{bad}.json"
        content = json.loads(record.read_text())
        record.write_text(json.dumps({**content, "topic_prefix": "a\tb"}))
        for job_id in (bad, good):
            for _ in range(3):
                registry.publish(job_id, "progress")
        assert drain(registry, home).posts == 0
        assert published(registry, good) == [1, 2, 3]
        assert published(registry, bad) == []
        assert len(list((home / ".outbox").glob(f"*{BAD}"))) == 3

    def test_a_flood_of_brokers_is_served_in_turns(
        self, home: Path, broker: Keeper, registry: Registry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each is a connection: only so many at a time, and dead ones make room."""
        monkeypatch.setattr(lanes, "MAX_LANES", 4)
        monkeypatch.setattr(lanes, "IDLE_SEC", 0.2)
        for number in range(12):
            dead = {"host": "127.0.0.1", "port": number + 1, "username": "u"}
            registry.publish(add(registry, f"dead {number}", broker=dead), "progress")
        good = add(registry, "good")
        registry.publish(good, "progress")
        registry.publish(good, "progress")
        with relay_in_thread(home):
            until_published(registry, good, 2)


class TestWhatBreaks:
    def test_a_relay_left_behind_needs_no_log(
        self, home: Path, broker: Keeper, registry: Registry
    ) -> None:
        job_id = add(registry)
        registry.publish(job_id, "started")
        os.mkfifo(home / ".outbox" / "relay.log")
        leave_behind(str(home))
        until_published(registry, job_id, 1)

    def test_an_audit_log_that_takes_no_line_stops_no_event(
        self,
        home: Path,
        broker: Keeper,
        registry: Registry,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """F13, F14."""
        monkeypatch.setattr(tellings, "_PATIENCE_SEC", 0.3)
        job_id = add(registry)
        for _ in range(3):
            registry.publish(job_id, "progress")
        shutil.rmtree(registry.store.audit.path)
        Path(registry.store.audit.path).write_text("in the way")
        with Ear(broker.port, broker.login(Role.OPERATOR)) as ear:
            ear.subscribe(f"python/mqtt/jobs/{job_id}/events")
            assert drain(registry, home).posts == 0
            assert [json.loads(text)["seq"] for text in ear.hear(3)] == [1, 2, 3]
        assert any("not in its log" in record.message for record in caplog.records)

    def test_a_line_that_could_not_be_written_is_written_later(
        self,
        home: Path,
        broker: Keeper,
        registry: Registry,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        tries: list[bool] = []

        def pay(self: tellings.Tellings) -> bool:
            tries.extend([True] * self.is_owing)
            return real_pay(self)

        real_pay = tellings.Tellings.pay
        monkeypatch.setattr(tellings.Tellings, "pay", pay)
        job_id = add(registry)
        registry.publish(job_id, "progress")
        history = Path(registry.store.audit.path)
        history.rename(history.with_name("away"))
        history.write_text("in the way")
        with relay_in_thread(home):
            eventually(lambda: len(tries) >= 3, "it is tried again and again")
            assert waiting(registry) == [(job_id, 1)], "kept until it is told"
            history.unlink()
            history.with_name("away").rename(history)
            until_empty(registry)
        assert published(registry, job_id) == [1]

    def test_a_registry_that_goes_and_comes_back_finds_its_relay(
        self, tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        home = tmp_path / "jobs"
        with nothing_left(tmp_path), embedded(tmp_path / "other", kind).ensure_running() as keeper:
            login = keeper.login(Role.OPERATOR)
            there = {"host": "127.0.0.1", "port": keeper.port, **login._asdict()}
            with open_registry(str(home)) as registry:
                job_id = add(registry, broker=there)
                registry.publish(job_id, "progress")
                with relay_in_thread(home):
                    until_empty(registry)
                    home.rename(tmp_path / "gone")
                    eventually(lambda: caplog.records, "the relay notices")
                    (tmp_path / "gone").rename(home)
                    registry.publish(job_id, "progress")
                    until_empty(registry)
                assert published(registry, job_id) == [1, 2]


def test_a_post_outlives_its_job(home: Path, broker: Keeper, registry: Registry) -> None:
    """It names topic and broker itself, so an archived job's last words arrive."""
    job_id = add(registry)
    registry.publish(job_id, "completed")
    registry.archive([job_id])
    assert drain(registry, home).posts == 0
    assert published(registry, job_id) == [1]


def test_a_relay_that_ends_leaves_no_thread_and_no_file_open(
    home: Path, broker: Keeper, registry: Registry
) -> None:
    job_id = add(registry)
    before = None
    for _ in range(5):
        registry.publish(job_id, "progress")
        assert drain(registry, home).posts == 0
        gc.collect()  # files that earlier tests dropped would go at a moment of their own
        # The broker's keeper, in this process too, has its lock open for a moment now and then.
        now = min(_counted() for _ in range(10))
        assert before in (None, now)
        before = now


def _counted() -> tuple[int, int]:
    """Threads and open files of this process."""
    time.sleep(0.01)
    return threading.active_count(), len(os.listdir("/proc/self/fd"))


def test_posts_are_private_to_the_registry_that_made_them(
    home: Path, broker: Keeper, registry: Registry
) -> None:
    """A post that somebody copied from another job's is not sent in that name."""
    job_id, other = add(registry, "a"), add(registry, "b")
    registry.publish(job_id, "progress")
    (post,) = registry.store.outbox.posts(10)
    forged = Post(other, 1, 1, f"python/mqtt/jobs/{other}/events", post.broker, post.payload)
    (home / ".outbox" / post_name(forged)).write_bytes(encode_post(forged))
    assert drain(registry, home).posts == 0
    assert published(registry, other) == []
    assert published(registry, job_id) == [1]
