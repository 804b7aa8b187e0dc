"""A broker behind TLS: the client that the product uses believes nobody without a good reason."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.errors import ConfigError
from mam_core.events.connection import BrokerUnreachable, Connection, resolve
from mam_core.events.mqtt import new_client
from mam_core.record_parts import Broker
from tests.support.brokers import Authority, nothing_left, server, tls_broker, try_connection


@pytest.fixture(params=["nats", "mosquitto"])
def kind(request: pytest.FixtureRequest) -> str:
    server(request.param)
    return str(request.param)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    with nothing_left(tmp_path):
        yield tmp_path


@pytest.fixture
def authority(place: Path) -> Authority:
    return Authority(place / "ca")


class TestTls:
    """G22"""

    def test_a_certificate_of_our_authority_is_believed(
        self, place: Path, authority: Authority, kind: str
    ) -> None:
        with tls_broker(kind, place / "broker", authority, "localhost") as port:
            there = Connection("localhost", port, tls=True, ca_certs=authority.bundle)
            assert try_connection(there) == "Success"

    def test_a_certificate_for_another_name_is_refused(
        self, place: Path, authority: Authority, kind: str
    ) -> None:
        with tls_broker(kind, place / "broker", authority, "broker.example") as port:
            there = Connection("localhost", port, tls=True, ca_certs=authority.bundle)
            with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
                try_connection(there)

    def test_an_address_is_not_the_name_that_it_belongs_to(
        self, place: Path, authority: Authority, kind: str
    ) -> None:
        with tls_broker(kind, place / "broker", authority, "localhost") as port:
            there = Connection("127.0.0.1", port, tls=True, ca_certs=authority.bundle)
            with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
                try_connection(there)

    def test_an_authority_that_we_do_not_know_is_refused(
        self, place: Path, authority: Authority, kind: str
    ) -> None:
        other = Authority(place / "other")
        with tls_broker(kind, place / "broker", authority, "localhost") as port:
            for bundle in (other.bundle, None):
                there = Connection("localhost", port, tls=True, ca_certs=bundle)
                with pytest.raises(ssl.SSLCertVerificationError):
                    try_connection(there)

    def test_a_broker_that_wants_our_certificate_gets_it(
        self, place: Path, authority: Authority, kind: str
    ) -> None:
        certificate, key = authority.certificate("console")
        with tls_broker(
            kind, place / "broker", authority, "localhost", client_certificates=True
        ) as port:
            there = Connection(
                "localhost",
                port,
                tls=True,
                ca_certs=authority.bundle,
                certfile=certificate,
                keyfile=key,
            )
            assert try_connection(there) == "Success"


class TestTlsByTheEnvironment:
    """G5, G6, G22: a record says host, port and TLS; variables bring the files."""

    def test_the_bundle_makes_the_broker_believed(
        self, place: Path, authority: Authority, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with tls_broker(kind, place / "broker", authority, "localhost") as port:
            record = Broker("localhost", port, tls=True)
            monkeypatch.setenv("MQTT_CA_CERTS", authority.bundle)
            reach(record)

    def test_the_toggle_turns_a_plain_record_into_tls(
        self, place: Path, authority: Authority, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with tls_broker(kind, place / "broker", authority, "localhost") as port:
            monkeypatch.setenv("MQTT_TLS", "1")
            monkeypatch.setenv("MQTT_CA_CERTS", authority.bundle)
            reach(Broker("localhost", port))

    def test_without_the_bundle_it_is_refused_in_a_sentence(
        self, place: Path, authority: Authority, kind: str
    ) -> None:
        refused = pytest.raises(BrokerUnreachable, match=r"its certificate is not believed \(.+\)$")
        with tls_broker(kind, place / "broker", authority, "localhost") as port, refused:
            reach(Broker("localhost", port, tls=True))

    def test_a_bad_name_is_refused_in_a_sentence(
        self, place: Path, authority: Authority, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with tls_broker(kind, place / "broker", authority, "broker.example") as port:
            monkeypatch.setenv("MQTT_CA_CERTS", authority.bundle)
            with pytest.raises(BrokerUnreachable, match=r"not believed \(Hostname mismatch"):
                reach(Broker("localhost", port, tls=True))

    def test_our_certificate_is_shown_to_a_broker_that_asks(
        self, place: Path, authority: Authority, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        certificate, key = authority.certificate("console")
        with tls_broker(
            kind, place / "broker", authority, "localhost", client_certificates=True
        ) as port:
            record = Broker("localhost", port, tls=True)
            monkeypatch.setenv("MQTT_CA_CERTS", authority.bundle)
            with pytest.raises(BrokerUnreachable):
                reach(record)
            monkeypatch.setenv("MQTT_CERTFILE", certificate)
            monkeypatch.setenv("MQTT_KEYFILE", key)
            reach(record)

    @pytest.mark.parametrize("name", ["MQTT_CA_CERTS", "MQTT_CERTFILE"])
    def test_a_file_that_is_no_certificate_is_named(
        self, place: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        rubbish = place / "rubbish.pem"
        for file in (rubbish, place):
            monkeypatch.setenv(name, str(file))
            with pytest.raises(ConfigError, match=rf"^{file} cannot be used for TLS: "):
                new_client(resolve(Broker("localhost", 8883, tls=True)))
            rubbish.write_text("no certificate")


def reach(record: Broker) -> None:
    client = new_client(resolve(record))
    client.reach()
    client.stop()
