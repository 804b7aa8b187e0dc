"""Gemini CLI: its title, and hooks by a file of defaults that a variable names.

Recorded with 0.61.0: the title, the hooks and their fields. Documented only:
`GEMINI_CLI_SYSTEM_DEFAULTS_PATH` names the lowest layer of its settings, which
every other layer overrides, and hooks of all layers run. The machine's own
defaults are copied into ours; where they cannot be read, no hooks are set up.
The layer above all others (`GEMINI_CLI_SYSTEM_SETTINGS_PATH`) would do as well,
but may hold an administrator's rules, so it is not ours to replace.

No hook is set for what comes with every piece of an answer: each is a process.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from mam_core.agents.calls import OpenCalls
from mam_core.agents.channels import Prepared, Reader, titles
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
from mam_core.agents.streams.values import label, listed, table, text, topic
from mam_core.disk import Folder

EVENTS = (
    "SessionStart", "BeforeAgent", "BeforeTool", "Notification", "AfterTool", "AfterAgent",
    "SessionEnd",
)  # fmt: skip

VARIABLE = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"
DEFAULTS = "gemini-defaults.json"
_PATIENCE_MS = 5000
_MAX_BYTES = 1024 * 1024
#: What it says in place of an answer, after an error and after an interrupt alike.
_NO_ANSWER = "[no response text]"


def prepare(profile: Profile, folder: str) -> Prepared:
    spool = Spool(folder)
    spool.empty()
    settings = _machine_defaults(profile)
    if settings is None:
        return Prepared()
    hooks = dict(table(settings.get("hooks")))
    for event in EVENTS:
        hooks[event] = [*listed(hooks.get(event)), _entry(spool.path, event)]
    settings["hooks"] = hooks
    with Folder.open(folder, create=True) as place:
        place.write(DEFAULTS, json.dumps(settings, indent=1).encode())
    return Prepared(env={VARIABLE: os.path.join(os.path.abspath(folder), DEFAULTS)})


def _entry(spool: str, event: str) -> dict[str, object]:
    line = command(spool, event)
    return {"hooks": [{"type": "command", "command": line, "timeout": _PATIENCE_MS}]}


def _machine_defaults(profile: Profile) -> dict[str, Any] | None:
    """The file that ours stands in for; None when it is there and cannot be read."""
    named = {**os.environ, **profile.env}.get(VARIABLE)
    if sys.platform == "darwin":
        usual = "/Library/Application Support/GeminiCli/system-defaults.json"
    else:
        usual = "/etc/gemini-cli/system-defaults.json"
    try:
        with open(named or usual, "rb") as file:
            settings = json.loads(file.read(_MAX_BYTES))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        return None
    return settings if isinstance(settings, dict) else None


def reader(folder: str) -> Reader:
    return ChannelReader(GeminiEar(), Spool(folder))


class GeminiEar(SilentEar):
    """Titles can be written by a model that writes to the terminal: hooks end a turn, if any do."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.calls = OpenCalls()
        self._session = ""
        self._mark: titles.Mark | None = None
        self._is_in_turn = False  # by its title

    def started(self, pid: int) -> None:
        self._forget()

    def hook(self, call: Call) -> Sign | None:
        if not self._is_ours(call):
            return None
        words = about_tool(call.data.get("tool_name"), call.data.get("tool_input"))
        sign = Sign(AgentState.WORKING, Channel.HOOK, call.event, call.at, words)
        match call.event:
            case "SessionStart":
                return sign._replace(state=AgentState.IDLE)
            case "BeforeAgent" | "BeforeTool" | "AfterTool":
                if call.event == "BeforeTool":
                    self.calls.begin(tool_call(call))
                elif call.event == "AfterTool":
                    self.calls.end(tool_call(call).call_id)
                return sign
            case "Notification":
                if call.data.get("notification_type") != "ToolPermission":
                    return None
                rule = f"{call.event}: ToolPermission"
                return sign._replace(state=AgentState.WAITING, rule=rule, words=_question(call))
            case "AfterAgent":
                self.calls.forget()
                over = sign._replace(state=AgentState.IDLE, turn_over=True)
                if text(call.data.get("prompt_response")).strip() != _NO_ANSWER:
                    return over
                rule = f"{call.event}: no answer"
                return over._replace(rule=rule, failed=True, words="an error or an interrupt")
            case "SessionEnd":
                goes_on = call.data.get("reason") == "clear"
                return None if goes_on else sign._replace(state=AgentState.ENDED)
        return None

    def _is_ours(self, call: Call) -> bool:
        """A gemini that the agent starts inherits the variable, and so speaks here, too."""
        session = label(call.data.get("session_id"))
        if not session:
            return True
        follows = call.event == "SessionStart" and call.data.get("source") in ("clear", "resume")
        if not self._session or follows:
            self._session = session
        return session == self._session

    def title(self, title: str, now: float) -> Sign | None:
        """Its trust dialog shows Ready and its quota dialog Working: the screen knows better."""
        mark = titles.gemini(title)
        if mark is None or mark == self._mark:
            return None
        self._mark = mark
        is_over = mark.state is AgentState.IDLE and self._is_in_turn and not self._session
        self._is_in_turn = mark.state is not AgentState.IDLE
        return Sign(
            mark.state, Channel.TITLE, mark.rule, now, in_short(title.strip()), turn_over=is_over
        )


def _question(call: Call) -> str:
    details = table(call.data.get("details"))
    parts = (text(details.get("title")), text(details.get("command")) or topic(details))
    return in_short(": ".join(part for part in parts if part) or call.data.get("message"))
