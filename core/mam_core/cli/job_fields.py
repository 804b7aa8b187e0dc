"""The options that say what a job is, for `register` and `edit` alike.

Only what was really given is handed on, so that a setting or a default of the
registry can fill the rest.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mam_core.cli.parser import seconds, size
from mam_core.cli.usage import UsageError
from mam_core.errors import InvalidField
from mam_core.operations.given_files import first_line, open_file, unreadable
from mam_core.records import DEFAULT_IDLE_TIMEOUT_SEC, DEFAULT_TIMEOUT_SEC, MAX_PROMPT_BYTES

#: Options that are a key of the record under another name.
_RENAMED = {
    "timeout": "timeout_sec",
    "idle_timeout": "idle_timeout_sec",
    "artifact": "expected_artifacts",
    "label": "agent_session",
    "token": "auth_token",
}
_TYPED = {name: option for option, name in _RENAMED.items() if option != "label"}
_BROKER = ("host", "port", "tls", "username")
_MAX_PASSWORD_BYTES = 4096


def job_options(parser: argparse.ArgumentParser) -> None:
    """What can be said at registration and changed while the job is pending."""
    add = _Adder(parser)
    prompt = parser.add_mutually_exclusive_group()
    prompt.add_argument("--prompt", metavar="TEXT", default=argparse.SUPPRESS, help="what to do")
    prompt.add_argument(
        "--prompt-file",
        metavar="FILE",
        default=argparse.SUPPRESS,
        help="a file that says what to do; - for stdin",
    )
    add("--agent", metavar="AGENT", help="the agent that does it, for example claude-code")
    add(
        "--agent-session",
        "--label",
        dest="agent_session",
        metavar="LABEL",
        help="the session that may claim it, for example tmux:claude",
    )
    add("--model", metavar="NAME", help="the model that the agent uses")
    add(
        "--timeout",
        dest="timeout_sec",
        type=seconds,
        metavar="SECONDS",
        help=f"end it after this long (default: {DEFAULT_TIMEOUT_SEC}; 90s, 10m, 2h too)",
    )
    add(
        "--idle-timeout",
        dest="idle_timeout_sec",
        type=seconds,
        metavar="SECONDS",
        help=f"end it after so long without an event (default: {DEFAULT_IDLE_TIMEOUT_SEC})",
    )
    add("--workdir", metavar="DIR", help="where it works (default: here)")
    add(
        "--artifact",
        dest="expected_artifacts",
        action="append",
        metavar="FILE",
        help="a file that it must leave behind, relative to the workdir; may repeat",
    )
    add("--validate", metavar="COMMAND", help="a shell line that must succeed in the workdir")
    add("--after", action="append", metavar="ID", help="a job that must complete first; may repeat")
    add("--group", metavar="GROUP", help="the group whose slots it takes part in")
    add("--priority", type=int, metavar="N", help="higher is claimed first (default: 0)")
    add(
        "--max-attempts",
        type=int,
        metavar="N",
        help="how often it may fail before it is left alone (default: 1)",
    )
    add("--memory-max", type=size, metavar="SIZE", help="how much memory it may use, as in 8G")
    add("--max-cost", type=float, metavar="USD", help="end an attempt that costs more")
    add("--max-tokens", type=int, metavar="N", help="end an attempt that uses more")
    add(
        "--not-before",
        metavar="TIME",
        help="not claimed earlier: 2026-06-19T09:30:00Z or +10m; UTC without a zone",
    )


def identity_options(parser: argparse.ArgumentParser) -> None:
    """What is settled at registration and stays."""
    add = _Adder(parser)
    add("--key", metavar="KEY", help="while a job with this key is live, its id is the answer")
    add(
        "--token",
        dest="auth_token",
        action="store_true",
        help="give it a token, so that only signed events count",
    )
    add("--topic-prefix", metavar="TOPIC", help="where its events go (default: one of its own)")
    add("--broker-host", metavar="HOST", help="the broker of its events")
    add("--broker-port", type=int, metavar="PORT", help="the broker's port")
    add("--broker-tls", action="store_true", help="speak TLS to the broker")
    add("--broker-username", metavar="NAME", help="who we are to the broker")
    add(
        "--broker-password-file",
        metavar="FILE",
        help="its first line is the password, which no command line should show",
    )


def given_fields(args: argparse.Namespace) -> dict[str, Any]:
    """The record's keys that were given as options."""
    from mam_core.fields import SETTABLE

    given = vars(args)
    values = {name: given[name] for name in SETTABLE if name in given}
    if "prompt_file" in given:
        values["prompt"] = _read_prompt(given["prompt_file"])
    broker = {name: given[f"broker_{name}"] for name in _BROKER if f"broker_{name}" in given}
    if "broker_password_file" in given:
        broker["password"] = _read_password(given["broker_password_file"])
    if broker:
        values["broker"] = broker
    return values


def field_name(word: str) -> str:
    """The record's key for the name of an option."""
    name = word.replace("-", "_")
    return _RENAMED.get(name, name)


def flag_of(name: str) -> str:
    """The option for one of the record's keys."""
    return "--" + _TYPED.get(name, name).replace("_", "-")


@contextmanager
def named_as_typed(args: argparse.Namespace) -> Iterator[None]:
    """A refusal of a value that came as an option names the option, not the record's key."""
    try:
        yield
    except InvalidField as problem:
        name, _, words = problem.message.partition(": ")
        if name == "broker":
            part, _, words = words.partition(": ")
            name = f"broker_{part}"
        elif name == "prompt" and "prompt_file" in args:
            name = "prompt_file"
        if name not in args:
            raise
        raise InvalidField(f"{flag_of(name)}: {words}") from None


def settle_not_before(given: dict[str, Any], now: float) -> str | None:
    """Make the moment an absolute one; the answer is what to say about it, if it was given."""
    text = given.get("not_before")
    if text is None:
        return None
    from mam_core.clock import stamp
    from mam_core.fields import parse_moment

    try:
        moment = parse_moment(text, now)
        given["not_before"] = stamp(moment)
    except (ValueError, OverflowError) as problem:
        raise InvalidField(f"not_before: {problem}") from None
    if moment <= now:
        return f"warning: {given['not_before']} is already past, so nothing holds it back"
    return f"not claimed before {given['not_before']}"


def open_input(path: str) -> Any:
    """A file, or stdin for ``-``, to be read as bytes."""
    if path == "-":
        if sys.stdin is None:
            raise UsageError("stdin is closed")
        return sys.stdin.buffer
    return open_file(path)


def _read_prompt(path: str) -> str:
    # One byte more than the limit is enough for the check that refuses it.
    data = _read(path, MAX_PROMPT_BYTES + 1)
    if len(data) > MAX_PROMPT_BYTES:
        raise InvalidField(
            f"prompt: {path} has more than {MAX_PROMPT_BYTES} bytes, which is the limit (1 MiB)"
        )
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidField(f"prompt: {path} is not UTF-8") from None


def _read_password(path: str) -> str:
    data = _read(path, _MAX_PASSWORD_BYTES)
    try:
        return first_line(path, data)
    except InvalidField as problem:
        raise InvalidField(f"broker-password-file: {problem.message}") from None


def _read(path: str, limit: int) -> bytes:
    file = open_input(path)
    try:
        data: bytes = file.read(limit)
    except OSError as problem:
        raise unreadable(path, problem) from None
    finally:
        if path != "-":
            file.close()
    return data


class _Adder:
    """Adds options that leave no trace when they are not given."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parser = parser

    def __call__(self, *flags: str, **settings: Any) -> None:
        self._parser.add_argument(*flags, default=argparse.SUPPRESS, **settings)
