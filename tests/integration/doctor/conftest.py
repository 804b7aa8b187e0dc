"""A project that a doctor looks at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.operations import doctor
from tests.support.clinic import Clinic, clinic


@pytest.fixture
def shop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Clinic]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor, "APART_SEC", 0.05)
    with clinic(tmp_path, capsys) as made:
        yield made
        made.until_nobody_lives()
