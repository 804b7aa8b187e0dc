"""``mqtt_common.py``: the broker, retries and signatures under the original's names (section Q)."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from mam_core.api import register_job
from mam_core.errors import JobNotFound, MamError
from tests.scripts.plain import SCRIPTS, run
from tests.support.rows import each_row

NAMES = [
    "DEFAULT_REGISTRY_DIR",
    "SCHEMA_VERSION",
    "broker_config_from_env",
    "broker_config_from_job",
    "load_job",
    "make_client",
    "registry_lock",
    "next_seq",
    "update_job_status",
    "with_retry",
    "verify_hmac",
    "LOGS_DIR",
    "job_log_path",
    "init_job_log",
    "append_event",
    "update_logged_status",
    "read_logged_meta",
    "read_logged_status",
    "iter_logged_events",
    "list_logged_jobs",
]

MQTT = [
    "MQTT_BROKER",
    "MQTT_PORT",
    "MQTT_TLS",
    "MQTT_USERNAME",
    "MQTT_PASSWORD",
    "MQTT_CA_CERTS",
    "MQTT_CERTFILE",
    "MQTT_KEYFILE",
    "MQTT_CLIENT_ID_PREFIX",
]


@pytest.fixture(autouse=True)
def _no_broker_in_the_environment(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    for name in MQTT:
        monkeypatch.delenv(name, raising=False)


def job(**broker: Any) -> dict[str, Any]:
    whole = {"host": "mq.example", "port": 1884, "tls": False, "username": None, "password": None}
    return {"job_id": "abc12345", "broker": whole | broker}


@each_row("name", NAMES)
def test_has_every_name_that_scripts_import(common: Any, name: str) -> None:
    """F11 and section Q."""
    assert hasattr(common, name)
    assert name in common.__all__


def test_a_name_that_it_has_not_is_missed_as_usual(common: Any) -> None:
    with pytest.raises(AttributeError, match="no attribute 'NOTHING'"):
        _ = common.NOTHING


class TestWhereToConnect:
    def test_the_record_alone_is_enough(self, common: Any) -> None:
        """G4, A15."""
        config = common.broker_config_from_job(job(username="me", password="hush", tls=True))
        assert config == {
            "host": "mq.example",
            "port": 1884,
            "tls": True,
            "username": "me",
            "password": "hush",
            "ca_certs": None,
            "certfile": None,
            "keyfile": None,
            "client_id_prefix": "mam",
        }

    def test_without_a_record_it_is_the_embedded_brokers_address(self, common: Any) -> None:
        """Decision 2: never a public broker."""
        config = common.broker_config_from_env()
        assert (config["host"], config["port"], config["tls"]) == ("127.0.0.1", 1883, False)

    @pytest.mark.parametrize(("job_id", "role"), [(None, "operator"), ("abc12345", "agent")])
    def test_the_embedded_brokers_login_is_looked_up(
        self,
        common: Any,
        here: Path,
        monkeypatch: pytest.MonkeyPatch,
        job_id: str | None,
        role: str,
    ) -> None:
        """Decision 21: a record has no login; in what an agent runs, it is the agents'."""
        if job_id is not None:
            monkeypatch.setenv("MAM_JOB_ID", job_id)
        made = register_job("p", agent="a", agent_session="l")
        elsewhere = register_job("p", agent="a", agent_session="l", registry_dir=str(here / "o"))
        config = common.broker_config_from_job(common.load_job(made))
        assert config == common.broker_config_from_env()
        kept = json.loads((here / ".mam/jobs/.broker/credentials.json").read_text())
        assert (config["username"], config["password"]) == (role, kept[role])
        record = common.load_job(elsewhere, here / "o")
        assert common.broker_config_from_job(record)["username"] is None
        assert common.broker_config_from_job(record, here / "o")["username"] == role

    def test_a_variable_wins_over_the_record_only_where_it_is_set(
        self, common: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """G5, G6, X9."""
        monkeypatch.setenv("MQTT_TLS", "1")
        monkeypatch.setenv("MQTT_CA_CERTS", "/ca.pem")
        monkeypatch.setenv("MQTT_USERNAME", "")
        monkeypatch.setenv("MQTT_PASSWORD", "hunter2")
        with caplog.at_level(logging.DEBUG, "mam"):
            config = common.broker_config_from_job(job(username="me", password="old"))
        assert (config["tls"], config["ca_certs"]) == (True, "/ca.pem")
        assert (config["username"], config["password"]) == ("me", "hunter2")
        assert (config["host"], config["port"]) == ("mq.example", 1884)
        assert "MQTT_CA_CERTS, MQTT_PASSWORD, MQTT_TLS" in caplog.text
        assert "hunter2" not in caplog.text

    def test_every_variable_of_the_original_is_obeyed(
        self, common: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """G6."""
        values = ["h", "8883", "yes", "u", "p", "/ca", "/cert", "/key", "pre"]
        for name, value in zip(MQTT, values, strict=True):
            monkeypatch.setenv(name, value)
        wanted = ["h", 8883, True, "u", "p", "/ca", "/cert", "/key", "pre"]
        assert list(common.broker_config_from_env().values()) == wanted
        assert list(common.broker_config_from_job(job()).values()) == wanted

    def test_the_configured_login_goes_to_the_configured_broker_only(
        self, common: Any, here: Path
    ) -> None:
        """A record may name any host; the password of ours is not for it."""
        (here / "pw").write_text("hush\n")
        (here / "mam.toml").write_text(
            "[broker]\nhost = 'mq.example'\nport = 1884\nusername = 'me'\npassword_file = 'pw'\n"
            "certfile = 'cert.pem'\n"
        )
        ours = common.broker_config_from_job(job())
        assert (ours["username"], ours["password"]) == ("me", "hush")
        assert ours["certfile"] == str(here / "cert.pem")
        theirs = common.broker_config_from_job(job(host="elsewhere"))
        assert (theirs["username"], theirs["password"], theirs["certfile"]) == (None, None, None)
        own = common.broker_config_from_job(job(username="you", password="yours"))
        assert (own["username"], own["password"]) == ("you", "yours")


class TestTheClient:
    def test_has_login_tls_and_an_id_of_its_own(
        self, common: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """G7, G10, G21."""
        monkeypatch.setenv("MQTT_CLIENT_ID_PREFIX", "nightly")
        config = common.broker_config_from_job(job(username="me", password="hush", tls=True))
        one, two = common.make_client(config), common.make_client(config)
        ids = [one._client_id, two._client_id]
        assert all(made.startswith(b"nightly-") for made in ids)
        assert ids[0] != ids[1]
        assert one.callback_api_version.name == "VERSION2"
        assert one.connect_timeout <= 10
        assert (one.username, one.password) == ("me", "hush")
        assert one._ssl
        assert not common.make_client()._ssl

    def test_without_paho_the_sentence_says_what_to_do(self, here: Path) -> None:
        code = (
            f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); import mqtt_common\n"
            "try: mqtt_common.make_client()\n"
            "except Exception as problem: print(problem)"
        )
        assert "install paho-mqtt 2" in run("-c", code, cwd=here).stdout

    def test_importing_the_module_does_not_import_paho(self, here: Path) -> None:
        """90 ms that a script without a broker need not wait."""
        code = (
            f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); import mqtt_common\n"
            "print([name for name in sys.modules if name.startswith(('paho', 'textual'))])"
        )
        assert run("-c", code, cwd=here).stdout == "[]\n"


EVENT: dict[str, Any] = {
    "seq": 1,
    "event": "progress",
    "detail": "반 …",
    "data": {"b": 1, "a": [1.5]},
}


class TestSignatures:
    def signed(self, token: str) -> dict[str, Any]:
        rest = json.dumps(EVENT, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        digest = hmac.new(token.encode(), rest.encode(), hashlib.sha256).hexdigest()
        return {**EVENT, "sig": digest}

    def test_are_over_the_canonical_rest(self, common: Any) -> None:
        """K3, decision 12: what any language can compute."""
        event = self.signed("t" * 43)
        assert common.verify_hmac(event, "t" * 43)
        reordered = json.loads(json.dumps(dict(reversed(event.items()))))
        assert common.verify_hmac(reordered, "t" * 43)

    @each_row(
        "change",
        [{"seq": 2}, {"sig": ""}, {"sig": None}, {"sig": "é" * 64}, {"sig": 7}, {"more": 1}],
    )
    def test_a_forged_one_is_refused(self, common: Any, change: dict[str, Any]) -> None:
        assert not common.verify_hmac({**self.signed("t" * 43), **change}, "t" * 43)

    def test_an_unsigned_one_is_refused(self, common: Any) -> None:
        assert not common.verify_hmac(EVENT, "t" * 43)

    def test_another_token_is_refused(self, common: Any) -> None:
        assert not common.verify_hmac(self.signed("t" * 43), "u" * 43)
        assert not common.verify_hmac(self.signed(""), "")

    def test_a_job_without_a_token_asks_for_none(self, common: Any) -> None:
        """K1."""
        assert common.verify_hmac(EVENT, None)

    @pytest.mark.parametrize("hostile", [{"x": float("nan")}, {"x": "\ud800"}, {"x": {1, 2}}])
    def test_hostile_content_never_raises(self, common: Any, hostile: dict[str, Any]) -> None:
        assert not common.verify_hmac({**hostile, "sig": "0" * 64}, "t" * 43)

    def test_our_own_signature_is_accepted(self, common: Any) -> None:
        from mam_core.events.signature import sign

        token = "t" * 43
        event = {"detail": "\ud800 lone", "seq": 3}
        assert common.verify_hmac({**event, "sig": sign(event, token)}, token)


class TestRetries:
    def test_pauses_grow_up_to_a_bound(self, common: Any) -> None:
        """G8."""
        pauses: list[float] = []

        def fail() -> None:
            raise ConnectionRefusedError("nobody there")

        with pytest.raises(ConnectionRefusedError):
            common.with_retry(fail, 6, base_delay=1.0, max_delay=4.0, sleep=pauses.append)
        assert len(pauses) == 5
        for pause, most in zip(pauses, [1, 2, 4, 4, 4], strict=True):
            assert most / 2 <= pause <= most

    def test_the_first_success_ends_it(self, common: Any) -> None:
        failures = [OSError("not yet")]

        def ask() -> str:
            if failures:
                raise failures.pop()
            return "there"

        assert common.with_retry(ask, 5, sleep=lambda _: None) == "there"

    def test_what_is_not_asked_for_is_not_retried(self, common: Any) -> None:
        calls: list[int] = []

        def wrong() -> None:
            calls.append(1)
            raise ValueError("a mistake")

        with pytest.raises(ValueError, match="a mistake"):
            common.with_retry(wrong, 5, retry_on=(OSError,), sleep=lambda _: None)
        assert len(calls) == 1

    @pytest.mark.parametrize("attempts", [0, 1, -3])
    def test_it_is_tried_at_least_once(self, common: Any, attempts: int) -> None:
        assert common.with_retry(lambda: "done", attempts) == "done"


class TestRecords:
    def test_a_missing_job_is_an_error_of_ours_and_of_pythons(self, common: Any) -> None:
        with pytest.raises(JobNotFound) as caught:
            common.load_job("nobody")
        assert isinstance(caught.value, FileNotFoundError)
        assert "there is no job nobody" in str(caught.value)

    def test_paths_are_as_good_as_texts(self, common: Any, registry: Any, tmp_path: Path) -> None:
        where = tmp_path / "reg"
        job_id = registry.register_job("x", agent="a", agent_session="s", registry_dir=where)
        assert common.load_job(job_id, where)["prompt"] == "x"
        assert common.update_job_status(job_id, "error", where)["status"] == "error"
        assert common.next_seq(job_id, where) == 1
        with common.registry_lock(where):
            assert common.next_seq(job_id, where) == 2

    def test_a_bad_status_is_refused(self, common: Any, registry: Any) -> None:
        job_id = registry.register_job("x", agent="a", agent_session="s")
        with pytest.raises(MamError, match="finished"):
            common.update_job_status(job_id, "finished")
