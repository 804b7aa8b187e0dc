"""``mam logs``: what happened to a job, or which jobs have a history."""

from __future__ import annotations

import argparse
from typing import Any

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option, many_jobs, one_job, one_job_option
from mam_core.cli.terminal import put, put_json_rows, put_stored_json, say, table_width
from mam_core.cli.usage import UsageError
from mam_core.clock import parse_stamp
from mam_core.operations.logs import history, logged_jobs, stored_history
from mam_core.safe_text import one_line, pad
from mam_core.table import Column, age, render

_EVENT_CELLS = 16

#: Told in a place of their own, or of no use to a reader.
_PLACED = frozenset({"n", "timestamp", "event", "job_id", "revision", "by", "attempt"})


def options(parser: argparse.ArgumentParser) -> None:
    one_job_option(parser)
    parser.add_argument("--tail", type=_count, metavar="N", help="only the last so many events")
    parser.add_argument(
        "--list", action="store_true", help="every job that has a history, with its status now"
    )
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    if args.list:
        if many_jobs(args, optional=True) or args.tail:
            raise UsageError("--list shows all jobs: it takes neither a job nor --tail")
        return _list(args, context)
    job_id = one_job(args)
    context.registry.notice_all([job_id])
    if args.json:
        put_stored_json(stored_history(context.registry, job_id, args.tail))
        return 0
    events = history(context.registry, job_id, args.tail)
    if not events:
        say(f"nothing is logged about job {job_id}")
    put(map(told, events))
    return 0


def told(event: dict[str, Any]) -> str:
    """One line of the timeline."""
    name = event.get("event")
    when = one_line(str(event.get("timestamp", "?")))
    attempt = event.get("attempt")
    which = f"#{attempt}" if attempt else ""
    by = f"by {event['by']}" if event.get("by") else ""
    words = _WORDS.get(str(name), _pairs)(event)
    parts = [part for part in (words, by) if part]
    line = f"{when:<24}  {pad(one_line(str(name)), _EVENT_CELLS)}  {one_line(which):<3}  "
    return (line + one_line(", ".join(parts))).rstrip()


def _moved(event: dict[str, Any]) -> str:
    ending = "".join(f": {event[name]}" for name in ("reason", "detail") if event.get(name))
    why = f", why: {event['why']}" if event.get("why") else ""
    cause = f" ({event['cause']})" if event.get("cause") else ""
    return f"{event.get('from')} → {event.get('to')}{cause}{ending}{why}"


def _edited(event: dict[str, Any]) -> str:
    changed = event.get("changed")
    return f"changed {', '.join(map(str, changed))}" if isinstance(changed, dict) else ""


def _carried(event: dict[str, Any]) -> str:
    """An event that was published or received tells of the agent's own event."""
    payload = event.get("payload")
    if not isinstance(payload, dict):
        return _pairs(event)
    detail = f": {payload['detail']}" if payload.get("detail") else ""
    return f"{payload.get('event')} seq {payload.get('seq')}{detail}"


def _pairs(event: dict[str, Any]) -> str:
    return _joined({name: value for name, value in event.items() if name not in _PLACED})


def _joined(facts: dict[str, Any]) -> str:
    known = ((name, _plain(value)) for name, value in facts.items())
    return " ".join(f"{name}={value}" for name, value in known if value)


def _plain(value: Any) -> str:
    """A value as a person writes it down; one made of parts stands in brackets."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        # What has a sentence of its own, as a check does, is told by that.
        inside = str(value["words"]) if value.get("words") else _joined(value)
        return f"({inside})" if inside else ""
    if isinstance(value, list):
        inside = ", ".join(filter(None, map(_plain, value)))
        return f"[{inside}]" if inside else ""
    return str(value)


_WORDS = {
    "status_changed": _moved,
    "edited": _edited,
    "published": _carried,
    "received": _carried,
}


def _list(args: argparse.Namespace, context: Context) -> int:
    logged = logged_jobs(context.registry)
    if args.json:
        put_json_rows(row.to_dict() for row in logged)
        return 0
    rows = list(logged)
    now = context.registry.clock.now()
    columns = [
        Column("JOB ID", [row.job_id for row in rows]),
        Column("STATUS", [row.status for row in rows]),
        Column("RECORD", ["here" if row.in_registry else "gone" for row in rows]),
        Column("CHANGED", [_ago(row.updated_at, now) for row in rows]),
    ]
    put(render(columns, table_width()))
    return 0


def _ago(stamp: str, now: float) -> str:
    try:
        return f"{age(now - parse_stamp(stamp))} ago"
    except ValueError:
        return "?"


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no count: say a whole number above 0")
    return int(text)
