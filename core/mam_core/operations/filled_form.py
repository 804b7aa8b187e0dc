"""A job's form that was filled in: what is wrong with it, box by box, and how it is registered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mam_core.errors import InvalidField
from mam_core.operations.given_files import read_password
from mam_core.operations.job_texts import (
    ALLOW_COLLISION,
    BROKER,
    FIELDS,
    PASSWORD_FILE,
    as_request,
    value_of,
)
from mam_core.operations.outcome import Outcome
from mam_core.operations.register import missing, register
from mam_core.registration import Registered
from mam_core.registry import Registry


def misread(texts: Mapping[str, str]) -> dict[str, str]:
    """What is wrong in each box, by its name, as far as that can be told from the words alone."""
    wrong = {}
    for field in FIELDS:
        try:
            value_of(field, texts)
        except (ValueError, OverflowError) as problem:
            wrong[field.name] = str(problem)
    return wrong


def lacking(texts: Mapping[str, str], defaults: Mapping[str, Any]) -> list[str]:
    """The boxes that must not stay empty, and do."""
    return [name for name in missing(defaults) if not texts.get(name, "").strip()]


def register_texts(
    registry: Registry, texts: Mapping[str, str], defaults: Mapping[str, Any]
) -> Outcome:
    """A form that was filled in, with what it says beside the record."""
    request = as_request(texts)
    if path := texts.get(PASSWORD_FILE, "").strip():
        try:
            password = read_password(path)
        except InvalidField as problem:
            raise InvalidField(f"{PASSWORD_FILE}: {problem.message}") from None
        request[BROKER] = {**request.get(BROKER, {}), "password": password}
    allowed = bool(texts.get(ALLOW_COLLISION, "").strip())
    return _told(register(registry, request, defaults, allow_collision=allowed))


def _told(made: Registered) -> Outcome:
    words = f"job {made.job_id} is registered"
    if made.existed:
        words = f"job {made.job_id} has that key already"
    if made.twin:
        words += f"; job {made.twin} has the same label and prompt, and is not over yet"
    return Outcome(made.job_id, True, words)


def box_of(sentence: str) -> tuple[str, str]:
    """The box that a refusal of the registry is about, and the words without its name.

    An empty name: it is about none of them alone.
    """
    name, colon, words = sentence.partition(": ")
    if colon and name == BROKER:
        part, _, words = words.partition(": ")
        name = f"{BROKER}_{part}"
    known = any(field.name == name for field in FIELDS)
    return (name, words) if colon and known else ("", sentence)
