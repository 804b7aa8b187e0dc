"""Where the registry and its audit log are, from every working directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from mam_core.locations import logs_path, registry_place


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
    assert "2 jobs are still in .hermes/jobs" in place.notice


def test_the_audit_log_stands_beside_a_registry_or_where_the_variable_says(tmp_path: Path) -> None:
    """F1, F2, decision 20: the same from every cwd."""
    assert logs_path("/data/reg", {}) == "/data/delegate_job_logs"
    assert logs_path("/data/reg/", {}) == "/data/delegate_job_logs"
    environ = {"DELEGATE_JOB_LOGS_DIR": str(tmp_path / "logs")}
    assert logs_path("/data/reg", environ) == str(tmp_path / "logs")
