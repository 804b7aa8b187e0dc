"""Hold claims back: of a group, of an agent, or all."""

from __future__ import annotations

from mam_core.clock import stamp
from mam_core.errors import InvalidField
from mam_core.fields import check_name, check_text, parse_moment
from mam_core.registry import Registry
from mam_core.rights import Right
from mam_core.stores.base import GateKind


def pause(
    registry: Registry, kind: GateKind, name: str = "", why: str = "", until: str | None = None
) -> str:
    """Close a gate, and say so. What runs goes on; nothing new is claimed through it."""
    if kind is not GateKind.ALL:
        check_name(kind, name)
    check_text("why", why)
    registry.check_allowed(Right.PAUSE)
    moment = None if until is None else _moment(registry, until)
    registry.pause(kind, name, why=why, until=moment)
    ending = f" until {moment}" if moment else ""
    return f"{described(kind, name)} is paused{ending}: what runs goes on, nothing new is claimed"


def described(kind: GateKind, name: str) -> str:
    return "everything" if kind is GateKind.ALL else f"{kind} {name}"


def _moment(registry: Registry, until: str) -> str:
    now = registry.clock.now()
    try:
        moment = parse_moment(until, now)
    except ValueError as problem:
        raise InvalidField(f"until: {problem}") from None
    if moment <= now:
        raise InvalidField(f"until: {until!r} is already past")
    return stamp(moment)
