"""``mam``: finds the verb, imports that verb's module and no other, and runs it.

Every way out of the program is here: an error a person can make is one line on
stderr and the exit code of its class, an unforeseen one is a line and a hint,
and a reader that went away (``mam logs … | head -1``) is no error at all.

A verb is a module of this package with two functions::

    def options(parser: argparse.ArgumentParser) -> None: ...
    def run(args: argparse.Namespace, context: Context) -> int: ...
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn, Protocol, cast

from mam_core.cli.repeats import say_how_many_more, start_counting
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
    "output": ("output", "print what a job printed, or what its agent's screen shows"),
    "replay": ("replay", "show the registry as it was at a moment, from the audit log"),
    "why": ("why", "say why a job is not claimed, or why it stands where it does"),
    "attention": ("attention", "show what needs a person, the most urgent first"),
    "verify": ("verify", "check again what jobs promised to leave behind"),
    "diff": ("diff", "show what an attempt changed in its folder's git repository"),
    "say": ("say", "say something to an agent at work"),
    "answer": ("answer", "answer what an agent asks, or show what it asks"),
    "interrupt": ("interrupt", "stop the turn that an agent is in; its job goes on"),
    "broadcast": ("broadcast", "say one thing to the agents of many sessions"),
    "cancel": ("cancel", "cancel jobs, or ask their workers to"),
    "retry": ("retry", "make ended jobs pending again"),
    "edit": ("edit", "change what a pending job asks for"),
    "clean": ("clean", "take ended jobs out of the registry, and back with --undo"),
    "pause": ("pause", "hold back the claims of a group, an agent, a host or everything"),
    "resume": ("resume", "let them go on"),
    "group": ("group", "show the groups, or change how many of one may run at once"),
    "capacity": ("capacity", "say how many jobs of each group fit on this host"),
    "heartbeat": ("heartbeat", "take or renew the lease of a running job, for scripts"),
    "publish": ("publish", "tell an event of a job, and let its status follow"),
    "watch": ("watch", "print a line for each event of jobs until they have ended"),
    "wait": ("wait", "wait until jobs have ended; prints each id and status"),
    "submit": ("submit", "register a job, run it, and follow it to its end"),
    "work": ("work", "claim the jobs of a session and run them"),
    "dispatch": ("dispatch", "share tasks with other nodes in a file, and run them as jobs"),
    "spawn": ("spawn", "start a session in tmux whose worker runs the jobs of a label"),
    "sessions": ("sessions", "show the sessions, how they stand and what they are at"),
    "attach": ("attach", "show a session in this terminal"),
    "stop": ("stop", "end a session when it has finished what it runs"),
    "restore": ("restore", "bring back the sessions that a reboot has taken"),
    "nodes": ("nodes", "show the hosts whose workers run jobs, and how they stand"),
    "node": ("node", "let a host finish what it runs and claim no more, or go on"),
    "schedule": ("schedule", "show the schedules, run one now, hold them back"),
    "relay": ("relay", "bring queued events to their brokers until interrupted"),
    "export": ("export", "write jobs into a file, as a table or as records"),
    "report": ("report", "write a page about jobs, for a colleague or a pull request"),
    "mcp": ("mcp", "serve the registry to an agent by the Model Context Protocol"),
    "skill": ("skill", "print or install the file that teaches an agent to delegate"),
    "migrate": ("migrate", "bring jobs over from another registry"),
    "broker": ("broker", "run the registry's own broker, or tell how it stands"),
    "console": ("console", "open the operator's screen; `mam` alone does the same"),
    "demo": ("demo", "show the console at work, on a throw-away registry with simulated agents"),
    "audit": ("audit", "count what runs, waits and failed, and name what is out of order"),
    "deploy": ("deploy", "bring new code in, step by step, never without an audit"),
    "init": ("init", "write a commented mam.toml for this folder"),
    "doctor": ("doctor", "find what is out of step, and mend it with --fix"),
    "config": ("config", "print every setting and where it comes from"),
    "completion": ("completion", "print the completion script of bash, zsh or fish"),
}

#: What may stand after a bare ``mam``.
_CONSOLE_OPTIONS = frozenset({"--view", "--filter", "--read-only", "--no-mouse"})

_EXIT_INTERRUPTED = 130
_OBJECTS_BETWEEN_COLLECTIONS = 50_000


class Verb(Protocol):
    """What the module of a verb offers."""

    def options(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace, context: Context) -> int: ...


def entry(prog: str = "mam") -> NoReturn:
    """The console script; `prog` is the name that its messages go by.

    A fifth of a short command is Python looking for garbage among what it has just imported,
    and taking it all apart again at the end. So it looks less often, and leaves at once: all that
    matters is on disk by then, whatever ends us.
    """
    # Variables that put somebody else's code before ours.
    disturbed = "PYTHONPATH" in os.environ or "PYTHONHOME" in os.environ
    if disturbed and not sys.flags.ignore_environment:
        from mam_core.own_python import start_again_undisturbed

        start_again_undisturbed()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    prepare_streams()
    go_by(prog)
    code = _flushed(main(sys.argv[1:]))
    if sys.stderr is not None:  # it was closed before we began
        with suppress(OSError, ValueError):
            sys.stderr.flush()
    os._exit(code)


def _flushed(code: int) -> int:
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
        start_counting()
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
    if at is None and not _wants_words(argv):
        return _dispatch(["console", *argv])
    if at is None:
        return _without_verb(argv)
    verb = argv[at]
    if verb == "help":
        return _help_about(argv[at + 1 :])
    if verb == "__complete":  # asked by the shells, with words that are no options of ours
        from mam_core.cli.complete import complete

        return complete(argv[at + 1 :])
    module = load(verb)
    if module is None:
        raise UsageError(f"{verb!r} is no verb (see `{program()} --help`)")
    from mam_core.cli.context import Context

    # The options before the verb are also options of the verb, so one parser reads them all.
    args = parser_of(verb, module).read(argv[:at] + argv[at + 1 :])
    with Context.of(args) as context:
        return module.run(args, context)


def _help_about(words: list[str]) -> int:
    """A verb's help, or a page of the manual; nothing: the help of all."""
    if len(words) > 1:
        raise UsageError(f"say one verb or one page (see `{program()} help topics`)")
    if not words or words[0] in VERBS or words[0].startswith("-"):
        return _dispatch([*(word for word in words if word in VERBS), "--help"])
    from mam_core.cli.help import show

    return show(words[0])


def _position_of_verb(argv: Sequence[str]) -> int | None:
    """Where the first word stands that is neither an option nor the value of one."""
    at = 0
    while at < len(argv) and argv[at].startswith("-"):
        name, has_value, _ = argv[at].partition("=")
        if name in ("-h", "--help", "--version"):
            return None
        if name in _CONSOLE_OPTIONS:
            return None
        if name not in GLOBAL_OPTIONS:
            raise UsageError(f"{name!r} cannot stand before the verb (see `{program()} --help`)")
        at += 2 if GLOBAL_OPTIONS[name] and not has_value else 1
    return at if at < len(argv) else None


def _wants_words(argv: Sequence[str]) -> bool:
    """Not the console, but what is printed about the program."""
    return any(word in ("-h", "--help", "--version") for word in argv)


def _without_verb(argv: Sequence[str]) -> int:
    if "--version" in argv:
        from mam_core.version import __version__

        print(f"mam {__version__} ({os.path.dirname(os.path.dirname(os.path.abspath(__file__)))})")
        return 0
    print(_help())
    return 0


def _help() -> str:
    wide = max(map(len, VERBS))
    above = " or above" if program() == "mam" else ""  # see `Context.place`
    verbs = "\n".join(f"  {name:<{wide}}  {words}" for name, (_, words) in VERBS.items())
    return f"""\
usage: {program()} [--view NAME] [--filter TEXT] [--read-only] [--no-mouse]   opens the console
       {program()} [--registry-dir DIR] [--store URL] [--config FILE] VERB …
       {program()} VERB --help, or {program()} help VERB
       {program()} help TOPIC for a page of the manual (their list: {program()} help topics)

Many coding agents at once, none of them lost: jobs are contracts on disk, agents claim
and run them, and every step is in the audit log.

{verbs}

options, before or after the verb:
  --registry-dir DIR  the records (default: $MAM_REGISTRY_DIR, else .mam/jobs here{above})
  --store URL         files, sqlite:PATH or postgresql://… (default: $MAM_STORE, else files)
  --config FILE       the settings (default: $MAM_CONFIG, else mam.toml here or above)
  --allow-network-fs  use a registry on a network file system, at your own risk
  --version           print the version and the path of the running code
  -h, --help          print this, or the help of a verb

exit codes: 0 done; 1 refused or not found; 2 wrong usage; 3 nothing to pick
of watch, wait and submit: 0 all completed; 1 one of them not; 2 not in time"""


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
    entry()
