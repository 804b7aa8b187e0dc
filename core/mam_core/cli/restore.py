"""``mam restore``: bring back the sessions that were there before a reboot."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.terminal import put, say
from mam_core.operations.restore import restore


def options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Sessions that live, and those that a person stopped, are left alone. Prints the names of "
        "those that are back."
    )


def run(args: argparse.Namespace, context: Context) -> int:
    outcomes = restore(
        context.registry_path,
        context.settings,
        say,
        allow_network=context.allow_network_fs,
    )
    if not outcomes:
        say("there are no sessions on record")
    put([one.name for one in outcomes if one.is_back])
    return 1 if any(one.is_trouble for one in outcomes) else 0
