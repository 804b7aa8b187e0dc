"""The groups: how many of each may run at once, who said so, what runs and what waits.

Slots that were changed while running stand in the store beside the pauses, so they
hold for every worker on every host from its next claim on. What runs goes on.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from mam_core import acts as papers
from mam_core.acts import Act, Acts
from mam_core.claims import is_closed, slots_of
from mam_core.config import Config
from mam_core.config.tables import GroupSettings
from mam_core.errors import InvalidField, MamError, RegistryMissing
from mam_core.fields import check_name, check_text
from mam_core.near_names import unknown
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.rights import Right
from mam_core.stores.base import GateKind, Gates, Paper, Query

__all__ = ["Act", "Group", "GroupRefused", "acts_of", "group", "groups", "scaled_by", "set_slots"]

#: More than any machine runs: a mistyped number is not a wish.
MOST_SLOTS = 10_000
_LIVE = frozenset({Status.PENDING, Status.RUNNING})
_UNSAID = GroupSettings(None, None, None, None, None)


class GroupRefused(MamError):
    """This is not done to this group."""

    title = "Group"


class Group(NamedTuple):
    """One group as it stands."""

    name: str
    slots: int | None  #: None: any number
    origin: str  #: who says so
    low: int | None
    high: int | None
    memory: int | None  #: bytes that one job needs
    cpu: float | None  #: cores that one job needs
    running: int
    waiting: int
    is_paused: bool
    last: Act | None  #: the last decision about it

    @property
    def bounds(self) -> str:
        """``1-8``; a side that nobody set is empty."""
        if self.low is None and self.high is None:
            return "-"
        return f"{'' if self.low is None else self.low}-{'' if self.high is None else self.high}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "group": self.name,
            "slots": self.slots,
            "origin": self.origin,
            "min": self.low,
            "max": self.high,
            "memory": self.memory,
            "cpu": self.cpu,
            "running": self.running,
            "waiting": self.waiting,
            "paused": self.is_paused,
            "last": self.last.to_dict() if self.last else None,
        }


def groups(registry: Registry, config: Config) -> list[Group]:
    """All that a setting, a live job or a change of slots knows, by name. Without a lock."""
    try:
        gates = registry.store.facts().gates()
    except RegistryMissing:
        gates = Gates()
    counts: dict[Status, Counter[str]] = {status: Counter() for status in _LIVE}
    for job in registry.store.find(Query(_LIVE))[0]:
        if job.group is not None:
            counts[job.status][job.group] += 1
    paper = acts_of(registry)
    names = {*config.groups, *gates.slots, *counts[Status.PENDING], *counts[Status.RUNNING]}
    now = registry.clock.now()

    def made(name: str) -> Group:
        said = config.groups.get(name, _UNSAID)
        return Group(
            name,
            slots_of(name, gates, registry.slots),
            _origin(name, gates, config, paper),
            said.min,
            said.max,
            said.memory,
            said.cpu,
            counts[Status.RUNNING][name],
            counts[Status.PENDING][name],
            is_closed(gates.find(GateKind.GROUP, name), now),
            paper.last(name),
        )

    return [made(name) for name in sorted(names)]


def group(registry: Registry, config: Config, name: str) -> Group:
    """Raises `GroupRefused` for one that nobody knows."""
    known = groups(registry, config)
    found = next((one for one in known if one.name == name), None)
    if found is None:
        raise GroupRefused(unknown("group", name, [one.name for one in known]))
    return found


def acts_of(registry: Registry) -> Acts:
    """What was done about groups, oldest first."""
    return papers.decode(registry.store.paper(Paper.ACTS))


def scaled_by(registry: Registry, config: Config) -> str:
    """Whether the slots follow the load, and who sees to it."""
    keeper = acts_of(registry).keeper
    if not config.autoscale.enabled:
        return "autoscaling is off"
    if keeper is None or registry.lease_expired(keeper):
        return "autoscaling is on, and no process decides: start `mam work`, or the console"
    return f"autoscaling is on, and {keeper.owner} decides"


def set_slots(
    registry: Registry,
    config: Config,
    name: str,
    slots: int | None,
    *,
    why: str = "",
    force: bool = False,
) -> str:
    """Change how many may run at once, and say what that means; None goes by the settings again.

    Outside of the group's own bounds, or for a group that nobody knows, only by force.
    """
    check_name("group", name)
    check_text("why", why)
    if slots is not None and not 0 <= slots <= MOST_SLOTS:
        raise InvalidField(f"slots: {slots} is not between 0 and {MOST_SLOTS}")
    known = {one.name: one for one in groups(registry, config)}
    if name not in known and not force:
        why_not = unknown("group", name, known)
        raise GroupRefused(f"{why_not} (--force sets it for jobs to come)")
    said = config.groups.get(name, _UNSAID)
    if slots is not None and not force:
        _check_bounds(name, slots, said)
    registry.check_allowed(Right.PAUSE)
    act = registry.set_slots(name, slots, why=why)
    running = known[name].running if name in known else 0
    return _told(act, running)


def _check_bounds(name: str, slots: int, said: GroupSettings) -> None:
    for limit, is_outside, words in (
        (said.min, said.min is not None and slots < said.min, "min"),
        (said.max, said.max is not None and slots > said.max, "max"),
    ):
        if is_outside:
            side = "below" if words == "min" else "above"
            raise GroupRefused(
                f"{slots} slots are {side} [groups.{name}] {words} = {limit}; --force goes beyond"
            )


def _told(act: Act, running: int) -> str:
    if act.after is None:
        return f"group {act.group} has no limit any more"
    words = f"group {act.group} has {_slots(act.after)} now"
    words += "" if act.before is None else f", before {act.before}"
    if running > act.after:
        words += f"; {running} run and go on, none is claimed before they are fewer"
    return words


def _slots(count: int) -> str:
    return "1 slot" if count == 1 else f"{count} slots"


def _origin(name: str, gates: Gates, config: Config, paper: Acts) -> str:
    if name not in gates.slots:
        path = ("groups", name, "slots")
        return config.origin(path) if path in config.values else "no limit"
    change = paper.last_change(name)
    if change is None or change.after != gates.slots[name]:
        return "changed while running"
    return f"{change.by}, {change.at}"
