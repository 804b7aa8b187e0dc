"""The embedded broker as a process: one, kept by the living, gone with the last of them."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from mam_core.api import register_job
from mam_core.errors import StoreError
from mam_core.events.broker import EmbeddedBroker
from mam_core.events.embedded import (
    BrokerFailed,
    BrokerFolder,
    BrokerStatus,
    Role,
    address,
    credentials,
    with_login,
)
from mam_core.events.handshake import ACCEPTED, connack
from mam_core.events.servers import Mosquitto, Nats, NoBroker, Program
from mam_core.events.watcher import RUNNING
from mam_core.process_mark import ProcessMark
from mam_core.record_parts import Broker
from tests.support.brokers import (
    LINGER_SEC,
    Ear,
    embedded,
    keepers_looks,
    kill_server,
    kill_watcher,
    nothing_left,
    processes_in,
    server,
)
from tests.support.children import Child, child
from tests.support.patience import PATIENCE_SEC, eventually

#: Says the broker's pid when it keeps one, and goes on until it is told to end.
KEEPER = """
import sys
from mam_core.events import servers
from mam_core.events.broker import EmbeddedBroker
kind = getattr(servers, sys.argv[2].capitalize())()
broker = EmbeddedBroker(sys.argv[1], servers=(kind,), linger_sec=float(sys.argv[3]))
print("ready", flush=True)
sys.stdin.readline()
with broker.ensure_running() as keeper:
    print(broker.status().pid, keeper.port, flush=True)
    sys.stdin.readline()
print("let go", flush=True)
"""


@pytest.fixture
def nats(registry: Path) -> EmbeddedBroker:
    """Where the kind of program does not matter."""
    return embedded(registry, "nats")


def keeping(registry: Path, kind: str = "nats") -> Child:
    made = Child(KEEPER, str(registry), kind, str(LINGER_SEC))
    assert made.hear() == "ready"
    return made


def servers_in(registry: Path) -> list[str]:
    return [p.name() for p in processes_in(registry) if "python" not in p.name()]


class TestOne:
    def test_five_who_start_at_once_share_one(self, registry: Path, kind: str) -> None:
        """Decision 21"""
        keepers = [keeping(registry, kind) for _ in range(5)]
        try:
            for each in keepers:
                each.tell()
            answers = {each.hear() for each in keepers}
            assert len(answers) == 1
            assert len(servers_in(registry)) == 1
            assert len(processes_in(registry)) == 2
        finally:
            for each in keepers:
                each.end()

    def test_threads_of_one_process_share_one(self, nats: EmbeddedBroker, registry: Path) -> None:
        pids: list[int | None] = []

        def keep() -> None:
            with nats.ensure_running():
                pids.append(nats.status().pid)
                together.wait(PATIENCE_SEC)

        together = threading.Barrier(4)
        threads = [threading.Thread(target=keep) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(pids) == 4
        assert len(set(pids)) == 1

    def test_two_registries_have_two(self, tmp_path: Path, kind: str) -> None:
        with nothing_left(tmp_path):
            first, second = (embedded(tmp_path / name, kind) for name in ("one", "two"))
            with first.ensure_running() as here, second.ensure_running() as there:
                assert here.port != there.port
                stranger = here.login(Role.OPERATOR)
                answer = connack("127.0.0.1", there.port, stranger.username, stranger.password)
                assert answer != ACCEPTED


class TestKept:
    def test_it_goes_with_the_last_keeper(self, broker: EmbeddedBroker, registry: Path) -> None:
        first, second = broker.ensure_running(), broker.ensure_running()
        pid = broker.status().pid
        first.close()
        # Longer than a broker without keepers would live.
        time.sleep(3 * LINGER_SEC)
        assert broker.status().pid == pid
        second.close()
        eventually(lambda: processes_in(registry) == [], "broker and watcher end")
        assert not broker.status().running

    def test_kill_9_of_one_keeper_leaves_it_to_the_others(
        self, broker: EmbeddedBroker, registry: Path, kind: str
    ) -> None:
        with broker.ensure_running():
            pid = broker.status().pid
            with child(KEEPER, str(registry), kind, str(LINGER_SEC)) as other:
                other.hear()
                other.tell()
                assert other.hear().split()[0] == str(pid)
                other.kill()
            time.sleep(3 * LINGER_SEC)
            assert broker.status().pid == pid

    def test_kill_9_of_the_last_keeper_ends_it(
        self, broker: EmbeddedBroker, registry: Path, kind: str
    ) -> None:
        """Even of the one that started it, and with nobody left to clean up."""
        with child(KEEPER, str(registry), kind, str(LINGER_SEC)) as only:
            only.hear()
            only.tell()
            assert only.hear()
            assert broker.status().running
            only.kill()
        eventually(lambda: processes_in(registry) == [], "broker and watcher end")

    def test_commands_in_quick_succession_share_it(self, registry: Path) -> None:
        server("nats")
        # However long a busy machine takes from one to the next.
        broker = EmbeddedBroker(str(registry), servers=(Nats(),), linger_sec=PATIENCE_SEC)
        pids = set()
        for _ in range(3):
            with broker.ensure_running():
                pids.add(broker.status().pid)
        assert len(pids) == 1
        kill_watcher(registry)

    def test_one_who_comes_while_it_ends_gets_a_new_one(
        self, nats: EmbeddedBroker, registry: Path
    ) -> None:
        for _ in range(5):
            keeper = nats.ensure_running()
            keeper.close()
            # Around the moment at which the watcher decides.
            time.sleep(LINGER_SEC * 0.98)
            with nats.ensure_running() as again:
                login = again.login(Role.OPERATOR)
                time.sleep(LINGER_SEC)
                answer = connack("127.0.0.1", again.port, login.username, login.password)
                assert answer == ACCEPTED

    def test_a_program_that_ignores_the_request_to_end_is_killed(self, tmp_path: Path) -> None:
        with nothing_left(tmp_path):
            broker = EmbeddedBroker(
                str(tmp_path), servers=(Stubborn(),), linger_sec=LINGER_SEC, grace_sec=0.5
            )
            with broker.ensure_running():
                assert broker.status().running
            eventually(lambda: processes_in(tmp_path) == [], "it is killed")


class TestBack:
    def test_a_keeper_restarts_a_killed_broker_on_its_port(
        self, broker: EmbeddedBroker, registry: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with broker.ensure_running() as keeper:
            port, login = keeper.port, keeper.login(Role.OPERATOR)
            for times in (1, 2):
                killed = kill_server(registry)
                eventually(partial(_was_said, caplog, "was started again", times), "it is said")
                assert broker.status().pid not in (None, killed)
                assert broker.status().port == port
            with Ear(port, login):
                pass

    def test_a_client_of_the_product_is_back_by_itself(
        self, broker: EmbeddedBroker, registry: Path
    ) -> None:
        """G9, as far as the broker is concerned: paho reconnects to the restarted one."""
        with broker.ensure_running() as keeper:
            login = keeper.login(Role.OPERATOR)
            with Ear(keeper.port, login, client_id="stays", clean=False) as console:
                console.client.reconnect_delay_set(1, 1)
                console.subscribe("a/events")
                killed = kill_server(registry)
                console.is_back()
                # A broker answers as soon as it runs; who it is, is written down beside that.
                eventually(lambda: broker.status().pid not in (None, killed), "another runs")
                console.subscribe("a/events")
                with Ear(keeper.port, login) as agent:
                    agent.publish("a/events", "hello again")
                assert console.hear(1) == ["hello again"]

    def test_a_killed_watcher_is_replaced(
        self, broker: EmbeddedBroker, registry: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with broker.ensure_running() as keeper:
            before = broker.status().pid
            kill_watcher(registry)
            eventually(partial(_was_said, caplog, "was started again", 1), "it is said")
            assert broker.status().pid not in (None, before)
            assert len(processes_in(registry)) == 2
            assert connack("127.0.0.1", keeper.port) != ACCEPTED

    def test_everybody_killed_at_once_leaves_nothing(
        self, registry: Path, broker: EmbeddedBroker, kind: str
    ) -> None:
        """Watcher and keeper by kill -9: the kernel ends the broker (Linux only)."""
        if not sys.platform.startswith("linux"):
            pytest.skip("only Linux ends a process with its parent")
        with child(KEEPER, str(registry), kind, str(LINGER_SEC)) as only:
            only.hear()
            only.tell()
            assert only.hear()
            os.kill(only.pid, signal.SIGSTOP)  # so, it cannot repair anything
            kill_watcher(registry)
            only.kill()
        eventually(lambda: processes_in(registry) == [], "the broker ends")

    def test_a_folder_that_was_removed_is_said_once_and_the_broker_still_ends(
        self,
        registry: Path,
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        looks = keepers_looks(monkeypatch)
        # Without its folder it does not end by itself.
        nats = EmbeddedBroker(
            str(registry), servers=(server("nats"),), linger_sec=LINGER_SEC, grace_sec=0.5
        )
        with nats.ensure_running():
            shutil.rmtree(registry, ignore_errors=True)
            eventually(lambda: caplog.records, "it is said")
            looks.clear()
            eventually(lambda: len(looks) >= 5, "it is looked for again and again")
            assert len(caplog.records) == 1
        eventually(lambda: processes_in(registry) == [], "the broker ends")

    def test_a_program_that_dies_at_once_is_an_error_in_one_sentence(self, tmp_path: Path) -> None:
        with nothing_left(tmp_path):
            broker = EmbeddedBroker(str(tmp_path), servers=(Dying(),))
            with pytest.raises(BrokerFailed, match=r"does not start: no thank you"):
                broker.ensure_running()

    def test_a_program_that_never_answers_is_an_error_in_bounded_time(self, tmp_path: Path) -> None:
        """G7"""
        with nothing_left(tmp_path):
            broker = EmbeddedBroker(str(tmp_path), servers=(Silent(),), linger_sec=LINGER_SEC)
            with pytest.raises(BrokerFailed, match=r"does not answer within 1 s"):
                broker.ensure_running(timeout=1)


def _was_said(caplog: pytest.LogCaptureFixture, words: str, times: int) -> bool:
    return caplog.text.count(words) == times


def take_port(stranger: socket.socket, registry: Path) -> Broker:
    """The port of the registry's broker; a new one where somebody on this machine was faster."""
    while True:
        record = address(str(registry))
        try:
            stranger.bind((record.host, record.port))
        except OSError:
            with BrokerFolder.make(str(registry)) as home:
                home.move()
        else:
            return record


class TestStrangers:
    def test_a_stranger_on_the_port_makes_us_move_and_say_so(
        self, broker: EmbeddedBroker, registry: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with socket.socket() as stranger:
            record = take_port(stranger, registry)
            stranger.listen()
            stranger.setblocking(False)
            with broker.ensure_running() as keeper:
                assert keeper.port != record.port
                assert f"port {record.port}: it is {keeper.port} from now on" in caplog.text
                moved = with_login(str(registry), record, Role.AGENT)
                assert moved is not None
                assert moved.port == keeper.port
            # Nobody showed it a password, nor anything else.
            with pytest.raises(BlockingIOError):
                stranger.accept()
        eventually(lambda: not broker.status().running, "the broker ends")
        with broker.ensure_running() as keeper:
            assert address(str(registry)).port == keeper.port != record.port

    def test_the_pid_of_another_process_in_the_pid_file_is_left_alone(
        self, broker: EmbeddedBroker, registry: Path
    ) -> None:
        with broker.ensure_running():
            pid_file = registry / ".broker" / RUNNING
            facts = json.loads(pid_file.read_text())
        eventually(lambda: processes_in(registry) == [], "the broker ends")
        bystander = subprocess.Popen(["sleep", "1000"])
        try:
            mark = ProcessMark.of(bystander.pid)
            assert mark is not None
            for change in ({"started": "1"}, {"boot_id": "another boot"}):
                # A reused pid: same number, other birth. Nobody watches it, so it looks orphaned.
                facts["server"] = {**mark.to_dict(), **change}
                facts["watcher"] = {**facts["watcher"], "started": "0"}
                pid_file.write_text(json.dumps(facts))
                pid_file.chmod(0o600)
                assert not broker.status().running
                with broker.ensure_running():
                    assert broker.status().pid != bystander.pid
                eventually(lambda: processes_in(registry) == [], "the broker ends")
                assert bystander.poll() is None
        finally:
            bystander.kill()
            bystander.wait()

    @pytest.mark.parametrize("rubbish", ["", "{", "[]", '{"server": 7}', "\0" * 100, "null"])
    def test_rubbish_in_the_pid_file_means_nothing(
        self, nats: EmbeddedBroker, registry: Path, rubbish: str
    ) -> None:
        address(str(registry))
        (registry / ".broker" / RUNNING).write_text(rubbish)
        assert not nats.status().running
        with nats.ensure_running():
            assert nats.status().running

    def test_a_login_is_looked_up_for_the_embedded_address_only(self, registry: Path) -> None:
        """Decision 21: a login is never sent to another broker than the one it was made for."""
        ours = address(str(registry))
        found = with_login(str(registry), ours, Role.AGENT)
        assert found is not None
        assert (found.username, found.password) == (
            "agent",
            credentials(str(registry), Role.AGENT).password,
        )
        for other in (
            Broker(ours.host, ours.port + 1),
            Broker("broker.example", ours.port),
            Broker(ours.host, ours.port, tls=True),
            Broker(ours.host, ours.port, username="somebody"),
        ):
            assert with_login(str(registry), other, Role.AGENT) is None

    def test_asking_about_a_broker_makes_none(self, tmp_path: Path) -> None:
        place = tmp_path / "jobs"
        assert EmbeddedBroker(str(place)).status() == BrokerStatus(running=False)
        assert with_login(str(place), Broker(), Role.AGENT) is None
        assert not place.exists()


class TestTheFolder:
    def test_an_open_folder_is_closed(self, registry: Path) -> None:
        address(str(registry))
        folder = registry / ".broker"
        folder.chmod(0o755)
        address(str(registry))
        assert folder.stat().st_mode & 0o777 == 0o700

    def test_it_is_made_in_a_registry_and_nowhere_else(self, tmp_path: Path) -> None:
        """A folder that was named by mistake is left as it is."""
        (tmp_path / "thesis.tex").write_text("years of work")
        with pytest.raises(StoreError, match=r"is no registry: it holds other files"):
            address(str(tmp_path))
        assert os.listdir(tmp_path) == ["thesis.tex"]

    def test_the_store_knows_a_registry_that_began_with_a_broker(self, registry: Path) -> None:
        address(str(registry))
        job_id = register_job("p", agent="a", agent_session="l", registry_dir=str(registry))
        assert (registry / f"{job_id}.json").exists()

    def test_many_makers_agree(self, registry: Path) -> None:
        found: list[object] = []

        def make() -> None:
            found.append(
                (address(str(registry)).port, credentials(str(registry), Role.AGENT).password)
            )

        threads = [threading.Thread(target=make) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(found) == 8
        assert len(set(found)) == 1
        assert sorted(os.listdir(registry / ".broker")) == ["address.json", "credentials.json"]

    @pytest.mark.parametrize("name", ["address.json", "credentials.json"])
    def test_a_damaged_file_is_named(self, registry: Path, name: str) -> None:
        address(str(registry))
        credentials(str(registry), Role.AGENT)
        for rubbish in ("", "{", "[]", "{}", '{"port": "x", "agent": ""}'):
            (registry / ".broker" / name).write_text(rubbish)
            with BrokerFolder.open(str(registry)) as home:
                ask = home.address if name == "address.json" else partial(home.login, Role.AGENT)
                with pytest.raises(StoreError, match=f"{name} is damaged"):
                    ask()

    def test_a_secret_is_not_in_a_representation(self, registry: Path) -> None:
        login = credentials(str(registry), Role.OPERATOR)
        assert login.password not in repr(login)


class TestWithoutAProgram:
    def test_the_answer_is_one_sentence(self, tmp_path: Path) -> None:
        broker = EmbeddedBroker(str(tmp_path / "jobs"), servers=())
        with pytest.raises(NoBroker, match=r"^there is no broker program .* directory alone$"):
            broker.ensure_running()
        assert not broker.status().running

    def test_mosquitto_serves_where_there_is_no_package(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server("mosquitto")
        monkeypatch.setattr(Nats, "find", lambda self: None)
        with nothing_left(tmp_path):
            broker = EmbeddedBroker(str(tmp_path), linger_sec=LINGER_SEC)
            with broker.ensure_running():
                assert broker.status().kind == "mosquitto"

    def test_mosquitto_is_found_where_debian_hides_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server("mosquitto")
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
        assert Mosquitto().find() is not None

    def test_an_old_mosquitto_is_not_used(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Version 1 lets everybody in unless it is told otherwise."""
        for name in ("mosquitto", "mosquitto_passwd"):
            (tmp_path / name).write_text("#!/bin/sh\necho 'mosquitto version 1.6.12'\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        assert Mosquitto().find() is None


class _Script:
    """A program in place of a broker: a few lines of Python."""

    name = "script"
    lines = ""

    def find(self) -> Program:
        return Program(sys.executable, "0")

    def prepare(self, folder: object, program: Program, port: int, logins: object) -> list[str]:
        return [program.path, "-c", self.lines.replace("PORT", str(port))]


class Dying(_Script):
    lines = "print('no thank you'); raise SystemExit(3)"


class Silent(_Script):
    lines = "import time; time.sleep(1000)"


class Stubborn(_Script):
    lines = """
import signal, socket
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with socket.create_server(("127.0.0.1", PORT)) as listening:
    while True:
        connection, _ = listening.accept()
        connection.recv(1000)
        connection.sendall(bytes([0x20, 2, 0, 0]))
        connection.close()
"""


def test_a_process_mark_dies_with_its_process() -> None:
    process = subprocess.Popen(["sleep", "1000"])
    mark = ProcessMark.of(process.pid)
    assert mark == ProcessMark.of(process.pid)
    assert mark is not None
    process.kill()
    eventually(lambda: not mark.is_alive, "a zombie counts as gone")
    process.wait()
    assert not mark.send(signal.SIGTERM)
    assert ProcessMark.from_dict(mark.to_dict()) == mark


@pytest.fixture(autouse=True)
def _hear_warnings(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="mam")
