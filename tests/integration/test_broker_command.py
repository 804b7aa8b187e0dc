"""``mam broker`` as an operator uses it, and the broker as foreign programs use it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mam_core.cli.main import main
from mam_core.events import servers
from mam_core.events.embedded import Role, credentials
from tests.support.brokers import kill_server, nothing_left, processes_in, server
from tests.support.patience import PATIENCE_SEC, eventually

MAM = [sys.executable, "-m", "mam_core.cli.main"]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Path]:
    server("nats")
    with nothing_left(tmp_path):
        yield tmp_path / "a project's" / "jobs"


def ask(registry: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MAM, *words, "--registry-dir", str(registry)],
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def serving(registry: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``mam broker`` in the foreground, and the first line of its stderr."""
    process = subprocess.Popen(
        [*MAM, "broker", "--registry-dir", str(registry), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        yield process, process.stderr.readline().strip()
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def status(registry: Path) -> Any:
    return json.loads(ask(registry, "broker", "--status", "--json").stdout)


class TestTheCommand:
    def test_without_a_broker_the_status_says_so_and_makes_nothing(self, registry: Path) -> None:
        answer = ask(registry, "broker", "--status")
        assert (answer.returncode, answer.stdout, answer.stderr) == (1, "not running\n", "")
        assert status(registry)["running"] is False
        assert not registry.exists()

    def test_it_runs_until_interrupted(self, registry: Path) -> None:
        with serving(registry) as (process, line):
            facts = status(registry)
            version = facts["version"]
            assert line == f"mam: the broker (nats {version}) listens on 127.0.0.1:{facts['port']}"
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE_SEC)
            assert (process.returncode, out) == (0, "")
            assert err == "mam: let go; the broker ends unless another command keeps it\n"
        eventually(lambda: processes_in(registry) == [], "the broker ends")
        after = ask(registry, "broker", "--status")
        assert after.returncode == 1
        assert after.stdout == f"not running (its port is {facts['port']})\n"

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_a_polite_end_is_no_error(self, registry: Path, number: signal.Signals) -> None:
        with serving(registry) as (process, _):
            process.send_signal(number)
            process.communicate(timeout=PATIENCE_SEC)
            assert process.returncode == 0

    def test_the_status_tells_all_but_the_secrets(self, registry: Path) -> None:
        """Decision 10, K5"""
        with serving(registry, "--json") as (process, line):
            assert process.stdout is not None
            first = json.loads(process.stdout.readline())
            facts = status(registry)
            assert {**facts, "uptime_sec": None} == {**first, "uptime_sec": None}
            assert facts["running"] is True
            assert facts["kind"] == "nats"
            assert facts["host"] == "127.0.0.1"
            assert facts["pid"] in [each.pid for each in processes_in(registry)]
            assert facts["uptime_sec"] >= first["uptime_sec"] >= 0
            plain = ask(registry, "broker", "--status")
            assert plain.returncode == 0
            names = [row.split()[0] for row in plain.stdout.splitlines()]
            assert names == ["running", "address", "pid", "uptime"]
            for role in Role:
                password = credentials(str(registry), role).password
                for text in (line, plain.stdout, plain.stderr, str(facts)):
                    assert password not in text

    def test_a_restart_is_said_on_stderr(self, registry: Path) -> None:
        with serving(registry) as (process, _):
            kill_server(registry)
            assert process.stderr is not None
            words = "mam: warning: the embedded broker had ended and was started again\n"
            assert process.stderr.readline() == words

    def test_two_in_the_foreground_share_one_broker(self, registry: Path) -> None:
        with serving(registry) as (first, line), serving(registry) as (_, same):
            assert line == same
            first.send_signal(signal.SIGINT)
            first.communicate(timeout=PATIENCE_SEC)
            assert status(registry)["running"] is True

    def test_without_a_program_it_is_one_sentence_and_the_rest_goes_on(
        self,
        registry: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        for kind in (servers.Nats, servers.Mosquitto):
            monkeypatch.setattr(kind, "find", lambda self: None)
        where = ["--registry-dir", str(registry)]
        assert main(["broker", *where]) == 1
        said = capsys.readouterr().err
        assert said.startswith("mam: there is no broker program for this machine")
        assert said.count("\n") == 1
        job = ["--prompt", "p", "--agent", "a", "--agent-session", "l"]
        assert main(["register", *job, *where]) == 0
        assert main(["pick", "--label", "l", *where]) == 0

    def test_settings_that_name_another_broker_are_pointed_out(
        self, registry: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        settings = tmp_path / "mam.toml"
        settings.write_text('[broker]\nhost = "broker.example"\n')
        words = ["broker", "--status", "--config", str(settings), "--registry-dir", str(registry)]
        assert main(words) == 1
        assert "broker.example" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("mosquitto_sub") is None, reason="mosquitto-clients is missing")
class TestForeignClients:
    """G1, G12: programs that know nothing of us."""

    def test_they_talk_to_each_other_over_it(self, registry: Path) -> None:
        with serving(registry) as (_, line):
            port = line.rpartition(":")[2]
            there = ["-h", "127.0.0.1", "-p", port, "-q", "1"]
            topic = "python/mqtt/jobs/a1/events"
            ear = [*there, "-i", "ear", "-c", *_login(registry, Role.OPERATOR)]
            ear += ["-t", "python/mqtt/jobs/+/events"]
            mouth = [*there, *_login(registry, Role.AGENT), "-t", topic, "-m", "hello"]
            # A session that is kept: subscribed and away, so nothing depends on the moment.
            assert _run("mosquitto_sub", *ear, "-E").returncode == 0
            assert _run("mosquitto_pub", *mouth).returncode == 0
            heard = _run("mosquitto_sub", *ear, "-C", "1", "-F", "%t %q %r %p")
            assert heard.stdout == f"{topic} 1 0 hello\n"

    def test_one_without_a_login_is_sent_away(self, registry: Path) -> None:
        with serving(registry) as (_, line):
            port = line.rpartition(":")[2]
            there = ["-h", "127.0.0.1", "-p", port]
            refused = _run("mosquitto_pub", *there, "-t", "a/events", "-m", "x")
            assert refused.returncode != 0
            assert "not authorised" in refused.stderr.lower()


def _login(registry: Path, role: Role) -> list[str]:
    login = credentials(str(registry), role)
    return ["-u", login.username, "-P", login.password]


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE_SEC)
