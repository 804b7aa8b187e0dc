"""Let claims go on that were held back."""

from __future__ import annotations

from typing import NamedTuple

from mam_core.claims import is_closed
from mam_core.errors import RegistryMissing
from mam_core.operations.pause import described
from mam_core.registry import Registry
from mam_core.rights import Right
from mam_core.stores.base import GateKind


class Resumed(NamedTuple):
    """Whether a gate was closed before, what still is, and the sentence that says both."""

    was_paused: bool
    still_paused: tuple[str, ...]
    message: str


def resume(registry: Registry, kind: GateKind, name: str = "") -> Resumed:
    """Open a gate again; one that was not closed is as wished."""
    registry.check_allowed(Right.PAUSE)
    was_paused = registry.resume(kind, name)
    if was_paused:
        words = f"{described(kind, name)} goes on"
    elif kind is GateKind.ALL:
        words = "there was no pause of everything"
    else:
        words = f"{described(kind, name)} was not paused"
    still = _still_paused(registry)
    ending = f"; still paused: {', '.join(still)}" if still else ""
    return Resumed(was_paused, still, words + ending)


def _still_paused(registry: Registry) -> tuple[str, ...]:
    try:
        gates = registry.store.facts().gates()
    except RegistryMissing:
        return ()
    now = registry.clock.now()
    return tuple(described(gate.kind, gate.name) for gate in gates.closed if is_closed(gate, now))
