"""The pages of the project, taken apart: which commands they show, and what those should print."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^```(\w*)\s*$")
_NOT_RUN = re.compile(r"<!-- not run: \S.* -->")
_SETTINGS = "<!-- as mam.toml -->"
_EXIT = re.compile(r"#\s*exits (\d+)\s*$")
_ANYTHING = "…"


class Command(NamedTuple):
    """One command of a page."""

    page: str
    line: int
    text: str
    exit_code: int
    expected: tuple[str, ...]

    def fits(self, output: str) -> bool:
        """Nothing is asked of the output where the page shows none."""
        pattern = "".join(map(_as_pattern, self.expected))
        return not self.expected or re.fullmatch(pattern, output, re.DOTALL) is not None


class Block(NamedTuple):
    """A fenced block."""

    page: str
    line: int
    language: str
    lines: tuple[str, ...]
    is_excused: bool  #: a comment before it says why it is not run
    is_settings: bool  #: a comment before it says that what follows goes by it

    @property
    def shows_commands(self) -> bool:
        return any(line.startswith("$ ") for line in self.lines)

    @property
    def is_run(self) -> bool:
        return self.is_settings or (self.language == "console" and not self.is_excused)

    def commands(self) -> Iterator[Command]:
        if self.is_settings:
            whole = ["cat > mam.toml <<'END_OF_SETTINGS'", *self.lines, "END_OF_SETTINGS"]
            yield Command(self.page, self.line, "\n".join(whole), 0, ())
            return
        at, lines = 0, self.lines
        while at < len(lines):
            if not lines[at].startswith("$ "):
                raise AssertionError(f"{self.page}:{self.line + at + 1}: output before a command")
            first = at
            text = [lines[at][2:]]
            at += 1
            while at < len(lines) and re.match(r">( |$)", lines[at]):
                text.append(lines[at][2:])
                at += 1
            output = at
            while at < len(lines) and not lines[at].startswith("$ "):
                at += 1
            code = _EXIT.search(text[0])
            yield Command(
                self.page,
                self.line + first + 1,
                "\n".join(text),
                int(code[1]) if code else 0,
                lines[output:at],
            )

    def mam_commands(self) -> Iterator[tuple[int, list[str]]]:
        """The words after ``mam`` of every line with a prompt, with its line; also on a host."""
        lines = list(self.lines)
        for at, first in enumerate(lines):
            if not re.match(r"\w*\$ ", first):
                continue
            text, below = first.partition("$ ")[2], at + 1
            while text.endswith("\\") and below < len(lines):
                text, below = f"{text[:-1]} {lines[below].strip()}", below + 1
            call = re.search(r"(?:^|\(|\| )mam (.*)", text)
            if call:
                words = shlex.split(call[1].rstrip(")&"), comments=True)
                ends = (at for at, word in enumerate(words) if re.match(r"[|>&;]", word))
                yield self.line + at + 1, words[: next(ends, None)]


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    lines = page.read_text().splitlines()
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence:
            end = lines.index("```", at + 1)
            before = lines[at - 1] if at else ""
            found.append(
                Block(
                    str(page.relative_to(ROOT)),
                    at + 1,
                    fence[1],
                    tuple(lines[at + 1 : end]),
                    _NOT_RUN.fullmatch(before) is not None,
                    before == _SETTINGS,
                )
            )
            at = end
        at += 1
    return found


def mentions(page: Path) -> Iterator[tuple[int, list[str]]]:
    """Every ``mam VERB …`` in code, as words, with its line."""
    in_fence = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            in_fence = not in_fence
            continue
        shown = [re.sub(r"(^|\s)#.*", "", line)] if in_fence else re.findall(r"`([^`]+)`", line)
        for text in shown:
            for found in re.finditer(r"(?:^|[\s($])(?:\./)?mam ((?:[^`#|;&()]|\$\()+)", text):
                try:
                    words = shlex.split(found[1], comments=True)
                except ValueError:
                    words = found[1].split()
                if words:
                    yield number, words


def _as_pattern(line: str) -> str:
    """How many blanks stand between columns depends on what is in them."""
    if line == _ANYTHING:
        return r"(?:[^\n]*\n)*?"
    parts = [r"\ +".join(map(re.escape, re.split(r" +", part))) for part in line.split(_ANYTHING)]
    return r"[^\n]*?".join(parts) + r" *\n"
