"""The command line as a test calls it: in this process for speed, as a real process for pipes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from mam_core.cli.main import main
from mam_core.clock import SystemClock
from tests.support.clock import FakeClock

WIDTH = "100"


@dataclass(frozen=True)
class Answer:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Capture(Protocol):
    """Has what was printed since it was asked last."""

    def readouterr(self) -> tuple[str, str]: ...


class Mam:
    """Runs ``mam`` in a private folder."""

    def __init__(self, folder: Path, capture: Capture) -> None:
        self.folder = folder
        self.registry = folder / ".mam" / "jobs"
        self._capture = capture

    def __call__(self, *argv: str | Path) -> Answer:
        self._capture.readouterr()
        code = main([str(word) for word in argv])
        out, err = self._capture.readouterr()
        assert "Traceback" not in err
        return Answer(code, out, err)

    def ok(self, *argv: str | Path) -> Answer:
        answer = self(*argv)
        assert answer.code == 0, answer.err
        return answer

    def register(self, prompt: str = "count the stars", *more: str | Path) -> str:
        """A new job of agent ``shell`` for the session ``tmux:a``, unless `more` says otherwise."""
        given = ["--prompt", prompt, "--agent", "shell", "--agent-session", "tmux:a", *more]
        return self.ok("register", *given).out.strip()

    def record(self, job_id: str) -> dict[str, Any]:
        """The record as any tool would read it."""
        data: dict[str, Any] = json.loads(self.path(job_id).read_text())
        return data

    def path(self, job_id: str) -> Path:
        return self.registry / f"{job_id}.json"

    def write(self, job_id: str, **changes: Any) -> Path:
        """A record that a foreign tool left in the folder."""
        record = {
            "schema_version": 1,
            "job_id": job_id,
            "status": "pending",
            "created_at": "2026-06-19T09:00:00Z",
            "updated_at": "2026-06-19T09:00:00Z",
            "prompt": "count the stars",
            "agent": "shell",
            "agent_session": "tmux:a",
            "broker": {
                "host": "127.0.0.1",
                "port": 1883,
                "tls": False,
                "username": None,
                "password": None,
            },
            "topic_prefix": f"python/mqtt/jobs/{job_id}",
            "timeout_sec": 3600,
            "idle_timeout_sec": 120,
            "expected_artifacts": [],
            "last_seq": 0,
            "auth_token": None,
            **changes,
        }
        self.registry.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.path(job_id)
        path.write_text(json.dumps(record))
        path.chmod(0o600)
        return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own, in which the commands are given."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("COLUMNS", WIDTH)
    monkeypatch.setenv("USER", "ann")
    return project


@pytest.fixture
def mam(folder: Path, capsys: pytest.CaptureFixture[str]) -> Mam:
    return Mam(folder, capsys)


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> FakeClock:
    """Time stands still for every registry that a command opens."""
    for name in ("now", "since_boot", "boot_id"):
        monkeypatch.setattr(SystemClock, name, lambda _, name=name: getattr(clock, name)())
    return clock


Process = subprocess.CompletedProcess[str]


@pytest.fixture
def process(folder: Path) -> Callable[..., Process]:
    """Runs ``mam`` as a process of its own."""

    def run(*argv: str | Path, **options: Any) -> Process:
        command = [sys.executable, "-m", "mam_core.cli.main", *map(str, argv)]
        return execute(command, **{"cwd": folder, **options})

    return run


@pytest.fixture
def shell(folder: Path) -> Callable[..., Process]:
    """Runs a line of bash in which ``mam`` is the command."""

    def run(line: str, **options: Any) -> Process:
        prelude = f'mam() {{ "{sys.executable}" -m mam_core.cli.main "$@"; }}\n'
        command = ["bash", "-o", "pipefail", "-c", prelude + line]
        return execute(command, **{"cwd": folder, **options})

    return run


def execute(command: Sequence[str], **options: Any) -> Process:
    settings: dict[str, Any] = {
        "capture_output": True,
        "text": True,
        "check": False,
        "timeout": 60,
        "stdin": subprocess.DEVNULL,
        **options,
    }
    answer: Process = subprocess.run(command, **settings)
    assert "Traceback" not in (answer.stderr or "")
    return answer


def with_names(text: str, *job_ids: str) -> str:
    """Replaces random ids by ``job-one0``, ``job-two0`` … of the same length, for golden texts."""
    for job_id, name in zip(job_ids, ("job-one0", "job-two0", "job-3333"), strict=False):
        text = text.replace(job_id, name)
    return text


def is_one_sentence(err: str) -> bool:
    return re.fullmatch(r"mam: [^\n]+\n", err) is not None


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, **changes}


@pytest.fixture
def asking(mam: Mam, frozen: FakeClock, monkeypatch: pytest.MonkeyPatch) -> str:
    """A leased job whose agent asks something that would harm a terminal."""
    monkeypatch.setattr("mam_core.operations.relay.leave_behind", lambda *args, **more: True)
    job_id = mam.register()
    mam.ok("pick", "--label", "tmux:a")
    mam.ok("heartbeat", job_id, "--owner", "w1")
    sign = {
        "state": "waiting",
        "channel": "hook",
        "rule": "PermissionRequest",
        "at": frozen.now(),
        "words": "rm -r \x1b[2J\u202e x?",
    }
    mam.ok("publish", "--job", job_id, "--event", "state", "--data", json.dumps(sign))
    return job_id
