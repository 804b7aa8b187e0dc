"""``mam resume``: let claims go on that were paused."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.gate_options import gate, gate_options
from mam_core.cli.terminal import say
from mam_core.operations.resume import resume


def options(parser: argparse.ArgumentParser) -> None:
    gate_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    kind, name = gate(args)
    say(resume(context.registry, kind, name).message)
    return 0
