"""Claude Code: hooks by a settings file of ours, its session status file, its title.

Recorded with 2.1.197: the hooks and their fields, `--settings FILE`, the status
file, the title. Documented only: hooks of `--settings` are added to those of the
user's own settings and replace none. A hook of ours prints nothing, so it decides
nothing: a permission that is asked for is asked for still.
"""

from __future__ import annotations

import json
import os

from mam_core.agents.calls import OpenCalls
from mam_core.agents.channels import Prepared, Reader, titles
from mam_core.agents.channels.claude_status import SessionStatus, StatusFile
from mam_core.agents.channels.reading import (
    ChannelReader,
    SilentEar,
    about_tool,
    in_short,
    tool_call,
)
from mam_core.agents.channels.spool import Call, Spool, command
from mam_core.agents.profiles import Profile
from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.agents.streams.values import label, listed, table
from mam_core.disk import Folder

#: Every event that says something about the state; those of tools name their matcher.
EVENTS = (
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure",
    "PermissionRequest", "Notification", "Stop", "StopFailure", "SubagentStart", "SubagentStop",
    "PreCompact", "PostCompact", "SessionEnd",
)  # fmt: skip

SETTINGS = "claude-settings.json"
_FLAG = "--settings"
_PATIENCE_SEC = 5  # after which the program goes on without its hook


def prepare(profile: Profile, folder: str) -> Prepared:
    """A command that names its own settings keeps them: then the status file alone is read."""
    spool = Spool(folder)
    spool.empty()
    if any(word == _FLAG or word.startswith(_FLAG + "=") for word in profile.command):
        return Prepared()
    hooks = {event: [_entry(spool.path, event)] for event in EVENTS}
    with Folder.open(folder, create=True) as place:
        place.write(SETTINGS, json.dumps({"hooks": hooks}, indent=1).encode())
    return Prepared((_FLAG, os.path.join(os.path.abspath(folder), SETTINGS)))


def _entry(spool: str, event: str) -> dict[str, object]:
    hook = {"type": "command", "command": command(spool, event), "timeout": _PATIENCE_SEC}
    # Without a matcher an entry is for every tool, and for events that know none.
    return {"hooks": [hook]}


def reader(profile: Profile, folder: str) -> Reader:
    return ChannelReader(ClaudeEar(StatusFile(_config_folder(profile))), Spool(folder))


def _config_folder(profile: Profile) -> str:
    environ = {**os.environ, **profile.env}
    named = environ.get("CLAUDE_CONFIG_DIR")
    return named or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".claude")


class ClaudeEar(SilentEar):
    """Esc leaves no hook, and the status file tells no error: so each completes the other."""

    def __init__(self, status: StatusFile) -> None:
        self._status = status
        self._forget()

    def _forget(self) -> None:
        self.calls = OpenCalls()
        self._last = SessionStatus("", "")
        self._is_in_turn = False  # busy since it was idle, by its status
        self._has_tasks = False  # its turn is over and work of it still runs
        self._has_failed = False
        self._question = ""
        self._mark: titles.Mark | None = None

    def started(self, pid: int) -> None:
        self._forget()
        self._status.started(pid)

    # -- hooks -----------------------------------------------------------------------------

    def hook(self, call: Call) -> Sign | None:
        self._status.expect(label(call.data.get("session_id")))
        self._follow_calls(call)
        match call.event:
            case "SessionStart":
                # A session also "starts" in mid-turn, when it was compacted.
                is_new = call.data.get("source") != "compact"
                return _sign(call, AgentState.IDLE) if is_new else None
            case "UserPromptSubmit":
                self._has_tasks = self._has_failed = False
                return _sign(call, AgentState.WORKING)
            case "PreToolUse" | "PostToolUse" | "PostToolUseFailure":
                if call.data.get("is_interrupt") is True:
                    return None
                return _sign(call, AgentState.WORKING, _tool(call))
            case "PermissionRequest":
                self._question = _tool(call)
                return _sign(call, AgentState.WAITING, self._question)
            case "Notification":
                return self._notified(call)
            case "Stop":
                return self._stopped(call)
            case "StopFailure":
                self._has_failed = True
                said = in_short(call.data.get("last_assistant_message"))
                words = ": ".join(part for part in (label(call.data.get("error")), said) if part)
                return _sign(call, AgentState.IDLE, words)._replace(turn_over=True, failed=True)
            case "SubagentStart" | "PreCompact":
                return _sign(call, AgentState.WORKING)
            case "PostCompact":
                by_hand = call.data.get("trigger") == "manual"
                return _sign(call, AgentState.IDLE if by_hand else AgentState.WORKING)
            case "SessionEnd":
                goes_on = call.data.get("reason") in ("clear", "resume")  # in another session
                return None if goes_on else _sign(call, AgentState.ENDED)
        return None  # SubagentStop among them: it comes without a subagent, too

    def _follow_calls(self, call: Call) -> None:
        """Esc leaves no hook: what it broke off ends with the turn, by the status file."""
        agent = label(call.data.get("agent_id"))
        match call.event:
            case "PreToolUse":
                self.calls.begin(tool_call(call, agent))
            case "PostToolUse" | "PostToolUseFailure":
                self.calls.end(tool_call(call).call_id)
            case "SubagentStop" if agent:
                self.calls.leave(agent)
            case "UserPromptSubmit" | "Stop" | "StopFailure" | "SessionEnd":
                self.calls.forget()

    def _notified(self, call: Call) -> Sign | None:
        match call.data.get("notification_type"):
            case "permission_prompt" | "elicitation_dialog" as kind:
                # It says less than the request that came six seconds before it.
                words = self._question or in_short(call.data.get("message"))
                return _sign(call, AgentState.WAITING, words, kind)
            case "idle_prompt" as kind:
                return _sign(call, AgentState.IDLE, "", kind)
        return None

    def _stopped(self, call: Call) -> Sign:
        tasks = [table(task) for task in listed(call.data.get("background_tasks"))]
        running = [task for task in tasks if task.get("status") == "running"]
        self._has_tasks = bool(running)
        if running:
            words = in_short(running[0].get("command") or running[0].get("description"))
            return _sign(call, AgentState.WORKING, words, "background tasks")
        return _sign(call, AgentState.IDLE)._replace(turn_over=True)

    # -- the status file and the title -----------------------------------------------------

    def files(self, now: float) -> list[Sign]:
        status = self._status.look(now)
        if status is None or status == self._last:
            return []
        self._last = status
        state, rule, at = status.state, f"status {status.word}", self._status.changed_at
        if state is AgentState.WORKING:
            self._is_in_turn = True
        if state is not AgentState.IDLE:
            words = status.waits_for if state is AgentState.WAITING else ""
            if self._question and status.waits_for == "permission prompt":
                words = self._question
            return [Sign(state, Channel.STATUS, rule, at, words)]
        self.calls.forget()
        self._question = ""
        is_over, self._is_in_turn = self._is_in_turn and not self._has_tasks, False
        failed = is_over and self._has_failed
        return [Sign(state, Channel.STATUS, rule, at, turn_over=is_over, failed=failed)]

    def title(self, title: str, now: float) -> Sign | None:
        mark = titles.claude(title)
        if mark is None or mark == self._mark:
            return None
        self._mark = mark
        return Sign(mark.state, Channel.TITLE, mark.rule, now, in_short(title))


def _sign(call: Call, state: AgentState, words: str = "", kind: str = "") -> Sign:
    rule = f"{call.event}: {kind}" if kind else call.event
    return Sign(state, Channel.HOOK, rule, call.at, words)


def _tool(call: Call) -> str:
    return about_tool(call.data.get("tool_name"), call.data.get("tool_input"))
