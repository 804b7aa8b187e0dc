"""The embedded broker as its clients meet it: the same promises by both programs."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from mam_core.events.broker import EmbeddedBroker
from mam_core.events.embedded import Login, Role, address, credentials
from mam_core.events.handshake import ACCEPTED, connack
from mam_core.events.keeper import Keeper
from mam_core.events.servers import TOPIC_LEVELS
from tests.support.brokers import (
    Ear,
    Heard,
    embedded,
    kill_server,
    nothing_left,
    processes_in,
)
from tests.support.patience import eventually

NOT_AUTHORISED = 5

HOSTILE = [
    "plain",
    "with blanks and 'quotes' and \"doubles\"",
    "ünïcode-日本-\U0001f600",
    "$HOME `id` $(id) %s {0} \\n \\",
    "new\nline # not a comment",
]


@pytest.fixture
def keeper(broker: EmbeddedBroker) -> Iterator[Keeper]:
    with broker.ensure_running() as made:
        yield made


class TestWhoMayComeIn:
    @pytest.mark.parametrize("role", list(Role))
    def test_each_role_is_let_in(self, keeper: Keeper, role: Role) -> None:
        login = keeper.login(role)
        assert connack("127.0.0.1", keeper.port, login.username, login.password) == ACCEPTED

    def test_nobody_without_a_login(self, keeper: Keeper) -> None:
        assert connack("127.0.0.1", keeper.port) == NOT_AUTHORISED

    @pytest.mark.parametrize("role", list(Role))
    def test_nobody_with_a_wrong_password(self, keeper: Keeper, role: Role) -> None:
        for wrong in ("", "x", keeper.login(role).password[:-1]):
            assert connack("127.0.0.1", keeper.port, role, wrong) == NOT_AUTHORISED

    def test_no_role_with_the_password_of_the_other(self, keeper: Keeper) -> None:
        password = keeper.login(Role.AGENT).password
        assert connack("127.0.0.1", keeper.port, Role.OPERATOR, password) == NOT_AUTHORISED


class TestWhatARoleMayDo:
    def test_the_operator_hears_what_an_agent_tells(self, keeper: Keeper) -> None:
        """G1: any prefix, as long as it ends in events."""
        topics = ["python/mqtt/jobs/a1/events", "x/events", "/".join(["deep"] * TOPIC_LEVELS)]
        topics[2] += "/events"
        with Ear(keeper.port, keeper.login(Role.OPERATOR)) as operator:
            operator.subscribe("#")
            with Ear(keeper.port, keeper.login(Role.AGENT)) as agent:
                for topic in topics:
                    agent.publish(topic, topic)
            assert operator.hear(3) == topics

    def test_an_agent_can_tell_nothing_but_events(self, keeper: Keeper) -> None:
        with Ear(keeper.port, keeper.login(Role.OPERATOR)) as operator:
            operator.subscribe("#")
            with Ear(keeper.port, keeper.login(Role.AGENT)) as agent:
                for topic in ("python/mqtt/jobs/a1/commands", "events", "a/events/more", "a"):
                    agent.publish(topic, "refused")
                agent.publish("a/events", "allowed")
            assert operator.hear(1) == ["allowed"]
            assert operator.messages.empty()

    def test_an_agent_hears_nothing(self, keeper: Keeper) -> None:
        """NATS refuses the subscription, mosquitto takes it and delivers nothing."""
        with Ear(keeper.port, keeper.login(Role.AGENT)) as agent:
            for topic in ("#", "a/events", "+/events"):
                try:
                    agent.subscribe(topic)
                except Heard:
                    continue
            with Ear(keeper.port, keeper.login(Role.OPERATOR)) as operator:
                operator.subscribe("a/events")
                operator.publish("a/events", "for operators")
                assert operator.hear(1) == ["for operators"]
            agent.publish("b/events", "a round trip, so that a message had time to come")
            assert agent.messages.empty()

    def test_a_message_of_a_megabyte_passes(self, keeper: Keeper) -> None:
        text = "x" * 1024 * 1024
        with Ear(keeper.port, keeper.login(Role.OPERATOR)) as operator:
            operator.subscribe("a/events")
            operator.publish("a/events", text)
            assert operator.hear(1) == [text]


class TestWhereItIs:
    def test_it_listens_on_loopback_only(self, keeper: Keeper, registry: Path) -> None:
        """Decision 2: read from the sockets that are really open."""
        listening = [
            (connection.laddr.ip, connection.laddr.port)
            for process in processes_in(registry)
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        assert ("127.0.0.1", keeper.port) in listening
        assert {ip for ip, _ in listening} == {"127.0.0.1"}

    def test_folders_are_0700_and_files_0600(self, keeper: Keeper, registry: Path) -> None:
        """Decision 10, also for what the program makes itself, and with an open umask."""
        with Ear(keeper.port, keeper.login(Role.OPERATOR), clean=False) as operator:
            operator.subscribe("a/events")
            operator.publish("a/events", "something to store")
        found = {}
        for path in registry.rglob("*"):
            with suppress(FileNotFoundError):  # mosquitto writes a new file, then renames it
                found[path] = path.stat().st_mode
        assert len(found) > 6
        for path, mode in found.items():
            assert stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600), path

    def test_no_secret_is_in_an_argument_or_the_environment(
        self, keeper: Keeper, registry: Path
    ) -> None:
        """Decision 10, K5"""
        secrets = [keeper.login(role).password for role in Role]
        running = processes_in(registry)
        assert len(running) == 2
        for process in running:
            seen = " ".join(process.cmdline()) + " ".join(process.environ().values())
            assert not any(secret in seen for secret in secrets)

    def test_of_our_environment_only_the_harmless_is_passed_on(
        self, broker: EmbeddedBroker, registry: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MQTT_PASSWORD", "hunter2")
        monkeypatch.setenv("MAM_JOB_ID", "abc")
        with broker.ensure_running():
            for process in processes_in(registry):
                assert set(process.environ()) <= {"HOME", "PATH", "TMPDIR", "LANG", "LC_CTYPE"}

    @pytest.mark.parametrize("name", HOSTILE)
    def test_any_path_will_do(self, tmp_path: Path, kind: str, name: str) -> None:
        with nothing_left(tmp_path):
            broker = embedded(tmp_path / name / "jobs", kind)
            with broker.ensure_running() as keeper:
                login = keeper.login(Role.OPERATOR)
                assert connack("127.0.0.1", keeper.port, login.username, login.password) == 0
                assert (tmp_path / name / "jobs" / ".broker" / kind).is_dir()

    def test_a_name_of_bytes_that_are_no_text_will_do(self, tmp_path: Path, kind: str) -> None:
        path = tmp_path / os.fsdecode(b"latin-\xe9")
        with nothing_left(tmp_path), embedded(path, kind).ensure_running() as keeper:
            assert connack("127.0.0.1", keeper.port) == NOT_AUTHORISED


class TestItsMemory:
    def test_port_and_logins_are_made_once(self, broker: EmbeddedBroker, registry: Path) -> None:
        """Decision 21"""
        promised = address(str(registry))
        before = [credentials(str(registry), role) for role in Role]
        for _ in range(2):
            with broker.ensure_running() as keeper:
                assert keeper.port == promised.port
                assert [keeper.login(role) for role in Role] == before
            eventually(lambda: not broker.status().running, "the broker ends")
        assert len({login.password for login in before}) == 2

    def test_a_session_outlives_kill_9_of_the_broker(
        self, broker: EmbeddedBroker, registry: Path, keeper: Keeper
    ) -> None:
        """What was queued for a client that is away is still there, in order."""
        login = keeper.login(Role.OPERATOR)
        texts = [f"event {number}." for number in range(50)]
        with Ear(keeper.port, login, client_id="console", clean=False) as console:
            console.subscribe("jobs/+/events")
        with Ear(keeper.port, keeper.login(Role.AGENT)) as agent:
            for text in texts:
                agent.publish("jobs/a/events", text)
        if broker.status().kind == "mosquitto":
            _wait_for_autosave(registry, texts[-1])
        killed = kill_server(registry)
        eventually(lambda: broker.status().pid not in (None, killed), "a keeper restarts it")
        eventually(lambda: _is_up(keeper.port, login), "it answers")
        with Ear(keeper.port, login, client_id="console", clean=False) as console:
            assert console.hear(50) == texts

    def test_a_session_outlives_an_orderly_end(
        self, broker: EmbeddedBroker, registry: Path
    ) -> None:
        with broker.ensure_running() as keeper:
            login = keeper.login(Role.OPERATOR)
            with Ear(keeper.port, login, client_id="console", clean=False) as console:
                console.subscribe("jobs/+/events")
            with Ear(keeper.port, login) as agent:
                agent.publish("jobs/a/events", "while you were away")
        eventually(lambda: not broker.status().running, "the broker ends")
        with (
            broker.ensure_running() as keeper,
            Ear(keeper.port, login, client_id="console", clean=False) as console,
        ):
            assert console.hear(1) == ["while you were away"]


def _is_up(port: int, login: Login) -> bool:
    try:
        return connack("127.0.0.1", port, login.username, login.password) == ACCEPTED
    except OSError:
        return False


def _wait_for_autosave(registry: Path, text: str) -> None:
    """mosquitto saves after it has answered: what it took in the last moment is not promised."""
    saved = registry / ".broker" / "mosquitto" / "mosquitto.db"
    eventually(lambda: saved.exists() and text.encode() in saved.read_bytes(), "a saved session")
