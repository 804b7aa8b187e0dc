"""``mam heartbeat``: a sign of life from a script that runs a job itself."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option, one_job, one_job_option, seconds
from mam_core.cli.terminal import put, put_json
from mam_core.operations.heartbeat import DEFAULT_LEASE_SEC, heartbeat


def options(parser: argparse.ArgumentParser) -> None:
    one_job_option(parser)
    parser.add_argument(
        "--ttl",
        type=seconds,
        metavar="SECONDS",
        help=f"how long the lease lasts without another (default: {DEFAULT_LEASE_SEC} or lease_sec "
        "of the settings)",
    )
    parser.add_argument(
        "--attempt", type=int, metavar="N", help="refuse if this is no longer the attempt"
    )
    parser.add_argument("--owner", metavar="NAME", help="who holds it (default: you, on this host)")
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    job_id = one_job(args)
    ttl_sec = args.ttl or _lease_sec(context)
    job = heartbeat(
        context.registry, job_id, ttl_sec, owner=args.owner or None, attempt=args.attempt
    )
    if args.json:
        put_json(
            {
                "job_id": job.job_id,
                "attempt": job.attempt,
                "cancel_requested": job.is_cancelling,
                "lease": job.lease.to_dict() if job.lease else None,
            }
        )
    elif job.is_cancelling:
        put(["cancel requested"])  # nothing else is ever printed, so a script can ask for -n
    return 0


def _lease_sec(context: Context) -> float:
    said = context.settings.values.get(("defaults", "lease_sec"))
    return float(said.value) if said else DEFAULT_LEASE_SEC
