"""codex: the state that it reports to its terminal, its title, and hooks where they may run.

Recorded with codex-cli 0.166.0: OSC 7501, the title, the hooks and their fields.
Documented only: that `-c` can give hooks, beside those of the user's files. A hook
that nobody has reviewed is skipped without a word unless
`--dangerously-bypass-hook-trust` is given, and that flag also trusts the hooks
that a repository brings along: we never give it. Where the profile's own command
has it, hooks are added, for the words of the questions.
"""

from __future__ import annotations

import json

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
from mam_core.agents.streams.values import label

EVENTS = (
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest", "Stop",
    "SessionEnd",
)  # fmt: skip

_APP = "codex"
_TRUST = "--dangerously-bypass-hook-trust"
_PATIENCE_SEC = 3  # the program's own limit for SessionEnd
#: At its start it says idle, working, idle within 0.2 s, and no turn was there.
_START_SEC = 1.0


def prepare(profile: Profile, folder: str) -> Prepared:
    spool = Spool(folder)
    spool.empty()
    if _TRUST not in profile.command:
        return Prepared()
    words: list[str] = []
    for event in EVENTS:
        # JSON's way to write a text is TOML's, too.
        line = json.dumps(command(spool.path, event), ensure_ascii=False)
        hook = f'{{type="command",command={line},timeout={_PATIENCE_SEC}}}'
        words += ["-c", f"hooks.{event}=[{{hooks=[{hook}]}}]"]
    return Prepared(tuple(words))


def reader(folder: str) -> Reader:
    return ChannelReader(CodexEar(), Spool(folder))


class CodexEar(SilentEar):
    """Its reports are complete; the title serves versions that make none."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.calls = OpenCalls()
        self._first_at: float | None = None
        self._turn_at: float | None = None  # the time when it began to work
        self._report = ""
        self._mark: titles.Mark | None = None
        self._was_working = False  # by its title
        self._question = ""

    def started(self, pid: int) -> None:
        self._forget()

    def state(self, report: str, now: float) -> Sign | None:
        """``state=working:app=codex``; done and error are followed by idle at once. Somebody
        else's report, of a program that ran in the same terminal, is not codex's word."""
        fields = dict(part.partition("=")[::2] for part in report.split(":"))
        if fields.get("app", _APP) != _APP:
            return None
        said = label(fields.get("state"))
        kind = label(fields.get("kind"))
        if self._first_at is None:
            self._first_at = now
        before, self._report = self._report, f"{said} {kind}".strip()
        if self._report == before or (said == "idle" and before in ("done", "error")):
            return None
        rule = f"osc 7501: {self._report}"
        match said:
            case "working":
                self._turn_at = now if self._turn_at is None else self._turn_at
                return Sign(AgentState.WORKING, Channel.OSC, rule, now)
            case "blocked":
                return Sign(AgentState.WAITING, Channel.OSC, rule, now, self._question or kind)
            case "done" | "error" | "idle":
                self.calls.forget()
                is_over = said != "idle" or self._was_interrupted(now)
                self._turn_at = None
                if said == "idle" and is_over:
                    rule += " without done"
                failed = said == "error"
                return Sign(
                    AgentState.IDLE, Channel.OSC, rule, now, turn_over=is_over, failed=failed
                )
            case "clear":
                self._turn_at = None
                return Sign(AgentState.UNKNOWN, Channel.OSC, rule, now)
        return None

    def _was_interrupted(self, now: float) -> bool:
        """It was in a turn, and it was not the flicker of its start."""
        if self._turn_at is None or self._first_at is None:
            return False
        return self._turn_at - self._first_at > _START_SEC or now - self._turn_at > _START_SEC

    def title(self, title: str, now: float) -> Sign | None:
        mark = titles.codex(title)
        if mark is None or mark == self._mark:
            return None
        self._mark = mark
        is_over = mark.state is AgentState.IDLE and self._was_working and not self._report
        self._was_working = mark.state is not AgentState.IDLE
        return Sign(mark.state, Channel.TITLE, mark.rule, now, in_short(title), turn_over=is_over)

    def hook(self, call: Call) -> Sign | None:
        """After an error or an interrupt there is no Stop: there the report is alone."""
        words = about_tool(call.data.get("tool_name"), call.data.get("tool_input"))
        sign = Sign(AgentState.WORKING, Channel.HOOK, call.event, call.at, words)
        match call.event:
            case "SessionStart":
                return sign._replace(state=AgentState.IDLE)
            case "UserPromptSubmit" | "PreToolUse" | "PostToolUse":
                self._question = ""
                if call.event == "PreToolUse":
                    self.calls.begin(tool_call(call))
                elif call.event == "PostToolUse":
                    self.calls.end(tool_call(call).call_id)
                return sign
            case "PermissionRequest":
                self._question = words
                return sign._replace(state=AgentState.WAITING)
            case "Stop":
                self.calls.forget()
                return sign._replace(state=AgentState.IDLE, turn_over=True)
            case "SessionEnd":
                return sign._replace(state=AgentState.ENDED)
        return None
