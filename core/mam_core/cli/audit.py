"""``mam audit``: what runs, waits and failed, what is out of order, and what to do next."""

from __future__ import annotations

import argparse
import shutil

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option
from mam_core.cli.strange_names import find_strange_filter, warn_of
from mam_core.cli.terminal import is_terminal, put, put_json
from mam_core.operations.audit_report import Scope, audit
from mam_core.operations.audit_text import audit_lines
from mam_core.operations.doctor import Ground


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
    if not any(count.jobs for count in report.by_status.values()):
        warn_of(find_strange_filter(context, group=args.group, label=args.agent_session))
    if args.json:
        put_json(report.to_dict())
    else:
        put(audit_lines(report, shutil.get_terminal_size().columns if is_terminal() else None))
    return 0 if report.is_well else 1
