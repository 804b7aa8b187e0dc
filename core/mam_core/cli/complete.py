"""``mam __complete``: what could stand where the cursor is, asked by the shells.

Verbs and options come from the parsers themselves, and what an option's value
is called in the help says what it can be: an ``ID`` is a job of the registry, a
``LABEL`` a label in use. A name that a shell would have to quote is left out,
and a mistake of any kind is no answer: nobody wants an error in mid-word.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from mam_core.cli.context import Context
from mam_core.cli.main import VERBS, load, parser_of
from mam_core.cli.parser import Parser
from mam_core.cli.terminal import put
from mam_core.cli.usage import GLOBAL_OPTIONS
from mam_core.errors import MamError
from mam_core.records import ENDED, Status
from mam_core.safe_text import clip, one_line
from mam_core.stores.base import Query
from mam_core.summaries import Summary

_HARMLESS = re.compile(r"[\w.:@%+=,/-]+")
_LONGEST_WORDS = 50

#: Where only some jobs make sense, which.
_FITTING: dict[str, frozenset[Status]] = {
    "cancel": frozenset({Status.PENDING, Status.RUNNING}),
    "retry": frozenset({Status.ERROR, Status.CANCELLED}),
    "edit": frozenset({Status.PENDING}),
    "clean": ENDED,
    "heartbeat": frozenset({Status.RUNNING}),
    "say": frozenset({Status.RUNNING}),
    "answer": frozenset({Status.RUNNING}),
    "interrupt": frozenset({Status.RUNNING}),
    "watch": frozenset({Status.PENDING, Status.RUNNING}),
    "wait": frozenset({Status.PENDING, Status.RUNNING}),
}

#: Where an agent may be named that nobody has named before.
_BEGINNING = frozenset({"register", "submit", "spawn", "work", "init"})


class Candidate(NamedTuple):
    """What may stand there, and what it is."""

    text: str
    words: str = ""


def complete(argv: Sequence[str]) -> int:
    """Answer a shell: its name, then for bash the line and its word breaks, else the words."""
    shell, *words = argv or ("",)
    breaks = ""
    if len(words) < (2 if shell == "bash" else 1):
        return 0
    if shell == "bash":
        words, breaks = _split(words[0])[1:], words[1]
    try:
        found = list(candidates(words))
    except (MamError, OSError):
        return 0
    if shell == "bash":
        # bash replaces only what follows the last character at which it breaks words.
        kept = re.split(f"[{re.escape(breaks)}]", words[-1])[-1] if breaks else words[-1]
        cut = len(words[-1]) - len(kept)
        put([c.text if c.text.startswith(":") else c.text[cut:] for c in found])
    else:
        put([f"{c.text}\t{c.words}" if c.words else c.text for c in found])
    return 0


def candidates(words: Sequence[str]) -> Iterable[Candidate]:
    """What fits the last of the words that follow ``mam``."""
    *before, current = words
    verb, context = _read(before)
    with context:
        yield from _fitting(verb, before, current, context)


def _fitting(
    verb: str | None, before: Sequence[str], current: str, context: Context
) -> Iterable[Candidate]:
    if verb is None:
        if before and GLOBAL_OPTIONS.get(before[-1]):
            found: Iterable[Candidate] = _values(
                _metavar(Parser("mam", ""), before[-1]), "", context
            )
        elif current.startswith("-"):
            found = map(Candidate, [*GLOBAL_OPTIONS, "--help", "--version"])
        else:
            found = [Candidate(name, words) for name, (_, words) in VERBS.items()]
        return _matching(found, current)
    if verb == "help":
        return _matching(_helped(), current)
    module = load(verb)
    if module is None:
        return []
    return _of_verb(parser_of(verb, module), verb, before, current, context)


def _helped() -> Iterable[Candidate]:
    from mam_core.manual.topics import topics

    yield from (Candidate(one.name, one.title) for one in topics() if one.name not in VERBS)
    yield from (Candidate(name, words) for name, (_, words) in VERBS.items())


def _of_verb(
    parser: Parser, verb: str, before: Sequence[str], current: str, context: Context
) -> Iterable[Candidate]:
    flags = {flag: action for action in parser._actions for flag in action.option_strings}
    previous = flags.get(before[-1]) if before else None
    if previous is not None and previous.nargs != 0:
        return _matching(_of_action(previous, verb, context), current)
    flag, equals, _ = current.partition("=")
    if equals and flag in flags:
        found = _of_action(flags[flag], verb, context)
        return _matching((Candidate(f"{flag}={text}", words) for text, words in found), current)
    if current.startswith("-"):
        named = (Candidate(flag, action.help or "") for flag, action in flags.items())
        return _matching((c for c in named if c.text.startswith("--")), current)
    taken = set(before)
    positionals = [a for a in parser._actions if not a.option_strings]
    if len(positionals) > 1 and taken & set(positionals[0].choices or ()):
        del positionals[0]  # the act is said: what it is about comes next
    positional = next(iter(positionals), None)
    if positional is None:
        return []
    found = _of_action(positional, verb, context)
    return _matching((c for c in found if c.text not in taken), current)


def _of_action(action: argparse.Action, verb: str, context: Context) -> Iterable[Candidate]:
    if action.choices is not None:
        return map(Candidate, action.choices)
    return _values(str(action.metavar), verb, context)


def _values(kind: str, verb: str, context: Context) -> Iterable[Candidate]:
    source = _SOURCES.get(kind)
    return source(verb, context) if source else []


def _jobs(verb: str, context: Context) -> Iterable[Candidate]:
    fitting = _FITTING.get(verb, frozenset())
    for job in _found(context):
        if not fitting or job.status in fitting:
            words = f"{job.status} {one_line(job.head[:_LONGEST_WORDS])}"
            yield Candidate(job.job_id, clip(words, _LONGEST_WORDS))


def _labels(verb: str, context: Context) -> Iterable[Candidate]:
    return _distinct(job.agent_session for job in _found(context))


def _groups(verb: str, context: Context) -> Iterable[Candidate]:
    in_use = (job.group for job in _found(context) if job.group)
    return _distinct([*in_use, *context.settings.slots()])


def _agents(verb: str, context: Context) -> Iterable[Candidate]:
    """For a new job every agent that there could be, else the names in use."""
    known = [*(job.agent for job in _found(context)), *context.settings.agents]
    if verb in _BEGINNING:
        from mam_core.agents.profiles import BUILT_IN

        known += BUILT_IN
    return _distinct(known)


def _sessions(verb: str, context: Context) -> Iterable[Candidate]:
    """From the records alone: asking tmux is a process, and a name that is gone harms nobody."""
    from mam_core.sessions import SessionFolder

    found = SessionFolder(context.registry_path).all()[0]
    for session in found:
        yield Candidate(session.name, f"{session.agent} for {session.label}")
    if verb == "stop":
        for pool in sorted({one.pool for one in found} - {one.name for one in found}):
            yield Candidate(pool, "a pool")


def _schedules(verb: str, context: Context) -> Iterable[Candidate]:
    found = context.settings.schedules
    return (Candidate(name, found[name].cron or "") for name in sorted(found))


def _statuses(verb: str, context: Context) -> Iterable[Candidate]:
    fitting = _FITTING.get(verb, frozenset())
    return (Candidate(status) for status in Status if not fitting or status in fitting)


def _fields(verb: str, context: Context) -> Iterable[Candidate]:
    from mam_core.operations.edit import CLEARABLE

    return map(Candidate, CLEARABLE)


_SOURCES: dict[str, Callable[[str, Context], Iterable[Candidate]]] = {
    "ID": _jobs,
    "LABEL": _labels,
    "GROUP": _groups,
    "AGENT": _agents,
    "STATUS": _statuses,
    "SESSION": _sessions,
    "SCHEDULE": _schedules,
    "FIELD": _fields,
    "FILE": lambda verb, context: [Candidate(":files")],
    "DIR": lambda verb, context: [Candidate(":folders")],
}


def _found(context: Context) -> list[Summary]:
    return context.registry.store.find(Query())[0]


def _distinct(names: Iterable[str]) -> Iterable[Candidate]:
    return map(Candidate, sorted(set(names)))


def _matching(found: Iterable[Candidate], current: str) -> Iterable[Candidate]:
    """Those that begin like the word; of words with commas between, the last counts."""
    ahead, comma, last = current.rpartition(",")
    for candidate in found:
        if candidate.text.startswith(":"):
            yield candidate
        elif _HARMLESS.fullmatch(candidate.text):
            if candidate.text.startswith(current):
                yield candidate
            elif comma and candidate.text.startswith(last):
                yield Candidate(f"{ahead},{candidate.text}", candidate.words)


def _read(before: Sequence[str]) -> tuple[str | None, Context]:
    """The verb that was typed, if any, and the registry that the options name."""
    given: dict[str, str] = {}
    verb = None
    words = iter(before)
    for word in words:
        flag, equals, value = word.partition("=")
        if GLOBAL_OPTIONS.get(flag):
            given[flag] = value if equals else next(words, "")
        elif verb is None and not word.startswith("-"):
            verb = word
    return verb, Context(
        given.get("--registry-dir") or None,
        given.get("--config") or None,
        store=given.get("--store") or None,
    )


def _metavar(parser: Parser, flag: str) -> str:
    return next(str(a.metavar) for a in parser._actions if flag in a.option_strings)


def _split(line: str) -> list[str]:
    """A line of shell as words; the last one, under the cursor, may still be open."""
    import shlex

    for closing in ("", '"', "'"):
        try:
            words = shlex.split(line + closing)
        except ValueError:
            continue
        return words if closing or not line[-1:].isspace() else [*words, ""]
    return [*line.split(), ""]
