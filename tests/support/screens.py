"""The recorded screens of real agents, and what is read from them, as one table to be checked.

Run as a program it writes ``tests/samples/expected/screens.txt`` anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from mam_core.agents.screens import ScreenReading, ScreenRules, rules_for
from tests.support.recordings import SAMPLES

SUFFIX = ".screen.txt"
#: The folder of an agent's samples, and the name of its rules.
AGENTS = {
    "claude": "claude-code",
    "codex": "codex",
    "gemini": "gemini",
    "opencode": "opencode",
    "aider": "aider",
}
EXPECTED = SAMPLES / "expected" / "screens.txt"
#: No user's file is read: the rules are those of the package.
NOBODY = {"XDG_CONFIG_HOME": "/nowhere"}


@cache
def our_rules(folder: str) -> ScreenRules:
    return rules_for(AGENTS[folder], NOBODY)


def screen(folder: str, name: str) -> list[str]:
    return (SAMPLES / folder / f"{name}{SUFFIX}").read_text().split("\n")


@cache
def read_screen(folder: str, name: str) -> ScreenReading:
    return our_rules(folder).read(screen(folder, name))


def screens(folder: str) -> list[str]:
    names = (path.name.removesuffix(SUFFIX) for path in (SAMPLES / folder).glob(f"*{SUFFIX}"))
    return sorted(names)


def table() -> str:
    return "".join(f"{line}\n" for folder in AGENTS for line in _page(folder))


def _page(folder: str) -> Iterator[str]:
    yield f"== {folder}"
    for name in screens(folder):
        reading = read_screen(folder, name)
        rule = reading.rule.rpartition(": ")[2]
        line = f"{name:<42} {reading.state:<8} {rule:<16}"
        if reading.box is not None:
            box = reading.box.replace("\n", "⏎")
            line += f" box[{box[:40]}]"
        if reading.dialog is not None:
            line += f" dialog {reading.dialog}:"
        for choice in reading.choices:
            line += f" {'+'.join(choice.keys)}={choice.means}"
        yield line.rstrip()


def expected_states() -> dict[tuple[str, str], str]:
    """State by folder and screen, as it stands in the table."""
    found: dict[tuple[str, str], str] = {}
    folder = ""
    for line in EXPECTED.read_text().splitlines():
        if line.startswith("== "):
            folder = line[3:]
        else:
            name, state, *_ = line.split()
            found[folder, name] = state
    return found


def all_files() -> set[Path]:
    return set(SAMPLES.glob(f"*/*{SUFFIX}"))


if __name__ == "__main__":
    EXPECTED.write_text(table())
