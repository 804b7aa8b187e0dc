"""A project folder with sessions, in the middle of a private home."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.brokers import nothing_left
from tests.support.relays import none_left_behind
from tests.support.sessions import SessionShop, session_shop


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a person's own files are."""
    place = tmp_path / "home"
    place.mkdir()
    for name in ("STATE", "CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(place / name.lower()))
    monkeypatch.setenv("HOME", str(place))
    return place


@pytest.fixture
def shop(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[SessionShop]:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    # A worker is the relay here; one that is left behind would only be waited for.
    monkeypatch.setattr("mam_core.operations.relay.leave_behind", lambda *args, **more: True)
    with (
        nothing_left(project),
        session_shop(project, capsys) as made,
        none_left_behind(made.path),  # by a command in a process of its own
    ):
        yield made
