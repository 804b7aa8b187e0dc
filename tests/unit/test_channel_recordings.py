"""Hooks, status files, titles and reports of real agents, read: as a person checked it (H3, H5)."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from mam_core.agents.channels.codex import CodexEar
from mam_core.agents.signs import AgentState, Channel, Sign
from tests.support.channel_recordings import (
    PROFILES,
    expected_path,
    leave,
    played,
    reader_in,
    shown,
    write_status,
)
from tests.support.recordings import SAMPLES

AGENTS = list(PROFILES)


def heard(agent: str, name: str, folder: Path) -> list[Sign]:
    return played(SAMPLES / agent / name, folder)


@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_read_is_what_was_checked(agent: str, tmp_path: Path) -> None:
    numbers = count()

    def new_folder() -> Path:
        folder = tmp_path / str(next(numbers))
        folder.mkdir(mode=0o700)
        return folder

    assert shown(agent, new_folder) == expected_path(agent).read_text()


def test_a_question_comes_with_what_is_asked(tmp_path: Path) -> None:
    signs = heard("claude", "permission.tmux.hooks.jsonl", tmp_path)
    asked = [sign for sign in signs if sign.state is AgentState.WAITING]
    assert {sign.rule for sign in asked} == {
        "PermissionRequest",
        "Notification: permission_prompt",
    }
    assert {sign.words for sign in asked} == {"Bash: python3 -c 'print(6*7)' && touch granted.txt"}


def test_a_subagents_end_is_not_the_turns(tmp_path: Path) -> None:
    for name in ("subagent.tmux.hooks.jsonl", "compact.tmux.hooks.jsonl"):
        signs = heard("claude", name, tmp_path / name)
        assert {sign.rule for sign in signs if sign.turn_over} == {"Stop"}


def test_a_turn_that_leaves_work_running_is_not_over(tmp_path: Path) -> None:
    signs = heard("claude", "background.acceptEdits.hooks.jsonl", tmp_path)
    stops = [sign for sign in signs if sign.rule.startswith("Stop")]
    assert [sign.rule for sign in stops] == ["Stop: background tasks", "Stop"]
    assert [sign.state for sign in stops] == [AgentState.WORKING, AgentState.IDLE]
    assert [sign.turn_over for sign in stops] == [False, True]


def test_while_such_work_runs_an_idle_status_does_not_end_the_turn(tmp_path: Path) -> None:
    reader = reader_in("claude", tmp_path)
    write_status(tmp_path, {"status": "busy"})
    reader.look(0)
    running = {"background_tasks": [{"status": "running", "command": "sleep 5"}]}
    leave(tmp_path, 1, "Stop", running)
    write_status(tmp_path, {"status": "idle"})
    assert [sign.turn_over for sign in reader.look(1)] == [False, False]


def test_an_interrupt_is_told_by_the_status_file_alone(tmp_path: Path) -> None:
    hooks = heard("claude", "permission.tmux-esc.hooks.jsonl", tmp_path / "hooks")
    assert not any(sign.turn_over for sign in hooks)
    status = heard("claude", "permission.tmux-esc.status.jsonl", tmp_path / "status")
    assert [sign.turn_over for sign in status][-1] is True


def test_the_status_file_says_no_error_but_remembers_what_the_hook_said(tmp_path: Path) -> None:
    reader = reader_in("claude", tmp_path)
    leave(tmp_path, 1, "UserPromptSubmit", {})
    write_status(tmp_path, {"status": "busy"})
    reader.look(0)
    leave(tmp_path, 2, "StopFailure", {"error": "rate_limit"})
    write_status(tmp_path, {"status": "idle"})
    last = reader.look(1)[-1]
    assert (last.channel, last.turn_over, last.failed) == (Channel.STATUS, True, True)


def test_a_status_file_of_another_session_is_not_believed(tmp_path: Path) -> None:
    """Two agents in PID namespaces of their own may have the same pid, and so the same file."""
    reader = reader_in("claude", tmp_path)
    leave(tmp_path, 1, "SessionStart", {"session_id": "ours", "source": "startup"})
    write_status(tmp_path, {"status": "busy", "sessionId": "theirs"})
    assert [sign.channel for sign in reader.look(0)] == [Channel.HOOK]
    write_status(tmp_path, {"status": "idle", "sessionId": "ours"})
    assert [sign.rule for sign in reader.look(1)] == ["status idle"]


def test_codex_that_goes_idle_without_done_was_interrupted(tmp_path: Path) -> None:
    signs = heard("codex", "walk.osc7501.txt", tmp_path)
    over = [sign.rule.removeprefix("osc 7501: ") for sign in signs if sign.turn_over]
    # Its start, which looks like a turn that was broken off, is not among them.
    assert over == ["done", "done", "idle without done", "done", "idle without done"]


def test_a_report_of_another_program_is_not_the_word_of_codex() -> None:
    """Whatever a tool prints into the same terminal."""
    ear = CodexEar()
    assert ear.state("state=done:app=somebody", 1.0) is None
    said = ear.state("state=done:app=codex", 2.0)
    assert said is not None
    assert said.turn_over


def test_a_turn_of_codex_that_fails_says_so(tmp_path: Path) -> None:
    signs = heard("codex", "walk-errors.osc7501.txt", tmp_path)
    assert [sign.failed for sign in signs if sign.turn_over].count(True) == 3


def test_gemini_without_an_answer_has_failed_or_was_interrupted(tmp_path: Path) -> None:
    signs = heard("gemini", "walk-hooks.hooks.jsonl", tmp_path)
    assert [(sign.rule, sign.failed) for sign in signs if sign.turn_over] == [
        ("AfterAgent", False),
        ("AfterAgent: no answer", True),
        ("AfterAgent: no answer", True),
    ]


def test_a_title_ends_no_turn_where_hooks_speak(tmp_path: Path) -> None:
    """A model may write a title, too."""
    reader = reader_in("gemini", tmp_path)
    leave(tmp_path, 1, "BeforeAgent", {"session_id": "one"})
    reader.look(0)
    assert reader.heard("\x1b]0;✦  Working… (src)\x07".encode(), 1)
    (sign,) = reader.heard("\x1b]0;◇  Ready (src)\x07".encode(), 2)
    assert sign.state is AgentState.IDLE
    assert not sign.turn_over


def test_a_gemini_within_the_agent_is_not_the_agent(tmp_path: Path) -> None:
    reader = reader_in("gemini", tmp_path)
    leave(tmp_path, 1, "SessionStart", {"session_id": "ours", "source": "startup"})
    leave(tmp_path, 2, "SessionStart", {"session_id": "inner", "source": "startup"})
    leave(tmp_path, 3, "AfterAgent", {"session_id": "inner"})
    assert [sign.rule for sign in reader.look(0)] == ["SessionStart"]


def test_what_opencode_asks_and_retries_is_told(tmp_path: Path) -> None:
    asked = heard("opencode", "permission.plugin.hooks.jsonl", tmp_path / "asked")
    assert "bash: echo allowed > permitted.txt" in [sign.words for sign in asked]
    retried = heard("opencode", "quotaonce.plugin.hooks.jsonl", tmp_path / "retried")
    (retry,) = [sign for sign in retried if sign.rule == "session.status: retry"]
    assert retry.words.startswith("Rate limit reached")
    assert [sign.turn_over for sign in retried][-1] is True


def test_a_session_that_opencode_starts_for_a_tool_is_not_the_turn(tmp_path: Path) -> None:
    reader = reader_in("opencode", tmp_path)
    busy, idle = {"status": {"type": "busy"}}, {"status": {"type": "idle"}}
    child = {"info": {"id": "child", "parentID": "main"}}
    leave(tmp_path, 1, "session.status", {"properties": {"sessionID": "main", **busy}})
    leave(tmp_path, 2, "session.created", {"properties": {"sessionID": "child", **child}})
    leave(tmp_path, 3, "session.status", {"properties": {"sessionID": "child", **idle}})
    assert [sign.turn_over for sign in reader.look(0)] == [False]
    leave(tmp_path, 4, "session.status", {"properties": {"sessionID": "main", **idle}})
    assert [sign.turn_over for sign in reader.look(1)] == [True]


def test_an_error_of_opencode_fails_the_turn_and_an_interrupt_does_not(tmp_path: Path) -> None:
    reader = reader_in("opencode", tmp_path)
    for number, name in ((10, "APIError"), (20, "MessageAbortedError")):
        error = {"error": {"name": name, "data": {"message": "no"}}}
        leave(tmp_path, number, "session.status", {"properties": {"status": {"type": "busy"}}})
        leave(tmp_path, number + 1, "session.error", {"properties": error})
        leave(tmp_path, number + 2, "session.idle", {"properties": {}})
    over = [sign for sign in reader.look(0) if sign.turn_over]
    assert [(sign.failed, sign.words) for sign in over] == [(True, "APIError: no"), (False, "")]
