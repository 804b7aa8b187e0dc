"""The functions of the registry document, as a script calls them."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from mam_core import api
from mam_core.audit import AuditLog
from mam_core.errors import (
    MamError,
)
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores.files import FilesStore
from tests.support.handles import close_later
from tests.support.jobs import add
from tests.support.patience import PATIENCE_SEC


class TestHandles:
    def test_nothing_stays_open_after_the_functions_of_the_document(self, place: Path) -> None:
        """Decision 25: a script may call them ten thousand times."""
        job = api.register_job("p", agent="a", agent_session="s", registry_dir=str(place))
        api.next_seq(job, str(place))
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(30):
            api.next_seq(job, str(place))
        assert len(os.listdir("/proc/self/fd")) <= before + 2

    def test_a_store_that_is_closed_holds_nothing(self, place: Path, tmp_path: Path) -> None:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            store = close_later(FilesStore(str(place), AuditLog(str(tmp_path / "logs"))))
            add(Registry(store))
            store.close()
        assert len(os.listdir("/proc/self/fd")) <= before + 1


class TestTheFunctionsOfTheDocument:
    """Decision 25, A17: thin, and the same engine."""

    def test_a_job_goes_through_its_life(self, place: Path) -> None:
        where = str(place)
        job = api.register_job(
            "count", agent="shell", agent_session="a", registry_dir=where, timeout_sec=60
        )
        assert api.pick_pending("a", where, agents=["codex"]) is None
        assert api.pick_pending("b", where) is None
        assert api.pick_pending("a", where) == job
        assert api.pick_pending("a", where) is None
        assert api.next_seq(job, where) == 1
        assert api.update_status(job, "completed", where).status is Status.COMPLETED
        with pytest.raises(MamError, match="'done' is no status"):
            api.update_status(job, "done", where)

    def test_the_default_place_is_below_the_working_directory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A1, A2, F1, F2, F17."""
        monkeypatch.chdir(tmp_path)
        job = api.register_job("count", agent="shell", agent_session="a")
        assert (tmp_path / f".mam/jobs/{job}.json").is_file()
        assert (tmp_path / f".mam/delegate_job_logs/{job}/events.ndjson").is_file()
        assert (tmp_path / ".mam/.gitignore").read_text() == "*\n"
        monkeypatch.setenv("DELEGATE_JOB_LOGS_DIR", str(tmp_path / "elsewhere"))
        other = api.register_job("count", agent="shell", agent_session="a")
        assert (tmp_path / f"elsewhere/{other}/events.ndjson").is_file()

    def test_the_lock_of_the_document_excludes_and_lets_the_same_thread_in(
        self, place: Path
    ) -> None:
        """B1."""
        job = api.register_job("p", agent="a", agent_session="s", registry_dir=str(place))
        with api.registry_lock(str(place)):
            assert api.next_seq(job, str(place)) == 1
            answers: list[int] = []
            other = threading.Thread(target=lambda: answers.append(api.next_seq(job, str(place))))
            other.start()
            other.join(0.3)
            assert answers == []
        other.join(PATIENCE_SEC)
        assert answers == [2]
