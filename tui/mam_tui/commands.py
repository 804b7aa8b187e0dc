"""The ``:`` line: every action by its name, and a few that take a word.

Read as text in, an `Order` of the operator out; nothing is done in here, so that
completion, history and mistakes can be tried without a screen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from mam_core.errors import MamError
from mam_tui.actions import ACTIONS
from mam_tui.columns import COLUMNS


class BadCommand(MamError):
    """A command that there is not."""

    title = "Command"


class Command(NamedTuple):
    """What was asked for: an action, or a verb with a word."""

    name: str
    word: str = ""


class Verb(NamedTuple):
    """A command that takes a word; `words` are those that complete it."""

    meaning: str
    words: Callable[[], Sequence[str]] = tuple
    needs_word: bool = True
    aliases: tuple[str, ...] = ()


#: Instead of columns: leave the choice to the width.
AUTOMATIC = "auto"


def _columns() -> Sequence[str]:
    return (*COLUMNS, AUTOMATIC)


def _views() -> Sequence[str]:
    """Known late: every view has this line."""
    from mam_tui.views import VIEWS

    return tuple(VIEWS)


VERBS = {
    "filter": Verb(
        "show only jobs that fit; without a word: all",
        needs_word=False,
        aliases=("f", "grep"),
    ),
    "sort": Verb("sort by a column; -COLUMN the other way", lambda: tuple(COLUMNS)),
    "columns": Verb("choose columns, in this order: a,b,c; auto: as the width allows", _columns),
    "bulk": Verb("register the jobs of a file, after a look at them"),
    "screenshot": Verb("the screen as an SVG file; without a word: here", needs_word=False),
    "report": Verb("a page about the chosen jobs, .html or .md", needs_word=False),
    "theme": Verb("choose the colours"),
    "job": Verb("go to a job by its id", aliases=("go",)),
    "view": Verb("go to a view; its name alone does that, too", _views),
    "at": Verb("look at the past: 14:05, -10m, 2026-11-17T14:05", lambda: ("-10m", "-1h", "now")),
}


@cache
def aliases() -> Mapping[str, str]:
    """Every further name, and what it stands for."""
    from mam_tui.views import VIEWS

    return {
        alias: name
        for known in (ACTIONS, VERBS, VIEWS)
        for name, one in known.items()
        for alias in one.aliases
    }


def parse(line: str) -> Command | None:
    """None for an empty line; raises `BadCommand` with one sentence."""
    name, _, word = line.strip().partition(" ")
    word = word.strip()
    if not name:
        return None
    name = aliases().get(name, name)
    if name in VERBS and (word or not VERBS[name].needs_word or name not in ACTIONS):
        if VERBS[name].needs_word and not word:
            raise BadCommand(f"{name} what? it means: {VERBS[name].meaning}")
        return Command(name, word)
    if name in ACTIONS or name in _views():
        if word:
            raise BadCommand(f"{name} takes no word")
        return Command(name) if name in ACTIONS else Command("view", name)
    fitting = [known for known in names() if known.startswith(name)]
    if len(fitting) == 1:
        return parse(f"{fitting[0]} {word}")
    hint = f"; did you mean {' or '.join(fitting[:3])}?" if fitting else ""
    raise BadCommand(f"there is no command {name[:40]!r}{hint}")


def names() -> list[str]:
    """All commands, for completion."""
    return sorted({*ACTIONS, *VERBS, *_views()})


def completions(line: str) -> list[str]:
    """What the line may become, whole."""
    name, space, word = line.lstrip().partition(" ")
    if not space:
        return [known for known in names() if known.startswith(name)]
    verb = VERBS.get(aliases().get(name, name))
    if verb is None:
        return []
    # Of several only the last is being written.
    start = max(word.rfind(","), word.rfind(" ")) + 1
    before, word = word[:start], word[start:]
    return [f"{name} {before}{known}" for known in verb.words() if known.startswith(word)]


class History:
    """The lines that were entered; up and down walk through them."""

    def __init__(self, most: int = 100) -> None:
        self._lines: list[str] = []
        self._most = most
        self._at = 0

    def add(self, line: str) -> None:
        if line and self._lines[-1:] != [line]:
            self._lines = [*self._lines, line][-self._most :]
        self._at = len(self._lines)

    def older(self) -> str | None:
        self._at = max(0, self._at - 1)
        return self._lines[self._at] if self._lines else None

    def newer(self) -> str:
        self._at = min(len(self._lines), self._at + 1)
        return self._lines[self._at] if self._at < len(self._lines) else ""
