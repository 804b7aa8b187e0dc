"""``mam work``: claim the jobs of a session and run them, one after the other."""

from __future__ import annotations

import argparse
import atexit
import logging
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from types import FrameType

from mam_core.cli.context import Context
from mam_core.cli.parser import label_option, words
from mam_core.cli.terminal import say
from mam_core.cli.usage import UsageError
from mam_core.operations.in_session import own_pane, present, stand_in_place
from mam_core.operations.live_work import LivePlace, live_place
from mam_core.operations.work import Screen, Stops, Until, work
from mam_core.worktrees import relocation_to

_MAX_SLOTS = 256

#: tmux throws away what it has not read of a pane yet when it learns of its death first (one of 150
#: that speak and die at once, also with a pipe on the pane: the kernel is late, too).
_HEARD_SEC = 0.3


def options(parser: argparse.ArgumentParser) -> None:
    label_option(parser, "the session whose jobs are run, for example tmux:claude")
    parser.add_argument(
        "--agents",
        action="append",
        default=[],
        metavar="AGENT",
        help="serve only these profiles (a,b or several times); `shell` must be named",
    )
    parser.add_argument("--slots", type=int, default=1, metavar="N", help="jobs at once (1)")
    parser.add_argument(
        "--worktree", metavar="DIR", help="run the jobs of its repository in this git worktree"
    )
    parser.add_argument(
        "--session", metavar="NAME", help="be the worker of this session, as `mam spawn` starts it"
    )
    ending = parser.add_mutually_exclusive_group()
    ending.add_argument("--once", action="store_true", help="end after one job, or when none waits")
    ending.add_argument(
        "--drain", action="store_true", help="end when no job is left to claim or to retry"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    try:
        return _run(args, context)
    except BaseException:
        if args.session:  # whoever started it asks its pane for the reason
            atexit.register(time.sleep, _HEARD_SEC)
        raise


def _run(args: argparse.Namespace, context: Context) -> int:
    if not 1 <= args.slots <= _MAX_SLOTS:
        raise UsageError(f"--slots must be between 1 and {_MAX_SLOTS}")
    registry_path, settings = context.registry_path, context.settings
    relocation = relocation_to(args.worktree) if args.worktree else None
    if args.session:
        stand_in_place(registry_path, args.session)
    until = Until.ONCE if args.once else Until.DRAINED if args.drain else Until.STOPPED
    agents = words(args.agents)
    live = live_place(registry_path, settings, args.agent_session, agents, args.slots)
    screen = Screen(live.aside if live else None)
    folder = live.folder if live else nullcontext()
    with folder, asked_to_end(screen, live) as stops, warnings_on(screen, live):
        worker = work(
            registry_path,
            settings,
            args.agent_session,
            stops,
            agents=agents,
            slots=args.slots,
            until=until,
            screen=screen,
            config_path=context.config,
            allow_network=context.allow_network_fs,
            relocation=relocation,
            live=live,
            beside=present(registry_path, args.session) if args.session else None,
            pane=own_pane() if args.session else None,
        )
    made = "1 attempt" if worker.ran == 1 else f"{worker.ran} attempts"
    say(f"{made}, {worker.failed} not completed")
    return 0


@contextmanager
def asked_to_end(screen: Screen, live: LivePlace | None = None) -> Iterator[Stops]:
    """^C: finish what runs; again, or SIGTERM: hand it back. Noted, not raised.

    SIGUSR1, which `mam stop` sends, is the first wish as often as it comes.
    """
    stops = Stops()

    def note(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGUSR1 and not stops.may_claim():
            return
        if number in (signal.SIGINT, signal.SIGUSR1) and stops.may_claim():
            stops.finish()
            if live is None:  # else an agent may be on the screen
                screen.later(partial(say, "ending after what runs now; ^C again hands it back"))
        else:
            stops.hand_back()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield stops
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def warnings_on(screen: Screen, live: LivePlace | None = None) -> Iterator[None]:
    """A terminal that is stopped must not stop whoever has something to warn of.

    Nor does a warning belong on the screen of an agent.
    """
    logger = logging.getLogger("mam")
    before = logger.handlers[:]

    class Later(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if live is not None:
                screen.say("warning", record.getMessage())
                return
            for handler in before:
                screen.later(partial(handler.handle, record))

    if before:
        logger.handlers[:] = [Later()]
    try:
        yield
    finally:
        if before:
            logger.handlers[:] = before
