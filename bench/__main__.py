"""``python -m bench``: measure, print, and judge nothing.

The exit code is 0 however slow we are. It is 1 when something was wrong: a job
handed out twice, an answer that differs, a command that failed.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence

from bench import (
    console,
    dispatch,
    feed,
    past,
    publishing,
    registry,
    sessions,
    stores,
    views,
    work,
)
from bench.effort import FULL, QUICK, SMOKE
from bench.figures import Figure, Wrong
from bench.ground import Ground
from bench.machine import describe, settle_in, temp_home
from bench.report import about, as_json, table, write_readme
from mam_core.errors import MamError

SUITES: Mapping[str, Mapping[str, Callable[[Ground], list[Figure]]]] = {
    "registry": registry.FIGURES,
    "stores": stores.FIGURES,
    "publishing": publishing.FIGURES,
    "feed": feed.FIGURES,
    "work": work.FIGURES,
    "dispatch": dispatch.FIGURES,
    "sessions": sessions.FIGURES,
    "past": past.FIGURES,
    "console": console.FIGURES,
    "views": views.FIGURES,
}


def main(argv: Sequence[str]) -> int:
    args = _parse(argv)
    figures = SUITES[args.suite]
    began = time.monotonic()
    measured: list[Figure] = []
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mam-bench-", dir=args.dir or temp_home()) as folder:
        machine = describe(folder)
        settle_in(folder)
        ground = Ground(folder, SMOKE if args.smoke else QUICK if args.quick else FULL)
        for name in args.only or figures:
            _say(f"{time.monotonic() - began:4.0f} s  {name}")
            try:
                measured += figures[name](ground)
            except (Wrong, MamError, OSError, LookupError, sqlite3.Error) as problem:
                wrong.append(f"{name}: {problem}")
        _say(f"{time.monotonic() - began:4.0f} s  removing the files")
    took = round(time.monotonic() - began)
    if args.json:
        print(as_json(measured, wrong, machine, suite=args.suite, quick=args.quick, seconds=took))
    else:
        print(f"{about(machine)}; {took} s\n\n{table(measured)}")
    for words in wrong:
        _say(f"WRONG  {words}")
    if args.write_readme and not wrong:
        write_readme(measured, machine)
    return 1 if wrong else 0


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("suite", nargs="?", choices=list(SUITES), default="registry")
    parser.add_argument("--json", action="store_true", help="for machines")
    less = parser.add_mutually_exclusive_group()
    less.add_argument("--quick", action="store_true", help="a look, in about a minute")
    less.add_argument("--smoke", action="store_true", help="whether all runs; no figure means much")
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="one of "
        + "; ".join(f"{', '.join(figures)} ({name})" for name, figures in SUITES.items())
        + " (several times for several)",
    )
    parser.add_argument("--dir", help="where to make the temp folder (default: on our own disk)")
    parser.add_argument(
        "--write-readme", action="store_true", help="put the results into bench/README.md"
    )
    args = parser.parse_args(argv)
    for name in args.only or ():
        if name not in SUITES[args.suite]:
            parser.error(f"{name!r} is no figure: {', '.join(SUITES[args.suite])}")
    if args.write_readme and args.suite != "registry":
        parser.error("the README keeps the results of the registry")
    if args.write_readme and (args.quick or args.smoke or args.only):
        parser.error(
            "the README keeps whole runs: --write-readme takes no --quick, --smoke or --only"
        )
    return args


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
