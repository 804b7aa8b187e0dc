"""Which tool calls are open, by what each agent tells of itself."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from mam_core.agents.calls import MAX_OPEN, OpenCall, OpenCalls
from mam_core.agents.channels import Reader
from mam_core.agents.streams import StreamFormat, StreamParser
from tests.support.channel_recordings import leave, play, reader_in, write_status
from tests.support.recordings import SAMPLES, new_parser, recording
from tests.support.rows import each_row


def named(parser: StreamParser | Reader) -> list[str]:
    return [call.name for call in parser.open_calls]


def feed(parser: StreamParser, *entries: dict[str, object]) -> None:
    for entry in entries:
        parser.feed(json.dumps(entry).encode() + b"\n")


def used(call_id: str, tool: str, within: str | None = None, **given: str) -> dict[str, object]:
    block = {"type": "tool_use", "id": call_id, "name": tool, "input": given}
    return {"type": "assistant", "message": {"content": [block]}, "parent_tool_use_id": within}


def result(call_id: str) -> dict[str, object]:
    block = {"type": "tool_result", "tool_use_id": call_id}
    return {"type": "user", "message": {"content": [block]}}


class TestClaude:
    def test_calls_run_side_by_side_and_end_in_any_order(self) -> None:
        parser = new_parser(StreamFormat.CLAUDE)
        feed(parser, used("1", "Bash", command="pytest"), used("2", "Bash", command="make"))
        assert named(parser) == ["Bash pytest", "Bash make"]
        feed(parser, result("1"))
        assert named(parser) == ["Bash make"]
        feed(parser, result("2"), result("2"))
        assert named(parser) == []

    def test_what_a_subagent_left_open_ends_with_it(self) -> None:
        parser = new_parser(StreamFormat.CLAUDE)
        feed(parser, used("1", "Agent", description="Look around"))
        feed(parser, used("2", "Agent", "1"), used("3", "Bash", "2", command="find"))
        feed(parser, used("4", "Bash", command="make"))
        feed(parser, result("1"))
        assert named(parser) == ["Bash make"]

    def test_calls_within_calls_end_with_the_outermost_however_deep_they_are(self) -> None:
        parser = new_parser(StreamFormat.CLAUDE)
        feed(parser, used("0", "Agent"))
        feed(parser, *(used(str(n), "Agent", str(n - 1)) for n in range(1, MAX_OPEN)))
        feed(parser, result("0"))
        assert named(parser) == []

    def test_a_turn_that_is_over_leaves_none(self) -> None:
        """Also one that was interrupted: it tells no result of the call."""
        parser = new_parser(StreamFormat.CLAUDE)
        feed(parser, used("1", "Bash"), {"type": "result", "is_error": True})
        assert named(parser) == []

    def test_a_question_is_no_tool(self) -> None:
        parser = new_parser(StreamFormat.CLAUDE)
        feed(parser, used("1", "AskUserQuestion"))
        assert named(parser) == []


class TestCodex:
    def test_an_item_is_open_until_it_is_completed(self) -> None:
        parser = new_parser(StreamFormat.CODEX)
        item = {"id": "item_0", "type": "command_execution", "command": "pytest"}
        feed(parser, {"type": "turn.started"}, {"type": "item.started", "item": item})
        assert named(parser) == ["shell pytest"]
        feed(parser, {"type": "item.completed", "item": item})
        assert named(parser) == []

    def test_a_turn_that_failed_leaves_none(self) -> None:
        parser = new_parser(StreamFormat.CODEX)
        item = {"id": "item_0", "type": "command_execution", "command": "pytest"}
        feed(parser, {"type": "item.started", "item": item}, {"type": "turn.failed"})
        assert named(parser) == []


def test_gemini_tells_by_an_id_of_its_own() -> None:
    parser = new_parser(StreamFormat.GEMINI)
    call = {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "a"}
    feed(parser, {**call, "parameters": {"command": "pytest"}})
    assert named(parser) == ["run_shell_command pytest"]
    feed(parser, {"type": "tool_result", "tool_id": "a", "status": "success"})
    assert named(parser) == []


@pytest.mark.parametrize("form", [StreamFormat.OPENCODE, StreamFormat.AIDER, StreamFormat.PLAIN])
def test_others_tell_of_none_before_it_has_ended(form: StreamFormat) -> None:
    parser = new_parser(form)
    parser.feed(b"anything\n")
    assert parser.open_calls == ()


@each_row(
    ("agent", "name"),
    [
        ("claude", "subagent.acceptEdits.jsonl"),
        ("claude", "tools.acceptEdits.jsonl"),
        ("codex", "tools.bypass.jsonl"),
        ("gemini", "tools.yolo.jsonl"),
    ],
)
def test_a_recorded_run_opens_calls_and_leaves_none(agent: str, name: str) -> None:
    record = recording(agent, name)
    parser = new_parser(record.form)
    most = 0
    for line in record.output.splitlines(keepends=True):
        parser.feed(line)
        most = max(most, len(parser.open_calls))
    assert most > 0
    assert parser.open_calls == ()


class TestLive:
    """By hooks: what is open while the recorded session goes on."""

    @each_row(
        ("agent", "name", "most"),
        [
            ("claude", "toolsleep.tmux.hooks.jsonl", "Bash sleep 40; echo woke > woke.txt"),
            ("codex", "walk-hooks.hooks.jsonl", "Bash echo allowed > permitted.txt"),
            ("gemini", "walk-hooks.hooks.jsonl", "run_shell_command echo allowed > permitted.txt"),
            ("opencode", "permission.plugin.hooks.jsonl", "bash echo allowed > permitted.txt"),
        ],
    )
    def test_a_recorded_session(self, agent: str, name: str, most: str) -> None:
        seen: list[str] = []
        with tempfile.TemporaryDirectory() as folder:
            reader = play(SAMPLES / agent / name, Path(folder), lambda one: seen.extend(named(one)))
        assert most in seen, seen
        assert reader.open_calls == ()

    def test_a_call_that_esc_broke_off_ends_with_the_turn(self, tmp_path: Path) -> None:
        """Its hook never comes: the status file says that the agent is idle."""
        reader = reader_in("claude", tmp_path)
        leave(tmp_path, 1, "PreToolUse", {"tool_name": "Bash", "tool_use_id": "1"})
        write_status(tmp_path, {"status": "busy"})
        reader.look(1)
        assert named(reader) == ["Bash"]
        write_status(tmp_path, {"status": "idle", "and": "longer"})
        reader.look(2)
        assert named(reader) == []

    def test_what_a_subagent_left_open_ends_with_it(self, tmp_path: Path) -> None:
        reader = reader_in("claude", tmp_path)
        inner = {"tool_name": "Bash", "tool_use_id": "2", "agent_id": "a"}
        leave(tmp_path, 1, "PreToolUse", {"tool_name": "Agent", "tool_use_id": "1"})
        leave(tmp_path, 2, "PreToolUse", inner)
        reader.look(1)
        assert named(reader) == ["Agent", "Bash"]
        leave(tmp_path, 3, "SubagentStop", {"agent_id": "a"})
        reader.look(2)
        assert named(reader) == ["Agent"]


def test_calls_without_end_fill_no_memory() -> None:
    calls = OpenCalls()
    for number in range(MAX_OPEN + 10):
        calls.begin(OpenCall(str(number), "Bash"))
    assert [call.call_id for call in calls.all()] == [str(n) for n in range(10, MAX_OPEN + 10)]


def test_a_call_that_seems_to_lie_within_itself_ends() -> None:
    calls = OpenCalls()
    calls.begin(OpenCall("1", "Agent", within="1"))
    calls.begin(OpenCall("2", "Agent", within="3"))
    calls.begin(OpenCall("3", "Agent", within="2"))
    calls.end("1")
    calls.end("2")
    assert calls.all() == ()
