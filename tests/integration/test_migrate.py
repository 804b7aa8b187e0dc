"""From ``.hermes`` to ``.mam``: everything arrives, nothing is overwritten (decision 1, X1)."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mam_core import moving
from mam_core.audit import AuditLog
from mam_core.cli.main import main
from mam_core.errors import InvalidField, MamError, RegistryMissing
from mam_core.operations.migrate import (
    Migration,
    MigrationUnproven,
    database_url,
    default_target,
    migrate,
    registry_folder,
)
from mam_core.records import Status
from mam_core.stores.base import GateKind, Query
from mam_core.wiring import open_registry
from tests.support.handles import close_later

#: A record as the original wrote it: exactly its fifteen keys.
ORIGINAL: dict[str, Any] = {
    "schema_version": 1,
    "job_id": "",
    "status": "pending",
    "created_at": "2026-06-19T09:30:00Z",
    "updated_at": "2026-06-19T09:32:00Z",
    "prompt": "정렬 문제 10개를 만들어 sort_problems.md로 저장…",
    "agent": "claude-code",
    "agent_session": "tmux:claude",
    "broker": {"host": "mq", "port": 1883, "tls": False, "username": None, "password": "hush"},
    "topic_prefix": "python/mqtt/jobs/x",
    "timeout_sec": 600,
    "idle_timeout_sec": 120,
    "expected_artifacts": ["sort_problems.md"],
    "last_seq": 4,
    "auth_token": None,
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def hermes(here: Path) -> Path:
    return legacy(here)


def legacy(here: Path, ids: tuple[str, ...] = ("aaa11111", "bbb22222", "ccc33333")) -> Path:
    """What the original leaves behind, written by other hands than ours, with loose modes."""
    folder = here / ".hermes"
    for job_id in ids:
        put_job(folder, job_id)
    (folder / "jobs" / "broken.json").write_text('{"schema_version": 1, "job_')
    return folder


def put_job(folder: Path, job_id: str, **fields: Any) -> None:
    jobs, log = folder / "jobs", folder / "delegate_job_logs" / job_id
    jobs.mkdir(parents=True, exist_ok=True)
    log.mkdir(parents=True)
    record = {**ORIGINAL, "job_id": job_id, **fields}
    (jobs / f"{job_id}.json").write_text(json.dumps(record, ensure_ascii=False, indent=2))
    (jobs / f"{job_id}.events.log").write_text('{"event": "started"}\n')
    (jobs / ".lock").touch()
    (log / "meta.json").write_text(json.dumps(record))
    (log / "events.ndjson").write_text('{"event": "registered"}\n{"event": "published"}\n')
    (log / "status.json").write_text('{"status": "pending"}')


def contents(*folders: Path) -> dict[str, bytes]:
    """Everything that belongs to a job, by its path below the two kinds of folder."""
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            ours = any(part.startswith(".") for part in path.relative_to(folder).parts)
            if path.is_file() and not ours:
                assert name not in found, f"{name} is in both places"
                found[name] = path.read_bytes()
    return found


def move_here(here: Path, **options: Any) -> Migration:
    return migrate(str(here / ".hermes" / "jobs"), str(here / ".mam" / "jobs"), **options)


class TestEverythingMoves:
    def test_records_histories_event_logs_and_unreadable_files(
        self, here: Path, hermes: Path
    ) -> None:
        before = contents(hermes)
        done = move_here(here)
        assert contents(here / ".mam") == before
        assert contents(hermes) == {}
        assert done.jobs == ["aaa11111", "bbb22222", "broken", "ccc33333"]
        assert done.histories == ["aaa11111", "bbb22222", "ccc33333"]
        assert [row.job_id for row in done.unreadable] == ["broken"]
        assert done.refused == {}

    def test_the_new_registry_works_on_them_at_once(self, here: Path, hermes: Path) -> None:
        """X1: and the old one is no longer spoken of."""
        move_here(here)
        registry = close_later(open_registry())
        assert registry.store.find(Query())[0][0].job_id == "aaa11111"
        job = registry.claim("tmux:claude")
        assert job is not None
        assert job.job_id == "aaa11111"
        audit = close_later(AuditLog(str(here / ".mam" / "delegate_job_logs")))
        told = [line["event"] for line in audit.events("aaa11111")]
        assert told == ["registered", "published", "status_changed"]

    def test_loose_modes_are_tightened_on_the_way(self, here: Path, hermes: Path) -> None:
        """A19, decision 30: the record holds a password."""
        (hermes / "jobs" / "aaa11111.json").chmod(0o644)
        (hermes / "delegate_job_logs" / "aaa11111").chmod(0o755)
        move_here(here)
        for path in (here / ".mam").rglob("*"):
            assert path.stat().st_mode & 0o077 == 0 or path.name == ".gitignore", path

    def test_what_is_paused_stays_paused(self, here: Path, hermes: Path) -> None:
        old = close_later(open_registry(str(hermes / "jobs")))
        old.pause(GateKind.GROUP, "gpu", why="repair")
        old.pause(GateKind.ALL)
        close_later(open_registry(str(here / ".mam" / "jobs"))).pause(GateKind.ALL, why="ours")
        done = move_here(here)
        assert done.pauses == 2
        gates = close_later(open_registry(str(here / ".mam" / "jobs"))).store.facts().gates()
        assert {(gate.kind, gate.why) for gate in gates.closed} == {
            (GateKind.GROUP, "repair"),
            (GateKind.ALL, "ours"),
        }
        assert move_here(here).is_empty

    def test_what_was_cleaned_can_still_be_brought_back(self, here: Path, hermes: Path) -> None:
        old = close_later(open_registry(str(hermes / "jobs")))
        old.set_status("aaa11111", Status.COMPLETED)
        batch = old.archive(["aaa11111"])
        old.store.close()
        move_here(here)
        new = close_later(open_registry(str(here / ".mam" / "jobs")))
        assert new.restore(batch) == ["aaa11111"]
        assert new.get("aaa11111").status is Status.COMPLETED

    def test_a_change_that_was_cut_short_is_finished_first(self, here: Path, hermes: Path) -> None:
        """The journal of the old registry is worked off under its lock."""
        code = (
            "import os, sys\nfrom mam_core.disk import Folder\n"
            "from mam_core.wiring import open_registry\n"
            "replace = Folder.replace\n"
            "def die(folder, source, target):\n"
            "    if target.endswith('.json'): os.kill(os.getpid(), 9)\n"
            "    replace(folder, source, target)\n"
            "Folder.replace = die\n"
            "open_registry(sys.argv[1]).claim('tmux:claude')\n"
        )
        jobs = str(hermes / "jobs")
        killed = subprocess.run([sys.executable, "-c", code, jobs], check=False)
        assert killed.returncode == -signal.SIGKILL
        done = move_here(here)
        assert done.running == ["aaa11111"]
        assert close_later(open_registry()).get("aaa11111").status is Status.RUNNING

    def test_histories_of_records_that_are_long_gone(self, here: Path, hermes: Path) -> None:
        """F16: the audit log outlives the registry, also here."""
        for path in (hermes / "jobs").iterdir():
            path.unlink()
        (hermes / "jobs").rmdir()
        assert move_here(here, dry_run=True).histories == ["aaa11111", "bbb22222", "ccc33333"]
        assert not (hermes / "jobs").exists()
        done = move_here(here)
        assert done.histories == ["aaa11111", "bbb22222", "ccc33333"]
        assert list((hermes / "delegate_job_logs").iterdir()) == []

    def test_histories_go_where_the_variable_says(
        self, here: Path, hermes: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DELEGATE_JOB_LOGS_DIR", str(here / "history"))
        move_here(here)
        assert sorted(os.listdir(here / "history")) == ["aaa11111", "bbb22222", "ccc33333"]

    def test_histories_stay_when_the_variable_names_their_folder(
        self, here: Path, hermes: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DELEGATE_JOB_LOGS_DIR", str(hermes / "delegate_job_logs"))
        done = move_here(here)
        assert (len(done.jobs), done.histories) == (4, [])
        assert move_here(here).is_empty

    def test_links_pipes_and_folders_named_like_records(self, here: Path, hermes: Path) -> None:
        jobs = hermes / "jobs"
        (jobs / "link.json").symlink_to("/etc/hostname")
        os.mkfifo(jobs / "pipe.json")
        (jobs / "folder.json").mkdir()
        (jobs / "odd name.json").write_text("{}")
        done = move_here(here)
        named = {row.job_id for row in done.unreadable}
        assert named == {"broken", "link", "pipe", "folder", "odd name"}
        assert (here / ".mam" / "jobs" / "link.json").is_symlink()
        assert move_here(here).is_empty


class TestNothingIsOverwritten:
    def test_a_job_that_is_there_already_stays_and_is_named(self, here: Path, hermes: Path) -> None:
        put_job(here / ".mam", "bbb22222", prompt="another job of the same id")
        theirs = contents(here / ".mam")
        ours = {name: data for name, data in contents(hermes).items() if "bbb22222" in name}
        done = move_here(here)
        assert list(done.refused) == ["bbb22222"]
        assert done.jobs == ["aaa11111", "broken", "ccc33333"]
        assert contents(hermes) == ours
        assert theirs.items() <= contents(here / ".mam").items()

    def test_a_history_that_is_there_already_keeps_its_record_too(
        self, here: Path, hermes: Path
    ) -> None:
        put_job(here / ".mam", "bbb22222", prompt="another job of the same id")
        (here / ".mam" / "jobs" / "bbb22222.json").unlink()
        done = move_here(here)
        assert list(done.refused) == ["bbb22222"]
        assert (hermes / "jobs" / "bbb22222.json").exists()

    def test_an_equal_copy_is_no_quarrel(self, here: Path, hermes: Path) -> None:
        """Somebody copied by hand before, or a move between disks was cut short."""
        before = contents(hermes)
        put_job(here / ".mam", "bbb22222")
        assert move_here(here).refused == {}
        assert contents(here / ".mam") == before
        assert contents(hermes) == {}

    def test_other_files_are_left_and_named(self, here: Path, hermes: Path) -> None:
        (hermes / "jobs" / "notes.txt").write_text("mine")
        (hermes / "delegate_job_logs" / "read me").write_text("mine")
        done = move_here(here)
        assert done.left == ["delegate_job_logs/read me", "notes.txt"]
        assert (hermes / "jobs" / "notes.txt").exists()
        assert move_here(here).is_empty

    def test_to_itself_is_refused(self, here: Path, hermes: Path) -> None:
        jobs = str(hermes / "jobs")
        with pytest.raises(InvalidField, match="not to itself"):
            migrate(jobs, jobs)

    def test_a_missing_source_is_named(self, here: Path) -> None:
        with pytest.raises(RegistryMissing, match="no registry at"):
            move_here(here)
        with pytest.raises(RegistryMissing, match="no registry at"):
            move_here(here, dry_run=True)
        assert not (here / ".hermes").exists()

    def test_a_dry_run_touches_nothing(self, here: Path, hermes: Path) -> None:
        before = contents(hermes)
        planned = move_here(here, dry_run=True)
        assert not (here / ".mam").exists()
        assert contents(hermes) == before
        done = move_here(here)
        assert (planned.jobs, planned.histories) == (done.jobs, done.histories)
        assert (planned.others, planned.unreadable) == (done.others, done.unreadable)


class TestUnderBothLocks:
    @pytest.mark.parametrize("held", [".hermes", ".mam"])
    def test_it_waits_for_whoever_holds_one(
        self, here: Path, hermes: Path, held: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """B1, B6: and gives up in bounded time, with nothing moved."""
        monkeypatch.setattr("mam_core.stores.lock.PATIENCE_SEC", 0.2)
        (here / held / "jobs").mkdir(parents=True, exist_ok=True)
        before = contents(hermes)
        code = (
            "import fcntl, sys\nfile = open(sys.argv[1], 'w')\n"
            "fcntl.flock(file, fcntl.LOCK_EX)\nprint('held', flush=True)\nsys.stdin.read()\n"
        )
        holder = subprocess.Popen(
            [sys.executable, "-c", code, str(here / held / "jobs" / ".lock")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(MamError, match=f"pid {holder.pid}"):
                move_here(here)
            assert contents(hermes) == before
        finally:
            holder.communicate()
        assert len(move_here(here).jobs) == 4


#: Ends itself at the n-th step that changes a folder, as kill -9 would.
KILLED = """
import errno, os, shutil, signal, sys
from mam_core.operations.migrate import migrate

left, other_disk = int(sys.argv[1]), sys.argv[2] == "copy"

def counted(act):
    def step(*args, **kwargs):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return act(*args, **kwargs)
    return step

def far(*args, **kwargs):
    raise OSError(errno.EXDEV, "another disk")

os.rename = far if other_disk else counted(os.rename)
for name in ("replace", "unlink", "rmdir", "mkdir", "open", "fchmod", "ftruncate"):
    setattr(os, name, counted(getattr(os, name)))
migrate(".hermes/jobs", ".mam/jobs")
"""


class TestKilledAtAnyMoment:
    @pytest.mark.parametrize("way", ["rename", "copy"])
    def test_the_next_run_finishes_it(
        self, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """kill -9 at the n-th step, for n all over the run; then once more, to the end."""
        reference = tmp_path / "reference"
        reference.mkdir()
        wanted = contents(legacy(reference, ("aaa11111", "bbb22222")))
        killed = 0
        for step in (1, 2, 3, 5, 8, *range(10, 500, 17)):
            here = tmp_path / f"at-{step}"
            here.mkdir()
            legacy(here, ("aaa11111", "bbb22222"))
            run = subprocess.run(
                [sys.executable, "-c", KILLED, str(step), way], cwd=here, check=False
            )
            if run.returncode == 0:
                break
            assert run.returncode == -signal.SIGKILL
            killed += 1
            monkeypatch.chdir(here)
            if way == "copy":
                assert wanted.keys() <= both(here)
            else:
                assert contents(here / ".hermes", here / ".mam") == wanted
            assert main(["migrate", "--from", ".hermes"]) == 0
            assert contents(here / ".mam") == wanted
            assert contents(here / ".hermes") == {}
            assert [*here.glob(".*/jobs/.*.tmp"), *here.glob(".*/*_logs/.*.tmp")] == []
            records = close_later(open_registry()).store.find(Query())
            assert ([row.job_id for row in records[0]], len(records[1])) == (
                ["aaa11111", "bbb22222"],
                1,
            )
        else:
            pytest.fail("the run never came to its end")
        assert killed > 5


def both(here: Path) -> set[str]:
    return contents(here / ".hermes").keys() | contents(here / ".mam").keys()


class TestBetweenDisks:
    def far(self, *_: Any, **__: Any) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    def test_a_copy_that_is_proven_takes_the_place_of_the_rename(
        self, here: Path, hermes: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = contents(hermes)
        monkeypatch.setattr(os, "rename", self.far)
        move_here(here)
        assert contents(here / ".mam") == before
        assert contents(hermes) == {}

    def test_a_real_other_disk(self, here: Path, hermes: Path) -> None:
        memory = Path("/dev/shm")
        if not memory.is_dir() or memory.stat().st_dev == here.stat().st_dev:
            pytest.skip("there is only one file system here")
        import tempfile

        before = contents(hermes)
        with tempfile.TemporaryDirectory(dir=memory) as other:
            migrate(str(hermes / "jobs"), f"{other}/jobs")
            assert contents(Path(other)) == before
            assert contents(hermes) == {}

    def test_what_does_not_arrive_is_noticed(
        self, here: Path, hermes: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The proof at the end is a real one: contents, not only names."""
        move = moving.move

        def careless(source: Any, name: str, target: Any) -> None:
            move(source, name, target)
            if name == "bbb22222.json":
                (here / ".mam" / "jobs" / name).write_text("{}")

        monkeypatch.setattr(moving, "move", careless)
        with pytest.raises(MigrationUnproven, match=r"bbb22222\.json did not arrive as it left"):
            move_here(here)

    def test_a_log_that_grows_meanwhile_is_still_the_same_log(
        self, here: Path, hermes: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        move = moving.move

        def busy(source: Any, name: str, target: Any) -> None:
            if name == "aaa11111":
                with (hermes / "delegate_job_logs" / name / "events.ndjson").open("a") as file:
                    file.write('{"event": "published"}\n')
            move(source, name, target)

        monkeypatch.setattr(moving, "move", busy)
        assert move_here(here).refused == {}


class TestTheCommand:
    def test_says_what_it_did_and_then_that_nothing_is_left(
        self, here: Path, hermes: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        put_job(hermes, "ddd44444", status="running")
        assert main(["migrate"]) == 0
        out, err = capsys.readouterr()
        assert out.split() == ["aaa11111", "bbb22222", "broken", "ccc33333", "ddd44444"]
        assert "5 records, 4 histories, 4 other files moved and compared" in err
        assert "broken.json is moved, but nobody can read it: it is not JSON" in err
        assert "1 job running" in err
        assert main(["migrate", "--from", ".hermes"]) == 0
        out, err = capsys.readouterr()
        assert (out, err) == ("", f"mam: nothing is left to move in {hermes}/jobs\n")
        assert main(["list"]) == 0
        assert "hermes" not in capsys.readouterr().err

    def test_a_clash_is_named_and_exits_1(
        self, here: Path, hermes: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        put_job(here / ".mam", "bbb22222", prompt="another")
        for _ in range(2):
            assert main(["migrate", "--to", ".mam"]) == 1
            assert "not moved: job bbb22222 is in" in capsys.readouterr().err

    def test_a_dry_run_says_would(
        self, here: Path, hermes: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["migrate", "--dry-run", "--json"]) == 0
        out, err = capsys.readouterr()
        plan = json.loads(out)
        assert plan["dry_run"] is True
        assert plan["jobs"] == ["aaa11111", "bbb22222", "broken", "ccc33333"]
        assert plan["unreadable"][0]["status"] == "unreadable"
        assert "would move" in err
        assert not (here / ".mam").exists()

    def test_without_a_legacy_folder_there_is_nothing_to_do(
        self, here: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["migrate"]) == 0
        assert capsys.readouterr() == ("", "mam: there is nothing to move: no .hermes here\n")
        assert main(["migrate", "--from", "elsewhere"]) == 1
        assert "there is no registry at" in capsys.readouterr().err

    def test_the_registry_dir_is_where_they_go(self, here: Path, hermes: Path) -> None:
        """A2."""
        assert main(["--registry-dir", "reg", "migrate"]) == 0
        assert (here / "reg" / "aaa11111.json").is_file()
        assert (here / "delegate_job_logs" / "aaa11111").is_dir()
        assert not (here / ".mam").exists()

    def test_so_is_the_registry_of_the_projects_settings(self, here: Path, hermes: Path) -> None:
        (here / "mam.toml").write_text("[store]\nregistry_dir = 'reg'\n")
        assert main(["migrate"]) == 0
        assert (here / "reg" / "aaa11111.json").is_file()


class TestPlaces:
    def test_a_folder_means_the_jobs_inside_it(self) -> None:
        assert registry_folder(".hermes", "/p") == registry_folder("files:.hermes", "/p")
        assert registry_folder(".hermes", "/p") == "/p/.hermes/jobs"
        assert registry_folder(".hermes/jobs/", "/p") == "/p/.hermes/jobs"
        assert registry_folder("/x", "/p") == "/x/jobs"

    @pytest.mark.parametrize("place", [".hermes", "files:.hermes", "/x/sqlite", "postgresql"])
    def test_and_no_database(self, place: str) -> None:
        assert database_url(place) is None

    def test_a_database_is_told_apart_and_holds_no_password(self) -> None:
        assert str(database_url("sqlite:jobs.db", "/p")) == "sqlite:/p/jobs.db"
        assert str(database_url("postgresql://me@db/jobs")) == "postgresql://me@db/jobs"
        with pytest.raises(InvalidField, match="a password on the command line"):
            database_url("postgresql://me:hush@db/jobs")

    def test_a_mistyped_kind_of_store_is_no_folder(self) -> None:
        for place in ("sqlit:jobs.db", "mysql://db/jobs", "Sqlite:jobs.db"):
            with pytest.raises(InvalidField, match="unknown kind of store"):
                database_url(place)
        assert database_url("./sqlit:jobs.db") is None

    def test_the_default_target_is_never_the_legacy_folder(self, here: Path, hermes: Path) -> None:
        assert default_target(None, {}) == str(here / ".mam" / "jobs")
        assert default_target(None, {"MAM_REGISTRY_DIR": "x"}) == str(here / "x")
        assert default_target("y", {"MAM_REGISTRY_DIR": "x"}) == str(here / "y")
