"""``mam deploy``: bring new code in without losing what runs; only with ``--run`` it does it."""

from __future__ import annotations

import argparse
import shlex
import shutil
from collections.abc import Iterator

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option
from mam_core.cli.questions import ask, can_ask
from mam_core.cli.terminal import flush_stdout, is_terminal, put, put_json, say
from mam_core.cli.usage import UsageError
from mam_core.operations.audit_report import Report
from mam_core.operations.audit_text import audit_lines
from mam_core.operations.deploy import Plan, abandon, commands, deploy, rehearse
from mam_core.operations.deploy_state import Choice, Deploy, Step
from mam_core.operations.doctor import Ground
from mam_core.safe_text import one_line


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", action="store_true", help="do it; else it is only shown")
    parser.add_argument(
        "--running", choices=tuple(Choice), help="what becomes of jobs that run (default: ask)"
    )
    parser.add_argument(
        "--retry-failed", action="store_true", help="a fresh attempt for jobs that have failed"
    )
    parser.add_argument(
        "--despite", action="store_true", help="also when something is out of order"
    )
    parser.add_argument("--step", choices=tuple(Step), help="with --run: the next step and no more")
    parser.add_argument("--resume", action="store_true", help="go on with one that stopped")
    parser.add_argument("--abandon", action="store_true", help="end one that stopped")
    json_option(parser)
    parser.epilog = (
        "The steps are audit, decide, pull, verify, upgrade, restart and monitor; [deploy] of "
        "mam.toml says what the last five run. Every call begins with an audit. Without --run "
        "nothing changes. Exit code 1 when a step fails or is refused."
    )


def run(args: argparse.Namespace, context: Context) -> int:
    _check(args)
    ground = Ground(
        context.registry, context.registry_path, context.settings, context.allow_network_fs
    )
    if args.abandon:
        say(abandon(ground))
        return 0
    if not args.run:
        return _rehearsed(args, ground)
    plan = Plan(
        Choice(args.running) if args.running else None,
        args.retry_failed,
        args.despite,
        args.resume,
        Step(args.step) if args.step else None,
    )
    done = deploy(ground, plan, _Person(quiet=args.json))
    if args.json:
        put_json({"deploy": done.deploy_id, "done": list(done.done), "words": done.words})
    if done.is_over:
        say(f"the deploy of {done.deploy_id} is over")
    else:
        say(f"next: {done.next}")
    return 0


def _check(args: argparse.Namespace) -> None:
    for name in ("step", "resume", "running", "retry_failed", "despite"):
        if getattr(args, name) and not args.run:
            raise UsageError(f"--{name.replace('_', '-')} goes with --run")
    if args.abandon and (args.run or args.json):
        raise UsageError("--abandon stands alone")
    if args.resume and args.step:
        raise UsageError("say --resume for all that is left, or --step for the next step")


def _rehearsed(args: argparse.Namespace, ground: Ground) -> int:
    report, begun = rehearse(ground)
    if args.json:
        unfinished = {"deploy": begun.deploy_id, "next": begun.next} if begun else None
        put_json(
            {"audit": report.to_dict(), "commands": commands(ground), "unfinished": unfinished}
        )
        return 0
    put([*audit_lines(report, _width()), "", *_steps(ground, begun)])
    flush_stdout()
    if begun is not None:
        say(f"the deploy of {begun.deploy_id} is not over: --run --resume goes on with it")
    else:
        say("nothing was changed: --run does it")
    return 0


_OURS = {
    Step.AUDIT: "what stands above, anew",
    Step.DECIDE: "ask about jobs that run and have failed; hold new claims back",
    Step.VERIFY: "say which mam runs",
    Step.RESTART: "open the claims; a fresh attempt for what failed, if you say so",
    Step.MONITOR: "count again; more failures than before stop it",
}


def _steps(ground: Ground, begun: Deploy | None) -> Iterator[str]:
    wide = max(map(len, Step))
    for step, command in commands(ground).items():
        done = "done" if begun and step in begun.done and step is not Step.AUDIT else ""
        parts = [f"run {shlex.join(command)}"] if command else []
        parts += [_OURS[step]] if step in _OURS else []
        words = "; ".join(parts) or "nothing: it is not set"
        yield f"{step:<{wide}}  {done:<4}  {one_line(words)}".rstrip()


class _Person:
    """Who sits at the terminal, if anybody does."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def audited(self, report: Report) -> None:
        if not self._quiet:
            put(audit_lines(report, _width()))
            flush_stdout()

    def tell(self, words: str) -> None:
        say(words)

    def agrees(self, question: str) -> bool:
        try:
            return can_ask() and ask(question)
        except EOFError:
            return False


def _width() -> int | None:
    return shutil.get_terminal_size().columns if is_terminal() else None
