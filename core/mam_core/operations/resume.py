"""Let claims go on that were held back."""

from __future__ import annotations

from typing import NamedTuple

from mam_core.claims import is_closed
from mam_core.errors import RegistryMissing
from mam_core.near_names import did_you_mean
from mam_core.operations.pause import described
from mam_core.registry import Registry
from mam_core.rights import Right
from mam_core.stores.base import Gate, GateKind


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
    closed = _still_closed(registry)
    still = tuple(described(gate.kind, gate.name) for gate in closed)
    ending = f"; still paused: {', '.join(still)}" if still else ""
    if not was_paused and kind is not GateKind.ALL:
        ending += did_you_mean(name, [gate.name for gate in closed if gate.kind is kind])
    return Resumed(was_paused, still, words + ending)


def _still_closed(registry: Registry) -> tuple[Gate, ...]:
    try:
        gates = registry.store.facts().gates()
    except RegistryMissing:
        return ()
    now = registry.clock.now()
    return tuple(gate for gate in gates.closed if is_closed(gate, now))
