"""A look at a file of jobs before it is registered: how many, for whom, and every bad line.

What is kept of it is bounded, whatever the file holds. The file is known again by its
content: what is registered afterwards is what was seen, or nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from os.path import join, normpath
from typing import Any, BinaryIO, NamedTuple

from mam_core.errors import InvalidField
from mam_core.operations.bulk import Entry, entries, flaw, lines_of, register_bulk, statuses
from mam_core.operations.given_files import open_regular, unreadable
from mam_core.registration import Registered
from mam_core.registry import Registry

#: More is no file that anybody looks through first; the command line takes it all the same.
MAX_BYTES = 256 * 2**20
_MOST_FIRST = 200
_MOST_BAD = 500
_MOST_KINDS = 50
_HEAD_CHARS = 400
_SENTENCE_CHARS = 500
_TELL_EVERY = 2000


class Planned(NamedTuple):
    """A job as it would be registered; of its prompt the beginning."""

    number: int
    agent: str
    label: str
    head: str


class BadLine(NamedTuple):
    """A line that keeps the whole file out."""

    number: int
    sentence: str


class Kind(NamedTuple):
    """How many jobs are for one agent under one label."""

    agent: str
    label: str
    jobs: int


class Preview(NamedTuple):
    """What a file holds; of the long lists their beginnings."""

    path: str
    digest: str
    jobs: int  #: good lines
    bad_lines: int
    kinds: tuple[Kind, ...]  #: the most numerous first
    other_kinds: int
    first: tuple[Planned, ...]
    bad: tuple[BadLine, ...]

    @property
    def trouble(self) -> str:
        """Why it cannot be registered, in one sentence; empty: it can."""
        if not self.jobs and not self.bad_lines:
            return f"{self.path} holds no job"
        if not self.bad_lines:
            return ""
        number, sentence = self.bad[0]
        if self.bad_lines == 1:
            return f"line {number}: {sentence}"
        return f"{self.bad_lines:,} lines are bad, the first is line {number}: {sentence}"


class Stopped(Exception):
    """Nobody wants to see it any more."""


def preview(
    registry: Registry,
    path: str,
    defaults: Mapping[str, Any],
    *,
    tell: Callable[[int], None] = lambda lines: None,
    is_over: Callable[[], bool] = lambda: False,
) -> Preview:
    """Raises `InvalidField` for a file that cannot be read, and `Stopped` when `is_over`.

    `tell` hears now and then how many lines were read.
    """
    digest = hashlib.sha256()
    found = _Found(registry)
    with open_regular(path) as file:
        if (size := os.fstat(file.fileno()).st_size) > MAX_BYTES:
            raise InvalidField(
                f"{path}: it has {size / 2**20:,.0f} MiB, and a preview ends at "
                f"{MAX_BYTES // 2**20}; `mam register --bulk` takes it without one"
            )
        for entry in entries(_hashed(_read(path, file), digest), defaults):
            found.take(entry)
            if found.lines % _TELL_EVERY == 0:
                tell(found.lines)
                if is_over():
                    raise Stopped
    return found.told(path, digest.hexdigest())


def register_seen(
    registry: Registry,
    seen: Preview,
    defaults: Mapping[str, Any],
    tell: Callable[[int], None] = lambda percent: None,
) -> str:
    """The file of a preview, if it still holds what was seen: all of it, or nothing.

    The answer is one sentence; `tell` hears each percent of the way once.
    """
    told = -1

    def progress(done: int, total: int) -> None:
        nonlocal told
        if (percent := 100 * done // max(1, total)) != told:
            told = percent
            tell(percent)

    with open_regular(seen.path) as file:
        lines = _same(_read(seen.path, file), seen)
        return _counted(register_bulk(registry, lines, defaults, progress))


def _counted(made: Sequence[Registered]) -> str:
    new = sum(not one.existed for one in made)
    words = f"{'1 job' if new == 1 else f'{new:,} jobs'} registered"
    if kept := len(made) - new:
        words += f"; not registered, since a live job has their key: {kept:,}"
    if twins := sum(one.twin is not None for one in made):
        words += f"; with label and prompt of another live job: {twins:,}"
    return words


def _read(path: str, file: BinaryIO) -> Iterator[bytes]:
    try:
        yield from lines_of(file)
    except OSError as problem:
        raise unreadable(path, problem) from None


def _hashed(lines: Iterator[bytes], digest: Any) -> Iterator[bytes]:
    for line in lines:
        digest.update(line)
        yield line


def _same(lines: Iterator[bytes], seen: Preview) -> Iterator[bytes]:
    digest = hashlib.sha256()
    yield from _hashed(lines, digest)
    if digest.hexdigest() != seen.digest:
        raise InvalidField(f"{seen.path}: it was changed after the preview; look at it again")


class _Found:
    """A preview in the making."""

    def __init__(self, registry: Registry) -> None:
        self._now = registry.clock.now()
        self._status_of = statuses(registry)
        self._writers: dict[str, int] = {}  #: artifact to line
        self._keys: dict[str, int] = {}
        self._kinds: Counter[tuple[str, str]] = Counter()
        self._first: list[Planned] = []
        self._bad: list[BadLine] = []
        self._bad_lines = 0
        self.lines = 0

    def take(self, entry: Entry) -> None:
        self.lines += 1
        trouble = entry.trouble
        if entry.request is not None:
            trouble = flaw(entry.request, self._now, self._status_of) or self._collision(entry)
        if trouble or entry.request is None:
            self._bad_lines += 1
            if len(self._bad) < _MOST_BAD:
                self._bad.append(BadLine(entry.number, trouble[:_SENTENCE_CHARS]))
            return
        request = entry.request
        agent, label = request["agent"], request["agent_session"]
        self._kinds[agent, label] += 1
        if len(self._first) < _MOST_FIRST:
            head = request["prompt"][:_HEAD_CHARS]
            self._first.append(Planned(entry.number, agent, label, head))

    def _collision(self, entry: Entry) -> str:
        """Two jobs of one file that write the same artifact are refused like any two."""
        request = entry.request or {}
        if (key := request.get("key")) and self._keys.setdefault(key, entry.number) != entry.number:
            return ""  # the job of that line is the answer to this one
        if request["workdir"] is None:
            return ""
        where = os.path.abspath(os.path.expanduser(request["workdir"]))
        for name in request.get("expected_artifacts", ()):
            path = normpath(join(where, name))
            if (other := self._writers.setdefault(path, entry.number)) != entry.number:
                return f"line {other} is to write {path} as well"
        return ""

    def told(self, path: str, digest: str) -> Preview:
        kinds = [Kind(*who, jobs) for who, jobs in self._kinds.most_common(_MOST_KINDS)]
        return Preview(
            path,
            digest,
            self._kinds.total(),
            self._bad_lines,
            tuple(kinds),
            len(self._kinds) - len(kinds),
            tuple(self._first),
            tuple(self._bad),
        )
