"""Where the command line meets the outside: stdout for data, stderr for people.

Everything that may hold foreign text passes `safe_text` on its way.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any

from mam_core.errors import MamError
from mam_core.safe_text import escape_json, safe, safe_json

#: Progress is shown after this long, then as often as this: on a terminal, and in a log.
_QUIET_SEC = 1.0
_REDRAW_SEC = 0.2
_REPEAT_SEC = 5.0
#: So many ids are named in a sentence.
_NAMED = 20

_program = "mam"
_stdout_is_closed = False


class IdsLost(MamError):
    """Something was done, and nobody could be told to what."""

    title = "Output"


def go_by(name: str) -> None:
    """The name that messages go by: the drop-in scripts have theirs."""
    global _program
    _program = name


def program() -> str:
    return _program


def is_watched() -> bool:
    """A person reads what is said, and no program."""
    return sys.stderr is not None and sys.stderr.isatty()


def say(message: str) -> None:
    """One line on stderr."""
    _to_stderr(f"{_program}: {safe(message)}\n")


def _to_stderr(text: str) -> None:
    """A stderr that is closed or gone stops nobody, least of all in the middle of a change."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()


def put(lines: Iterable[str]) -> None:
    """Lines for stdout, in one write."""
    text = "\n".join(lines)
    if text:
        sys.stdout.write(text + "\n")


def put_ids(job_ids: Sequence[str], done: str) -> None:
    """Ids of what was just `done`, written out at once.

    Whoever asked cannot guess them, so that not even a closed pipe is a reason to be quiet.
    """
    if not job_ids:
        return
    try:
        put(job_ids)
        flush_stdout()
        cause = "it is closed" if _stdout_is_closed else ""
    except OSError as problem:
        abandon_stdout()
        cause = (problem.strerror or str(problem)).lower()
    if not cause:
        return
    if len(job_ids) == 1:
        words = f"job {job_ids[0]} was {done}, but its id could not be written to stdout"
    else:
        named = ", ".join(job_ids[:_NAMED]) + (" …" if job_ids[_NAMED:] else "")
        words = f"{len(job_ids)} jobs were {done} ({named}), but their ids could not be written"
        words += " to stdout"
    raise IdsLost(f"{words}: {cause}")


def put_json(value: Any, indent: int | None = 2) -> None:
    sys.stdout.write(safe_json(value, indent) + "\n")


def put_json_rows(rows: Iterable[Any]) -> None:
    """A JSON array with a row a line, written as the rows come.

    Only a terminal needs it harmless, and a look at every character of 10,000 records is not free.
    """
    import json

    stdout = sys.stdout
    encode = safe_json if is_terminal() else partial(json.dumps, ensure_ascii=False)
    opening = "[\n"
    for row in rows:
        stdout.write(opening + encode(row))
        opening = ",\n"
    stdout.write("[]\n" if opening == "[\n" else "\n]\n")


def put_stored_rows(stored: Iterable[bytes]) -> None:
    """A JSON array of objects as they are stored."""
    put_stored_json(_as_array(stored))


def _as_array(stored: Iterable[bytes]) -> Iterator[bytes]:
    opening = b"[\n"
    for data in stored:
        yield opening + data.rstrip()
        opening = b",\n"
    yield b"[]\n" if opening == b"[\n" else b"\n]\n"


def put_stored_json(stored: Iterable[bytes]) -> None:
    """JSON as it is stored: byte by byte for a program, with harmless escapes on a terminal."""
    stdout = sys.stdout
    if is_terminal():
        for data in stored:
            stdout.write(escape_json(data.decode("utf-8", "backslashreplace")))
        return
    stdout.flush()
    for data in stored:
        stdout.buffer.write(data)


def is_terminal() -> bool:
    return sys.stdout.isatty()


def terminal_width() -> int:
    """$COLUMNS, else what the terminal says, else 80."""
    try:
        width = int(os.environ.get("COLUMNS", "")) or _measured_width()
    except ValueError:
        width = _measured_width()
    return width if width > 0 else 80


def table_width() -> int | None:
    """As wide as the terminal; a program gets its rows uncut, unless $COLUMNS says otherwise."""
    return terminal_width() if is_terminal() or os.environ.get("COLUMNS") else None


@cache
def _measured_width() -> int:
    try:
        return os.get_terminal_size(1).columns
    except OSError:
        return 80


def wants_colour() -> bool:
    """Colour is for a terminal whose owner has not declined it (no-color.org)."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def prepare_streams() -> None:
    """Make sure of the three streams before anything is opened.

    A closed one would give its number to the next file that we open, and what
    is meant for the terminal would land in it. A stdout that cannot write a
    character shows its number instead of failing; for a lone surrogate that is
    also its escape in JSON.
    """
    global _stdout_is_closed
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        _stdout_is_closed = True
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 — open until the end
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def flush_stdout() -> None:
    sys.stdout.flush()


def abandon_stdout() -> None:
    """Nobody reads it any more: what is still buffered goes nowhere, also when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


class Progress:
    """How far a long command is, on stderr; silent as long as nobody would ask."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._on_terminal = is_watched()
        self._next = time.monotonic() + _QUIET_SEC
        self._drawn = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        words = f"{self._doing}: {100 * done // max(total, 1)} %"
        if self._on_terminal:
            self._next = now + _REDRAW_SEC
            _to_stderr(f"\rmam: {words} ")
            self._drawn = True
        else:
            self._next = now + _REPEAT_SEC
            say(words)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._drawn:
            _to_stderr("\r\x1b[K")


def hear_warnings() -> None:
    """Let warnings of the logger "mam" come out as lines of ours.

    `logging` takes longer to import than a claim takes to make, so it is not
    imported for this: the handler is added when somebody who has something to
    say imports it. The list of finders is replaced and never changed: another thread may
    be going through it, and would pass over the finder that knows its module.
    """
    logging = sys.modules.get("logging")
    if logging is not None:
        _add_handler(logging)
    elif not any(isinstance(finder, _LoggingWatch) for finder in sys.meta_path):
        sys.meta_path = [_LoggingWatch(), *sys.meta_path]


class _LoggingWatch:
    """A finder that finds nothing but notices the import of `logging`."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if name != "logging":
            return None
        import importlib.util

        sys.meta_path = [finder for finder in sys.meta_path if finder is not self]
        spec = importlib.util.find_spec(name)
        loader: Any = spec.loader if spec else None
        run = loader.exec_module

        def run_and_add(module: Any) -> None:
            run(module)
            _add_handler(module)

        loader.exec_module = run_and_add
        return spec


def _add_handler(logging: Any) -> None:
    logger = logging.getLogger("mam")
    if logger.handlers:
        return

    class Handler(logging.Handler):  # type: ignore[misc]  # its base is known only now
        def emit(self, record: Any) -> None:
            from mam_core.cli.repeats import kind_of, say_of

            message = record.getMessage()
            say_of(kind_of(message), f"warning: {message}")

    logger.addHandler(Handler(logging.WARNING))
