"""A file of jobs, one JSON object a line: all of them are registered, or none.

Every line is read and judged by the same functions, whether the file is only looked at
beforehand or registered, so that a preview promises nothing that is not kept.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from mam_core import codec, fields
from mam_core.errors import InvalidField, MamError, RegistryMissing, UnreadableRecord
from mam_core.operations.register import defaults_of, missing, with_defaults
from mam_core.records import Status
from mam_core.registration import Registered
from mam_core.registry import Registry
from mam_core.stores.base import Progress

if TYPE_CHECKING:
    from mam_core.config import Config

_PARSERS_PLACE = re.compile(r": line 1 column (\d+) \(char \d+\)$")

StatusOf = Callable[[str], Status | None]


class Entry(NamedTuple):
    """One line that is not blank: what it asks for, or what is wrong with it."""

    number: int
    request: dict[str, Any] | None
    trouble: str = ""


def bulk_defaults(config: Config, template: str = "") -> dict[str, Any]:
    """As `defaults_of`, for many jobs at once."""
    defaults = defaults_of(config, template)
    if "key" in defaults:
        raise InvalidField(f"template {template!r} has a key, which is for one job: not for a file")
    return defaults


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Lines of bounded length: a file without line ends must not fill the memory."""
    while line := file.readline(codec.MAX_RECORD_BYTES):
        yield line


def entries(lines: Iterable[bytes], defaults: Mapping[str, Any]) -> Iterator[Entry]:
    """The lines as JSON, with `defaults` for the keys that one leaves out."""
    for number, line in enumerate(lines, 1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)  # Windows editors put it there
        if not line.strip():
            continue
        try:
            yield Entry(number, with_defaults(codec.loads(line.rstrip()), defaults))
        except UnreadableRecord as problem:
            # The parser counts lines too, but to it there was only this one.
            words = _PARSERS_PLACE.sub(r" (column \1)", problem.message)
            yield Entry(number, None, words)


def register_bulk(
    registry: Registry,
    lines: Iterable[bytes],
    defaults: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    *,
    look: Callable[[Sequence[Mapping[str, Any]]], object] = lambda requests: None,
    allow_collision: bool = False,
) -> list[Registered]:
    """A job for each line: all of them, or none. A bad line is named by its number.

    All lines are read before the first job is made; `look` is shown what they ask for.
    """
    requests: dict[int, dict[str, Any]] = {}
    for number, request, trouble in entries(lines, defaults or {}):
        if request is None:
            raise InvalidField(f"line {number}: {trouble}")
        requests[number] = request
    if not requests:
        return []
    look(list(requests.values()))
    try:
        return registry.register(
            list(requests.values()), progress=progress, allow_collision=allow_collision
        )
    except InvalidField as problem:
        # Only now is it worth the time to find out which line the registry stumbled over.
        raise _blame(registry, requests, problem) from None


def flaw(request: Mapping[str, Any], now: float, status_of: StatusOf) -> str:
    """What a registry would refuse about a request; empty: nothing."""
    if lacking := missing(request):
        return f"missing: {', '.join(lacking)}"
    try:
        checked = fields.checked(request, now=now)
    except InvalidField as problem:
        return problem.message
    lost = next((parent for parent in checked.get("after", ()) if status_of(parent) is None), None)
    return "" if lost is None else f"after: there is no job {lost}"


def statuses(registry: Registry) -> StatusOf:
    """How jobs stand; in a registry that is not there yet, nobody is."""
    try:
        return registry.store.facts().status_of
    except RegistryMissing:
        return lambda job_id: None


def _blame(
    registry: Registry, requests: Mapping[int, Mapping[str, Any]], problem: MamError
) -> InvalidField:
    now, status_of = registry.clock.now(), statuses(registry)
    for number, request in requests.items():
        if words := flaw(request, now, status_of):
            return InvalidField(f"line {number}: {words}")
    return InvalidField(problem.message)
