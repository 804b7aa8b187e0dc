"""``.gates``: pauses, slots and schedules of the files store, as one small JSON file."""

from __future__ import annotations

from mam_core import codec
from mam_core.audit import warn
from mam_core.disk import Folder
from mam_core.errors import MamError, StoreError
from mam_core.stores.base import Gate, GateKind, Gates

GATES_NAME = ".gates"
_MAX_BYTES = 1024 * 1024


def read_gates(folder: Folder, *, to_show: bool = False) -> Gates:
    """What is held back. Raises `StoreError` for a file that nobody can read.

    Whoever only looks, `to_show`, is warned and sees no pause; a claim is not made on a guess.
    """
    if not folder.has(GATES_NAME):
        return Gates()
    try:
        data, _ = folder.read(GATES_NAME, _MAX_BYTES)
    except FileNotFoundError:
        return Gates()
    try:
        return decode_gates(data, f"{folder.path}/{GATES_NAME}")
    except StoreError as problem:
        if not to_show:
            raise
        warn(problem.message)
        return Gates()


def decode_gates(data: bytes, where: str) -> Gates:
    """Raises `StoreError` for what nobody can read."""
    try:
        parsed = codec.loads(data)
        closed = tuple(
            Gate(
                GateKind(gate["kind"]),
                str(gate["name"]),
                str(gate["since"]),
                str(gate.get("by", "")),
                str(gate.get("why", "")),
                None if gate.get("until") is None else str(gate["until"]),
            )
            for gate in parsed["closed"]
        )
        slots = {str(name): int(count) for name, count in parsed["slots"].items()}
        schedules = {str(name): dict(kept) for name, kept in parsed.get("schedules", {}).items()}
    except (MamError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
        raise StoreError(
            f"{where} cannot be read, and nobody knows what is paused: {problem}; "
            "`mam resume --all` writes it anew"
        ) from None
    return Gates(closed, slots, schedules)


def encode_gates(gates: Gates) -> bytes:
    closed = [
        {
            "kind": gate.kind,
            "name": gate.name,
            "since": gate.since,
            "by": gate.by,
            "why": gate.why,
            "until": gate.until,
        }
        for gate in gates.closed
    ]
    kept: dict[str, object] = {"closed": closed, "slots": dict(gates.slots)}
    if gates.schedules:
        kept["schedules"] = {name: dict(memory) for name, memory in gates.schedules.items()}
    return codec.dumps(kept)
