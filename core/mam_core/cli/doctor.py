"""``mam doctor``: what is out of step, and what would mend it; ``--fix`` does it, each asked."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option
from mam_core.cli.questions import ask, can_ask
from mam_core.cli.terminal import flush_stdout, put, put_json, say, wants_colour
from mam_core.cli.usage import UsageError
from mam_core.operations.doctor import (
    Answer,
    Finding,
    Fix,
    Ground,
    Mended,
    Severity,
    examine,
    mend,
)
from mam_core.rights import Right
from mam_core.safe_text import one_line

_COLOURS = {
    Severity.OK: "\x1b[32m",
    Severity.NOTE: "\x1b[36m",
    Severity.WARNING: "\x1b[33m",
    Severity.PROBLEM: "\x1b[31m",
}
_RESET = "\x1b[0m"
_WIDE = max(map(len, Severity))

#: What became of a finding that was to be mended.
_Outcomes = dict[tuple[str, str, str], Mended]


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fix", action="store_true", help="mend what can be mended, one by one")
    parser.add_argument(
        "--yes", action="store_true", help="with --fix: ask nothing, and do what is safe"
    )
    json_option(parser)
    parser.epilog = (
        "Looks only, unless --fix is given. A mismatch is told when it was seen twice, a second "
        "apart. Exit code 1 when there is a problem; a warning is none."
    )


def run(args: argparse.Namespace, context: Context) -> int:
    if args.yes and not args.fix:
        raise UsageError("--yes goes with --fix")
    if args.fix:
        context.registry.check_allowed(Right.DOCTOR)  # before anybody answers a question
    ground = Ground(
        context.registry,
        context.registry_path,
        context.settings,
        context.allow_network_fs,
    )
    answers = examine(ground)
    findings = [finding for answer in answers for finding in answer.findings]
    if not args.json:
        put(_lines(answers))
        flush_stdout()  # what is asked next is about what stands there
    outcomes: _Outcomes = {}
    if args.fix:
        outcomes = _mend(ground, answers, yes=args.yes)
    else:
        _advise(findings)
    wrong = [one for one in findings if one.severity is Severity.PROBLEM]
    left = [one for one in wrong if not (one.name in outcomes and outcomes[one.name].is_done)]
    if args.json:
        rows = [
            _row(answer, finding, outcomes) for answer in answers for finding in answer.findings
        ]
        put_json({"problems": len(left), "findings": rows})
    return 1 if left else 0


# -- what is told ------------------------------------------------------------------------------


def _lines(answers: Sequence[Answer]) -> Iterator[str]:
    area = None
    for answer in answers:
        for finding in answer.findings:
            if finding.area != area:
                area = finding.area
                yield area
            yield f"  {_painted(finding.severity)}  {one_line(finding.what)}: " + one_line(
                finding.words
            )
            for fix in finding.fix.choices if finding.fix else ():
                yield f"  {'':{_WIDE}}    fix: {one_line(fix.words)}"
            if finding.advice:
                yield f"  {'':{_WIDE}}    do: {one_line(finding.advice)}"


def _painted(severity: Severity) -> str:
    text = f"{severity:<{_WIDE}}"
    return f"{_COLOURS[severity]}{text}{_RESET}" if wants_colour() else text


def _advise(findings: Iterable[Finding]) -> None:
    count = sum(1 for one in findings if one.fix is not None)
    if count:
        say(f"`mam doctor --fix` can mend {count} of these, and asks before each")


def _row(answer: Answer, finding: Finding, outcomes: _Outcomes) -> dict[str, Any]:
    mended = outcomes.get(finding.name)
    outcome = {"done": mended.is_done, "words": mended.words} if mended else None
    return {**finding.to_dict(), "check": answer.check.name, "outcome": outcome}


# -- what is done ------------------------------------------------------------------------------


def _mend(ground: Ground, answers: Sequence[Answer], *, yes: bool) -> _Outcomes:
    """One by one; a person's ^C or ^D ends it where it is."""
    outcomes: _Outcomes = {}
    is_asked = not yes and can_ask()
    to_do = [
        (answer, finding, finding.fix)
        for answer in answers
        for finding in answer.findings
        if finding.fix is not None
    ]
    if not to_do:
        say("there is nothing to mend")
    for answer, finding, fix in to_do:
        try:
            choice = _chosen(finding, fix, yes=yes, is_asked=is_asked)
        except EOFError:
            break
        if choice is not None:
            outcomes[finding.name] = done = mend(ground, answer.check, finding, choice)
            say(done.words if done.is_done else f"not done: {done.words}")
    return outcomes


def _chosen(finding: Finding, fix: Fix, *, yes: bool, is_asked: bool) -> int | None:
    """Which of the fixes is to be done; None for none."""
    if not is_asked:
        if yes and fix.is_safe:
            return 0
        why = "this is not done without a question" if yes else "say --yes, or use a terminal"
        say(f"would {fix.words} ({why})")
        return None
    for number, choice in enumerate(fix.choices):
        about = "or" if number else f"{finding.what}: {finding.words};"
        if ask(f"{about} {choice.words}?"):
            return number
    return None
