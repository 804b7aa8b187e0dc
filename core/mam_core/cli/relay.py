"""``mam relay``: bring queued events to their brokers until interrupted; ``--once``: and end."""

from __future__ import annotations

import argparse
from contextlib import ExitStack

from mam_core.cli.context import Context
from mam_core.cli.interrupts import Wish, until_interrupted
from mam_core.cli.terminal import say
from mam_core.operations.broker import keep_broker
from mam_core.operations.on_duty import on_duty
from mam_core.operations.public_brokers import warning_of
from mam_core.operations.relay import PATIENCE_SEC, drain, waits_for_embedded


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--once",
        action="store_true",
        help=f"end when nothing is queued; 1 when no broker takes anything for {PATIENCE_SEC:g} s",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    if warning := warning_of(None, context.settings, context.registry_path):
        say(f"warning: {warning}")
    with until_interrupted() as wish:
        return _once(context, wish) if args.once else _serve(context, wish)


def _once(context: Context, wish: Wish) -> int:
    registry, path, settings = context.registry, context.registry_path, context.settings
    with ExitStack() as stack:
        if waits_for_embedded(registry, path):
            stack.enter_context(keep_broker(path, settings))
        left = drain(registry, path, settings, wish, patience_sec=PATIENCE_SEC)
    if left is None:
        relay = registry.store.outbox.relay()
        say(f"another relay is at work: {relay.who}" if relay else "another relay is at work")
        return 0
    if not left.posts:
        return 0
    why = f": {left.trouble}" if left.trouble else ""
    what = "event is" if left.posts == 1 else "events are"
    say(f"{left.posts} {what} still queued{why}")
    return 1


def _serve(context: Context, wish: Wish) -> int:
    """With the embedded broker, where that is the one that new jobs get."""
    with on_duty(
        context.registry_path,
        context.settings,
        config_path=context.config,
        allow_network=context.allow_network_fs,
    ):
        say(f"the events of {context.registry_path} are brought to their brokers")
        wish.wait()
    return 0
