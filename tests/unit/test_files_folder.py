"""The folder of records shared with the world: modes, foreign tools, junk."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from mam_core.errors import (
    MamError,
    StoreError,
    UnreadableRecord,
)
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.stores.base import Query
from tests.support.files import rows
from tests.support.jobs import a_full_job, add, claim_all

FIFTEEN = {
    "schema_version": 1,
    "job_id": "foreign1",
    "status": "pending",
    "created_at": "2026-06-19T09:29:00Z",
    "updated_at": "2026-06-19T09:29:00Z",
    "prompt": "from another tool",
    "agent": "shell",
    "agent_session": "alpha",
    "broker": {"host": "h", "port": 1, "tls": False, "username": None, "password": None},
    "topic_prefix": "python/mqtt/jobs/foreign1",
    "timeout_sec": 600,
    "idle_timeout_sec": 120,
    "expected_artifacts": [],
    "last_seq": 0,
    "auth_token": None,
}


class TestTheFolder:
    def test_one_file_a_job_and_everything_is_private(
        self, registry: Registry, place: Path
    ) -> None:
        """A3, A5, A19, decision 20."""
        before = os.umask(0)
        try:
            ids = [add(registry, f"job {i}") for i in range(3)]
            running_one = registry.claim("alpha")
            assert running_one is not None
            registry.finish(running_one.job_id, Status.COMPLETED, attempt=1)
            registry.archive([running_one.job_id])
        finally:
            os.umask(before)
        assert {path.stem for path in place.glob("*.json")} == set(ids) - {running_one.job_id}
        assert (place / ".lock").is_file()
        for path in [place, *place.rglob("*")]:
            assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path

    def test_modes_hold_under_the_strictest_umask_too(
        self, registry: Registry, place: Path
    ) -> None:
        """A19: a file that nobody can open would lock the next process out."""
        before = os.umask(0o777)
        try:
            job_id = add(registry)
        finally:
            os.umask(before)
        modes = {path.name: path.stat().st_mode & 0o777 for path in place.iterdir()}
        assert modes == dict.fromkeys((f"{job_id}.json", ".lock", ".journal"), 0o600)

    def test_a_folder_open_to_others_is_closed_and_told(
        self, registry: Registry, place: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Decision 30."""
        place.mkdir(mode=0o755)
        place.chmod(0o755)
        add(registry)
        assert place.stat().st_mode & 0o777 == 0o700
        assert "was open to other users" in caplog.text

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
    def test_somebody_elses_folder_is_read_and_not_written(
        self, registry: Registry, place: Path
    ) -> None:
        job_id = add(registry)
        registry.store.close()
        os.chown(place, 65534, 65534)
        assert registry.get(job_id).job_id == job_id
        with pytest.raises(StoreError, match="belongs to user 65534 and you are 0"):
            add(registry)


class TestForeignRecords:
    def test_a_record_of_the_original_is_found_claimed_and_kept_whole(
        self, registry: Registry, place: Path
    ) -> None:
        """A6, C1, decision 5: written while we are running, without a restart."""
        ours = add(registry)
        foreign = FIFTEEN | {"colour": "blue"}
        (place / "foreign1.json").write_text(json.dumps(foreign, indent=2))
        assert set(rows(registry)) == {ours, "foreign1"}
        job = registry.claim("alpha")
        assert job is not None
        assert job.job_id == "foreign1", "it is a minute older"
        written = json.loads((place / "foreign1.json").read_bytes())
        assert written["colour"] == "blue"
        assert {name: written[name] for name in FIFTEEN} == FIFTEEN | {
            "status": "running",
            "updated_at": "2026-06-19T09:30:00Z",
        }

    def test_an_edit_in_place_and_a_removal_are_seen(self, registry: Registry, place: Path) -> None:
        one, two = add(registry), add(registry)
        data = json.loads((place / f"{one}.json").read_bytes())
        (place / f"{one}.json").write_text(json.dumps(data | {"status": "completed"}))
        (place / f"{two}.json").unlink()
        assert rows(registry) == {one: "completed"}
        assert registry.claim("alpha") is None

    def test_a_looser_mode_is_warned_of_once_and_tightened_at_the_next_write(
        self, registry: Registry, place: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Decision 30."""
        job_id = add(registry)
        (place / f"{job_id}.json").chmod(0o644)
        registry.get(job_id)
        registry.get(job_id)
        assert caplog.text.count("can be read by other users") == 1
        registry.next_seq(job_id)
        assert (place / f"{job_id}.json").stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize("version", [0, 2, 99, "1"])
    def test_another_schema_version_is_shown_and_never_rewritten(
        self, registry: Registry, place: Path, version: object
    ) -> None:
        """A7."""
        ours = add(registry)
        path = place / "foreign1.json"
        path.write_text(json.dumps(FIFTEEN | {"schema_version": version}))
        before = path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino
        assert "schema_version" in rows(registry)["foreign1"]
        verbs: list[Callable[[], object]] = [
            lambda: registry.get("foreign1"),
            lambda: registry.set_status("foreign1", Status.ERROR),
            lambda: registry.next_seq("foreign1"),
            lambda: registry.request_cancel("foreign1"),
            lambda: registry.retry("foreign1"),
            lambda: registry.edit("foreign1", {"priority": 1}),
            lambda: registry.archive(["foreign1"]),
        ]
        for verb in verbs:
            with pytest.raises(UnreadableRecord, match="schema_version"):
                verb()
        assert claim_all(registry) == [ours]
        assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) == before
        assert registry.store.raw("foreign1") == before[0]


class TestJunk:
    def test_costs_one_row_each_and_never_the_list_or_a_claim(
        self, registry: Registry, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A18."""
        good = add(registry)
        junk: dict[str, bytes] = {
            "empty.json": b"",
            "half.json": json.dumps(FIFTEEN).encode()[:200],
            "deep.json": b"[" * 10_000,
            "latin.json": b'{"prompt": "\xe9"}',
            "list.json": b"[]",
            "other.json": json.dumps(FIFTEEN).encode(),
            "bad name!.json": b"{}",
        }
        for name, data in junk.items():
            (place / name).write_bytes(data)
        os.mkfifo(place / "pipe.json")
        (place / "folder.json").mkdir()
        (place / "link.json").symlink_to(place / f"{good}.json")
        (place / "dangling.json").symlink_to("nowhere")
        monkeypatch.chdir(place)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("socket.json")
        for name in (".hidden.json", "notes.txt", f"{good}.events.log", f".{good}.1234.tmp"):
            (place / name).write_text("not a record")
        extra = {"pipe", "folder", "link", "dangling", "socket"}
        expected = {name.removesuffix(".json") for name in junk} | extra
        listed = rows(registry)
        assert set(listed) == expected | {good}
        assert listed[good] == "pending"
        assert all("\n" not in words for words in listed.values())
        bodies = list(registry.store.bodies(Query()))
        assert len(bodies) == len(listed)
        for name in expected - {"bad name!"}:
            with pytest.raises(UnreadableRecord, match=f"job {name} cannot be read"):
                registry.get(name)
        assert claim_all(registry) == [good]

    def test_raw_says_what_it_cannot_read(
        self, registry: Registry, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """E15: no bare OSError comes out of any door."""
        job_id = add(registry)

        def refuse(*args: object, **kwargs: object) -> int:
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(os, "open", refuse)
        for door in (registry.store.get, registry.store.raw):
            with pytest.raises(MamError):
                door(job_id)


def test_a_record_written_by_hand_is_what_get_answers(registry: Registry, place: Path) -> None:
    """A3, A14."""
    add(registry)
    job = a_full_job()
    (place / f"{job.job_id}.json").write_text(json.dumps(job.to_dict()))
    assert registry.get(job.job_id) == job
    assert isinstance(job, Job)
