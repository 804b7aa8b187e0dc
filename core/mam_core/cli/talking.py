"""What say, answer, interrupt and broadcast share: the text, and the wait for a receipt."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mam_core.cli.interrupts import until_interrupted
from mam_core.cli.job_fields import open_input
from mam_core.cli.parser import json_option, seconds
from mam_core.cli.usage import UsageError
from mam_core.errors import InvalidField
from mam_core.messages import MAX_TEXT_BYTES
from mam_core.operations.delivery import RECEIPT_SEC, Wait

STDIN = "-"


def receipt_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=RECEIPT_SEC,
        metavar="SECONDS",
        help=f"how long the agent's receipt is waited for (default: {RECEIPT_SEC:g}); "
        "2 when it does not come",
    )
    parser.add_argument("--no-wait", action="store_true", help="only send it")
    json_option(parser)


@contextmanager
def waiting(args: argparse.Namespace) -> Iterator[Wait]:
    with until_interrupted() as wish:
        yield Wait(None if args.no_wait else args.timeout, wish.is_set)


def job_and_text_options(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("ids", nargs="*", metavar="ID", help=f"the job, and then {what}")
    parser.add_argument("--job", action="append", default=[], metavar="ID", help="the job, by name")


def job_and_text(args: argparse.Namespace) -> tuple[str, str | None]:
    """The job, and the words that follow it, or what stands on stdin for ``-``; None: no words."""
    words = list(args.ids)
    if len(args.job) > 1:
        raise UsageError("only one job at a time can be named here")
    if not args.job and not words:
        raise UsageError("name a job: ID or --job ID")
    job_id = args.job[0] if args.job else words.pop(0)
    return job_id, text_of(words)


def text_of(words: Sequence[str]) -> str | None:
    if list(words) == [STDIN]:
        return _from_stdin()
    return " ".join(words) if words else None


def _from_stdin() -> str:
    # A few bytes more than the limit are enough for the check that refuses it.
    data: bytes = open_input(STDIN).read(MAX_TEXT_BYTES + 1)
    if len(data) > MAX_TEXT_BYTES:
        raise InvalidField(f"the text has more than {MAX_TEXT_BYTES:,} bytes, which is the limit")
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise InvalidField("the text is not UTF-8") from None
