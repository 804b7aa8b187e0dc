"""``mam`` alone, or ``mam console``: the operator's screen.

The console is a package of its own, which a worker host need not have; so it is
found by name and only when it is asked for.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import NoReturn

from mam_core.cli.context import Context
from mam_core.cli.terminal import say
from mam_core.cli.usage import UsageError
from mam_core.errors import MamError
from mam_core.own_python import own_python

_PACKAGE = "mam_tui.entry"


class NoConsole(MamError):
    """The console cannot be opened here."""

    title = "Console"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--view", metavar="NAME", help="begin with this view (board)")
    parser.add_argument("--filter", metavar="TEXT", default="", help="begin with this filter")
    parser.add_argument("--read-only", action="store_true", help="look, and change nothing")
    parser.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")


def check_place() -> None:
    """Raises what keeps a console from being opened here, before anything is begun."""
    for name, stream in (("input", sys.stdin), ("output", sys.stdout), ("error", sys.stderr)):
        if stream is None or not stream.isatty():
            raise UsageError(
                f"the console needs a terminal, and standard {name} is none: use `mam list`, "
                "`mam watch` or another verb (see `mam --help`)"
            )
    if os.environ.get("TERM", "dumb") == "dumb":
        raise UsageError("the console needs a terminal that can move its cursor: TERM is dumb")
    if find_spec("mam_tui") is None:
        raise NoConsole("the console is not installed here: this host has the worker's part alone")
    if find_spec("textual") is None:
        raise NoConsole(
            "the console needs the package textual, which is not installed here; "
            "every verb works without it (see `mam --help`)"
        )


def run(args: argparse.Namespace, context: Context) -> int:
    check_place()
    left = import_module(_PACKAGE).run(
        context.registry_path,
        context.settings,
        config_path=context.config,
        allow_network=context.allow_network_fs,
        view=args.view,
        filter_text=args.filter,
        read_only=args.read_only,
        mouse=not args.no_mouse,
    )
    if not left.is_whole:
        words = "gave up waiting for an action that was still under way"
        say(f"{words}; `mam doctor` finds what it left")
    if left.then:
        _become(left.then)
    return int(left.exit_code)


def _become(verb: str) -> NoReturn:
    """This process goes on as another verb, in the terminal that the console has given back."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [*own_python(), "-m", "mam_core", verb])
