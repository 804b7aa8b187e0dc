"""The audit log against torn ends, planted files and many writers (section F)."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mam_core import audit_lines, codec
from mam_core.audit import META, STATUS, AuditLog, status_of
from mam_core.audit_lines import EVENTS, TORN, numbered
from mam_core.records import Status
from tests.support.children import run_all
from tests.support.clock import FakeClock
from tests.support.handles import close_later
from tests.support.jobs import a_full_job
from tests.support.patience import PATIENCE_SEC

JOB = "abc12345"


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    return close_later(AuditLog(str(tmp_path / "logs")))


def a_line(event: str = "received", **fields: Any) -> dict[str, Any]:
    return {"timestamp": "2026-06-19T09:30:00.000Z", "event": event, "job_id": JOB, **fields}


def file_of(log: AuditLog, name: str = EVENTS) -> Path:
    return Path(log.path) / JOB / name


def numbers(log: AuditLog) -> list[int]:
    return [line["n"] for line in log.events(JOB)]


class TestWriting:
    def test_a_job_begins_with_three_files_of_0600_in_a_folder_of_0700(self, log: AuditLog) -> None:
        """F1, F3, F4, F5, F6, A19."""
        assert log.begin(a_full_job(), a_line("registered"))
        folder = Path(log.path) / JOB
        assert {path.name for path in folder.iterdir()} == {META, EVENTS, STATUS}
        assert {path.stat().st_mode & 0o7777 for path in folder.iterdir()} == {0o600}
        assert (folder.stat().st_mode & 0o7777, Path(log.path).stat().st_mode & 0o7777) == (
            0o700,
            0o700,
        )
        assert list(log.events(JOB)) == [{"n": 1, **a_line("registered")}]

    @pytest.mark.parametrize("umask", [0o000, 0o777])
    def test_modes_do_not_depend_on_the_umask(self, log: AuditLog, umask: int) -> None:
        """A19, decision 10."""
        before = os.umask(umask)
        try:
            log.begin(a_full_job(), a_line("registered"))
            file_of(log).write_bytes(file_of(log).read_bytes() + b"torn")
            log.append(JOB, a_line())
        finally:
            os.umask(before)
        modes = {path.name: path.stat().st_mode & 0o777 for path in file_of(log).parent.iterdir()}
        assert modes == {META: 0o600, EVENTS: 0o600, STATUS: 0o600, TORN: 0o600}

    @pytest.mark.parametrize("size", [0, 1, 100, 300, 5000])
    def test_the_status_replaces_whatever_stood_there(self, log: AuditLog, size: int) -> None:
        """F5: also a longer one that another tool wrote."""
        file_of(log).parent.mkdir(parents=True)
        file_of(log, STATUS).write_text('{"status": "error", "pad": "' + "x" * size + '"}')
        longest = a_full_job("j" * 64).evolve(status=Status.COMPLETED)
        for job in (a_full_job(), longest, a_full_job()):
            log.append(job.job_id, a_line(), job)
            assert status_of(log.status(job.job_id)) is job.status

    def test_meta_is_written_once(self, log: AuditLog) -> None:
        """F3."""
        log.begin(a_full_job(), a_line("registered"))
        before = log.meta(JOB)
        log.begin(a_full_job().evolve(prompt="other"), a_line("registered"))
        assert log.meta(JOB) == before
        assert numbers(log) == [1, 2]

    @pytest.mark.parametrize("text", ["가나다", "\ud800", "\0\n\r\x1b[2J", "\u2028", "x" * 9000])
    def test_any_text_is_one_line(self, log: AuditLog, text: str) -> None:
        """F4."""
        for _ in range(3):
            log.append(JOB, a_line(detail=text))
        assert [line["detail"] for line in log.events(JOB)] == [text] * 3
        assert file_of(log).read_bytes().count(b"\n") == 3
        assert numbers(log) == [1, 2, 3]

    def test_many_processes_never_interleave(self, log: AuditLog) -> None:
        """F12: 8 processes with 200 lines of 8 KB each."""
        program = """
import sys
from mam_core.audit import AuditLog
log = AuditLog(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for i in range(200):
    line = {"timestamp": "t", "event": "received", "job_id": "abc12345", "who": sys.argv[2]}
    assert log.append("abc12345", line | {"i": i, "pad": sys.argv[2] * 8000})
"""
        run_all(program, [[log.path, str(who)] for who in range(8)])
        lines = list(log.events(JOB))
        assert [line["n"] for line in lines] == list(range(1, 1601))
        assert len(list(log.lines(JOB))) == 1600
        for who in "01234567":
            own = [line for line in lines if line["who"] == who]
            assert [line["i"] for line in own] == list(range(200))
            assert {line["pad"] for line in own} == {who * 8000}


class TestATornEnd:
    def test_at_every_byte_is_set_aside_and_told(self, log: AuditLog) -> None:
        """F18: a repair is a line of its own, and nothing is lost."""
        log.append(JOB, a_line(detail="first"))
        log.append(JOB, a_line(detail="second, 가"))
        whole = file_of(log).read_bytes()
        first = whole.index(b"\n") + 1
        for end in range(first + 1, len(whole)):
            torn = whole[first:end]
            file_of(log).write_bytes(whole[:end])
            file_of(log, TORN).unlink(missing_ok=True)
            assert next(line["detail"] for line in log.events(JOB)) == "first"
            assert log.append(JOB, a_line(detail="third"))
            one, repair, three = log.events(JOB)
            assert (one["n"], repair["n"], three["n"]) == (1, 2, 3)
            assert (repair["event"], repair["bytes"]) == ("log_repaired", len(torn))
            assert three["detail"] == "third"
            assert file_of(log, TORN).read_bytes() == torn + b"\n"

    def test_as_the_only_line(self, log: AuditLog) -> None:
        log.append(JOB, a_line())
        file_of(log).write_bytes(file_of(log).read_bytes()[:20])
        log.append(JOB, a_line())
        assert [line["event"] for line in log.events(JOB)] == ["log_repaired", "received"]
        assert numbers(log) == [1, 2]

    def test_bigger_than_one_look(self, log: AuditLog) -> None:
        log.append(JOB, a_line())
        with open(file_of(log), "ab") as file:
            file.write(b"x" * 100_000)
        log.append(JOB, a_line())
        assert numbers(log) == [1, 2, 3]
        assert file_of(log, TORN).stat().st_size == 100_001


class TestGarbage:
    @pytest.mark.parametrize(
        "garbage",
        [
            b"\n",
            b"garbage\n",
            b"\xff\xfe\n",
            b"[1, 2]\n",
            b'"text"\n',
            b"null\n",
            b"{\n",
            b"[" * 5000 + b"\n",
            b'{"n": "seven"}\n',
            b'{"n": null}\n',
            b'{"n": 1' + b"0" * 5000 + b', "event": "x"}\n',
            b'{"n": 1' + b"0" * 5000 + b"}\n",
            b"\0" * 4096 + b"\n",
        ],
    )
    def test_in_the_middle_is_skipped_and_numbers_go_on(
        self, log: AuditLog, garbage: bytes
    ) -> None:
        """F13, F18."""
        log.append(JOB, a_line(detail="first"))
        with open(file_of(log), "ab") as file:
            file.write(garbage)
        assert log.append(JOB, a_line(detail="second"))
        told = [line for line in log.events(JOB) if "detail" in line]
        assert [(line["n"], line["detail"]) for line in told] == [(1, "first"), (2, "second")]
        assert log.last_revision(JOB) == 0

    def test_the_newest_revision_is_found_past_lines_without_one(self, log: AuditLog) -> None:
        log.append(JOB, a_line(revision=41))
        for _ in range(300):
            log.append(JOB, a_line(pad="x" * 100))
        assert log.last_revision(JOB) == 41

    @pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"status": 5}', b'{"status": "x"}'])
    def test_in_the_small_files_is_none(self, log: AuditLog, data: bytes) -> None:
        log.begin(a_full_job(), a_line("registered"))
        file_of(log, META).write_bytes(data[:2])
        file_of(log, STATUS).write_bytes(data)
        assert log.meta(JOB) is None
        assert status_of(log.status(JOB)) is None

    def test_a_job_that_is_not_logged_has_nothing(self, log: AuditLog) -> None:
        assert list(log.events(JOB)) == []
        assert (log.meta(JOB), log.status(JOB), log.job_ids()) == (None, None, [])
        assert not log.has(JOB)
        assert log.last_revision(JOB) == 0


class TestPlantedFiles:
    def test_a_link_is_refused_with_a_warning(
        self, log: AuditLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        target = tmp_path / "precious"
        target.write_text("untouched")
        file_of(log).parent.mkdir(parents=True)
        file_of(log).symlink_to(target)
        assert not log.append(JOB, a_line())
        assert target.read_text() == "untouched"
        assert f"the audit log of job {JOB} misses a line" in caplog.text

    def test_a_second_name_is_refused_with_a_warning(
        self, log: AuditLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        target = tmp_path / "precious"
        target.write_text("untouched")
        file_of(log).parent.mkdir(parents=True)
        os.link(target, file_of(log))
        assert not log.append(JOB, a_line())
        assert target.read_text() == "untouched"
        assert "has a second name" in caplog.text

    def test_a_job_folder_that_is_a_link_is_refused(
        self, log: AuditLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        Path(log.path).mkdir()
        file_of(log).parent.symlink_to(elsewhere)
        assert not log.append(JOB, a_line())
        assert not log.begin(a_full_job(), a_line("registered"))
        assert list(elsewhere.iterdir()) == []
        assert list(log.events(JOB)) == []
        assert "cannot be opened" in caplog.text

    @pytest.mark.parametrize("plant", ["pipe", "folder"])
    def test_what_is_no_file_neither_hangs_nor_breaks_anybody(
        self, log: AuditLog, plant: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """F13, F18: writers warn, readers find nothing."""
        file_of(log).parent.mkdir(parents=True)
        if plant == "pipe":
            os.mkfifo(file_of(log))
        else:
            file_of(log).mkdir()
        assert not log.append(JOB, a_line())
        assert "misses a line" in caplog.text
        answers: list[object] = []

        def ask() -> None:
            try:
                answers.append(log.last_revision(JOB))
                answers.append(list(log.events(JOB)))
            except OSError as problem:
                answers.append(problem)

        reader = threading.Thread(target=ask, daemon=True)
        reader.start()
        reader.join(PATIENCE_SEC)
        if plant == "pipe" and reader.is_alive():
            os.close(os.open(file_of(log), os.O_RDWR))  # lets the reader out
            reader.join(3)
            pytest.fail("the reader waits for somebody to write into the pipe")
        assert answers == [0, []]

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
    def test_a_file_of_another_user_is_refused(
        self, log: AuditLog, caplog: pytest.LogCaptureFixture
    ) -> None:
        log.append(JOB, a_line())
        os.chown(file_of(log), 65534, 65534)
        assert not log.append(JOB, a_line())
        assert "belongs to user 65534" in caplog.text


class TestIsolation:
    def test_a_broken_meta_does_not_stop_the_lines(
        self, log: AuditLog, caplog: pytest.LogCaptureFixture
    ) -> None:
        """F15."""
        file_of(log).parent.mkdir(parents=True)
        file_of(log, STATUS).mkdir()
        assert not log.begin(a_full_job(), a_line("registered"))
        assert not log.append(JOB, a_line(), a_full_job())
        assert numbers(log) == [1, 2]
        assert log.meta(JOB) is not None
        assert caplog.text.count(STATUS) >= 2

    def test_a_plain_file_in_place_of_the_folder_is_a_warning(
        self, log: AuditLog, caplog: pytest.LogCaptureFixture
    ) -> None:
        """F13, F14."""
        Path(log.path).write_text("I am no folder")
        assert not log.begin(a_full_job(), a_line("registered"))
        assert not log.append(JOB, a_line())
        assert not log.append(JOB, a_line(), a_full_job())
        assert [record.levelname for record in caplog.records] == ["WARNING"] * 3
        assert (list(log.events(JOB)), log.meta(JOB), log.job_ids()) == ([], None, [])

    def test_a_writer_that_is_stuck_does_not_hold_the_registry_for_ever(
        self, log: AuditLog
    ) -> None:
        """B6, F13: somebody holds the lock of the log, and was stopped with Ctrl-Z."""
        log.append(JOB, a_line())
        with open(file_of(log), "a") as stuck:
            fcntl.flock(stuck, fcntl.LOCK_EX)
            answers: list[bool] = []
            writer = threading.Thread(target=lambda: answers.append(log.append(JOB, a_line())))
            writer.start()
            writer.join(PATIENCE_SEC)
            in_time = not writer.is_alive()
        writer.join(10)
        assert in_time
        assert answers == [False]

    @pytest.mark.parametrize("lines", [15, 1000])
    def test_a_writer_waits_while_others_get_on_but_not_for_ever(
        self, log: AuditLog, monkeypatch: pytest.MonkeyPatch, lines: int
    ) -> None:
        """F12, F13: whose turn it is, is chance; on a busy machine one may miss many."""
        log.append(JOB, a_line())
        with open(file_of(log), "ab", buffering=0) as others:
            fcntl.flock(others, fcntl.LOCK_EX)
            told = count(2)
            clock = FakeClock()

            def meanwhile(_: float) -> None:
                """Another line of theirs; with the last one they are done."""
                clock.pass_time(0.2)
                others.write(numbered(n := next(told), a_line()))
                if n == lines:
                    fcntl.flock(others, fcntl.LOCK_UN)

            waiting = SimpleNamespace(monotonic=clock.since_boot, sleep=meanwhile)
            monkeypatch.setattr(audit_lines, "time", waiting)
            is_told = log.append(JOB, a_line())
        assert is_told == (lines == 15)
        assert numbers(log) == list(range(1, next(told) + is_told))

    def test_logged_jobs_are_listed_and_strangers_are_not(self, log: AuditLog) -> None:
        """E12, F11."""
        for name in ("one", "two", "three"):
            log.append(name, a_line() | {"job_id": name})
        (Path(log.path) / "a file").touch()
        (Path(log.path) / "bad name!").mkdir()
        (Path(log.path) / "plain").touch()
        assert sorted(log.job_ids()) == ["one", "three", "two"]
        assert log.has("one")


def test_status_holds_three_facts(log: AuditLog) -> None:
    """F5."""
    log.append(JOB, a_line(), a_full_job())
    data = file_of(log, STATUS).read_bytes()
    assert codec.loads(data) == {
        "job_id": JOB,
        "status": "running",
        "updated_at": "2026-06-19T09:31:00Z",
    }
    assert status_of(json.loads(data)) is Status.RUNNING
