"""The embedded broker's folder, damaged or replaced under those who keep it."""

from __future__ import annotations

import os
import shutil
import socket
from functools import partial
from pathlib import Path

import pytest

from mam_core.errors import UnsafePath
from mam_core.events.broker import EmbeddedBroker
from mam_core.events.embedded import BrokerFolder, Role, address, credentials, with_login
from mam_core.events.handshake import ACCEPTED, connack
from mam_core.record_parts import Broker
from mam_core.wiring import client_for, open_registry
from tests.support.brokers import keepers_looks, nothing_left
from tests.support.jobs import add
from tests.support.patience import eventually
from tests.support.watching import Site


def lets_us_in(registry: Path) -> bool:
    login = credentials(str(registry), Role.OPERATOR)
    try:
        return connack("127.0.0.1", address(str(registry)).port, *login) == ACCEPTED
    except OSError:
        return False


class TestAnotherRegistryAtItsPlace:
    """Somebody begins afresh while a console is open."""

    def test_gets_its_broker_from_those_who_kept_the_old_one(
        self, broker: EmbeddedBroker, registry: Path
    ) -> None:
        with broker.ensure_running():
            old = broker.status()
            eventually(partial(_removed, registry), "nobody makes a file in it any more")
            registry.mkdir(mode=0o700)
            new = eventually(
                lambda: (now := broker.status()).running and now.pid != old.pid and now,
                "a broker of the new one",
            )
            eventually(lambda: lets_us_in(registry), "it knows its own logins")
            assert new.running
        eventually(lambda: not broker.status().running, "it ends with its keeper")

    def test_one_that_is_only_moved_keeps_its_own(
        self,
        broker: EmbeddedBroker,
        registry: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        looks = keepers_looks(monkeypatch)
        with broker.ensure_running():
            before = broker.status()
            registry.rename(tmp_path / "aside")
            looks.clear()
            eventually(lambda: len(looks) >= 3, "its keeper has looked again and again")
            assert not registry.exists()
            (tmp_path / "aside").rename(registry)
            assert broker.status().pid == before.pid
            assert lets_us_in(registry)


class TestPlanted:
    """Links, pipes and sockets where the programs write: nobody follows them or waits for them."""

    @pytest.mark.parametrize("what", ["link", "pipe", "socket"])
    @pytest.mark.parametrize("name", ["start.log", "server.log"])
    def test_in_place_of_a_log(
        self, broker: EmbeddedBroker, registry: Path, tmp_path: Path, name: str, what: str
    ) -> None:
        address(str(registry))
        outside = tmp_path / "outside"
        outside.write_text("mine\n")
        plant(registry / ".broker" / name, what, outside)
        with broker.ensure_running():
            assert lets_us_in(registry)
        assert outside.read_text() == "mine\n"

    @pytest.mark.parametrize("what", ["link", "pipe", "socket"])
    @pytest.mark.parametrize("name", ["address.json", "credentials.json"])
    def test_in_place_of_what_is_read_is_a_sentence_with_its_place(
        self, registry: Path, tmp_path: Path, name: str, what: str
    ) -> None:
        place = str(registry)
        address(place)
        credentials(place, Role.OPERATOR)
        planted = registry / ".broker" / name
        planted.unlink()
        plant(planted, what, tmp_path / "outside")
        with pytest.raises(UnsafePath, match=f"{planted} is a"):
            with_login(place, None, Role.OPERATOR)

    def test_a_client_that_cannot_be_made_is_no_traceback(
        self, registry: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        from mam_core.config import load

        address(str(registry))
        (registry / ".broker" / "address.json").write_text("no JSON")
        for _ in range(3):
            with pytest.raises(Exception, match="is damaged"):
                client_for(str(registry), load())
        assert capfd.readouterr().err == ""


def plant(place: Path, what: str, outside: Path) -> None:
    if what == "link":
        place.symlink_to(outside)
    elif what == "pipe":
        os.mkfifo(place)
    else:
        with socket.socket(socket.AF_UNIX) as listener:
            before = Path.cwd()
            os.chdir(place.parent)  # the paths of sockets are short
            try:
                listener.bind(place.name)
            finally:
                os.chdir(before)


def test_an_address_that_was_removed_is_that_of_the_last_start(
    broker: EmbeddedBroker, registry: Path
) -> None:
    """As the sentence about a damaged one advises: records name the port and must not be lost."""
    with open_registry(str(registry)) as made:
        record = made.get(add(made)).broker
    with broker.ensure_running():
        pass
    (registry / ".broker" / "address.json").unlink()
    with BrokerFolder.open(str(registry)) as home:
        assert home.address().port == record.port
    found = with_login(str(registry), Broker("127.0.0.1", record.port), Role.OPERATOR)
    assert found is not None
    assert found.username == Role.OPERATOR


def test_one_that_begins_afresh_is_heard_by_a_watch_that_runs(tmp_path: Path) -> None:
    """From its broker: the watch, its relay and its keeper all change over."""
    with nothing_left(tmp_path):
        site = Site(tmp_path, "nats")
        site.register()
        with site.watching("--all") as watched:
            site.registry.store.close()
            eventually(partial(_removed, site.path), "nobody makes a file in it any more")
            site.path.mkdir(mode=0o700)
            with open_registry(str(site.path), config=site.config) as registry:
                job_id = add(registry)
                registry.publish(job_id, "started")
                registry.store.outbox.ring()
                watched.until(lambda: watched.seqs() == [1], "its first event")
                eventually(lambda: not registry.store.outbox.posts(1), "and a broker took it")
            assert watched.process.poll() is None


def _removed(folder: Path) -> bool:
    """Its keeper may make the lock again while the folder is being emptied."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()
