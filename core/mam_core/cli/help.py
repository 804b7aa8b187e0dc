"""``mam help``: a page of the manual, paged where it is longer than the screen."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress

from mam_core.cli.main import VERBS
from mam_core.cli.terminal import is_terminal, put, say, terminal_width, wants_colour
from mam_core.manual.rendering import rendered
from mam_core.manual.topics import NoTopic, topic_called, topics

LIST = "topics"


def show(name: str) -> int:
    """A page by its name; ``topics`` is the list of them."""
    if name == LIST:
        known = topics()
        if not known:
            raise NoTopic("mam was installed without its manual")
        wide = max(len(_typed(one.name)) for one in known)
        put(f"{_typed(one.name):<{wide}}  {one.title}" for one in known)
        return 0
    page = topic_called(name)
    _page(list(rendered(page.text(), terminal_width() - 1, colour=wants_colour())))
    return 0


def _typed(name: str) -> str:
    """A page that is called like a verb is asked for by its file's name."""
    return f"{name}.md" if name in VERBS else name


def _page(lines: Sequence[str]) -> None:
    """In the pager that the person has, if there is a person and more than a screenful."""
    if is_terminal() and sys.stdin.isatty() and len(lines) >= os.get_terminal_size(1).lines:
        words = os.environ.get("PAGER", "") or "less"
        with suppress(ValueError):
            if _through(shlex.split(words), lines):
                return
            say(f"the pager {words} cannot be started")
    put(lines)


def _through(pager: Sequence[str], lines: Sequence[str]) -> bool:
    import subprocess

    environ = {"LESS": "FRX", "LESSCHARSET": "utf-8", **os.environ}
    try:
        process = subprocess.Popen(
            pager, stdin=subprocess.PIPE, env=environ, encoding="utf-8", errors="backslashreplace"
        )
    except (OSError, IndexError):
        return False
    with suppress(BrokenPipeError):
        process.communicate("\n".join(lines) + "\n")
    while True:  # ^C is the pager's, which knows what to do with it
        with suppress(KeyboardInterrupt):
            process.wait()
            return True
