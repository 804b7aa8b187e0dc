"""What real agents said of themselves (hooks, status file, titles, reports), and what is read.

Run as a program it writes ``tests/samples/expected/*.channels.txt`` anew, to be looked at before
it is believed.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from mam_core.agents.channels import Reader, prepare, reader_for
from mam_core.agents.channels.claude_status import _own_pid
from mam_core.agents.channels.spool import SPOOL
from mam_core.agents.profiles import BUILT_IN, Profile
from mam_core.agents.signs import Sign
from tests.support.recordings import SAMPLES

PROFILES = {
    "claude": BUILT_IN["claude-code"],
    "codex": BUILT_IN["codex"],
    "gemini": BUILT_IN["gemini"],
    "opencode": BUILT_IN["opencode"],
}
_TITLE = re.compile(r"\s*([0-9.]+) title=(.*) \| alt=. \| bell=.")


def profile_in(agent: str, folder: Path, **env: str) -> Profile:
    """The built-in profile, with a configuration folder of its own."""
    profile = PROFILES[agent]
    return replace(profile, env={**profile.env, "CLAUDE_CONFIG_DIR": str(folder / "config"), **env})


def reader_in(agent: str, folder: Path) -> Reader:
    profile = profile_in(agent, folder)
    prepare(profile, str(folder))
    reader = reader_for(profile, str(folder))
    reader.started(os.getpid())
    return reader


def leave(folder: Path, number: int, event: str, data: Any) -> None:
    """A call, as a hook leaves it."""
    path = folder / SPOOL / f"{event}.1-{number}"
    path.write_text(json.dumps(data))
    os.utime(path, ns=(number * 10**9, number * 10**9))


def write_status(folder: Path, data: Any) -> None:
    sessions = folder / "config" / "sessions"
    sessions.mkdir(parents=True, exist_ok=True)
    (sessions / f"{_own_pid(os.getpid())}.json").write_text(json.dumps(data))


def played(path: Path, folder: Path) -> list[Sign]:
    """One recording, brought before a reader as it came."""
    signs: list[Sign] = []
    play(path, folder, lambda _reader: None, signs)
    return signs


def play(
    path: Path, folder: Path, look: Callable[[Reader], object], signs: list[Sign] | None = None
) -> Reader:
    """The same, with a look at the reader after each step."""
    signs = [] if signs is None else signs
    agent = path.parent.name
    reader = reader_in(agent, folder)
    for number, (kind, data) in enumerate(_entries(path)):
        # codex blinks at its start, within 0.2 s; nothing else here hangs on the pace.
        now = 0.1 * number if number < 3 else 2.0 * number
        if kind == "hook":
            event = data.get("hook_event_name") or data.get("type")
            if event is None:
                continue  # the recorder's own line: a `notify` program, a plugin's other hook
            leave(folder, number, event, data)
            signs += reader.look(now)
        elif kind == "status":
            write_status(folder, data)
            signs += reader.look(now)
        elif kind == "osc":
            signs += reader.heard(f"\x1b]{data}\x1b\\".encode(), now)
        else:
            signs += reader.heard(f"\x1b]0;{data}\x07".encode(), now)
        look(reader)
    return reader


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    lines = path.read_text().splitlines()
    name = path.name
    if name.endswith(".hooks.jsonl"):
        for line in lines:
            data = json.loads(line)
            yield "hook", data.get("hook", data) if path.parent.name == "claude" else data
    elif name.endswith(".status.jsonl"):
        yield from (("status", json.loads(line)) for line in lines)
    elif name.endswith(".title.jsonl"):
        titles = (json.loads(line)["title"] for line in lines)
        yield from (("title", title) for title in titles if title != "host")
    elif name.endswith(".osc7501.txt"):
        for line in lines:
            yield "osc", line.removeprefix("ESC ] ").removesuffix(" ST")
    else:
        for line in lines:
            if (found := _TITLE.match(line)) and found[2] != "host":
                yield "title", found[2]


def paths(agent: str) -> list[Path]:
    kinds = ("*.hooks.jsonl", "*.status.jsonl", "*.title.jsonl", "*.osc7501.txt", "*.titles.txt")
    found = {path for kind in kinds for path in (SAMPLES / agent).glob(kind)}
    # Two of that ending are the standard output of a run with hooks.
    return sorted(path for path in found if path.name != "tools.hooks.jsonl")


def shown(agent: str, new_folder: Callable[[], Path]) -> str:
    lines: list[str] = []
    for path in paths(agent):
        lines += ["", path.name]
        for line, same in groupby(_line(sign) for sign in played(path, new_folder())):
            times = len(list(same))
            lines.append(f"  {line}" + (f"  x{times}" if times > 1 else ""))
    return "\n".join(lines[1:]) + "\n"


def _line(sign: Sign) -> str:
    flags = [word for word, on in (("over", sign.turn_over), ("failed", sign.failed)) if on]
    state = " ".join([str(sign.state), *flags])
    return f"{sign.channel:<11} {sign.rule:<36} {state:<19} {sign.words[:70]}".rstrip()


def expected_path(agent: str) -> Path:
    return SAMPLES / "expected" / f"{agent}.channels.txt"


if __name__ == "__main__":
    for each in PROFILES:
        expected_path(each).write_text(shown(each, lambda: Path(tempfile.mkdtemp())))
