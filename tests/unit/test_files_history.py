"""The files store and its audit log: broken, back again, and after a death."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from mam_core import api, audit_lines
from mam_core.audit import META, AuditEvent, AuditLog
from mam_core.audit_lines import EVENTS
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores.files import FilesStore
from mam_core.work.screen import Screen
from mam_core.work.voice import Voice
from tests.support.children import child
from tests.support.clock import FakeClock
from tests.support.files import rows, told
from tests.support.handles import close_later
from tests.support.jobs import add, running


class TestTheAuditLogIsBroken:
    @pytest.mark.parametrize("how", ["plain file", "read-only", "events is a folder"])
    def test_the_registry_goes_on_and_warns(
        self,
        registry: Registry,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        how: str,
    ) -> None:
        """F13, F14: and again at the next change, and the next."""
        logs = Path(registry.store.audit.path)
        first = add(registry, "before")
        if how == "plain file":
            shutil.rmtree(logs)
            logs.write_text("no folder")
        elif how == "read-only":
            real = os.open

            def refuse(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
                if str(path).startswith(str(logs)) or path in (EVENTS, META):
                    raise OSError(errno.EROFS, "Read-only file system")
                return real(path, flags, *args, **kwargs)

            monkeypatch.setattr(os, "open", refuse)
        else:
            (logs / first / EVENTS).unlink()
            (logs / first / EVENTS).mkdir()
        job = registry.claim("alpha")
        assert job is not None
        second = add(registry, "after")
        registry.finish(first, Status.COMPLETED, attempt=1)
        registry.request_cancel(second)
        assert rows(registry) == {first: "completed", second: "cancelled"}
        assert {record.levelname for record in caplog.records} == {"WARNING"}
        assert f"the audit log of job {first}" in caplog.text

    def test_what_could_not_be_told_is_told_when_the_folder_is_back(
        self, registry: Registry, place: Path, clock: FakeClock
    ) -> None:
        """F13: the debt is in the journal, and survives the process."""
        logs = Path(registry.store.audit.path)
        logs.write_text("no folder")
        job_id = add(registry, "owed")
        clock.pass_time(1)
        registry.claim("alpha")
        registry.store.close()
        logs.unlink()
        later = Registry(close_later(FilesStore(str(place), AuditLog(str(logs)))), clock=clock)
        other = add(later, "now it works")
        assert told(later, other) == [(1, "registered")]
        assert told(later, job_id) == [(1, "registered"), (2, "status_changed")]
        assert later.store.audit.status(job_id) == {
            "job_id": job_id,
            "status": "running",
            "updated_at": "2026-06-19T09:30:01Z",
        }
        later.next_seq(job_id)
        assert len(told(later, job_id)) == 2, "and told once"

    def test_notes_wait_for_a_history_whose_holder_is_stuck(
        self, registry: Registry, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Receipts and the facts of an attempt hang on no change; they are kept like all others."""
        monkeypatch.setattr(audit_lines, "_PATIENCE_SEC", 0.05)
        job = running(registry)
        other = add(registry, "another")
        voice = Voice(registry, job, Screen(io.StringIO()))
        waits: list[int] = []
        real = audit_lines._lock_briefly

        def counted(fd: int) -> None:
            waits.append(fd)
            real(fd)

        with open(Path(registry.store.audit.path) / job.job_id / EVENTS, "a") as stuck:
            fcntl.flock(stuck, fcntl.LOCK_EX)
            for number in range(3):
                clock.pass_time(1)
                voice.note(AuditEvent.ATTEMPT_ENDED, why=f"part {number}", attempt_no=number)
            clock.pass_time(1)
            registry.finish(job.job_id, Status.COMPLETED, attempt=1)
            monkeypatch.setattr(audit_lines, "_lock_briefly", counted)
            registry.next_seq(other)
            assert len(waits) == 1, "one wait, whatever is owed"
        clock.pass_time(1)
        registry.next_seq(other)
        events = [event for _, event in told(registry, job.job_id)]
        assert events == [
            *("registered", "status_changed", "attempt_ended", "attempt_ended", "attempt_ended"),
            "status_changed",
        ]
        registry.next_seq(other)
        assert len(told(registry, job.job_id)) == len(events), "each once"

    def test_meta_of_a_debt_is_still_the_record_as_registered(
        self, registry: Registry, place: Path
    ) -> None:
        """F3."""
        logs = Path(registry.store.audit.path)
        logs.write_text("no folder")
        job_id = add(registry, "owed")
        registry.claim("alpha")
        logs.unlink()
        registry.next_seq(job_id)
        meta = registry.store.audit.meta(job_id)
        assert meta is not None
        assert (meta["status"], meta["attempt"]) == ("pending", 0)

    def test_the_log_outlives_the_registry(self, registry: Registry, place: Path) -> None:
        """F16."""
        job = running(registry)
        registry.finish(job.job_id, Status.COMPLETED, attempt=1)
        shutil.rmtree(place)
        log = close_later(AuditLog(registry.store.audit.path))
        assert log.job_ids() == [job.job_id]
        assert next(line["event"] for line in log.events(job.job_id)) == "registered"


class TestAfterADeath:
    def test_temp_files_of_the_dead_are_swept(self, registry: Registry, place: Path) -> None:
        """D4."""
        job_id = add(registry)
        stale = self.die_in_the_middle(place)
        registry.next_seq(job_id)
        assert not stale.exists()

    def test_also_when_a_script_takes_the_bare_lock_first(
        self, registry: Registry, place: Path
    ) -> None:
        """D4: `with registry_lock()` must not swallow the news of the death."""
        job_id = add(registry)
        stale = self.die_in_the_middle(place)
        with api.registry_lock(str(place)):
            pass
        registry.next_seq(job_id)
        assert not stale.exists()

    def die_in_the_middle(self, place: Path) -> Path:
        program = """
import os, sys
from mam_core.disk import Folder
from mam_core.stores.lock import RegistryLock
folder = Folder.open(sys.argv[1])
lock = RegistryLock.of(folder)
lock.acquire()
os.close(folder.create(".abc.0123abcd.tmp", b"half a rec"))
print("there", flush=True)
sys.stdin.readline()
"""
        with child(program, str(place)) as writer:
            assert writer.hear() == "there"
            writer.kill()
        stale = place / ".abc.0123abcd.tmp"
        assert stale.exists()
        return stale
