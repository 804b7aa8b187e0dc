"""``mam diff``: what an attempt changed in its folder's git repository."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option, one_job, one_job_option
from mam_core.cli.terminal import is_terminal, put, put_json, say, table_width
from mam_core.operations.diff import Change, Commit, Diff, diff
from mam_core.safe_text import one_line, safe
from mam_core.table import Column, render


def options(parser: argparse.ArgumentParser) -> None:
    one_job_option(parser)
    parser.add_argument(
        "--attempt", type=_number, metavar="N", help="which attempt (default: the newest)"
    )
    parser.add_argument("--stat", action="store_true", help="only which files, and how much")
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    found = diff(context.registry, one_job(args), args.attempt)
    if args.json:
        told = found.to_dict()
        if args.stat:
            del told["text"]
        put_json(told)
        return 0
    for note in found.notes:
        say(note)
    if not found.files and not found.commits:
        until = "so far" if found.until_now else "in the end"
        say(f"attempt {found.attempt} of job {found.job_id} has changed nothing {until}")
    elif args.stat:
        put([*map(_commit_line, found.commits), *_stat(found)])
    elif is_terminal():
        put([*map(_commit_line, found.commits), *([""] if found.commits else [])])
        put(safe(line, "\t") for line in found.text.decode("utf-8", "replace").splitlines())
    else:
        # A patch, byte by byte; what is said beside it would spoil it.
        for commit in found.commits:
            say(_commit_line(commit))
        sys.stdout.flush()
        sys.stdout.buffer.write(found.text)
    return 0


def _commit_line(commit: Commit) -> str:
    day = datetime.fromtimestamp(commit.at, UTC).strftime("%Y-%m-%d %H:%M")
    words = f"commit {commit.commit[:10]}  {day}  {commit.author}: {commit.subject}"
    return one_line(words)


def _stat(found: Diff) -> list[str]:
    if not found.files:
        return []
    columns = [
        Column("FILE", [one_line(_name(file)) for file in found.files]),
        Column("+", [_count(file.additions) for file in found.files]),
        Column("-", [_count(file.deletions) for file in found.files]),
    ]
    files = f"{len(found.files)} file{'s' if len(found.files) > 1 else ''}"
    return [
        *render(columns, table_width()),
        f"{files} changed, {found.additions} lines added, {found.deletions} deleted",
    ]


def _name(file: Change) -> str:
    return f"{file.old_path} → {file.path}" if file.old_path else file.path


def _count(number: int | None) -> str:
    return "binary" if number is None else str(number)


def _number(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no attempt: say a whole number above 0")
    return int(text)
