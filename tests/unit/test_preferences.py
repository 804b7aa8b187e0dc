"""The operator's choices survive the console, and a broken file costs only the choices."""

from __future__ import annotations

from pathlib import Path

import pytest

from mam_core.locations import state_folder
from mam_core.operations.preferences import Preferences


def at(folder: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(folder)}


def test_what_was_chosen_is_there_the_next_time(tmp_path: Path) -> None:
    chosen = Preferences(
        columns=("state", "id"), sort="age", reverse=True, theme="nord", last_job={"agent": "codex"}
    )
    chosen.save(at(tmp_path))
    assert Preferences.load(at(tmp_path)) == chosen
    assert (tmp_path / "mam" / "console.json").stat().st_mode & 0o777 == 0o600


def test_the_first_time_nothing_is_chosen(tmp_path: Path) -> None:
    assert Preferences.load(at(tmp_path)) == Preferences()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"columns": 3, "sort": ["x"], "reverse": "yes"}', b"\xff" * 99]
)
def test_a_damaged_file_costs_the_choices(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "mam").mkdir(mode=0o700)
    (tmp_path / "mam" / "console.json").write_bytes(content)
    assert Preferences.load(at(tmp_path)) == Preferences()


def test_a_relative_state_folder_does_not_count(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": "here", "HOME": str(tmp_path)}
    assert state_folder(environ) == str(tmp_path / ".local" / "state" / "mam")
