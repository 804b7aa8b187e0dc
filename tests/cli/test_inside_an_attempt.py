"""What an agent may do while it works on a job, and what it may not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mam_core.dispatch.layout import Whole, compose
from mam_core.work.live.session import surroundings
from tests.cli.conftest import Mam, environment, is_one_sentence
from tests.cli.test_mcp import START, ask
from tests.scripts.plain import SCRIPTS

Process = subprocess.CompletedProcess[str]

REGISTERING = ("register", "--prompt", "x", "--agent", "shell", "--agent-session", "a")


@pytest.fixture
def own(mam: Mam, monkeypatch: pytest.MonkeyPatch) -> str:
    """The job that the agent works on; another one waits beside it."""
    monkeypatch.setattr("mam_core.operations.relay.leave_behind", lambda *args, **more: True)
    job_id = mam.register("my own")
    mam.ok("pick", "--label", "tmux:a")
    return job_id


@pytest.fixture
def other(mam: Mam, own: str) -> str:
    return mam.register("somebody else's")


@pytest.fixture
def inside(mam: Mam, own: str, other: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Mam:
    monkeypatch.setenv("MAM_JOB_ID", own)
    monkeypatch.setenv("MAM_ATTEMPT", "1")
    monkeypatch.setenv("MAM_REGISTRY_DIR", str(mam.registry))
    return mam


def refusals(own: str, other: str) -> dict[str, tuple[str, ...]]:
    """By the grant that each would need."""
    return {
        "status": ("status", own, "--set", "completed"),
        "cancel": ("cancel", other),
        "retry": ("retry", other),
        "edit": ("edit", other, "--priority", "9"),
        "answer": ("answer", other, "y"),
        "say": ("say", other, "hurry"),
        "clean": ("clean",),
        "pause": ("pause", "--all"),
        "stop": ("stop", "one"),
        "publish": ("publish", other, "--event", "completed"),
        "heartbeat": ("heartbeat", other),
        "doctor": ("doctor", "--fix", "--yes"),
        "migrate": ("migrate", "--to", "sqlite:away.db"),
        "release": ("dispatch", "release", "--yes"),
    }


@pytest.mark.parametrize("right", refusals("", ""))
def test_what_only_a_person_does_is_refused(inside: Mam, own: str, other: str, right: str) -> None:
    before = {job_id: inside.record(job_id) for job_id in (own, other)}
    answer = inside(*refusals(own, other)[right])
    assert answer.code == 1
    assert is_one_sentence(answer.err)
    assert f'[agents.shell] may = ["{right}"]' in answer.err
    assert "unset MAM_JOB_ID" in answer.err
    assert {job_id: inside.record(job_id) for job_id in (own, other)} == before


def test_its_registry_is_neither_moved_away_nor_filled(
    inside: Mam, own: str, other: str, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere" / "jobs"
    inside.ok("--registry-dir", str(elsewhere), *REGISTERING)
    for source, target in ((inside.registry, elsewhere), (elsewhere, inside.registry)):
        answer = inside("migrate", "--from", str(source), "--to", str(target))
        assert answer.code == 1
        assert "agent shell may not migrate a registry from inside job" in answer.err
        assert is_one_sentence(answer.err)
        inside.ok("migrate", "--from", str(source), "--to", str(target), "--dry-run")
    assert inside.record(own)
    assert inside.record(other)
    away = tmp_path / "another" / "jobs"
    inside.ok("migrate", "--from", str(elsewhere), "--to", str(away))  # neither is its own


def test_a_grant_opens_the_doctor_and_the_move(inside: Mam, other: str, folder: Path) -> None:
    (folder / "mam.toml").write_text('[agents.shell]\nmay = ["doctor", "migrate", "release"]\n')
    assert "may not" not in inside("doctor", "--fix", "--yes").err
    (folder / "tasks.json").write_bytes(compose(Whole({}, {})))
    inside.ok("dispatch", "release", "--yes", "--file", "tasks.json")
    inside.ok("migrate", "--from", str(inside.registry), "--to", str(folder / "away"))
    assert (folder / "away" / "jobs" / f"{other}.json").exists()


def test_a_grant_opens_the_move_to_a_database_and_back(
    inside: Mam, other: str, folder: Path, tmp_path: Path
) -> None:
    """The end that jobs are moved to has no record of the attempt, which names the agent."""
    (folder / "mam.toml").write_text('[agents.shell]\nmay = ["migrate"]\n')
    database, back = f"sqlite:{tmp_path / 'jobs.db'}", tmp_path / "back" / "jobs"
    inside.ok("migrate", "--from", str(inside.registry), "--to", database)
    inside.ok("migrate", "--from", database, "--to", str(back))
    assert (back / f"{other}.json").exists()


def test_its_own_job_is_reported_on(inside: Mam, own: str, folder: Path) -> None:
    (folder / "tasks.json").write_bytes(compose(Whole({}, {})))
    inside.ok("publish", "--event", "progress", "--detail", "3 of 10")
    inside.ok("heartbeat", own)
    inside.ok("register", "--prompt", "x", "--agent", "shell", "--agent-session", "tmux:b")
    looks = "list|audit|nodes|dispatch release --file tasks.json|clean --dry-run|migrate --dry-run"
    for words in (*(look.split() for look in looks.split("|")), ("get", own), ("why", own)):
        inside.ok(*words)


def test_a_person_in_the_same_shell_unsets_the_variable(
    inside: Mam, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAM_JOB_ID")
    inside.ok("cancel", other)


def test_a_grant_is_for_one_agent_and_one_act(inside: Mam, other: str, folder: Path) -> None:
    (folder / "mam.toml").write_text('[agents.codex]\nmay = ["cancel"]\n')
    assert inside("cancel", other).code == 1
    (folder / "mam.toml").write_text('[agents.shell]\nmay = ["cancel"]\n')
    assert inside("edit", other, "--priority", "9").code == 1
    inside.ok("cancel", other)


def test_a_grant_that_nobody_knows_is_a_mistake(inside: Mam, folder: Path) -> None:
    (folder / "mam.toml").write_text('[agents.shell]\nmay = ["everything"]\n')
    answer = inside("list")
    assert answer.code != 0
    assert "may hold publish, heartbeat, status" in answer.err


def test_an_agent_that_works_on_another_registry_is_a_person_there(
    inside: Mam, folder: Path, tmp_path: Path
) -> None:
    """One that runs the tests of a project that uses mam, say."""
    elsewhere = str(tmp_path / "elsewhere")
    made = inside.ok("--registry-dir", elsewhere, *REGISTERING).out.strip()
    inside.ok("--registry-dir", elsewhere, "cancel", made)


def test_no_other_job_once_its_own_is_cleaned_away(
    inside: Mam, own: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside.path(own).unlink()
    answer = inside("cancel", other)
    assert answer.code == 1
    assert "agent unknown may not cancel jobs" in answer.err


def test_a_live_agent_reports_on_what_runs_and_is_its_own(
    mam: Mam, own: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes job after job, so its environment names none of them."""
    monkeypatch.setenv("MAM_LIVE_AGENT", "shell")
    monkeypatch.setenv("MAM_REGISTRY_DIR", str(mam.registry))
    mam.ok("publish", own, "--event", "progress")
    for words in (("publish", other, "--event", "completed"), ("cancel", own)):
        answer = mam(*words)
        assert answer.code == 1
        assert "from inside its session" in answer.err
        assert "unset MAM_LIVE_AGENT" in answer.err
    (mam.folder / "mam.toml").write_text('[agents.shell]\nmay = ["cancel"]\n')
    mam.ok("cancel", own)


def test_the_scripts_of_the_documents_ask_the_same(
    inside: Mam, own: str, other: str, process: Callable[..., Process]
) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(SCRIPTS)!r})\n"
        "import registry, mqtt_common, publish_event\n"
        "for act in (\n"
        f"    lambda: registry.update_status({own!r}, 'completed'),\n"
        f"    lambda: mqtt_common.update_job_status({other!r}, 'cancelled'),\n"
        f"    lambda: publish_event.publish_event({other!r}, 'completed'),\n"
        "):\n"
        "    try: act()\n"
        "    except Exception as problem: print(type(problem).__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["NotAllowed"] * 3
    assert inside.record(own)["status"] == "running"


def test_the_tools_of_the_mcp_server_ask_the_same(inside: Mam, other: str) -> None:
    with subprocess.Popen(
        [*START, "--allow-write"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=inside.folder,
        env=environment(),
    ) as server:
        calls: dict[str, dict[str, Any]] = {
            "cancel_job": {"job_id": other},
            "retry_job": {"job_id": other},
            "say_to_agent": {"job_id": other, "text": "hurry"},
            "answer_question": {"job_id": other, "text": "y"},
        }
        for number, (name, given) in enumerate(calls.items(), 1):
            said = ask(server, number, "tools/call", name=name, arguments=given)
            assert said["result"]["isError"], name
            assert "may not" in json.dumps(said), name
        server.communicate(timeout=60)
    assert inside.record(other)["status"] == "pending"


def test_a_live_agent_is_told_that_it_is_one() -> None:
    known = surroundings({"MAM_JOB_ID": "abcd1234", "MAM_REGISTRY_DIR": "/r", "TERM": "x"}, "codex")
    assert "MAM_JOB_ID" not in known
    assert (known["MAM_LIVE_AGENT"], known["MAM_REGISTRY_DIR"]) == ("codex", "/r")
