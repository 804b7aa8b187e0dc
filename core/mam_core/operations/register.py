"""Register one job, or a file of them."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from mam_core import codec, fields
from mam_core.errors import InvalidField, MamError, UnreadableRecord
from mam_core.registration import Registered
from mam_core.registry import Registry
from mam_core.stores.base import Progress

REQUIRED = ("prompt", "agent", "agent_session")

_PARSERS_PLACE = re.compile(r": line 1 column (\d+) \(char \d+\)$")


def register(
    registry: Registry,
    request: Mapping[str, Any],
    defaults: Mapping[str, Any] | None = None,
    *,
    allow_collision: bool = False,
) -> Registered:
    """One new job from the record's keys; a live job with the same key is the answer instead.

    `defaults` are for the keys that the request leaves out.
    """
    requests = [with_defaults(request, defaults or {})]
    return registry.register(requests, allow_collision=allow_collision)[0]


def register_bulk(
    registry: Registry,
    lines: Iterable[bytes],
    defaults: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    *,
    allow_collision: bool = False,
) -> list[Registered]:
    """A job for each line of JSON: all of them, or none.

    A bad line is named by its number; `defaults` are as for `register`.
    """
    requests: dict[int, dict[str, Any]] = {}
    for number, line in enumerate(lines, 1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)  # Windows editors put it there
        if line.strip():
            requests[number] = with_defaults(_parsed(number, line), defaults or {})
    if not requests:
        return []
    try:
        return registry.register(
            list(requests.values()), progress=progress, allow_collision=allow_collision
        )
    except InvalidField as problem:
        # Only now is it worth the time to find out which line the registry stumbled over.
        raise _blame(registry, requests, problem) from None


def missing(request: Mapping[str, Any]) -> list[str]:
    """What a job cannot do without and nobody said."""
    return [name for name in REQUIRED if name not in request]


def with_defaults(request: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """`request` over `defaults`; a request that names a part of the broker keeps the other parts.

    Where nobody says where a job works, it works where it was registered.
    """
    merged = {**defaults, **request}
    ours, theirs = request.get("broker"), defaults.get("broker")
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        merged["broker"] = {**theirs, **ours}
    if "workdir" not in merged:
        merged["workdir"] = os.getcwd()
    return merged


def _parsed(number: int, line: bytes) -> dict[str, Any]:
    try:
        return codec.loads(line.rstrip())
    except UnreadableRecord as problem:
        # The parser counts lines too, but to it there was only this one.
        words = _PARSERS_PLACE.sub(r" (column \1)", problem.message)
        raise InvalidField(f"line {number}: {words}") from None


def _blame(
    registry: Registry, requests: Mapping[int, Mapping[str, Any]], problem: MamError
) -> InvalidField:
    facts = registry.store.facts
    for number, request in requests.items():
        if lacking := missing(request):
            return InvalidField(f"line {number}: missing: {', '.join(lacking)}")
        try:
            fields.checked(request, now=registry.clock.now())
        except InvalidField as bad:
            return InvalidField(f"line {number}: {bad}")
    for number, request in requests.items():
        for parent in request.get("after", ()):
            if facts().status_of(parent) is None:
                return InvalidField(f"line {number}: after: there is no job {parent}")
    return InvalidField(problem.message)
