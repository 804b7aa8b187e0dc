"""A project with a tmux server of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import SessionShop, session_shop


@pytest.fixture
def shop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[SessionShop]:
    monkeypatch.chdir(tmp_path)
    with session_shop(tmp_path, capsys) as made:
        yield made
        made.until_nobody_lives()
