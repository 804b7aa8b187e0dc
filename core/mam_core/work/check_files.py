"""The scripts that a job's own check runs, as they were when the job was registered.

A check that stands in the agent's folder can be rewritten by the agent. What it was is kept in the
record, so that a result by another check is shown as one. Only programs count: a file that the
check merely reads may be what the agent was asked to write.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator

from mam_core.records import Job

#: Words that stand before the program of a command.
_BEFORE = frozenset(
    {"!", "command", "do", "else", "env", "exec", "if", "nice", "then", "time", "until", "while"}
)
_INTERPRETER = re.compile(r"(ba|da|z|k)?sh|python[0-9.]*|node|ruby|perl|deno|bun")
_MOST_BYTES = 16 * 1024 * 1024


def digests(line: str | None, workdir: str | None) -> dict[str, str] | None:
    """By name, as the line has it; None where it runs nothing that is in the folder."""
    if not line or not workdir:
        return None
    found = {name: _digest(os.path.join(workdir, name)) for name in _programs(line, workdir)}
    return {name: digest for name, digest in found.items() if digest} or None


def changed(job: Job) -> list[str]:
    """Those that are no longer what they were; `job` has the folder that it ran in."""
    kept = job.check_files or {}
    home = job.workdir or "."
    return sorted(name for name in kept if _digest(os.path.join(home, name)) != kept[name])


def _programs(line: str, workdir: str) -> Iterator[str]:
    home = os.path.realpath(workdir)
    for words in _commands(line):
        while words and (words[0] in _BEFORE or re.match(r"[A-Za-z_]\w*=", words[0])):
            words = words[1:]
        if not words:
            continue
        names = [words[0]]
        if _INTERPRETER.fullmatch(os.path.basename(words[0])):
            names += [word for word in words[1:] if not word.startswith("-")][:1]
        for name in names:
            place = os.path.realpath(os.path.join(home, name))
            is_path = name is not words[0] or os.sep in name
            if is_path and os.path.commonpath((place, home)) == home and os.path.isfile(place):
                yield name


def _commands(line: str) -> Iterator[list[str]]:
    """The simple commands of a shell line, as far as one can tell without a shell."""
    words: list[str] = []
    lexer = shlex.shlex(line.replace("\n", ";"), posix=True, punctuation_chars=True)
    try:
        for word in lexer:
            if set(word) <= set("();<>|&"):
                yield words
                words = []
            else:
                words.append(word)
    except ValueError:  # a quote that is not closed
        pass
    yield words


def _digest(path: str) -> str:
    """Empty for what is gone, no file, or larger than any script."""
    import hashlib  # few jobs have such a check, and a registration is to be quick

    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError:
        return ""
    return "" if len(data) > _MOST_BYTES else hashlib.sha256(data).hexdigest()
