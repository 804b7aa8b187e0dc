"""``mam skill``: the file that teaches an agent to delegate; printed, or installed."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.terminal import put, say
from mam_core.operations.skill import in_words, install, local_rules, skill

_EPILOG = """\
Claude Code looks for skills in .claude/skills of a project and in ~/.claude/skills:
  mam skill --install .claude/skills
"""


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--install",
        metavar="DIR",
        help="write it to DIR/mam/SKILL.md instead of printing it",
    )
    parser.epilog = _EPILOG


def run(args: argparse.Namespace, context: Context) -> int:
    if args.install is None:
        put(skill().splitlines())
        for rules in local_rules(context.settings):
            say(in_words(rules))
    else:
        say(install(args.install))
    return 0
