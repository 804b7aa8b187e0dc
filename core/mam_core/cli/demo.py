"""``mam demo``: the console on a throw-away registry with simulated agents."""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from mam_core.cli.context import Context
from mam_core.cli.interrupts import Wish, until_interrupted
from mam_core.cli.terminal import flush_stdout, put, say
from mam_core.cli.usage import UsageError
from mam_core.demo.script import MOST_JOBS
from mam_core.operations.demo import Staged, demo, seen
from mam_core.pace import paced
from mam_core.safe_text import one_line
from mam_core.wiring import open_registry

_LOOK_SEC = 0.5


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="stop after N jobs (default: no limit)"
    )
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="end by itself after this time (default: never)"
    )
    parser.add_argument(
        "--no-console", action="store_true", help="print a line for each change instead"
    )
    parser.epilog = (
        "Every agent in it is simulated: no model is asked. It has a registry, a broker and a tmux "
        "server of its own, and nothing of it stays when it ends. Jobs keep coming until you "
        "leave. A question that you do not answer is answered after a minute, and the oldest jobs "
        "are removed."
    )


def run(args: argparse.Namespace, context: Context) -> int:
    if args.jobs is not None and not 1 <= args.jobs <= MOST_JOBS:
        raise UsageError(f"--jobs must be between 1 and {MOST_JOBS}")
    if args.seconds is not None and not 0 < args.seconds <= 86400:
        raise UsageError("--seconds must be between 0 and 86400")
    if context.registry_dir or context.config:
        raise UsageError("mam demo has a registry and settings of its own: name none")
    if args.no_console:
        return _printed(args)
    return _opened(args)


def _printed(args: argparse.Namespace) -> int:
    """Lines for a log or a test; ^C ends it as well as the time does."""
    with until_interrupted() as wish, demo(args.jobs, say) as staged:
        say(f"every agent here is simulated; the registry is {staged.registry_path}")
        until = None if args.seconds is None else time.monotonic() + args.seconds
        known: dict[str, str] = {}
        with open_registry(staged.registry_path, config=staged.config) as registry:
            while until is None or time.monotonic() < until:
                for row in seen(registry):
                    if known.get(row.job_id) != row.words:
                        known[row.job_id] = row.words
                        put([f"{row.job_id}  {row.words:<28}  {one_line(row.task)}"])
                flush_stdout()
                if wish.wait(paced(_LOOK_SEC)):
                    break
        say("the demonstration ends, and takes everything with it")
    return 0 if wish.is_keyboard() else wish.exit_code()


def _opened(args: argparse.Namespace) -> int:
    from mam_core.cli import console

    console.check_place()
    said: list[str] = []  # the screen is the console's until it closes
    wish = Wish()
    try:
        with demo(args.jobs, said.append) as staged, _leaving(wish, args.seconds):
            code = _console(staged)
    except KeyboardInterrupt:
        code = wish.exit_code()
    finally:
        for words in said:
            say(words)
    return 0 if wish.signal == signal.SIGALRM else code


def _console(staged: Staged) -> int:
    from mam_core.cli import console

    parser = argparse.ArgumentParser()
    console.options(parser)
    return console.run(parser.parse_args([]), Context(staged.registry_path, staged.config_path))


@contextmanager
def _leaving(wish: Wish, seconds: float | None) -> Iterator[None]:
    """The end of the time is what ^C is to the console: it restores the screen and leaves, and we
    clear away. So is every signal that comes while there is no console yet to hear it."""

    def leave(number: int, frame: FrameType | None) -> None:
        wish.signal = wish.signal or number
        os.kill(os.getpid(), signal.SIGINT)

    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    before = {number: signal.signal(number, leave) for number in numbers}
    if seconds is not None:
        signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
