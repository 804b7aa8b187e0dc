"""``mam dispatch``: tasks that several nodes share through one file, ``dispatch-registry.json``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option, seconds
from mam_core.cli.terminal import flush_stdout, program, put, put_json, put_stored_json, say
from mam_core.cli.usage import UsageError
from mam_core.dispatch.naming import Surroundings
from mam_core.dispatch.tasks import tasks_in_words
from mam_core.dispatch.tasks_file import TasksFile, tasks_path
from mam_core.safe_text import safe

_MAX_SLOTS = 256
_EVERY_SEC = 30.0

#: By act: what may stand after it, and the options that mean something there.
_USAGE: dict[str, tuple[str, tuple[str, ...]]] = {
    "init": ("SPECS_DIR", ()),
    "run": (
        "[TASK …]",
        ("retry_failed", "agent", "workdir", "specs", "slots", "sync", "every"),
    ),
    "status": ("", ("json",)),
    "summary": ("", ()),
    "release": ("[TASK …]", ("older_than", "yes", "json")),
    "sync": ("REMOTE", ("every", "timeout")),
    "export": ("[FILE]", ()),
    "import": ("[TASK …]", ("retry_failed", "agent", "workdir", "specs", "agent_session")),
}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("act", choices=tuple(_USAGE), help="what to do, see below")
    parser.add_argument("names", nargs="*", metavar="NAME", help="tasks, or a folder, file, remote")
    parser.add_argument(
        "--file", metavar="FILE", help="the dispatch registry (default: $REGISTRY, else Downloads)"
    )
    parser.add_argument("--retry-failed", action="store_true", help="run failed tasks again, too")
    parser.add_argument("--agent", metavar="AGENT", help="who runs the tasks (claude-code)")
    parser.add_argument("--workdir", metavar="DIR", help="where they run (default: here)")
    parser.add_argument("--specs", metavar="DIR", help="the specs (default: those of init)")
    parser.add_argument("--slots", type=int, metavar="N", help="tasks at once (1)")
    parser.add_argument("--sync", metavar="REMOTE", help="keep in step with this copy meanwhile")
    parser.add_argument("--every", type=seconds, metavar="TIME", help="how often to sync (30s)")
    parser.add_argument("--timeout", type=seconds, metavar="TIME", help="for one sync (15s)")
    parser.add_argument("--older-than", type=seconds, metavar="TIME", help="of other nodes, too")
    parser.add_argument("--yes", action="store_true", help="release what was found")
    parser.add_argument(
        "--agent-session", "--label", metavar="LABEL", help="whose workers run them"
    )
    json_option(parser)
    lines = [f"  {act} {names}".rstrip() for act, (names, _) in _USAGE.items()]
    parser.epilog = "\n".join(
        (
            "acts:",
            *lines,
            "A REMOTE is a path, or HOST:PATH.",
            "NODE_NAME names this node; API_MODE is direct or zai, and given to the agents.",
        )
    )


def run(args: argparse.Namespace, context: Context) -> int:
    _check(args)
    if args.file == "":
        raise UsageError("--file is given without a name: it is empty")
    return _ACTS[args.act](args, context, TasksFile(tasks_path(args.file)))


def _check(args: argparse.Namespace) -> None:
    """An option that means nothing there is a mistake, not a wish that was heard."""
    names, taken = _USAGE[args.act]
    for _, others in _USAGE.values():
        for name in others:
            if name not in taken and getattr(args, name) not in (None, False):
                flag = "--" + name.replace("_", "-")
                raise UsageError(f"{flag} means nothing to {program()} dispatch {args.act}")
    for name in args.names:
        if name.startswith("-"):  # argparse takes one with a blank in it for a name
            raise UsageError(
                f"unknown option {name!r:.80} (for a file of that name: './{name:.60}')"
            )
    count = len(args.names)
    wrong = {"": count > 0, "[FILE]": count > 1}.get(
        names, not names.startswith("[") and count != 1
    )
    if wrong:
        raise UsageError(f"usage: {program()} dispatch {args.act} {names}".rstrip())


def _init(args: argparse.Namespace, context: Context, file: TasksFile) -> int:
    from mam_core.dispatch.specs import init

    made = init(file, args.names[0])
    say(f"{tasks_in_words(len(made.added))} added to {made.kept} in {file.path}")
    for task, (has, there) in made.renamed.items():
        say(f"task {task} keeps its spec {has}; the folder has {there}")
    for task, names in made.found.doubles.items():
        say(f"task {task} is not added: {' and '.join(names)} both want to be it")
    for name in made.found.odd:
        say(f"{name} is not added: its name holds control characters")
    return 1 if made.found.doubles or made.found.odd else 0


def _run(args: argparse.Namespace, context: Context, file: TasksFile) -> int:
    from mam_core.cli.work import asked_to_end, warnings_on
    from mam_core.dispatch.sync import remote_at
    from mam_core.operations.dispatch_run import Plan, run
    from mam_core.operations.work import Screen

    slots = 1 if args.slots is None else args.slots
    if not 1 <= slots <= _MAX_SLOTS:
        raise UsageError(f"--slots must be between 1 and {_MAX_SLOTS}")
    if args.every is not None and args.sync is None:
        raise UsageError("--every says how often to --sync, and there is nothing to sync with")
    if args.retry_failed and args.names:
        raise UsageError("name the tasks, or say --retry-failed: a named task is run again anyway")
    plan = Plan(
        args.names,
        args.retry_failed,
        args.agent,
        args.workdir,
        args.specs,
        slots,
        remote_at(args.sync) if args.sync else None,
        args.every or _EVERY_SEC,
    )
    around = Surroundings.of()
    say(f"node {around.node}, API_MODE {around.api_mode}, {file.path}")
    screen = Screen(sys.stderr)
    with asked_to_end(screen) as stops, warnings_on(screen):
        ran = run(
            context.registry,
            context.registry_path,
            context.settings,
            file,
            plan,
            stops,
            screen=screen,
            told=say,
            config_path=context.config,
            allow_network=context.allow_network_fs,
        )
    for why in ran.refused.values():
        say(why)
    if ran.skipped:
        say(f"skipped, because others were first: {tasks_in_words(len(ran.skipped))}")
    put(
        safe(f"{task_id} {task.status}" + (f": {task.error}" if task.error else ""))
        for task_id, task in ran.ended.items()
    )
    return 0 if ran.is_well else 1


def _status(args: argparse.Namespace, context: Context, file: TasksFile) -> int:
    from mam_core.operations.dispatch import counts

    found = counts(file)
    if args.json:
        put_json([count.to_dict() for count in found])
        return 0
    wide = max((len(count.status) for count in found), default=0)
    put(
        safe(f"{count.status:<{wide}}  {len(count.tasks)}  {' '.join(count.tasks)}")
        for count in found
    )
    return 0


def _summary(args: argparse.Namespace, context: Context, file: TasksFile) -> int:
    from mam_core.operations.dispatch import summary

    sys.stdout.write(safe(summary(file)) + "\n")
    return 0


def _release(args: argparse.Namespace, context: Context, file: TasksFile) -> int:
    from mam_core.operations.dispatch import release

    found, done = release(
        file,
        context.registry,
        Surroundings.of().node,
        args.names,
        older_than=args.older_than,
        yes=args.yes,
    )
    if args.json:
        names = {one.task_id for one in done}
        put_json(
            [
                {"task": one.task_id, "why": one.why, "released": one.task_id in names}
                for one in found
            ]
        )
        return 0
    for one in found:
        by = f" by {one.task.node}" if one.task.node else ""
        now = f": now {one.becomes.status}" if one in done else ""
        put([safe(f"{one.task_id} is {one.task.status}{by}, and {one.why}{now}")])
    if not found:
        say("every task that is held is held by somebody, as far as can be seen from here")
    elif not done:
        say("nothing was changed: --yes releases them, or name the tasks")
    return 0


def _sync(args: argparse.Namespace, context: Context, file: TasksFile) -> int:
    from mam_core.cli.interrupts import until_interrupted
    from mam_core.dispatch.sync import TIMEOUT_SEC, remote_at
    from mam_core.dispatch.syncing import Syncing

    remote = remote_at(args.names[0])
    timeout_sec = args.timeout or TIMEOUT_SEC
    if args.every is None:
        say(remote.sync(file, timeout_sec).words)
        return 0
    with until_interrupted() as wish, Syncing(file, remote, args.every, say, timeout_sec):
        wish.wait()
    return wish.exit_code()


def _export(args: argparse.Namespace, context: Context, file: TasksFile) -> int:
    from mam_core.dispatch.layout import compose
    from mam_core.operations.dispatch import as_tasks

    whole = as_tasks(context.registry)
    if not args.names:
        put_stored_json([compose(whole)])
        flush_stdout()
        return 0
    target = os.path.expanduser(args.names[0])
    try:
        with open(target, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
            out.write(compose(whole))
    except FileExistsError:
        raise UsageError(f"{target} is already there: export writes a new file") from None
    say(f"{len(whole.tasks)} jobs as tasks: {target}")
    return 0


def _import(args: argparse.Namespace, context: Context, file: TasksFile) -> int:
    from mam_core.cli.strange_names import find_strange_names, warn_of
    from mam_core.operations.dispatch import hand_in, label_of, request_for

    label = args.agent_session or label_of(file)
    request = request_for(context.settings, label, args.agent, args.workdir)
    named = {"agent": args.agent, "agent_session": args.agent_session}
    strange = find_strange_names(context, [named])
    made = hand_in(
        file, context.registry, request, args.specs, args.names, retry_failed=args.retry_failed
    )
    put(safe(f"{task_id} {job_id}") for task_id, job_id in made.items())
    flush_stdout()
    say(f"for the workers of {label}: {tasks_in_words(len(made))}")
    if made:
        warn_of(strange)
    return 0


_ACTS: dict[str, Callable[[argparse.Namespace, Context, TasksFile], int]] = {
    "init": _init,
    "run": _run,
    "status": _status,
    "summary": _summary,
    "release": _release,
    "sync": _sync,
    "export": _export,
    "import": _import,
}
