"""A mistake of our own: one sentence for the operator, the rest in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from mam_core.operations.crash import crashed


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
