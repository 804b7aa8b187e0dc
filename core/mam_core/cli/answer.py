"""``mam answer``: answer what an agent asks; without an answer, show what it asks."""

from __future__ import annotations

import argparse
from contextlib import closing

from mam_core.cli.context import Context
from mam_core.cli.outcomes import put_outcomes
from mam_core.cli.talking import job_and_text, job_and_text_options, receipt_options, waiting
from mam_core.cli.terminal import put, put_json, say
from mam_core.operations.answer import OpenQuestion, answer
from mam_core.operations.seen import Elsewhere, open_in_full
from mam_core.safe_text import one_line, safe_json


def options(parser: argparse.ArgumentParser) -> None:
    what = "y, n or the answer's text; - for stdin, nothing to see what it asks"
    job_and_text_options(parser, what)
    parser.add_argument(
        "--question",
        default="",
        metavar="NAME",
        help="which, when several are open; its first letters will do",
    )
    receipt_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    job_id, text = job_and_text(args)
    if text is None:
        with closing(Elsewhere(context.registry_path, context.settings)) as others:
            found = open_in_full(context.registry, others, job_id)
        return _show(job_id, found, as_json=args.json)
    with waiting(args) as wait:
        outcome = answer(context.registry, job_id, text, wait, question=args.question)
    return put_outcomes([outcome], as_json=args.json)


def _show(job_id: str, questions: list[OpenQuestion], *, as_json: bool) -> int:
    if as_json:
        put_json([question.to_dict() for question in questions])
    else:
        for question in questions:
            put([one_line(f"{question.handle or '-'} {question.words}")])
            if question.given is not None:
                put([safe_json(question.given, indent=2)])
        if not questions:
            say(f"job {job_id} waits for no answer")
    return 0 if questions else 1
