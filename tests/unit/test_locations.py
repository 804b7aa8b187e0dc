"""Where the registry and its audit log are, from every working directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mam_core.locations import logs_path, nearest_place, registry_place, state_folder


def test_the_default_is_below_the_working_directory(tmp_path: Path) -> None:
    """A1, F1."""
    place = registry_place(None, {}, str(tmp_path))
    assert (place.path, place.notice) == (str(tmp_path / ".mam/jobs"), None)
    assert logs_path(place.path, {}) == str(tmp_path / ".mam/delegate_job_logs")


def test_a_named_folder_wins_over_the_variable_and_that_over_the_default(tmp_path: Path) -> None:
    """A2."""
    environ = {"MAM_REGISTRY_DIR": "from-variable"}
    assert registry_place("named", environ, str(tmp_path)).path == str(tmp_path / "named")
    assert registry_place(None, environ, str(tmp_path)).path == str(tmp_path / "from-variable")
    assert registry_place("/abs", environ, str(tmp_path)).path == "/abs"


def test_a_tilde_is_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert registry_place("~/reg", {}, "/").path == str(tmp_path / "reg")


def test_a_legacy_registry_is_read_with_a_notice(tmp_path: Path) -> None:
    """A1, X1, decision 1."""
    (tmp_path / ".hermes/jobs").mkdir(parents=True)
    place = registry_place(None, {}, str(tmp_path))
    assert place.path == str(tmp_path / ".hermes/jobs")
    assert place.notice is not None
    assert "mam migrate" in place.notice


def test_with_both_ours_is_used_and_what_is_left_is_counted(tmp_path: Path) -> None:
    """X1."""
    for folder in (".hermes/jobs", ".mam/jobs"):
        (tmp_path / folder).mkdir(parents=True)
    assert registry_place(None, {}, str(tmp_path)) == (str(tmp_path / ".mam/jobs"), None)
    for name in ("one.json", "two.json", ".one.x.tmp", ".lock", "one.events.log"):
        (tmp_path / ".hermes/jobs" / name).touch()
    place = registry_place(None, {}, str(tmp_path))
    assert place.path == str(tmp_path / ".mam/jobs")
    assert place.notice is not None
    assert f"2 jobs are still in {tmp_path}/.hermes/jobs" in place.notice


def test_the_audit_log_stands_beside_a_registry_or_where_the_variable_says(tmp_path: Path) -> None:
    """F1, F2, decision 20: the same from every cwd."""
    assert logs_path("/data/reg", {}) == "/data/delegate_job_logs"
    assert logs_path("/data/reg/", {}) == "/data/delegate_job_logs"
    environ = {"DELEGATE_JOB_LOGS_DIR": str(tmp_path / "logs")}
    assert logs_path("/data/reg", environ) == str(tmp_path / "logs")


class TestTheRegistryOfAProject:
    """Found from every folder of it, as its settings are."""

    @pytest.fixture
    def inside(self, tmp_path: Path) -> Path:
        """A folder deep in a project with a registry."""
        (tmp_path / "project/.mam/jobs").mkdir(parents=True)
        made = tmp_path / "project/src/part"
        made.mkdir(parents=True)
        return made

    def test_is_the_nearest_one_above(self, tmp_path: Path, inside: Path) -> None:
        jobs = str(tmp_path / "project/.mam/jobs")
        assert nearest_place(None, {}, str(inside)) == (jobs, None)
        assert nearest_place(None, {}, str(tmp_path / "project")).path == jobs
        (inside.parent / ".mam/jobs").mkdir(parents=True)
        assert nearest_place(None, {}, str(inside)).path == str(inside.parent / ".mam/jobs")

    def test_is_made_here_where_there_is_none(self, tmp_path: Path) -> None:
        assert nearest_place(None, {}, str(tmp_path)).path == str(tmp_path / ".mam/jobs")

    def test_may_be_a_legacy_one(self, tmp_path: Path) -> None:
        (tmp_path / ".hermes/jobs").mkdir(parents=True)
        (tmp_path / "src").mkdir()
        place = nearest_place(None, {}, str(tmp_path / "src"))
        assert place.path == str(tmp_path / ".hermes/jobs")
        assert place.notice is not None
        assert f"using the registry in {tmp_path}/.hermes/jobs" in place.notice

    def test_is_not_looked_for_where_one_is_named(self, inside: Path) -> None:
        environ = {"MAM_REGISTRY_DIR": "from-variable"}
        assert nearest_place("named", {}, str(inside)).path == str(inside / "named")
        assert nearest_place(None, environ, str(inside)).path == str(inside / "from-variable")

    def test_is_not_looked_for_above_the_home_folder(
        self, tmp_path: Path, inside: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", str(inside.parent))
        assert nearest_place(None, {}, str(inside)).path == str(inside / ".mam/jobs")
        monkeypatch.setenv("HOME", str(tmp_path / "project"))
        assert nearest_place(None, {}, str(inside)).path == str(tmp_path / "project/.mam/jobs")

    def test_is_not_looked_for_on_another_file_system(
        self, inside: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        look = os.stat

        def stat(path: str) -> os.stat_result:
            found = look(path)
            if path != str(inside.parent):
                return found
            return os.stat_result((*found[:2], found.st_dev + 1, *found[3:]))

        monkeypatch.setattr("mam_core.locations.os.stat", stat)
        assert nearest_place(None, {}, str(inside)).path == str(inside / ".mam/jobs")

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
    def test_is_not_looked_for_in_the_folder_of_somebody_else(
        self, tmp_path: Path, inside: Path
    ) -> None:
        jobs = tmp_path / "project/.mam/jobs"
        os.chown(jobs, 65534, 65534)
        assert nearest_place(None, {}, str(inside)).path == str(inside / ".mam/jobs")
        os.chown(jobs, 0, 0)
        os.chown(inside.parent, 65534, 65534)
        assert nearest_place(None, {}, str(inside)).path == str(inside / ".mam/jobs")

    def test_scripts_of_the_documents_look_only_where_they_are_run(self, inside: Path) -> None:
        assert registry_place(None, {}, str(inside)).path == str(inside / ".mam/jobs")


@pytest.fixture(scope="session")
def state_of_the_run() -> str:
    return state_folder()


def test_a_run_of_the_tests_keeps_its_state_to_itself(
    state_of_the_run: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Also what is started once for all tests: each registry leaves a mark there."""
    home = str(tmp_path_factory.getbasetemp())
    assert state_of_the_run.startswith(home)
    assert state_folder().startswith(home)
