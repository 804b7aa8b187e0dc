"""``mam init``: a commented ``mam.toml`` for this folder, asked for on a terminal or by options."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from mam_core.cli.context import Context
from mam_core.cli.parser import seconds
from mam_core.cli.questions import ask_for, can_ask
from mam_core.cli.terminal import flush_stdout, put, say
from mam_core.cli.usage import UsageError
from mam_core.config.finding import FILE_NAME
from mam_core.config.loading import CONFIG_VARIABLE
from mam_core.errors import InvalidField
from mam_core.operations.init import (
    Wish,
    Written,
    check,
    init,
    installed_agents,
    is_here,
    known_agents,
    label_for,
)
from mam_core.wiring import open_registry


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agent", metavar="AGENT", help="the agent of jobs that name none")
    parser.add_argument(
        "--agent-session", "--label", metavar="LABEL", help="the label of jobs that name none"
    )
    parser.add_argument("--slots", type=int, metavar="N", help="so many jobs run at once, in all")
    parser.add_argument(
        "--timeout", type=seconds, metavar="TIME", help="wall clock of a job: 90s, 10m, 2h"
    )
    parser.add_argument(
        "--schema", action="store_true", help="write mam.schema.json beside it, for editors"
    )
    parser.add_argument(
        "--force", action="store_true", help="replace a file that is there; it is kept as .bak"
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="only accept that a registry with jobs was removed, and start with an empty one",
    )
    parser.add_argument("--yes", action="store_true", help="ask nothing, and take what fits here")
    parser.epilog = (
        "Writes mam.toml in this folder, or the file that --config names. On a terminal it asks "
        "for what no option says; --store and --registry-dir are written down, too."
    )


def run(args: argparse.Namespace, context: Context) -> int:
    if args.again:
        return _start_again(context)
    path = os.path.abspath(
        os.path.expanduser(context.config or os.environ.get(CONFIG_VARIABLE) or FILE_NAME)
    )
    wish = Wish(
        args.agent,
        args.agent_session,
        args.slots,
        args.timeout,
        _store(context, path),
        context.registry_dir and os.path.abspath(os.path.expanduser(context.registry_dir)),
    )
    check(wish)
    found = installed_agents()
    try:
        wish = _asked(wish, found) if can_ask() and not args.yes else _taken(wish, found)
    except EOFError:
        say("nothing was written")
        return 1
    written = init(path, wish, force=args.force, schema=args.schema)
    _tell(written, wish)
    return 0


def _start_again(context: Context) -> int:
    from mam_core.operations.init import start_again

    with open_registry(
        context.registry_dir or context.settings.registry_dir, config=context.settings
    ) as registry:
        say(start_again(registry))
    return 0


def _store(context: Context, path: str) -> str | None:
    """As it was typed, where that means the same in the file."""
    if context.store is None:
        return None
    from mam_core.store_urls import StoreUrl

    url = StoreUrl.parse(context.store, os.getcwd())
    if url.has_password:
        raise UsageError(
            "--store must not hold a password: put it into ~/.pgpass, PGPASSWORD or "
            "[store] password_file"
        )
    return context.store if os.path.dirname(path) == os.getcwd() else str(url)


def _taken(wish: Wish, found: list[str]) -> Wish:
    """What fits without a question; without any agent that is open, too."""
    agent = wish.agent or next(iter(found), None)
    return wish._replace(
        agent=agent, agent_session=wish.agent_session or (label_for(agent) if agent else None)
    )


def _asked(wish: Wish, found: list[str]) -> Wish:
    """Raises EOFError when the person goes away."""
    taken = _taken(wish, found)
    if wish.agent is None:
        say(f"agents found here: {', '.join(found) or 'none'}")
        say(f"agents that mam knows: {', '.join(known_agents())}")
        agent = ask_for("which one runs your jobs?", taken.agent or "shell", _agent)
        taken = _taken(wish._replace(agent=agent), found)
    if wish.agent_session is None:
        label = ask_for("the label of its sessions?", taken.agent_session or "", _label)
        taken = taken._replace(agent_session=label)
    if wish.slots is None:
        slots = ask_for("how many jobs may run at once?", "no limit", _slots)
        taken = taken._replace(slots=None if slots == "no limit" else int(slots))
    return taken


def _agent(answer: str) -> None:
    check(Wish(agent=answer))


def _label(answer: str) -> None:
    check(Wish(agent_session=answer))


def _slots(answer: str) -> None:
    if answer == "no limit":
        return
    if not answer.isascii() or not answer.isdecimal():
        raise InvalidField("say a number")
    check(Wish(slots=int(answer[:9])))


def _tell(written: Written, wish: Wish) -> None:
    put([written.path])
    if written.schema is not None:
        put([written.schema])
    flush_stdout()  # what follows is about what stands there
    if written.kept is not None:
        say(f"what was there is kept as {written.kept}")
    if written.above is not None:
        say(f"{written.above} is not read here any more: the nearest file counts")
    for line in _next_steps(wish):
        say(line)


def _next_steps(wish: Wish) -> Iterator[str]:
    """Two commands that work as they stand."""
    if wish.agent is None:
        yield "mam knows no agent that is installed here; a shell's job runs all the same"
    elif not is_here(wish.agent):
        yield f"{wish.agent} is not installed here; a shell's job runs all the same"
    if wish.agent is None or not is_here(wish.agent):
        yield "next: mam submit --agent shell --prompt 'echo hello'"
        yield "then: mam demo"
        return
    if wish.agent == "shell":
        yield "next: mam submit --prompt 'echo hello'"
    else:
        work = '--prompt "Write a haiku about queues to haiku.md" --artifact haiku.md'
        yield f"next: mam submit {work}"
    yield "then: mam doctor"
