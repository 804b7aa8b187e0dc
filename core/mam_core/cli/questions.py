"""A question to the person at the terminal: asked on stderr, answered by one line on stdin."""

from __future__ import annotations

import sys
import termios
from collections.abc import Callable

from mam_core.errors import MamError
from mam_core.safe_text import safe

_YES = ("y", "yes")
_NO = ("", "n", "no")


def can_ask() -> bool:
    """There is a person: who pipes something in, or has stderr elsewhere, sees no question."""
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)


def ask(question: str) -> bool:
    """Yes or no; only Enter is no. Raises EOFError when nobody answers any more."""
    while True:
        answer = _answer(f"{question} [y/N]").lower()
        if answer in _YES or answer in _NO:
            return answer in _YES


def ask_for(question: str, usual: str, check: Callable[[str], object]) -> str:
    """A word or a few; only Enter takes what is `usual`. What `check` refuses is asked again.

    Raises EOFError when nobody answers any more.
    """
    while True:
        answer = _answer(f"{question} [{usual}]") or usual
        try:
            check(answer)
        except MamError as problem:
            sys.stderr.write(f"mam: {safe(problem.message)}\n")
        else:
            return answer


def _answer(question: str) -> str:
    """What was typed before the question stood there was no answer to it, and is thrown away."""
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    sys.stderr.write(f"mam: {safe(question)} ")
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        sys.stderr.write("\n")
        raise EOFError
    return line.strip()
