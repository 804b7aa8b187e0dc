"""``mam skill``: what an agent is taught works, line by line, as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mam_core.operations.skill import CannotInstall, install, skill
from tests.cli.conftest import Mam, environment
from tests.support.patience import until_gone
from tests.support.relays import left_behind

#: An agent that does what the skill's example asks for; the real ones need an account.
SETTINGS = """
[agents.claude-code]
command = ["sh", "-c", "cat > /dev/null; printf 'What is a job?\\n' > questions.md; echo done"]
prompt = "stdin"
mode = "exec"
stream = "plain"
"""
#: Where a job finds itself: claimed, and told its id.
INSIDE_A_JOB = """
MAM_JOB_ID=$(mam register --prompt x --agent claude-code --agent-session tmux:inside)
mam pick --agent-session tmux:inside > picked
"""


def blocks(text: str) -> list[str]:
    return re.findall(r"^```bash\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.timeout(200)
def test_every_command_of_it_works(mam: Mam, tmp_path: Path) -> None:
    """The blocks are one story: look, register, run, follow, judge, report."""
    (mam.folder / "README.md").write_text("# A project\n")
    (mam.folder / "mam.toml").write_text(SETTINGS)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "mam").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mam_core "$@"\n')
    (tools / "mam").chmod(0o755)
    *story, inside = blocks(skill())
    script = "\n".join(["set -euo pipefail", *story, INSIDE_A_JOB, inside])
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=mam.folder,
        env=environment(PATH=f"{tools}:{os.environ['PATH']}"),
        capture_output=True,
        text=True,
        timeout=180,
    )
    # The relay that `publish` leaves behind goes by itself.
    until_gone(lambda: [relay.pid for relay in left_behind(mam.registry)])
    assert done.returncode == 0, done.stdout + done.stderr
    record, own = mam.ok("list", "--json").json
    assert own["last_seq"] == 1
    assert record["status"] == "completed"
    assert f"{record['job_id']} completed" in done.stdout.splitlines()
    report = (mam.folder / "report-of-job.md").read_text()
    assert report.startswith(f"# Job {record['job_id']}\n")


def test_commands_within_sentences_exist(mam: Mam) -> None:
    """Those that a story cannot run (a tmux session, a question) are at least understood."""
    named = set(re.findall(r"`mam ([a-z]+)", skill()))
    assert {"spawn", "answer", "say", "watch", "diff", "retry", "cancel", "mcp"} <= named
    for verb in named:
        assert mam.ok(verb, "--help").out.startswith(f"usage: mam {verb}")
    for flag, verb in (("--worktree", "spawn"), ("--bulk", "register"), ("--resume", "retry")):
        assert flag in mam.ok(verb, "--help").out


def test_it_is_printed_and_installed(mam: Mam, tmp_path: Path) -> None:
    assert mam.ok("skill").out == skill()
    said = mam.ok("skill", "--install", ".claude/skills")
    place = mam.folder / ".claude" / "skills" / "mam" / "SKILL.md"
    assert said.err == f"mam: {place} is written\n"
    assert place.read_text() == skill()
    assert "is the same" in mam.ok("skill", "--install", ".claude/skills").err
    place.write_text(skill().replace("Look first", "Look"))
    assert "brought up to date" in mam.ok("skill", "--install", ".claude/skills").err
    assert [one.name for one in place.parent.iterdir()] == ["SKILL.md"]


def test_what_somebody_wrote_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "mam" / "SKILL.md"
    place.parent.mkdir()
    place.write_text("mine\n")
    with pytest.raises(CannotInstall, match="none of ours"):
        install(str(tmp_path))
    assert place.read_text() == "mine\n"
    place.unlink()
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CannotInstall, match="cannot be written"):
        install(str(tmp_path))
    assert not (tmp_path / "elsewhere").exists()


def test_its_head_is_what_agents_read() -> None:
    head = skill().split("---\n")[1].splitlines()
    assert head[0] == "name: mam"
    assert head[1].startswith("description: ")
    assert len(head[1]) < 1024
