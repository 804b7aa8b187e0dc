"""From a record to the broker: where new records point, what is looked up, how a client gets in."""

from __future__ import annotations

import os
import queue
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mam_core.api import register_job
from mam_core.config import load
from mam_core.events import embedded as embedded_module
from mam_core.events.broker import EmbeddedBroker
from mam_core.events.connection import BrokerUnreachable, Connection, resolve, role_here
from mam_core.events.embedded import BrokerFolder, Role, address, credentials
from mam_core.events.keeper import Keeper
from mam_core.events.mqtt import Client, new_client
from mam_core.operations.migrate import migrate
from mam_core.record_parts import Broker
from mam_core.wiring import client_for, open_registry
from tests.support.brokers import Ear, embedded, kill_server, nothing_left, processes_in
from tests.support.patience import PATIENCE_SEC, eventually

JOB: dict[str, Any] = {"prompt": "p", "agent": "a", "agent_session": "l"}


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Path]:
    with nothing_left(tmp_path):
        yield tmp_path / "jobs"


@pytest.fixture
def broker(registry: Path) -> EmbeddedBroker:
    return embedded(registry, "nats")


@pytest.fixture
def keeper(broker: EmbeddedBroker) -> Iterator[Keeper]:
    with broker.ensure_running() as made:
        yield made


def registered(registry: Path, **fields: Any) -> Broker:
    """The broker in the record of a new job."""
    with open_registry(str(registry)) as opened:
        (answer,) = opened.register([{**JOB, **fields}])
        return opened.get(answer.job_id).broker


class TestNewRecords:
    def test_name_the_embedded_broker_and_hold_no_secret(self, registry: Path) -> None:
        """A11, decisions 2 and 21: host and port; whoever connects looks the login up."""
        assert registered(registry) == address(str(registry))
        assert address(str(registry)).port != Broker().port
        assert os.listdir(registry / ".broker") == ["address.json"]
        assert processes_in(registry) == []

    def test_of_scripts_do_the_same(self, registry: Path) -> None:
        job_id = register_job("p", agent="a", agent_session="l", registry_dir=str(registry))
        with open_registry(str(registry)) as opened:
            assert opened.get(job_id).broker == address(str(registry))

    def test_name_the_broker_that_the_settings_name(
        self, registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "mam.toml").write_text("[broker]\nhost = 'mq.example'\nport = 2000\n")
        monkeypatch.chdir(tmp_path)
        assert registered(registry) == Broker("mq.example", 2000)
        assert not (registry / ".broker").exists()

    def test_name_the_broker_that_the_request_names(self, registry: Path) -> None:
        assert registered(registry, broker={"host": "mq.example"}) == Broker("mq.example")
        assert not (registry / ".broker").exists()

    def test_cost_one_look_a_handle(self, registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        looks: list[str] = []

        def look(path: str) -> Broker:
            looks.append(path)
            return Broker("127.0.0.1", 20001)

        monkeypatch.setattr(embedded_module, "address", look)
        with open_registry(str(registry)) as opened:
            opened.register([JOB, {**JOB, "prompt": "q"}])
            opened.register([{**JOB, "prompt": "r"}])
        assert looks == [str(registry)]


class TestWhereToConnect:
    """G4, G5, G6, X9 for a record that names the registry's own broker."""

    def test_a_record_of_the_embedded_broker_gets_its_login(self, registry: Path) -> None:
        record = registered(registry)
        for role in Role:
            there = resolve(record, registry_path=str(registry), role=role)
            login = credentials(str(registry), role)
            assert (there.host, there.port, there.tls) == ("127.0.0.1", record.port, False)
            assert (there.username, there.password) == (role, login.password)
            assert there.is_embedded

    def test_no_record_means_the_same(self, registry: Path) -> None:
        record = registered(registry)
        there = resolve(registry_path=str(registry))
        assert there == resolve(record, registry_path=str(registry))

    def test_a_port_that_strangers_took_leads_to_the_one_of_now(self, registry: Path) -> None:
        record = registered(registry)
        with BrokerFolder.open(str(registry)) as home:
            now = home.move()
        assert now.port != record.port
        assert resolve(record, registry_path=str(registry)).port == now.port

    def test_without_a_path_it_is_the_configured_registry(
        self, registry: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        record = registered(registry)
        assert resolve(record).username is None
        monkeypatch.setenv("MAM_REGISTRY_DIR", str(registry))
        assert resolve(record).username == Role.OPERATOR

    def test_records_that_moved_here_mean_the_broker_here(
        self, registry: Path, tmp_path: Path
    ) -> None:
        """Their old registry's broker does not know them any more."""
        moved = registered(tmp_path / "old")
        registered(registry)
        migrate(str(tmp_path / "old"), str(registry))
        assert resolve(moved, registry_path=str(registry)) == resolve(registry_path=str(registry))
        assert address(str(registry)).port != moved.port

    def test_another_registrys_record_gets_no_login(self, registry: Path, tmp_path: Path) -> None:
        stranger = registered(tmp_path / "other")
        registered(registry)
        there = resolve(stranger, registry_path=str(registry))
        assert (there.port, there.username, there.password) == (stranger.port, None, None)

    @pytest.mark.parametrize(
        ("name", "value"), [("MQTT_BROKER", "mq.example"), ("MQTT_PORT", "1883")]
    )
    def test_an_address_of_the_environment_is_never_shown_the_login(
        self, registry: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
    ) -> None:
        record = registered(registry)
        monkeypatch.setenv(name, value)
        for asked in (record, None):
            there = resolve(asked, registry_path=str(registry))
            assert value in (there.host, str(there.port))
            assert (there.username, there.password, there.is_embedded) == (None, None, False)

    def test_a_login_of_the_environment_is_for_other_brokers(
        self, registry: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Many a shell exports one; the embedded broker made its own."""
        record = registered(registry)
        monkeypatch.setenv("MQTT_USERNAME", "me")
        monkeypatch.setenv("MQTT_PASSWORD", "hunter2")
        for asked in (record, None):
            there = resolve(asked, registry_path=str(registry))
            assert there.username == Role.OPERATOR
            assert there.password == credentials(str(registry), Role.OPERATOR).password
        there = resolve(Broker("mq.example"), registry_path=str(registry))
        assert (there.username, there.password) == ("me", "hunter2")

    def test_tls_means_another_broker(
        self, registry: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """G5: the toggle wins over a plain record, and takes the login away."""
        record = registered(registry)
        monkeypatch.setenv("MQTT_TLS", "1")
        for asked in (record, None):
            there = resolve(asked, registry_path=str(registry))
            assert (there.tls, there.username, there.is_embedded) == (True, None, False)

    def test_the_settings_broker_is_not_given_our_login(
        self, registry: Path, tmp_path: Path
    ) -> None:
        record = registered(registry)
        (tmp_path / "mam.toml").write_text("[broker]\nhost = 'mq.example'\n")
        config = load(str(tmp_path / "mam.toml"))
        assert resolve(None, config, registry_path=str(registry)) == Connection("mq.example", 1883)
        assert resolve(record, config, registry_path=str(registry)).is_embedded

    def test_looking_makes_nothing(self, registry: Path) -> None:
        there = resolve(registry_path=str(registry))
        assert (there.host, there.port, there.username) == ("127.0.0.1", 1883, None)
        assert not registry.exists()

    @pytest.mark.parametrize(
        ("variable", "value"), [("MAM_JOB_ID", "abc12345"), ("MAM_LIVE_AGENT", "codex")]
    )
    def test_what_an_agent_runs_has_the_agents_rights(
        self, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
    ) -> None:
        assert role_here() is Role.OPERATOR
        monkeypatch.setenv(variable, value)
        assert role_here() is Role.AGENT

    def test_a_secret_is_not_in_a_representation(self, registry: Path) -> None:
        """K5"""
        there = resolve(registered(registry), registry_path=str(registry))
        assert there.password
        assert there.password not in repr(there)


def heard_by(client: Client) -> queue.Queue[str]:
    """What a client hears, from now on."""
    heard: queue.Queue[str] = queue.Queue()
    client.on_message = lambda c, u, message: heard.put(message.payload.decode())
    subscribe(client)
    return heard


def subscribe(client: Client) -> None:
    """And wait for the broker's word: what is published before it may not come."""
    granted: queue.Queue[None] = queue.Queue()
    client.on_subscribe = lambda c, u, mid, codes, p: granted.put(None)
    client.subscribe("a/events", qos=1)
    granted.get(timeout=PATIENCE_SEC)


class TestTheClient:
    def test_gets_in_by_the_record_alone(self, registry: Path, keeper: Keeper) -> None:
        """G4"""
        client = client_for(str(registry), load(), registered(registry))
        client.reach()
        try:
            heard = heard_by(client)
            client.publish("a/events", "hello", qos=1).wait_for_publish(PATIENCE_SEC)
            assert heard.get(timeout=PATIENCE_SEC) == "hello"
        finally:
            client.stop()

    def test_calls_the_callback_that_was_set_before(self, registry: Path, keeper: Keeper) -> None:
        client = client_for(str(registry), load())
        answers: queue.Queue[str] = queue.Queue()
        client.on_connect = lambda c, u, flags, code, p: answers.put(str(code))
        client.reach()
        assert answers.get(timeout=PATIENCE_SEC) == "Success"
        client.stop()

    def test_of_two_none_throws_the_other_out(self, registry: Path, keeper: Keeper) -> None:
        """G21"""
        one, two = (client_for(str(registry), load()) for _ in range(2))
        one.reach()
        two.reach()
        assert one.is_connected()
        assert two.is_connected()
        one.stop()
        two.stop()

    def test_a_broker_that_is_not_there_is_a_sentence(self, registry: Path) -> None:
        """G7, G8"""
        record = registered(registry)
        client = client_for(str(registry), load(), record)
        with pytest.raises(BrokerUnreachable) as refused:
            client.reach()
        assert refused.value.message == (
            f"the broker 127.0.0.1:{record.port} cannot be reached: no broker of ours listens there"
        )

    def test_a_port_that_nobody_listens_on_is_a_sentence(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # and does not listen
            there = Connection("127.0.0.1", taken.getsockname()[1])
            with pytest.raises(BrokerUnreachable, match=r"cannot be reached: connection refused$"):
                new_client(there).reach()

    def test_a_port_that_says_nothing_is_left_in_time(self) -> None:
        """G7: a black hole takes the connection and never answers."""
        with socket.create_server(("127.0.0.1", 0)) as hole:
            there = Connection("127.0.0.1", hole.getsockname()[1])
            with pytest.raises(BrokerUnreachable, match=r": it does not answer$"):
                new_client(there).reach(0.3)

    def test_a_refusal_is_told_in_the_brokers_words(self, keeper: Keeper) -> None:
        there = Connection("127.0.0.1", keeper.port, username="operator", password="guessed")
        with pytest.raises(BrokerUnreachable, match=r": it answers: not authorized$"):
            new_client(there).reach()

    def test_follows_the_broker_to_another_port(
        self, registry: Path, broker: EmbeddedBroker
    ) -> None:
        """A stranger took its port while it was away; the record still names the old one."""
        record = registered(registry)
        with broker.ensure_running():
            client = client_for(str(registry), load(), record)
            client.reach()
        eventually(lambda: not client.is_connected(), "the broker ends")
        eventually(lambda: processes_in(registry) == [], "the broker is gone")
        with socket.create_server(("127.0.0.1", record.port)) as stranger:
            stranger.setblocking(False)
            with broker.ensure_running() as keeper:
                eventually(client.is_connected, "the client finds it")
                assert client.connection.port == keeper.port != record.port
                client.stop()
            try:
                shown, _ = stranger.accept()
            except BlockingIOError:
                return
            # It may have come before the broker moved; it was not shown a login.
            with shown:
                shown.settimeout(PATIENCE_SEC)
                assert b"operator" not in shown.recv(4096)

    def test_another_users_program_is_not_shown_the_password(
        self, registry: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        record = registered(registry)
        with socket.create_server(("127.0.0.1", record.port)) as stranger:
            stranger.setblocking(False)
            monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
            client = new_client(
                Connection("127.0.0.1", record.port, password="secret", is_embedded=True)
            )
            with pytest.raises(BrokerUnreachable, match=r"no broker of ours listens there"):
                client.reach()
            with pytest.raises(BlockingIOError):
                stranger.accept()

    def test_is_back_after_kill_9_of_the_broker(self, registry: Path, keeper: Keeper) -> None:
        """G9: and tells its user, who subscribes again."""
        ups: queue.Queue[None] = queue.Queue()
        client = client_for(str(registry), load())
        client.on_connect = lambda c, u, flags, code, p: ups.put(None)
        client.reach()
        ups.get(timeout=PATIENCE_SEC)
        kill_server(registry)
        ups.get(timeout=PATIENCE_SEC)
        assert client.is_connected()
        client.stop()

    @pytest.mark.parametrize("kind", ["nats", "mosquitto"])
    def test_what_is_not_acknowledged_comes_again(self, registry: Path, kind: str) -> None:
        """A reader that dies between hearing and noting loses nothing."""
        with embedded(registry, kind).ensure_running() as keeper:
            with reading(registry) as (client, messages):
                subscribe(client)
                with Ear(keeper.port, keeper.login(Role.AGENT)) as agent:
                    agent.publish("a/events", "once")
                assert messages.get(timeout=PATIENCE_SEC).payload == b"once"
            with reading(registry) as (client, messages):
                again = messages.get(timeout=PATIENCE_SEC)
                assert again.payload == b"once"
                client.ack(again.mid, again.qos)
            with reading(registry) as (client, messages):
                with Ear(keeper.port, keeper.login(Role.AGENT)) as agent:
                    agent.publish("a/events", "twice")
                assert messages.get(timeout=PATIENCE_SEC).payload == b"twice"


@contextmanager
def reading(registry: Path) -> Iterator[tuple[Client, queue.Queue[Any]]]:
    """A reader with a session that is kept, and its messages."""
    messages: queue.Queue[Any] = queue.Queue()
    client = client_for(str(registry), load(), None, "reader", clean_session=False, manual_ack=True)
    client.on_message = lambda c, u, message: messages.put(message)
    client.reach()
    try:
        yield client, messages
    finally:
        client.stop()
