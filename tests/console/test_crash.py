"""A mistake of our own: one sentence for the operator, the rest in a file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from mam_core.demo import clearing, place
from mam_core.operations.crash import crashed
from mam_tui.careful_app import CarefulApp


def test_the_sentence_names_the_file_and_the_file_holds_no_values(tmp_path: Path) -> None:
    def fail(password: str) -> None:
        raise ValueError(f"no good {len(password)}\x1b[2J")

    with pytest.raises(ValueError, match="no good") as caught:
        fail("secret" * 2)  # a traceback shows the line, and must not show what it comes to
    sentence = crashed(caught.value, {"XDG_STATE_HOME": str(tmp_path)})
    file = tmp_path / "mam" / "crash.txt"
    assert str(file) in sentence
    assert "\x1b" not in sentence
    assert "test_crash.py" in file.read_text()
    assert "secretsecret" not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


def test_where_nothing_can_be_written_the_sentence_stands_alone(tmp_path: Path) -> None:
    (tmp_path / "mam").write_text("in the way")
    sentence = crashed(ValueError("odd"), {"XDG_STATE_HOME": str(tmp_path)})
    assert sentence.endswith("Nothing is lost.")


def test_the_file_outlives_a_demonstration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("temp", "own"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "own"))
    here, lock = place.make()
    with place.surroundings(here):
        sentence = crashed(ValueError("odd"))
    clearing.clear(here)
    os.close(lock)
    file = tmp_path / "own" / "mam" / "crash.txt"
    assert str(file) in sentence
    assert "ValueError: odd" in file.read_text()


def test_an_app_that_breaks_says_the_sentence_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken(CarefulApp):
        def on_mount(self) -> None:
            secret = "not to be shown"
            raise ValueError(f"odd {len(secret)}")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    app = Broken()
    app.run(headless=True)
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("mam: the console met a mistake of its own and was closed")
    assert "(ValueError: odd 15)" in said
    assert "Traceback" not in said
    assert "not to be shown" not in said
    assert app.return_code == 1
    assert "in on_mount" in (tmp_path / "mam" / "crash.txt").read_text()
