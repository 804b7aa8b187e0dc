"""Let claims go on that were held back."""

from __future__ import annotations

from typing import NamedTuple

from mam_core.operations.pause import described
from mam_core.registry import Registry
from mam_core.stores.base import GateKind


class Resumed(NamedTuple):
    """Whether a gate was closed before, and the sentence that says what is so now."""

    was_paused: bool
    message: str


def resume(registry: Registry, kind: GateKind, name: str = "") -> Resumed:
    """Open a gate again; one that was not closed is as wished."""
    if registry.resume(kind, name):
        return Resumed(True, f"{described(kind, name)} goes on")
    return Resumed(False, f"{described(kind, name)} was not paused")
