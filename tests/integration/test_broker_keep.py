"""The embedded broker beside a long-lived command: there while it lives, and never in its way."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.config import Config, load
from mam_core.events import keeper as keeper_module
from mam_core.events.embedded import Role, credentials
from mam_core.events.handshake import ACCEPTED, connack
from mam_core.events.servers import Mosquitto, Nats
from mam_core.operations.broker import Kept, keep_broker, status
from tests.support.brokers import nothing_left, processes_in, server
from tests.support.patience import eventually


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Path]:
    server("nats")
    with nothing_left(tmp_path):
        yield tmp_path / "jobs"


@pytest.fixture(autouse=True)
def _hear_warnings(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="mam")


@pytest.fixture
def no_program(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with neither; undone by the test that installs one."""
    for kind in (Nats, Mosquitto):
        monkeypatch.setattr(kind, "find", lambda self: None)
    return monkeypatch


class TestKept:
    """Decision 21"""

    def test_it_runs_while_the_block_does(self, registry: Path) -> None:
        with keep_broker(str(registry), Config()) as kept:
            assert kept == Kept()
            found = status(str(registry))
            login = credentials(str(registry), Role.OPERATOR)
            assert found.port is not None
            assert connack(found.host, found.port, *login) == ACCEPTED
        eventually(lambda: processes_in(registry) == [], "it ends")

    def test_two_commands_share_it(self, registry: Path) -> None:
        with keep_broker(str(registry), Config()):
            pid = status(str(registry)).pid
            with keep_broker(str(registry), Config()):
                assert status(str(registry)).pid == pid
            assert status(str(registry)).pid == pid

    def test_an_error_in_the_block_lets_it_go_too(self, registry: Path) -> None:
        with pytest.raises(ZeroDivisionError), keep_broker(str(registry), Config()):
            _ = 1 / 0
        eventually(lambda: processes_in(registry) == [], "it ends")


class TestNotMeant:
    """Nothing is started, nothing is made, nothing is said."""

    @pytest.mark.parametrize(
        ("name", "value"), [("MQTT_BROKER", "mq.example"), ("MQTT_PORT", "1883")]
    )
    def test_the_environment_names_another(
        self, registry: Path, caplog: pytest.LogCaptureFixture, name: str, value: str
    ) -> None:
        config = load(environ={name: value}, cwd=str(registry.parent))
        with keep_broker(str(registry), config) as kept:
            assert kept == Kept(is_meant=False)
        assert not registry.exists()
        assert caplog.records == []

    def test_the_settings_name_another(self, registry: Path, tmp_path: Path) -> None:
        (tmp_path / "mam.toml").write_text("[broker]\nhost = 'mq.example'\n")
        with keep_broker(str(registry), load(str(tmp_path / "mam.toml"))) as kept:
            assert kept == Kept(is_meant=False)
        assert not registry.exists()


class TestNotToBeHad:
    """G25, O17: it is said once, and the command goes on."""

    def test_there_is_no_program(
        self,
        registry: Path,
        no_program: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        with keep_broker(str(registry), Config()) as kept:
            assert kept.trouble is not None
            assert kept.trouble.startswith("there is no broker program for this machine")
        assert caplog.messages == [kept.trouble]
        assert processes_in(registry) == []

    def test_a_program_that_comes_later_is_used(
        self,
        registry: Path,
        no_program: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        no_program.setattr(keeper_module, "_PAUSES_SEC", (0.0, 0.1))
        with keep_broker(str(registry), Config()) as kept:
            eventually(lambda: caplog.messages, "it is said")
            no_program.undo()
            eventually(lambda: status(str(registry)).running, "it is started after all")
            eventually(lambda: len(caplog.messages) == 2, "that is said, too")
        assert caplog.messages == [
            kept.trouble,
            "the embedded broker could not be started and now runs",
        ]

    def test_the_folder_is_not_a_registry(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        place = tmp_path / "thesis"
        place.mkdir()
        (place / "thesis.tex").write_text("years of work")
        with keep_broker(str(place), Config()) as kept:
            assert kept.trouble is not None
            assert "is no registry" in kept.trouble
        assert caplog.messages == [kept.trouble]
        assert [path.name for path in place.iterdir()] == ["thesis.tex"]
