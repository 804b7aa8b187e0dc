"""``mam attach``: show a session in this terminal."""

from __future__ import annotations

import argparse
import os
import sys

from mam_core.cli.context import Context
from mam_core.cli.terminal import flush_stdout, say
from mam_core.cli.usage import UsageError
from mam_core.operations.attach import attachment


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="SESSION", help="one that `mam sessions` shows")
    parser.epilog = "ctrl-b d leaves it running."


def run(args: argparse.Namespace, context: Context) -> int:
    found = attachment(context.registry_path, context.settings, args.name, os.environ)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("attach needs a terminal: this is none (`mam sessions` works without)")
    if found.is_nested:
        say("this is tmux inside tmux: press its prefix key twice to reach the inner one")
    flush_stdout()
    os.execvp(found.argv[0], found.argv)
