"""``mam publish``: tell an event of a job. Agents call it once per event, so it starts light."""

from __future__ import annotations

import argparse
import os
from typing import Any

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option, one_job, one_job_option
from mam_core.cli.terminal import put_json, say
from mam_core.cli.usage import UsageError
from mam_core.events.public_brokers import public_warning
from mam_core.locations import JOB_VARIABLE
from mam_core.operations.publish import Prospect, Sent, publish, wait_until_taken

_ATTEMPT_VARIABLE = "MAM_ATTEMPT"

#: Decision 13. Nobody here has asked the broker, so no more is said than is known.
_QUEUED = {
    Prospect.SENT: "",
    Prospect.WAITS: "queued: the broker {} does not answer",
    Prospect.WOKEN: "queued; the relay was woken to send it",
    Prospect.STARTED: "queued; a relay was started to send it",
    Prospect.ALONE: "queued",
}


def options(parser: argparse.ArgumentParser) -> None:
    one_job_option(parser)
    parser.add_argument(
        "--event",
        required=True,
        metavar="EVENT",
        help="started, progress, permission_required, completed or error (or queued, cancelled, "
        "heartbeat, artifact, log)",
    )
    parser.add_argument("--detail", default="", metavar="TEXT", help="a sentence for people")
    parser.add_argument("--data", metavar="JSON", help="an object for programs")
    parser.add_argument(
        "--attempt",
        type=int,
        metavar="N",
        help=f"refuse if this is no longer the attempt (default: ${_ATTEMPT_VARIABLE})",
    )
    parser.add_argument(
        "--wait", action="store_true", help="until a broker has taken it; 1 when none does"
    )
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    own_job = os.environ.get(JOB_VARIABLE)
    if own_job and not args.ids and not args.job:
        args.job.append(own_job)
    job_id = one_job(args)
    attempt = args.attempt
    if attempt is None and own_job in (None, "", job_id):
        attempt = _own_attempt()
    registry = context.registry
    sent = publish(
        registry,
        context.registry_path,
        context.settings,
        job_id,
        args.event,
        detail=args.detail,
        data=None if args.data is None else _parsed(args.data),
        attempt=attempt,
        config_path=context.config,
    )
    if warning := public_warning(sent.published.broker.host, f"the events of job {job_id}"):
        say(f"warning: {warning}")
    if args.json:
        put_json(_told(sent))
    refused = sent.published.refused
    if refused:
        say(f"job {job_id} ended as error, not as completed: {refused}")
    if args.wait:
        wait_until_taken(registry, sent)
    elif words := _QUEUED[sent.prospect]:
        say(words.format(sent.published.broker.place))
    return 1 if refused else 0


def _own_attempt() -> int | None:
    said = os.environ.get(_ATTEMPT_VARIABLE)
    if not said:
        return None
    if not said.isdecimal():
        raise UsageError(f"${_ATTEMPT_VARIABLE} is {said!r:.40}: it must be a number")
    return int(said)


def _parsed(text: str) -> dict[str, Any]:
    from mam_core import codec
    from mam_core.errors import UnreadableRecord

    try:
        return codec.loads(text.encode("utf-8", "surrogateescape"))
    except UnreadableRecord as problem:
        raise UsageError(f"--data: {problem.message}") from None


def _told(sent: Sent) -> dict[str, Any]:
    published = sent.published
    return {
        "job_id": published.job.job_id,
        "attempt": published.event.attempt,
        "seq": published.seq,
        "event": published.event.event,
        "status": published.job.status,
        "refused": published.refused or None,
    }
