"""On which line of a TOML text each key stands.

The standard parser gives values without their places, and a message that names
the line is worth a small scanner. It only walks texts that the parser has
accepted, so it looks for structure and checks nothing.
"""

from __future__ import annotations

import re
import tomllib

_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN = re.compile(r"[^,\]}\n#]*")
_STRINGS = (
    # The long forms first; up to two quotes more may stand before the closing three.
    re.compile(r'"""(?:\\.|[^\\])*?"""(?:"{0,2})', re.DOTALL),
    re.compile(r"'''.*?'''(?:'{0,2})", re.DOTALL),
    re.compile(r'"(?:\\.|[^"\\\n])*"'),
    re.compile(r"'[^'\n]*'"),
)

Path = tuple[str, ...]


def key_lines(text: str) -> dict[Path, int]:
    """The line of each key and table, by its path; the first one where it is named often."""
    return _Scanner(text.replace("\r\n", "\n")).run()


def line_of(lines: dict[Path, int], path: Path) -> int:
    """The line of `path`, or of the nearest part of it that has one."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._found: dict[Path, int] = {}

    def run(self) -> dict[Path, int]:
        table: Path = ()
        self._take(_BLANK)
        while self._at < len(self._text):
            if self._next_is("["):
                self._skip("[")
                table = self._key(())
                self._skip("]")
            else:
                self._pair(table)
            self._take(_BLANK)
        return self._found

    def _pair(self, table: Path) -> None:
        path = self._key(table)
        self._skip("=")
        self._value(path)

    def _key(self, table: Path) -> Path:
        """A dotted key below `table`; each part of it is noted with this line."""
        path = table
        while True:
            self._take(_SPACE)
            quoted = self._next_is('"') or self._next_is("'")
            word = self._string() if quoted else self._take(_BARE)
            path = (*path, tomllib.loads(f"k = {word}")["k"] if quoted else word)
            self._found.setdefault(path, self._line)
            self._take(_SPACE)
            if not self._next_is("."):
                return path
            self._skip(".")

    def _value(self, path: Path) -> None:
        self._take(_SPACE)
        if self._next_is("{"):
            self._enclosed("{", "}", path)
        elif self._next_is("["):
            self._enclosed("[", "]", path)
        elif self._next_is('"') or self._next_is("'"):
            self._string()
        else:
            self._take(_PLAIN)

    def _enclosed(self, opening: str, closing: str, path: Path) -> None:
        self._at += 1
        self._take(_BLANK)
        while self._at < len(self._text) and not self._next_is(closing):
            if opening == "{":
                self._pair(path)
            else:
                self._value(path)
            self._take(_BLANK)
            if self._next_is(","):
                self._at += 1
                self._take(_BLANK)
        self._at += 1

    def _string(self) -> str:
        for form in _STRINGS:
            if form.match(self._text, self._at):
                return self._take(form)
        raise ValueError(f"no string at line {self._line}")

    def _skip(self, sign: str) -> None:
        while self._next_is(sign):
            self._at += 1

    def _next_is(self, sign: str) -> bool:
        return self._text.startswith(sign, self._at)

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        word = match.group() if match else ""
        self._at += len(word)
        self._line += word.count("\n")
        return word
