"""``mam attention``: what needs a person, the most urgent first."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option
from mam_core.cli.terminal import put, put_json, say, table_width
from mam_core.operations.attention import Need, attention
from mam_core.operations.evidence import services_of
from mam_core.safe_text import safe
from mam_core.table import Column, age, render


def options(parser: argparse.ArgumentParser) -> None:
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    registry = context.registry
    services = services_of(registry, context.registry_path, context.settings)
    found = attention(registry, services=services)
    now = registry.clock.now()
    if args.json:
        put_json([need.to_dict(now) for need in found])
    elif found:
        put(_table(found, now))
        put(_helps(found))
    else:
        say("nothing needs a person")
    return 0


def _table(found: Sequence[Need], now: float) -> Iterator[str]:
    return render(
        [
            Column("NEEDS", [str(need.kind) for need in found]),
            Column("AGE", ["" if n.since is None else age(now - n.since) for n in found]),
            Column("ID", [need.job_id for need in found]),
            Column("SESSION", [need.session for need in found], flexible=True, leaves=2),
            Column("TRY", [str(need.attempt) for need in found], leaves=1),
            Column("WORDS", [need.words for need in found], flexible=True, least=20),
        ],
        table_width(),
    )


def _helps(found: Sequence[Need]) -> Iterator[str]:
    """What helps jobs that nobody will claim, as something to copy."""
    for need in found:
        for help in need.help:
            yield safe(f"{need.job_id}: {help.by_command}")
