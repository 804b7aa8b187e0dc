"""``mam audit``: what runs, waits and failed, what is out of order, and what to do next."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator, Mapping

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option
from mam_core.cli.terminal import is_terminal, put, put_json
from mam_core.operations.audit_report import Report, Scope, audit
from mam_core.operations.doctor import Ground, Severity
from mam_core.safe_text import one_line
from mam_core.table import Column, render

_UNBOUNDED = 1_000_000
_WIDE = max(map(len, Severity))


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--group", metavar="GROUP", help="count the jobs of this group only")
    parser.add_argument(
        "--agent-session", "--label", metavar="LABEL", help="count the jobs of this label only"
    )
    json_option(parser)
    parser.epilog = (
        "Changes nothing. Exit code 0: nothing has failed and nothing is out of order; 1: jobs "
        "have failed, or something is out of order. That jobs run is no fault. What is looked for "
        "is looked for everywhere, also where only some jobs are counted."
    )


def run(args: argparse.Namespace, context: Context) -> int:
    report = audit(
        Ground(context.registry, context.registry_path, context.settings, context.allow_network_fs),
        Scope(args.group, args.agent_session),
    )
    if args.json:
        put_json(report.to_dict())
    else:
        put(lines(report, shutil.get_terminal_size().columns if is_terminal() else _UNBOUNDED))
    return 0 if report.is_well else 1


def lines(report: Report, width: int) -> Iterator[str]:
    """The whole report, for a person."""
    yield f"{report.at}  {one_line(report.node)}  {one_line(report.scope.words)}"
    for word, count in (
        ("running", report.running),
        ("queued", report.queued),
        ("failed", report.failed),
    ):
        why = f"  ({_counts(count.reasons)})" if word == "failed" and count.reasons else ""
        yield f"{word:<8} {len(count.jobs):>5}  {_counts(count.labels)}{why}".rstrip()
    if jobs := report.running.jobs:
        yield ""
        yield from render(
            [
                Column("RUNNING", [job.job_id for job in jobs]),
                Column("SESSION", [job.agent_session for job in jobs], flexible=True),
                Column("AGENT", [job.agent for job in jobs], flexible=True),
                Column("GROUP", [job.group or "-" for job in jobs], flexible=True),
                Column("SINCE", [job.started_at or "-" for job in jobs]),
                Column("NODE", [job.node or "-" for job in jobs], flexible=True),
            ],
            width,
        )
    if report.findings:
        yield ""
        for one in report.findings:
            yield f"{one.severity:<{_WIDE}}  {one_line(one.what)}: {one_line(one.words)}"
    yield ""
    yield f"advice: {report.advice}"


def _counts(found: Mapping[str, int]) -> str:
    return one_line(", ".join(f"{name} {count}" for name, count in found.items()))
