"""The same verbs over every store: a job is registered, run, told of and looked back at (L5)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import eventually

Mam = Callable[..., str]


@pytest.fixture(params=["files", "sqlite", "postgres"])
def mam(request: pytest.FixtureRequest, tmp_path: Path) -> Mam:
    """Runs a command in a project whose settings name the store."""
    url = {"files": "files", "sqlite": "sqlite:jobs.sqlite"}.get(request.param)
    url = url or request.getfixturevalue("postgres_schema")
    settings = f"[store]\nurl = {json.dumps(url)}\n[agents.shell]\ncommand = ['sh']\n"
    (tmp_path / "mam.toml").write_text(settings)
    environ = {**os.environ, "HOME": str(tmp_path), "PYTHON": sys.executable}

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "mam_core", *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60
        )
        sys.stderr.write(done.stderr)  # shown with a failure, wherever that is
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_a_job_from_its_registration_to_its_past(mam: Mam, tmp_path: Path) -> None:
    assert mam("list", "--json").strip() == "[]"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    # The agent stands where no mam.toml names the store, and is told it all the same.
    publish = '"$PYTHON" -m mam_core publish --job $MAM_JOB_ID --event progress --detail half'
    prompt = f"cd /; {publish}; echo done"
    given = ["--agent", "shell", "--agent-session", "tmux:a", "--workdir", str(elsewhere)]
    job_id = mam("register", "--prompt", prompt, *given).strip()
    mam("work", "--agent-session", "tmux:a", "--agents", "shell", "--once")
    assert json.loads(mam("get", job_id))["status"] == "completed"
    # The worker may be through before a broker has taken what its agent said.
    told = eventually(lambda: _all_told(mam, job_id), "the progress is in the history")
    assert [line["n"] for line in told] == list(range(1, len(told) + 1))
    assert told[0]["event"] == "registered"
    assert job_id in mam("logs", "--list")
    assert job_id in mam("replay", "--at", "now")
    assert mam("wait", job_id).split() == [job_id, "completed"]
    assert mam("clean", job_id).strip()
    assert mam("list", "--json").strip() == "[]"
    mam("clean", "--undo")
    assert json.loads(mam("list", "--json"))[0]["job_id"] == job_id


def _all_told(mam: Mam, job_id: str) -> list[dict[str, Any]]:
    """The history, once it has what is queued."""
    mam("relay", "--once")
    told = [json.loads(line) for line in mam("logs", job_id, "--json").splitlines()]
    return told if any("half" in json.dumps(line.get("payload")) for line in told) else []
