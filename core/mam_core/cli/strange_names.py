"""Warnings about unknown names, printed beside the answer of a verb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mam_core.cli.context import Context
from mam_core.cli.repeats import WARNING
from mam_core.cli.terminal import say
from mam_core.operations.known_names import strange_filter, strange_names
from mam_core.stores.base import NameKind


def find_strange_names(context: Context, requests: Sequence[Mapping[str, Any]]) -> list[str]:
    """Of jobs that are about to be registered or changed."""
    return strange_names(context.registry, context.registry_path, context.settings, requests)


def find_strange_filter(context: Context, **names: str | None) -> list[str]:
    """Of what jobs are looked for by: `agent`, `label`, `group`, `node`."""
    given: dict[str, str | None] = {kind: names.get(kind.name.lower()) for kind in NameKind}
    return strange_filter(context.registry, context.registry_path, context.settings, given)


def warn_of(found: Sequence[str]) -> None:
    for words in found:
        say(f"{WARNING}{words}")
