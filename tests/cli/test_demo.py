"""``mam demo`` where it cannot be shown: one sentence, and nothing was made."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.cli.conftest import Mam


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "the console needs a terminal"),
        (["--jobs", "0"], "--jobs must be between"),
        (["--seconds", "-1"], "--seconds must be between"),
        (["--registry-dir", "x"], "a registry and settings of its own"),
    ],
)
def test_is_refused(
    mam: Mam, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str], sentence: str
) -> None:
    temp = tmp_path / "temp"
    temp.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    answer = mam("demo", *words)
    assert (answer.code, answer.out) == (2, "")
    assert sentence in answer.err
    assert not list(temp.iterdir())
