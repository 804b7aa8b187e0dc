"""``mam replay``: the registry as it was at a moment, from the audit log alone."""

from __future__ import annotations

import argparse
import re

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option
from mam_core.cli.terminal import put, put_json, say, table_width
from mam_core.cli.usage import UsageError
from mam_core.clock import fine_stamp
from mam_core.operations.replay import Replay, Then, moment, replay, span
from mam_core.records import Status
from mam_core.table import Column, age, render

#: A label as long as a path leaves room for what the job is about.
_MOST_OF_A_NAME = 24


def options(parser: argparse.ArgumentParser) -> None:
    # Or `--at -10m` would be read as an option of its own.
    parser._negative_number_matcher = re.compile(r"-\d")  # private, and argparse has no other way
    parser.add_argument(
        "--at", metavar="TIME", help="the moment: 2026-06-19T09:30:00Z, -10m for ten minutes ago"
    )
    parser.add_argument(
        "--span", action="store_true", help="print from when to when there is something to see"
    )
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    if args.span == (args.at is not None):
        raise UsageError("say a moment by --at TIME, or --span for what there is")
    if args.span:
        return _span(context, as_json=args.json)
    registry = context.registry
    found = replay(registry, moment(args.at, registry.clock.now()))
    if found.damaged:
        say(f"warning: {found.damaged} lines of the audit log could not be read")
    if args.json:
        put_json(_data(found))
        return 0
    counts = ", ".join(f"{count} {status}" for status, count in found.counts.items() if count)
    say(f"as it was at {fine_stamp(found.at)}: {counts or 'no jobs'}")
    put(render(_columns(found), table_width()))
    return 0


def _span(context: Context, *, as_json: bool) -> int:
    found = span(context.registry)
    if as_json:
        put_json(found.to_dict() if found else {"from": None, "to": None, "jobs": 0})
    elif found is None:
        say("nothing was ever logged here")
    else:
        told = found.to_dict()
        put([f"{told['from']} to {told['to']}, {found.jobs} jobs"])
    return 0


def _data(found: Replay) -> dict[str, object]:
    return {
        "at": fine_stamp(found.at),
        "counts": {str(status): count for status, count in found.counts.items()},
        "jobs": [job.to_dict(found.at, found.holds.get(job.job_id, ())) for job in found.jobs],
        "sessions": [session.to_dict() for session in found.sessions],
        "damaged_lines": found.damaged,
    }


def _columns(found: Replay) -> list[Column]:
    jobs, at = found.jobs, found.at
    stands = [job.stand for job in jobs]
    contracts = [stand.contract for stand in stands]
    columns = [
        Column("JOB ID", [job.job_id for job in jobs]),
        Column("STATUS", [_state(job, found) for job in jobs]),
        Column("AGENT", [one.agent for one in contracts], flexible=True, most=_MOST_OF_A_NAME),
        Column(
            "SESSION", [one.agent_session for one in contracts], flexible=True, most=_MOST_OF_A_NAME
        ),
    ]
    if any(one.group for one in contracts):
        groups = [one.group or "" for one in contracts]
        columns.append(Column("GROUP", groups, flexible=True, most=_MOST_OF_A_NAME, leaves=2))
    columns += [
        Column("TRY", [str(stand.attempt) if stand.attempt else "" for stand in stands]),
        Column("LAST EVENT", [_last(job, at) for job in jobs], leaves=3),
        Column("PROMPT", [one.head for one in contracts], flexible=True, least=20),
    ]
    return columns


def _state(job: Then, found: Replay) -> str:
    if job.job_id in found.holds:
        return "blocked"
    if job.status is not Status.RUNNING:
        return str(job.status)
    word = job.shown(found.at).state.word
    if word == "cancelling":
        return word
    return "running" if word in ("starting", "working") else f"running · {word}"


def _last(job: Then, at: float) -> str:
    if job.word is None:
        return ""
    return f"{job.word.name} #{job.word.seq}, {age(at - job.word.at)} ago"
