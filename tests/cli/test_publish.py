"""``mam publish`` as an agent calls it: quiet, light, and never stopped by a broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mam_core.operations import publish as operation
from mam_core.stores.outbox_files import FilesOutbox
from tests.cli.conftest import Mam, Process, environment, execute, is_one_sentence
from tests.cli.test_cold_path import HEAVY, imported
from tests.support.brokers import embedded, nothing_left
from tests.support.patience import eventually
from tests.support.relays import left_behind, none_left_behind, relay_in_thread
from tests.support.rows import each_row

STARTED = "queued; a relay was started to send it"


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The relays that would have been left behind."""
    calls: list[tuple[Any, ...]] = []

    def leave_behind(*args: Any, **more: Any) -> bool:
        calls.append((args, more))
        return True

    monkeypatch.setattr("mam_core.operations.relay.leave_behind", leave_behind)
    return calls


@pytest.fixture
def real(mam: Mam) -> Iterator[Mam]:
    """For real processes: the relays that they leave behind are ended with the test."""
    with none_left_behind(mam.registry):
        yield mam


def posts(mam: Mam) -> list[dict[str, Any]]:
    return [json.loads(post.payload) for post in FilesOutbox(str(mam.registry)).posts(100)]


class TestWithoutARelay:
    def test_it_queues_says_so_and_leaves_a_relay_behind(
        self, mam: Mam, left: list[tuple[Any, ...]]
    ) -> None:
        """Decision 13: exit 0, nothing on stdout, "queued" and what happens now on stderr."""
        job_id = mam.register()
        answer = mam.ok("publish", "--job", job_id, "--event", "started", "--detail", "here we go")
        assert (answer.out, answer.err) == ("", f"mam: {STARTED}\n")
        assert left == [((str(mam.registry),), {"config_path": None})]
        (payload,) = posts(mam)
        assert (payload["event"], payload["seq"], payload["detail"]) == ("started", 1, "here we go")
        assert mam.record(job_id)["status"] == "running"

    def test_json_tells_what_became_of_it(self, mam: Mam, left: list[tuple[Any, ...]]) -> None:
        job_id = mam.register()
        answer = mam.ok("publish", job_id, "--event", "error", "--data", '{"code": 7}', "--json")
        assert answer.json == {
            "job_id": job_id,
            "attempt": 1,
            "seq": 1,
            "event": "error",
            "status": "error",
            "refused": None,
        }
        assert posts(mam)[0]["data"] == {"code": 7}

    def test_wait_ends_badly_when_no_broker_takes_it(
        self, mam: Mam, left: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """G24: it is queued all the same."""
        monkeypatch.setattr(operation.wait_until_taken, "__defaults__", (0.05,))
        answer = mam("publish", mam.register(), "--event", "progress", "--wait")
        assert answer.code == 1
        assert is_one_sentence(answer.err)
        assert "queued" in answer.err
        assert len(posts(mam)) == 1

    def test_the_relay_left_behind_holds_nothing_of_its_starter(
        self, real: Mam, process: Callable[..., Process]
    ) -> None:
        """No pipe, no terminal, no folder and nothing about a job: whoever waits for us goes on."""
        job_id = real.register()
        ours, theirs = os.pipe()
        os.set_inheritable(theirs, True)
        words = ["publish", "--job", job_id, "--event", "started"]
        try:
            done = process(
                *words, pass_fds=(theirs,), env=environment(MAM_JOB_ID=job_id, MQTT_BROKER="")
            )
        finally:
            os.close(theirs)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", f"mam: {STARTED}\n")
        (relay,) = eventually(lambda: left_behind(real.registry), "a relay")
        eventually(lambda: relay.cwd() == str(real.registry / ".outbox"), "it moved out")
        with os.fdopen(ours, "rb") as pipe:
            assert pipe.read() == b"", "the pipe is at its end"
        assert os.getsid(relay.pid) == relay.pid
        assert "MAM_JOB_ID" not in relay.environ()
        outbox = FilesOutbox(str(real.registry))
        eventually(outbox.ring, "it listens")
        again = process(*words[:-1], "progress")
        assert again.returncode == 0
        assert again.stderr.startswith("mam: queued"), "a relay is alive, and no broker"

    def test_with_nothing_in_the_environment_it_works(self, real: Mam) -> None:
        """A15, G4: registry folder and job id are enough."""
        job_id = real.register()
        command = [sys.executable, "-m", "mam_core.cli.main", "publish", "--job", job_id]
        command += ["--event", "started", "--registry-dir", str(real.registry)]
        done = execute(command, env={}, cwd="/")
        assert done.returncode == 0, done.stderr
        assert real.record(job_id)["last_seq"] == 1


class TestWithARelay:
    """Decision 13: whoever publishes is told the truth about a broker that it does not ask.

    A relay in a thread of this very process warns on the same stderr, whenever it likes.
    """

    @pytest.fixture
    def job_id(self, mam: Mam) -> str:
        return mam.register("p", "--broker-host", "127.0.0.1", "--broker-port", "1")

    def test_that_knows_nothing_yet(self, mam: Mam, job_id: str) -> None:
        with FilesOutbox(str(mam.registry)).relaying():
            answer = mam.ok("publish", job_id, "--event", "progress")
        assert answer.err == "mam: queued; the relay was woken to send it\n"

    def test_whose_broker_is_down(self, mam: Mam, job_id: str) -> None:
        with relay_in_thread(mam.registry):
            outbox = FilesOutbox(str(mam.registry))
            eventually(outbox.ring, "it listens")
            mam.ok("publish", job_id, "--event", "progress")
            eventually(lambda: outbox.lanes() == {"127.0.0.1:1": False}, "it was refused")
            answer = mam.ok("publish", job_id, "--event", "progress")
            assert "mam: queued: the broker 127.0.0.1:1 does not answer\n" in answer.err
        assert outbox.lanes() == {}

    def test_whose_broker_takes_events(self, mam: Mam) -> None:
        """Nothing is said: it is there in a moment. And it is said again when the broker goes."""
        with nothing_left(mam.folder), ExitStack() as relaying:
            with embedded(mam.registry, "nats").ensure_running() as broker:
                job_id = mam.register()
                relaying.enter_context(relay_in_thread(mam.registry))
                outbox = FilesOutbox(str(mam.registry))
                eventually(outbox.ring, "it listens")
                mam.ok("publish", job_id, "--event", "progress")
                place = f"127.0.0.1:{broker.port}"
                eventually(lambda: outbox.lanes() == {place: True}, "it is connected")
                assert "queued" not in mam.ok("publish", job_id, "--event", "progress").err
            eventually(lambda: outbox.lanes() == {place: False}, "it is hung up on")
            answer = mam.ok("publish", job_id, "--event", "progress")
            assert f"mam: queued: the broker {place} does not answer\n" in answer.err

    def test_that_was_killed_is_not_believed(
        self, mam: Mam, job_id: str, left: list[tuple[Any, ...]]
    ) -> None:
        outbox = FilesOutbox(str(mam.registry))
        with outbox.relaying():
            outbox.tell_lanes({"127.0.0.1:1": True})
            said = (mam.registry / ".outbox" / "lanes").read_bytes()
        (mam.registry / ".outbox" / "lanes").write_bytes(said)
        answer = mam.ok("publish", job_id, "--event", "progress")
        assert answer.err == f"mam: {STARTED}\n"
        with outbox.relaying():
            assert outbox.lanes() == {}, "nor after it, by the next one"

    @pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"127.0.0.1:1": "yes"}', b"\xff"])
    def test_whose_word_nobody_can_read(self, mam: Mam, job_id: str, content: bytes) -> None:
        with FilesOutbox(str(mam.registry)).relaying():
            (mam.registry / ".outbox" / "lanes").write_bytes(content)
            answer = mam.ok("publish", job_id, "--event", "progress")
        assert answer.err == "mam: queued; the relay was woken to send it\n"


class TestWhoSpeaks:
    @pytest.fixture(autouse=True)
    def _nothing_left(self, left: list[tuple[Any, ...]]) -> None:
        pass

    def test_an_agent_need_not_say_which_job_it_is(
        self, mam: Mam, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job_id = mam.register()
        mam.ok("pick", "--label", "tmux:a")
        monkeypatch.setenv("MAM_JOB_ID", job_id)
        monkeypatch.setenv("MAM_ATTEMPT", "1")
        mam.ok("publish", "--event", "progress")
        assert (posts(mam)[0]["job_id"], posts(mam)[0]["attempt"]) == (job_id, 1)

    def test_an_old_attempt_is_refused(self, mam: Mam, monkeypatch: pytest.MonkeyPatch) -> None:
        """Decision 6; also where only the environment says so."""
        job_id = mam.register()
        mam.ok("publish", job_id, "--event", "error")
        mam.ok("retry", job_id)
        mam.ok("publish", job_id, "--event", "started")
        before = mam.record(job_id)
        monkeypatch.setenv("MAM_JOB_ID", job_id)
        monkeypatch.setenv("MAM_ATTEMPT", "1")
        for words in (["publish"], ["publish", "--attempt", "1"]):
            answer = mam(*words, "--event", "completed")
            assert answer.code == 1
            assert is_one_sentence(answer.err)
        assert mam.record(job_id) == before
        mam.ok("publish", "--event", "completed", "--attempt", "2")

    def test_the_attempt_of_one_job_is_not_that_of_another(
        self, mam: Mam, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A16: an agent that tells of a job which it registered itself, and may."""
        (mam.folder / "mam.toml").write_text('[agents.shell]\nmay = ["publish"]\n')
        mine, other = mam.register("mine"), mam.register("other")
        monkeypatch.setenv("MAM_JOB_ID", mine)
        monkeypatch.setenv("MAM_ATTEMPT", "7")
        mam.ok("publish", "--job", other, "--event", "started")
        assert mam.record(other)["status"] == "running"

    @each_row(
        ("words", "code"),
        [
            (["--event", "progress"], 2),
            (["JOB"], 2),
            (["JOB", "--event", "done"], 2),
            (["JOB", "--event", "progress", "--data", "[1]"], 2),
            (["JOB", "--event", "progress", "--data", '{"a": NaN}'], 2),
            (["JOB", "--event", "progress", "--data", "{"], 2),
            (["JOB", "--event", "progress", "--attempt", "x"], 2),
            (["JOB", "JOB2", "--event", "progress"], 2),
            (["nobody", "--event", "progress"], 1),
            (["../x", "--event", "progress"], 1),
        ],
    )
    def test_mistakes_are_one_sentence_and_change_nothing(
        self, mam: Mam, words: list[str], code: int
    ) -> None:
        job_id = mam.register()
        answer = mam("publish", *(job_id if word == "JOB" else word for word in words))
        assert answer.code == code
        assert is_one_sentence(answer.err)
        assert mam.record(job_id)["last_seq"] == 0

    def test_a_variable_that_is_no_number_is_named(
        self, mam: Mam, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MAM_ATTEMPT", "first")
        answer = mam("publish", mam.register(), "--event", "progress")
        assert (answer.code, "$MAM_ATTEMPT" in answer.err) == (2, True)


class TestWhatItSays:
    @pytest.fixture(autouse=True)
    def _nothing_left(self, left: list[tuple[Any, ...]]) -> None:
        pass

    def test_a_promise_that_was_not_kept_is_told_and_exits_1(self, mam: Mam) -> None:
        """Decision 7."""
        job_id = mam.register("p", "--artifact", "out.txt")
        answer = mam("publish", job_id, "--event", "completed")
        assert answer.code == 1
        assert "job " + job_id + " ended as error" in answer.err
        assert "artifact out.txt is missing" in answer.err
        assert mam.record(job_id)["reason"] == "validation"
        assert "validation" in mam.ok("logs", job_id).out

    def test_a_public_broker_is_warned_of_each_time(self, mam: Mam) -> None:
        """G26, decision 2."""
        job_id = mam.register("p", "--broker-host", "broker.hivemq.com")
        for _ in range(2):
            answer = mam.ok("publish", job_id, "--event", "progress")
            assert "warning: the events of job" in answer.err
            assert "anyone can read and forge them" in answer.err

    def test_the_environment_corrects_the_record(
        self, mam: Mam, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """G5, G6: for the relay too, whose environment may be another."""
        job_id = mam.register("p", "--broker-host", "b.lan", "--broker-port", "1883")
        monkeypatch.setenv("MQTT_TLS", "1")
        monkeypatch.setenv("MQTT_PORT", "8883")
        monkeypatch.setenv("MQTT_USERNAME", "ann")
        monkeypatch.setenv("MQTT_PASSWORD", "pw")
        mam.ok("publish", job_id, "--event", "progress")
        (post,) = FilesOutbox(str(mam.registry)).posts(10)
        assert post.broker[:5] == ("b.lan", 8883, True, "ann", "pw")

    def test_a_login_of_elsewhere_is_not_for_the_registrys_own_broker(
        self, mam: Mam, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job_id = mam.register()
        monkeypatch.setenv("MQTT_USERNAME", "ann")
        monkeypatch.setenv("MQTT_PASSWORD", "pw")
        mam.ok("publish", job_id, "--event", "progress")
        (post,) = FilesOutbox(str(mam.registry)).posts(10)
        assert (post.broker.username, post.broker.password) == (None, None)

    def test_secrets_are_nowhere_to_be_seen(self, mam: Mam) -> None:
        """K5."""
        job_id = mam.register("p", "--token")
        token = mam.record(job_id)["auth_token"]
        said = mam.ok("publish", job_id, "--event", "progress", "--detail", token, "--json")
        assert token not in said.out + said.err
        assert token not in json.dumps(posts(mam))


#: From 3.14 on argparse loads them for its colours, wanted or not.
_ARGPARSE_LOADS_DATACLASSES = sys.version_info >= (3, 14)


class TestAColdStart:
    @pytest.mark.parametrize("is_relayed", [True, False], ids=["relay alive", "no relay"])
    def test_imports_nothing_heavy(self, real: Mam, is_relayed: bool) -> None:
        """Decision 13 costs an agent little: neither paho nor logging nor subprocess."""
        job_id = real.register()
        (real.registry / ".outbox").mkdir(mode=0o700)
        relay = FilesOutbox(str(real.registry)).relaying() if is_relayed else None
        if relay:
            relay.__enter__()
        try:
            loaded = imported(real.folder, "publish", "--job", job_id, "--event", "progress")
        finally:
            if relay:
                relay.__exit__(None, None, None)
        heavy = HEAVY if _ARGPARSE_LOADS_DATACLASSES else HEAVY | {"dataclasses"}
        assert {name.partition(".")[0] for name in loaded} & heavy == set()
        assert "mam_core.events.connection" not in loaded
        assert "mam_core.events.relay" not in loaded


class TestABrokerThatComesLate:
    def test_is_waited_for(self, real: Mam) -> None:
        """G8, decision 13: `--wait` ends well once it is there; back-off bounds the tries."""
        job_id = real.register()
        mam = [sys.executable, "-m", "mam_core.cli.main"]
        with nothing_left(real.folder):
            words = [*mam, "publish", job_id, "--event", "started", "--wait"]
            waiting = subprocess.Popen(words, cwd=real.folder, stderr=subprocess.PIPE, text=True)
            eventually(lambda: "events wait" in relay_log(real), "the relay has tried in vain")
            broker = subprocess.Popen([*mam, "broker"], cwd=real.folder, stderr=subprocess.DEVNULL)
            try:
                assert waiting.communicate(timeout=60)[1] == ""
                assert waiting.returncode == 0
            finally:
                broker.terminate()
                broker.wait()
        assert posts(real) == []


def relay_log(mam: Mam) -> str:
    """What the relay that was left behind has to say."""
    log = mam.registry / ".outbox" / "relay.log"
    return log.read_text() if log.exists() else ""


class TestTheRelayCommand:
    def test_warns_of_a_public_broker(
        self, mam: Mam, left: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """G26: of one that a queued event goes to, and of one that the settings name."""
        monkeypatch.setattr("mam_core.events.public_brokers._PUBLIC", ("localhost",))
        monkeypatch.setattr("mam_core.cli.relay.PATIENCE_SEC", 0.3)
        said = "warning: events go to the public broker localhost: anyone can read and forge them"
        job_id = mam.register("p", "--broker-host", "localhost", "--broker-port", "1")
        mam.ok("publish", job_id, "--event", "progress")
        for _ in range(2):
            assert mam("relay", "--once").err.count(said) == 1
        monkeypatch.setenv("MQTT_BROKER", "localhost")
        assert said in mam("relay", "--once").err

    def test_once_with_nothing_to_do(self, mam: Mam) -> None:
        mam.register()
        answer = mam.ok("relay", "--once")
        assert (answer.out, answer.err) == ("", "")

    def test_once_starts_the_broker_that_the_queue_waits_for(
        self, mam: Mam, left: list[tuple[Any, ...]]
    ) -> None:
        """Decision 21: it is the registry's own, and nobody else keeps it."""
        with nothing_left(mam.folder):
            job_id = mam.register()
            mam.ok("publish", job_id, "--event", "progress")
            answer = mam.ok("relay", "--once")
            assert (answer.out, answer.err) == ("", "")
        assert posts(mam) == []
        assert "published" in mam.ok("logs", job_id).out

    def test_once_that_may_not_write_is_one_sentence(
        self, mam: Mam, left: list[tuple[Any, ...]]
    ) -> None:
        mam.register()
        outbox = mam.registry / ".outbox"
        outbox.mkdir(mode=0o700, exist_ok=True)
        (outbox / "relay.lock").mkdir()
        answer = mam("relay", "--once")
        assert (answer.code, is_one_sentence(answer.err)) == (1, True)
        assert str(outbox) in answer.err

    def test_once_where_there_is_no_registry(self, mam: Mam) -> None:
        answer = mam("relay", "--once")
        assert (answer.code, is_one_sentence(answer.err)) == (1, True)
        assert not mam.registry.exists()

    def test_once_with_a_broker_that_is_down_says_what_is_left(
        self, mam: Mam, left: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("mam_core.cli.relay.PATIENCE_SEC", 0.3)
        job_id = mam.register("p", "--broker-host", "127.0.0.1", "--broker-port", "1")
        mam.ok("publish", job_id, "--event", "progress")
        answer = mam("relay", "--once")
        assert answer.code == 1
        assert "1 event is still queued: 127.0.0.1:1: connection refused" in answer.err

    def test_it_serves_until_it_is_interrupted(
        self, real: Mam, process: Callable[..., Process]
    ) -> None:
        """With the embedded broker, which ends with it."""
        job_id = real.register()
        command = [sys.executable, "-m", "mam_core.cli.main", "relay"]
        relay = subprocess.Popen(
            command, cwd=real.folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        try:
            eventually(FilesOutbox(str(real.registry)).ring, "it listens")
            done = process("publish", "--job", job_id, "--event", "started", "--wait")
            assert (done.returncode, done.stderr) == (0, "")
            assert "published" in real.ok("logs", job_id).out
            relay.terminate()
            err = relay.communicate(timeout=60)[1]
            assert relay.returncode == 0
            assert "Traceback" not in err
        finally:
            if relay.poll() is None:
                relay.kill()
            relay.wait()
        assert not Path(real.registry / ".outbox" / "relay.log").exists()
