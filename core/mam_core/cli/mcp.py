"""``mam mcp``: the registry as tools for an agent, on stdin and stdout."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from mam_core.cli.context import Context
from mam_core.cli.parser import words
from mam_core.cli.terminal import say
from mam_core.operations.mcp import serve
from mam_core.wiring import open_registry

_EPILOG = """\
For clients that speak the Model Context Protocol over stdio, for example:
  claude mcp add jobs -- mam --registry-dir /path/to/.mam/jobs mcp
Without --allow-write nothing can be changed. With it, the agent can also approve what other
agents ask for: give --tools register_job,list_jobs,… where it should not.
"""


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-write",
        action="store_true",
        help="also offer tools that register, answer, say, cancel and retry",
    )
    parser.add_argument(
        "--tools",
        action="append",
        default=[],
        metavar="NAME",
        help="offer only these (a,b or several times)",
    )
    parser.epilog = _EPILOG


def run(args: argparse.Namespace, context: Context) -> int:
    path, settings = context.registry_path, context.settings
    with _ours_alone() as outward:
        serve(
            lambda: open_registry(path, config=settings, allow_network=context.allow_network_fs),
            path,
            settings,
            (sys.stdin.buffer, outward),
            say,
            allow_write=args.allow_write,
            only=words(args.tools),
        )
    return 0


@contextmanager
def _ours_alone() -> Iterator[BinaryIO]:
    """Standard output, which from now on nobody else can write a line of their own into."""
    sys.stdout.flush()
    outward = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        yield outward
    finally:
        with suppress(OSError):  # closing writes the rest, and the client may have left
            outward.close()
