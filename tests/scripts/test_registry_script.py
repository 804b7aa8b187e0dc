"""``registry.py`` for somebody who knows only the original's manual (decision 3, section E)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scripts.plain import REGISTRY, SCRIPTS, registry, run, surroundings
from tests.support.rows import every_row

JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
LABEL = "tmux:claude"


def register(cwd: Path, *more: str) -> str:
    words = ["register", "--prompt", "정렬 문제 10개", "--agent", "claude-code"]
    done = registry(*words, "--agent-session", LABEL, *more, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class TestTheQuickReference:
    """Section 6 of the registry document, line by line."""

    def test_register_prints_the_id_alone(self, here: Path) -> None:
        """E1, E2, E17, A1, A14: usable as ``id=$(registry.py register …)`` from any folder."""
        job_id = register(here, "--timeout", "3600", "--idle-timeout", "120")
        assert JOB_ID.fullmatch(job_id)
        record = json.loads((here / ".mam" / "jobs" / f"{job_id}.json").read_text())
        assert record["prompt"] == "정렬 문제 10개"
        assert (record["timeout_sec"], record["idle_timeout_sec"]) == (3600, 120)

    def test_list_get_and_status(self, here: Path) -> None:
        """E4, E5, E6, E7."""
        ids = [register(here), register(here)]
        table = registry("list", cwd=here).stdout
        assert all(job_id in table for job_id in ids)
        assert registry("status", "--job", ids[0], "--set", "completed", cwd=here).returncode == 0
        records = json.loads(registry("list", "--json", cwd=here).stdout)
        assert [record["job_id"] for record in records] == ids
        assert all(record["schema_version"] == 1 for record in records)
        got = json.loads(registry("get", "--job", ids[0], cwd=here).stdout)
        assert (got["job_id"], got["status"]) == (ids[0], "completed")

    def test_pick_prints_the_id_or_exits_3(self, here: Path) -> None:
        """E8, C1."""
        first, second = register(here), register(here)
        picked = [registry("pick", "--agent-session", LABEL, cwd=here) for _ in range(3)]
        assert [done.stdout for done in picked] == [f"{first}\n", f"{second}\n", ""]
        assert [done.returncode for done in picked] == [0, 0, 3]

    def test_logs_shows_the_timeline_in_four_ways(self, here: Path) -> None:
        """E9, E10, E11, E12."""
        job_id = register(here)
        registry("pick", "--agent-session", LABEL, cwd=here)
        assert "registered" in registry("logs", job_id, cwd=here).stdout
        tail = registry("logs", job_id, "--tail", "1", cwd=here).stdout
        assert "status_changed" in tail
        assert "registered" not in tail
        raw = registry("logs", job_id, "--json", cwd=here).stdout
        stored = here / ".mam" / "delegate_job_logs" / job_id / "events.ndjson"
        assert raw == stored.read_text()
        listed = registry("logs", "--list", cwd=here).stdout
        assert re.search(rf"{job_id}.*running", listed)


class TestExitCodes:
    def test_are_those_of_the_document(self, here: Path) -> None:
        """E14, E15, E16: one call for each code; `mam` shows without a process who uses it when."""
        with every_row() as rows:
            for words, code in (
                (["logs", "--list"], 0),
                (["status", "--job", "nobody", "--set", "completed"], 1),
                (["register", "--no-such-option"], 2),
                (["pick", "--agent-session", LABEL], 3),
            ):
                with rows.row(words):
                    done = registry(*words, cwd=here)
                    assert done.returncode == code
                    assert "Traceback" not in done.stderr
                    assert code in (0, 3) or done.stderr.count("\n") == 1

    def test_a_bad_status_changes_nothing(self, here: Path) -> None:
        """E7, A8."""
        job_id = register(here)
        before = (here / ".mam" / "jobs" / f"{job_id}.json").read_bytes()
        assert registry("status", "--job", job_id, "--set", "finished", cwd=here).returncode == 1
        assert (here / ".mam" / "jobs" / f"{job_id}.json").read_bytes() == before


class TestWhereItRuns:
    def test_the_registry_dir_may_stand_on_either_side_of_the_verb(
        self, here: Path, tmp_path: Path
    ) -> None:
        """A2, E18: and no default folder appears."""
        where = str(tmp_path / "elsewhere")
        words = ["--prompt", "x", "--agent", "a", "--agent-session", LABEL]
        assert registry("--registry-dir", where, "register", *words, cwd=here).returncode == 0
        assert registry("register", *words, "--registry-dir", where, cwd=here).returncode == 0
        assert len(list(Path(where).glob("*.json"))) == 2
        assert list(here.iterdir()) == []

    def test_a_copy_of_the_clone_in_another_place_runs(self, here: Path, tmp_path: Path) -> None:
        """G11: nothing points back to where it was written."""
        moved = tmp_path / "moved" / "core"
        shutil.copytree(SCRIPTS.parent, moved, ignore=shutil.ignore_patterns("__pycache__"))
        done = run(moved / "scripts" / "registry.py", "--version", cwd=here)
        assert done.returncode == 0
        assert str(moved) in done.stdout

    def test_the_system_python_will_do(self, here: Path) -> None:
        system = shutil.which("python3", path="/usr/bin:/usr/local/bin:/opt/homebrew/bin")
        if system is None:
            pytest.skip("there is no python3 beside our own")
        new_enough = "import sys; sys.exit(sys.version_info < (3, 11))"
        if subprocess.run([system, "-c", new_enough], check=False).returncode:
            pytest.skip("the system's python3 is older than 3.11")
        done = subprocess.run(
            [system, REGISTRY, "list", "--json"],
            cwd=here,
            env=surroundings(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, [], "")

    def test_it_is_executable_and_names_its_interpreter(self) -> None:
        for name in ("registry.py", "mqtt_common.py"):
            assert (SCRIPTS / name).stat().st_mode & 0o111
            assert (SCRIPTS / name).read_text().startswith("#!/usr/bin/env python3\n")


class TestBelowARegistry:
    """The documents look for it in the working folder, and so do their scripts."""

    @pytest.fixture
    def below(self, here: Path) -> Path:
        register(here)
        made = here / "src"
        made.mkdir()
        return made

    def test_the_script_and_its_functions_stay_in_the_working_folder(self, below: Path) -> None:
        job_id = register(below)
        assert (below / ".mam" / "jobs" / f"{job_id}.json").exists()
        call = "import registry; print(registry.pick_pending('tmux:claude'))"
        picked = run("-c", f"import sys; sys.path.append({str(SCRIPTS)!r}); {call}", cwd=below)
        assert picked.stdout == f"{job_id}\n"
        told = run(SCRIPTS / "registry.py", "--help", cwd=below).stdout
        assert "else .mam/jobs here)" in told

    def test_a_subscriber_does_not_see_the_jobs_above(self, below: Path) -> None:
        """It follows all live jobs to their ends: there are none here."""
        call = "import job_subscriber; sys.exit(job_subscriber.subscribe(wait_any=True, timeout=9))"
        words = ["-c", f"import sys; sys.path.append({str(SCRIPTS)!r}); {call}"]
        done = subprocess.run([sys.executable, *words], cwd=below, env=surroundings(), check=False)
        assert done.returncode == 0

    def test_the_variable_names_another_one(self, below: Path) -> None:
        words = ["list", "--json"]
        above = {"MAM_REGISTRY_DIR": str(below.parent / ".mam" / "jobs")}
        assert json.loads(registry(*words, cwd=below).stdout) == []
        assert len(json.loads(registry(*words, cwd=below, **above).stdout)) == 1
