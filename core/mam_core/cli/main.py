"""``mam``: finds the verb, imports that verb's module and no other, and runs it.

Every way out of the program is here: an error a person can make is one line on
stderr and the exit code of its class, an unforeseen one is a line and a hint,
and a reader that went away (``mam logs … | head -1``) is no error at all.

A verb is a module of this package with two functions::

    def options(parser: argparse.ArgumentParser) -> None: ...
    def run(args: argparse.Namespace, context: Context) -> int: ...
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, cast

from mam_core.cli.repeats import say_how_many_more
from mam_core.cli.terminal import (
    abandon_stdout,
    flush_stdout,
    go_by,
    hear_warnings,
    prepare_streams,
    program,
    say,
)
from mam_core.cli.usage import GLOBAL_OPTIONS, UsageError
from mam_core.errors import MamError

if TYPE_CHECKING:
    import argparse

    from mam_core.cli.context import Context
    from mam_core.cli.parser import Parser

#: Verb to (module in this package, what it does); the order is that of the help.
VERBS: dict[str, tuple[str, str]] = {
    "register": ("register", "put a job, or a file of jobs, into the registry; prints the id"),
    "list": ("list", "show the jobs, as a table or as JSON"),
    "get": ("get", "print one record as JSON"),
    "status": ("status", "print the status of a job, or set it by hand"),
    "pick": ("pick", "claim the next job of a session; prints its id, or exits 3"),
    "logs": ("logs", "show what happened to a job, also after its record is gone"),
    "why": ("why", "say why a job is not claimed, or why it stands where it does"),
    "cancel": ("cancel", "cancel jobs, or ask their workers to"),
    "retry": ("retry", "make ended jobs pending again"),
    "edit": ("edit", "change what a pending job asks for"),
    "clean": ("clean", "take ended jobs out of the registry, and back with --undo"),
    "pause": ("pause", "hold back the claims of a group, an agent or everything"),
    "resume": ("resume", "let them go on"),
    "heartbeat": ("heartbeat", "take or renew the lease of a running job, for scripts"),
    "migrate": ("migrate", "bring jobs over from another registry"),
    "config": ("config", "print every setting and where it comes from"),
    "completion": ("completion", "print the completion script of bash, zsh or fish"),
}

_EXIT_INTERRUPTED = 130


class Verb(Protocol):
    """What the module of a verb offers."""

    def options(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace, context: Context) -> int: ...


def entry(prog: str = "mam") -> int:
    """The console script; `prog` is the name that its messages go by."""
    prepare_streams()
    go_by(prog)
    code = main(sys.argv[1:])
    try:
        flush_stdout()
    except BrokenPipeError:
        abandon_stdout()
        return 0
    except OSError as problem:
        say(f"cannot write the output: {problem.strerror}")
        abandon_stdout()
        return code or 1
    return code


def main(argv: Sequence[str]) -> int:
    """Run one command and answer its exit code; nothing but the code leaves this function."""
    try:
        hear_warnings()
        return _dispatch(list(argv))
    except MamError as problem:
        say(problem.message)
        return problem.exit_code
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    except BrokenPipeError:
        abandon_stdout()
        return 0
    except SystemExit as leaving:  # argparse has printed a help text
        return leaving.code if isinstance(leaving.code, int) else 0
    except Exception as problem:
        return _unforeseen(problem)
    finally:
        say_how_many_more()


def load(verb: str) -> Verb | None:
    """The module of a verb; None when there is no such verb."""
    if verb not in VERBS:
        return None
    return cast(Verb, importlib.import_module(f"mam_core.cli.{VERBS[verb][0]}"))


def parser_of(verb: str, module: Verb) -> Parser:
    """The parser of one verb, which also takes the options that every verb takes."""
    from mam_core.cli.parser import Parser

    parser = Parser(f"{program()} {verb}", VERBS[verb][1])
    module.options(parser)
    return parser


def _dispatch(argv: list[str]) -> int:
    at = _position_of_verb(argv)
    if at is None:
        return _without_verb(argv)
    verb = argv[at]
    if verb == "help":
        return _dispatch([*argv[at + 1 : at + 2], "--help"])
    if verb == "__complete":  # asked by the shells, with words that are no options of ours
        from mam_core.cli.complete import complete

        return complete(argv[at + 1 :])
    module = load(verb)
    if module is None:
        raise UsageError(f"{verb!r} is no verb (see `{program()} --help`)")
    from mam_core.cli.context import Context

    # The options before the verb are also options of the verb, so one parser reads them all.
    args = parser_of(verb, module).read(argv[:at] + argv[at + 1 :])
    return module.run(args, Context.of(args))


def _position_of_verb(argv: Sequence[str]) -> int | None:
    """Where the first word stands that is neither an option nor the value of one."""
    at = 0
    while at < len(argv) and argv[at].startswith("-"):
        name, has_value, _ = argv[at].partition("=")
        if name in ("-h", "--help", "--version"):
            return None
        if name not in GLOBAL_OPTIONS:
            raise UsageError(f"{name!r} cannot stand before the verb (see `{program()} --help`)")
        at += 2 if GLOBAL_OPTIONS[name] and not has_value else 1
    return at if at < len(argv) else None


def _without_verb(argv: Sequence[str]) -> int:
    if "--version" in argv:
        from mam_core.version import __version__

        print(f"mam {__version__} ({os.path.dirname(os.path.dirname(os.path.abspath(__file__)))})")
        return 0
    if "-h" in argv or "--help" in argv:
        print(_help())
        return 0
    return _console()


def _console() -> int:
    """``mam`` alone opens the console; this build has none."""
    say("the console is not there yet: name a verb")
    print(_help(), file=sys.stderr)
    return 2


def _help() -> str:
    wide = max(map(len, VERBS))
    verbs = "\n".join(f"  {name:<{wide}}  {words}" for name, (_, words) in VERBS.items())
    return f"""\
usage: {program()} [--registry-dir DIR] [--config FILE] VERB …
       {program()} VERB --help, or {program()} help VERB

Many coding agents at once, none of them lost: jobs are contracts on disk, agents claim
and run them, and every step is in the audit log.

{verbs}

options, before or after the verb:
  --registry-dir DIR  the folder of the records (default: $MAM_REGISTRY_DIR, else .mam/jobs here)
  --config FILE       the settings (default: $MAM_CONFIG, else mam.toml here or above)
  --allow-network-fs  use a registry on a network file system, at your own risk
  --version           print the version and the path of the running code
  -h, --help          print this, or the help of a verb

exit codes: 0 done; 1 refused or not found; 2 wrong usage; 3 nothing to pick"""


def _unforeseen(problem: Exception) -> int:
    if os.environ.get("MAM_DEBUG"):
        import traceback

        traceback.print_exc()
    if isinstance(problem, OSError) and problem.strerror:
        where = f"{problem.filename}: " if problem.filename else ""
        say(f"{where}{problem.strerror.lower()}")
    else:
        say(
            f"this is a mistake in mam: {type(problem).__name__}: {problem} "
            "(MAM_DEBUG=1 shows where)"
        )
    return 1


if __name__ == "__main__":
    sys.exit(entry())
