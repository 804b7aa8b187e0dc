"""Walks through the real agents, replayed with their times: what a judge believes at each step.

Run as a program it writes ``tests/samples/expected/*.believed.txt`` anew, to be looked at before
it is believed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from mam_core.agents.channels.claude import ClaudeEar
from mam_core.agents.channels.claude_status import SessionStatus, StatusFile
from mam_core.agents.channels.codex import CodexEar
from mam_core.agents.channels.gemini import GeminiEar
from mam_core.agents.channels.reading import Ear, SilentEar
from mam_core.agents.channels.spool import Call
from mam_core.agents.judging import Judge
from mam_core.agents.signs import AgentState, Channel, Sign
from tests.support.recordings import SAMPLES
from tests.support.screens import read_screen, screens

#: Between two looks of the judge, as often as a worker looks.
_TICK_SEC = 0.25
#: After the last thing that was recorded.
_REST_SEC = 4.0
_LINE = re.compile(r"\s*([0-9.]+) (title=(?P<title>.*) \| alt=.*|shot (?P<shot>\S+)|.*)")


class Entry(NamedTuple):
    """One thing that happened: at how many seconds, what kind, and what it said."""

    at: float
    kind: str  #: hook, status, title, osc or shot
    what: Any


class Belief(NamedTuple):
    """What was believed from a moment on."""

    at: float
    sign: Sign


class _RecordedStatus(StatusFile):
    """The status file, as it stood."""

    def __init__(self) -> None:
        super().__init__("/nowhere")
        self.now: SessionStatus | None = None

    def look(self, now: float) -> SessionStatus | None:
        return self.now


class Walk:
    """One recording of one agent in a terminal."""

    def __init__(self, folder: str, name: str) -> None:
        self.folder = folder
        self.name = name
        self._status = _RecordedStatus()
        self._ear = self._new_ear()
        self.judge = Judge()
        self.at_shots: dict[str, Sign | None] = {}  #: what was believed when a screen was taken

    def _new_ear(self) -> Ear:
        if self.folder == "claude":
            return ClaudeEar(self._status)
        return {"codex": CodexEar, "gemini": GeminiEar}.get(self.folder, SilentEar)()

    def entries(self) -> list[Entry]:
        found = _claude(self.name) if self.folder == "claude" else _titles(self.folder, self.name)
        return sorted(found, key=lambda entry: entry.at)

    def replay(self) -> list[Belief]:
        """Every change of what is believed."""
        beliefs: list[Belief] = []
        entries = self.entries()
        end = entries[-1].at + _REST_SEC
        for entry, following in zip(entries, [*entries[1:], None], strict=True):
            self._hear(entry)
            now, until = entry.at, following.at if following is not None else end
            while True:
                self._note(beliefs, now)
                now += _TICK_SEC
                if now >= until:
                    break
        return beliefs

    def _hear(self, entry: Entry) -> None:
        at, kind, what = entry
        signs: Iterable[Sign | None] = ()
        if kind == "hook":
            signs = (self._ear.hook(Call(what["hook_event_name"], what, at)),)
        elif kind == "status":
            self._status.changed_at = at
            self._status.now = SessionStatus(what.get("status", ""), what.get("waitingFor", ""))
            signs = self._ear.files(at) if what.get("status") else ()
        elif kind == "title":
            signs = (self._ear.title(what, at),)
        elif kind == "osc":
            signs = (self._ear.state(what, at),)
        elif kind == "shot":
            reading = read_screen(self.folder, what)
            self.judge.hear(reading.sign(at))
            if reading.state is AgentState.ENDED:  # the recorder saw it exit, as a worker would
                self.judge.hear(Sign(AgentState.ENDED, Channel.PROCESS, "exit 0", at))
            self.at_shots[what] = self.judge.believed(at)
        for sign in signs:
            if sign is not None:
                self.judge.hear(sign)

    def _note(self, beliefs: list[Belief], now: float) -> None:
        sign = self.judge.believed(now)
        if sign is None:
            return
        last = beliefs[-1].sign if beliefs else None
        if last is None or (last.state, last.channel) != (sign.state, sign.channel):
            beliefs.append(Belief(now, sign))


def _claude(name: str) -> Iterator[Entry]:
    """Hooks have the wall clock, the rest counts from the recorder's start: the first prompt,
    which hook and title tell at once, ties the two together."""
    hooks = [(row["t"], row["hook"]) for row in _rows(f"{name}.hooks.jsonl")]
    titles = [(row["t"], row["title"]) for row in _rows(f"{name}.title.jsonl")]
    prompts = [at for at, hook in hooks if hook["hook_event_name"] == "UserPromptSubmit"]
    spinners = [at for at, title in titles if title[:1] in "⠂⠐" and title]
    starts = [at for at, title in titles if title.startswith("✳")]
    if hooks:
        first = prompts[0] if prompts and spinners else hooks[0][0]
        zero = first - (spinners[0] if prompts and spinners else starts[0])
        yield from (Entry(at - zero, "hook", hook) for at, hook in hooks)
    yield from (Entry(at, "title", title) for at, title in titles)
    yield from (Entry(row["t"], "status", row) for row in _rows(f"{name}.status.jsonl"))


def _rows(name: str) -> list[dict[str, Any]]:
    path = SAMPLES / "claude" / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _titles(folder: str, name: str) -> Iterator[Entry]:
    """Of screens that two walks took under one name, the later walk's were kept."""
    later = [_shots(folder, other) for other in walks(folder) if other > name]
    path = SAMPLES / folder / f"{name}.titles.txt"
    for line in path.read_text().splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        at = float(found[1])
        if found["title"] is not None and found["title"] != "host":
            yield Entry(at, "title", found["title"])
        elif found["shot"] in _shots(folder, name).difference(*later):
            yield Entry(at, "shot", found["shot"])
    yield from _gemini_hooks(path)


def _shots(folder: str, name: str) -> set[str]:
    text = (SAMPLES / folder / f"{name}.titles.txt").read_text()
    return {shot for shot in re.findall(r"shot (\S+)", text) if shot in screens(folder)}


def _gemini_hooks(path: Path) -> Iterator[Entry]:
    """Dated by the wall clock; the first turn is told by hook and title within a third of a
    second (`key Enter` at 9.344, the hook 0.2 s after it)."""
    hooks = path.with_name(path.name.replace(".titles.txt", ".hooks.jsonl"))
    if path.parent.name != "gemini" or not hooks.exists():
        return
    rows = [json.loads(line) for line in hooks.read_text().splitlines()]
    moments = [datetime.fromisoformat(row["timestamp"]).timestamp() for row in rows]
    first = next(at for at, row in zip(moments, rows, strict=True) if _begins(row))
    for at, row in zip(moments, rows, strict=True):
        yield Entry(round(at - first + 9.55, 3), "hook", row)


def _begins(row: dict[str, Any]) -> bool:
    return bool(row["hook_event_name"] == "BeforeAgent")


def walks(folder: str) -> list[str]:
    suffix = ".title.jsonl" if folder == "claude" else ".titles.txt"
    return sorted(path.name.removesuffix(suffix) for path in (SAMPLES / folder).glob(f"*{suffix}"))


def table(folder: str) -> str:
    lines: list[str] = []
    for name in walks(folder):
        lines += ["", name]
        walk = Walk(folder, name)
        for at, sign in walk.replay():
            state = f"{sign.state}{' over' if sign.turn_over else ''}"
            lines.append(f"  {at:7.2f} {state:<13} {sign.channel:<11} {sign.rule}")
    return "\n".join(lines[1:]) + "\n"


def expected_path(folder: str) -> Path:
    return SAMPLES / "expected" / f"{folder}.believed.txt"


FOLDERS = ("claude", "codex", "gemini", "opencode", "aider")

if __name__ == "__main__":
    for each in FOLDERS:
        expected_path(each).write_text(table(each))
