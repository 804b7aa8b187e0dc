"""Section F, the persistent audit log, through the names that scripts use."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mam_core.records import REDACTED
from tests.scripts.plain import BARE, SCRIPTS, surroundings
from tests.scripts.plain import registry as run_registry

LABEL = "tmux:claude"


@pytest.fixture
def job_id(registry: Any, here: Path) -> str:
    made: str = registry.register_job("count", agent="claude-code", agent_session=LABEL)
    return made


def events(common: Any, job_id: str) -> list[str]:
    return [line["event"] for line in common.iter_logged_events(job_id)]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


class TestWhereItIs:
    def test_f1_it_stands_apart_from_the_registry(
        self, common: Any, here: Path, job_id: str
    ) -> None:
        folder = here / ".mam" / "delegate_job_logs" / job_id
        assert sorted(os.listdir(folder)) == ["events.ndjson", "meta.json", "status.json"]
        assert common.job_log_path(job_id) == folder

    def test_f2_the_variable_is_read_when_it_is_used(
        self, common: Any, registry: Any, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert here / ".mam" / "delegate_job_logs" == common.LOGS_DIR
        monkeypatch.setenv("DELEGATE_JOB_LOGS_DIR", str(here / "history"))
        assert here / "history" == common.LOGS_DIR
        job_id = registry.register_job("x", agent="a", agent_session=LABEL)
        assert common.list_logged_jobs() == [job_id] == os.listdir(here / "history")

    def test_f16_it_survives_the_registry(self, common: Any, here: Path, job_id: str) -> None:
        shutil.rmtree(here / ".mam" / "jobs")
        assert common.list_logged_jobs() == [job_id]
        assert events(common, job_id) == ["registered"]
        assert run_registry("logs", job_id, cwd=here).returncode == 0
        assert job_id in run_registry("logs", "--list", cwd=here).stdout

    def test_f17_git_does_not_see_it(self, here: Path, job_id: str) -> None:
        if shutil.which("git") is None:
            pytest.skip("there is no git here")
        subprocess.run(["git", "init", "-q"], cwd=here, check=True)
        for path in (f".mam/jobs/{job_id}.json", f".mam/delegate_job_logs/{job_id}/meta.json"):
            assert (here / path).is_file()
            subprocess.run(["git", "check-ignore", "-q", path], cwd=here, check=True)


class TestWhatIsInIt:
    def test_f3_meta_is_the_record_as_registered_and_stays(
        self, common: Any, registry: Any, here: Path
    ) -> None:
        """X8: with a marker in place of each secret."""
        broker = {"host": "h", "port": 1, "tls": False, "username": "u", "password": "hush"}
        fields: dict[str, Any] = {"broker": broker, "auth_token": True}
        job_id = registry.register_job("x", agent="a", agent_session=LABEL, **fields)
        record = common.load_job(job_id)
        common.update_job_status(job_id, "completed")
        meta = common.read_logged_meta(job_id)
        assert meta["status"] == "pending"
        assert meta["auth_token"] == meta["broker"]["password"] == REDACTED
        assert {**meta, "auth_token": record["auth_token"], "broker": broker} == record

    def test_f4_events_are_one_object_a_line_in_order(
        self, common: Any, here: Path, job_id: str
    ) -> None:
        for at in range(20):
            common.append_event(job_id, "note", at=at, text="two\nlines – 한국어")
        lines = (here / ".mam/delegate_job_logs" / job_id / "events.ndjson").read_text()
        parsed = [json.loads(line) for line in lines.splitlines()]
        assert [line["n"] for line in parsed] == list(range(1, 22))
        stamps = [line["timestamp"] for line in parsed]
        assert stamps == sorted(stamps)

    def test_f5_status_is_the_status_of_now(self, common: Any, job_id: str) -> None:
        for status in ("running", "error", "pending", "cancelled", "completed"):
            common.update_job_status(job_id, status)
            told = common.read_logged_status(job_id)
            assert told["status"] == status
            assert set(told) == {"job_id", "status", "updated_at"}
        common.update_logged_status(job_id, "error")
        assert common.read_logged_status(job_id)["status"] == "error"

    def test_f6_registering_writes_the_first_line(self, common: Any, job_id: str) -> None:
        assert events(common, job_id) == ["registered"]

    def test_f6_init_job_log_begins_the_history_of_a_record_made_elsewhere(
        self, common: Any, here: Path, job_id: str
    ) -> None:
        record = {**common.load_job(job_id), "job_id": "handmade", "auth_token": "x" * 43}
        common.init_job_log(record)
        common.init_job_log(record)
        assert events(common, "handmade") == ["registered"]
        assert common.read_logged_meta("handmade")["auth_token"] == REDACTED
        assert common.read_logged_status("handmade")["status"] == "pending"

    def test_f7_every_source_of_a_change_of_status_is_told(
        self, common: Any, registry: Any, job_id: str
    ) -> None:
        """`pick`, `update_status`, and the `update_job_status` that a publisher syncs with."""
        registry.pick_pending(LABEL)
        registry.update_status(job_id, "error")
        common.update_job_status(job_id, "completed")
        moves = [
            (line["from"], line["to"])
            for line in common.iter_logged_events(job_id)
            if line["event"] == "status_changed"
        ]
        assert moves == [("pending", "running"), ("running", "error"), ("error", "completed")]

    @pytest.mark.parametrize("event", ["published", "received"])
    def test_f8_f9_an_event_keeps_the_exact_payload(
        self, common: Any, job_id: str, event: str
    ) -> None:
        payload = {"seq": 1, "event": "progress", "detail": "…", "data": {"n": 7, "z": None}}
        common.append_event(job_id, {"event": event, "payload": payload})
        *_, last = common.iter_logged_events(job_id)
        assert (last["event"], last["payload"]) == (event, payload)

    def test_f10_no_caller_writes_the_lines_by_hand(
        self, common: Any, registry: Any, job_id: str
    ) -> None:
        registry.pick_pending(LABEL)
        registry.update_status(job_id, "completed")
        assert events(common, job_id) == ["registered", "status_changed", "status_changed"]

    def test_secrets_in_an_event_become_a_marker(self, common: Any, job_id: str) -> None:
        """Decision 10, K5."""
        record = {"auth_token": "t0ken", "broker": {"password": "hush", "host": "h"}}
        common.append_event(job_id, "note", job=record, seen=[{"password": None}])
        raw = (common.job_log_path(job_id) / "events.ndjson").read_text()
        assert "t0ken" not in raw
        assert "hush" not in raw
        *_, last = common.iter_logged_events(job_id)
        assert last["job"]["broker"] == {"password": REDACTED, "host": "h"}
        assert last["seen"] == [{"password": None}]

    def test_a_callers_numbers_do_not_disturb_the_logs_own(self, common: Any, job_id: str) -> None:
        common.append_event(job_id, {"event": "note", "n": 99, "revision": 99, "job_id": "other"})
        common.append_event(job_id, "note")
        lines = list(common.iter_logged_events(job_id))
        assert [line["n"] for line in lines] == [1, 2, 3]
        assert lines[1]["given"] == {"n": 99, "revision": 99}
        assert lines[1]["job_id"] == job_id


class TestManyWriters:
    def test_f12_lines_of_many_processes_never_mix(
        self, common: Any, here: Path, job_id: str
    ) -> None:
        """INV-4: lines longer than any pipe or page, appended at once."""
        code = (
            f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); import mqtt_common\n"
            "for at in range(50):\n"
            "    mqtt_common.append_event(sys.argv[1], 'note', who=sys.argv[2], at=at, "
            "filler=sys.argv[2] * 8192)\n"
        )
        writers = [
            subprocess.Popen([*BARE, "-c", code, job_id, who], cwd=here, env=surroundings())
            for who in "abcd"
        ]
        assert [writer.wait(timeout=60) for writer in writers] == [0] * 4
        lines = list(common.iter_logged_events(job_id))
        assert [line["n"] for line in lines] == list(range(1, 202))
        for who in "abcd":
            mine = [line for line in lines if line.get("who") == who]
            assert [line["at"] for line in mine] == list(range(50))
            assert {line["filler"] for line in mine} == {who * 8192}

    def test_f18_readers_pass_over_a_torn_line(self, common: Any, job_id: str) -> None:
        path = common.job_log_path(job_id) / "events.ndjson"
        with path.open("ab") as file:
            file.write(b'not json\n[1, 2]\n\xff\xfe\n{"event": "half')
        assert events(common, job_id) == ["registered"]
        common.append_event(job_id, "note")
        assert events(common, job_id)[-1] == "note"


class TestBestEffort:
    """An audit log that cannot be written never stops what it shadows."""

    @pytest.fixture(params=["a plain file", "a place where nobody may write"])
    def broken_logs(
        self, request: pytest.FixtureRequest, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if request.param == "a plain file":
            (here / "logs").write_text("in the way")
            place = str(here / "logs")
        elif not sys.platform.startswith("linux"):
            pytest.skip("there is no /proc here")
        else:
            place = "/proc/mam-logs"  # read-only for root as well
        monkeypatch.setenv("DELEGATE_JOB_LOGS_DIR", place)

    @pytest.mark.usefixtures("broken_logs")
    def test_f13_f14_the_registry_goes_on_and_a_warning_is_given(
        self, common: Any, registry: Any, here: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        job_id = registry.register_job("x", agent="a", agent_session=LABEL)
        assert registry.pick_pending(LABEL) == job_id
        common.update_job_status(job_id, "completed")
        assert common.load_job(job_id)["status"] == "completed"
        assert common.next_seq(job_id) == 1
        said = warnings(caplog)
        assert len(said) >= 3
        assert all(job_id in words for words in said)

    @pytest.mark.usefixtures("broken_logs")
    def test_f13_f14_the_writers_themselves_only_warn(
        self, common: Any, here: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        record = {"schema_version": 1, "job_id": "abc", "status": "pending"}
        common.init_job_log(record)
        common.append_event("abc", "note")
        common.update_logged_status("abc", "completed")
        assert len(warnings(caplog)) == 3
        assert common.read_logged_meta("abc") is None
        assert common.read_logged_status("abc") is None
        assert list(common.iter_logged_events("abc")) == []
        assert common.list_logged_jobs() == []

    @pytest.mark.usefixtures("broken_logs")
    def test_f14_the_command_line_shows_the_warning(self, here: Path) -> None:
        logs = os.environ["DELEGATE_JOB_LOGS_DIR"]
        words = ["register", "--prompt", "x", "--agent", "a", "--agent-session", LABEL]
        done = run_registry(*words, cwd=here, DELEGATE_JOB_LOGS_DIR=logs)
        assert done.returncode == 0
        assert (here / ".mam" / "jobs" / f"{done.stdout.strip()}.json").is_file()
        assert "warning: the audit log of job" in done.stderr

    def test_f15_one_broken_file_does_not_stop_the_others(
        self, common: Any, job_id: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        folder = common.job_log_path(job_id)
        (folder / "meta.json").unlink()
        (folder / "meta.json").mkdir()
        (folder / "status.json").unlink()
        (folder / "status.json").mkdir()
        common.update_job_status(job_id, "completed")
        assert events(common, job_id) == ["registered", "status_changed"]
        assert any("status.json" in words for words in warnings(caplog))

    @pytest.mark.parametrize(
        "act",
        [
            lambda common: common.append_event("../x", "note"),
            lambda common: common.append_event("abc", "note", loop=_loop()),
            lambda common: common.append_event("abc", {("a", "tuple"): 1}),
            lambda common: common.update_logged_status("abc", "finished"),
            lambda common: common.update_logged_status("../x", "error"),
            lambda common: common.init_job_log({"job_id": "abc"}),
            lambda common: common.init_job_log({}),
        ],
    )
    def test_a_callers_mistake_is_a_warning_too(
        self, common: Any, here: Path, act: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        act(common)
        assert len(warnings(caplog)) == 1
        assert not (here / ".mam" / "x").exists()

    def test_what_json_cannot_say_is_said_as_text(self, common: Any, job_id: str) -> None:
        common.append_event(job_id, "note", path=Path("/a/b"))
        *_, last = common.iter_logged_events(job_id)
        assert last["path"] == "/a/b"


def _loop() -> dict[str, Any]:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    return loop
