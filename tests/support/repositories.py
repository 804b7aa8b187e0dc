"""Git repositories for tests: real ones, with nobody's settings but their own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def private_git(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Git without the settings of whoever runs the tests."""
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "xdg"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *who, "-C", str(folder), *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def new_repository(folder: Path, **files: str) -> Path:
    """A repository with one commit that holds `files`."""
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    for name, content in ({"a.txt": "one\n"} | files).items():
        (folder / name).write_text(content)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def counted_git(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `git` that writes down each call, and then is the real one."""
    real = shutil.which("git")
    log = folder / "git-calls"
    place = folder / "counting"
    place.mkdir()
    wrapper = place / "git"
    wrapper.write_text(f'#!/bin/sh\necho "$*" >>"{log}"\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    return log
