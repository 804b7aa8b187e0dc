"""``publish_event.py`` for scripts of the original: by path, as a sibling, with the broker down."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.scripts.plain import SCRIPTS, registry, run
from tests.support.relays import none_left_behind

SCRIPT = SCRIPTS / "publish_event.py"


@pytest.fixture
def job_id(here: Path) -> Iterator[str]:
    words = ["register", "--prompt", "p", "--agent", "a", "--agent-session", "tmux:a"]
    with none_left_behind(here / ".mam" / "jobs"):
        yield registry(*words, cwd=here).stdout.strip()


def publish(here: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(SCRIPT, *words, cwd=here)


def record(here: Path, job_id: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((here / ".mam" / "jobs" / f"{job_id}.json").read_text())
    return content


def test_by_its_path_with_a_python_that_has_nothing_installed(here: Path, job_id: str) -> None:
    """Decisions 3 and 13: queued, exit 0, the status follows."""
    done = publish(here, "--job", job_id, "--event", "started", "--detail", "go")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "publish_event.py: queued; a relay was started to send it\n"
    assert (record(here, job_id)["status"], record(here, job_id)["last_seq"]) == ("running", 1)
    done = publish(here, "--job", job_id, "--event", "completed", "--data", '{"n": 1}')
    assert done.returncode == 0
    assert record(here, job_id)["status"] == "completed"


def test_with_a_registry_elsewhere(here: Path, job_id: str, tmp_path: Path) -> None:
    """A2."""
    words = ["--job", job_id, "--event", "progress", "--registry-dir", str(here / ".mam" / "jobs")]
    assert run(SCRIPT, *words, cwd=tmp_path).returncode == 0
    assert record(here, job_id)["last_seq"] == 1
    assert not (tmp_path / ".mam").exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [(["--job", "nobody", "--event", "started"], 1), (["--event", "started"], 2), ([], 2)],
)
def test_what_cannot_be_told_is_one_line_and_a_code(
    here: Path, job_id: str, words: list[str], code: int
) -> None:
    done = publish(here, *words)
    assert done.returncode == code
    assert done.stderr.startswith("publish_event.py: ")
    assert done.stderr.count("\n") == 1


def test_as_a_sibling(here: Path, job_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    module = importlib.import_module("publish_event")
    try:
        told = module.publish_event(job_id, "started", "go", {"n": 1}, here / ".mam" / "jobs")
    finally:
        sys.modules.pop("publish_event", None)
    assert (told["seq"], told["event"], told["detail"], told["data"]) == (
        1,
        "started",
        "go",
        {"n": 1},
    )
    assert record(here, job_id)["status"] == "running"
