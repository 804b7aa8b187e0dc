"""``mam broker``: run the registry's own broker until interrupted; ``--status``: how it stands."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.interrupts import until_interrupted
from mam_core.cli.parser import json_option
from mam_core.cli.terminal import flush_stdout, put, put_json, say
from mam_core.operations.broker import BrokerStatus, keep_running, status
from mam_core.table import age

_EXIT_NOT_RUNNING = 1


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--status", action="store_true", help="tell whether it runs, and leave it as it is"
    )
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    place = context.place
    if place.notice:
        say(place.notice)
    if host := context.settings.broker.host:
        origin = context.settings.origin(("broker", "host"))
        say(f"{origin} sends the events of new jobs to {host}, not to this broker")
    if not args.status:
        return _serve(place.path, as_json=args.json)
    found = status(place.path)
    if args.json:
        put_json(found.to_dict())
    else:
        put(_lines(found))
    return 0 if found.running else _EXIT_NOT_RUNNING


def _serve(path: str, *, as_json: bool) -> int:
    """Until ^C or SIGTERM, which are the ways to end it and no errors."""
    with until_interrupted() as wish:
        with keep_running(path):
            found = status(path)
            say(f"the broker ({found.kind} {found.version}) listens on {found.host}:{found.port}")
            if as_json:
                put_json(found.to_dict(), None)
                flush_stdout()
            wish.wait()
        say("let go; the broker ends unless another command keeps it")
    return 0


def _lines(found: BrokerStatus) -> list[str]:
    if not found.running:
        return ["not running" + (f" (its port is {found.port})" if found.port else "")]
    return [
        f"running  {found.kind} {found.version}",
        f"address  {found.host}:{found.port}",
        f"pid      {found.pid}",
        f"uptime   {age(found.uptime_sec or 0)}",
    ]
