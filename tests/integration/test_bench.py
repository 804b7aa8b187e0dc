"""Every part of `bench` still runs: in its shortest form, which measures nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.__main__ import SUITES
from bench.machine import REPOSITORY
from bench.report import HEADINGS

#: They open console after console, or press keys on every view of one: even with hardly anything
#: to show, each takes as much processor time as all other suites together may.
_LONG = {
    "console": {"first", "tables", "load", "disk", "burst", "idle"},
    "views": {"travel", "keys"},
}


@pytest.mark.parametrize("suite", SUITES)
def test_it_ends_with_a_table(suite: str, tmp_path: Path) -> None:
    _ends_with_a_table(suite, set(SUITES[suite]) - _LONG.get(suite, set()), tmp_path)


@pytest.mark.release
@pytest.mark.timeout(600)
@pytest.mark.parametrize("suite", _LONG)
def test_so_does_what_takes_longer(suite: str, tmp_path: Path) -> None:
    _ends_with_a_table(suite, _LONG[suite], tmp_path)


def _ends_with_a_table(suite: str, figures: set[str], folder: Path) -> None:
    chosen = [word for name in sorted(figures) for word in ("--only", name)]
    command = [sys.executable, "-m", "bench", suite, "--smoke", "--dir", str(folder), *chosen]
    environ = {**os.environ, "PYTHONPATH": REPOSITORY}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    _, _, headings, *rows = done.stdout.splitlines()
    assert headings.split() == list(HEADINGS)
    assert len(rows) >= len(figures)
    assert list(folder.iterdir()) == []
