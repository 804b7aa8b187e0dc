"""Look at the schedules, run one now, hold them back; and run all while a command lives."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from mam_core.audit import warn
from mam_core.clock import stamp
from mam_core.config import Config
from mam_core.errors import ConfigError, MamError, RegistryMissing
from mam_core.fields import check_text, parse_moment
from mam_core.near_names import did_you_mean
from mam_core.operations.settings import Settings
from mam_core.operations.side_duty import Duty, Once, side_duty
from mam_core.pace import paced
from mam_core.registration import checked
from mam_core.registry import Registry
from mam_core.rights import Right
from mam_core.schedules.due import Memory, Missed, Schedule
from mam_core.schedules.firing import Fired, due, pause_of, request, run_now, settle
from mam_core.stores.base import Gate, GateKind, Gates

#: So often the clock and the pauses are looked at while nothing is due sooner.
LOOK_SEC = 5.0
_SOONEST_SEC = 0.05
_HINDERED = "schedules are not run"


class Standing(NamedTuple):
    """One schedule as it stands."""

    schedule: Schedule
    next: str | None  #: None while it is paused, or when it never comes again
    pause: Gate | None
    memory: Memory | None
    missed: tuple[Missed, ...]  #: the newest, those included that nobody has settled yet
    missed_count: int
    trouble: str = ""  #: why no job can be made of it

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        known = self.memory
        return {
            "name": self.schedule.name,
            "rule": self.schedule.rule,
            "template": self.schedule.template,
            "next": self.next,
            "paused": self.pause._asdict() if self.pause else None,
            "last_job": known.job_id or None if known else None,
            "last_at": known.at or None if known else None,
            "missed": self.missed_count,
            "missed_at": [one._asdict() for one in self.missed],
            "trouble": self.trouble or None,
        }


def named(config: Config, names: Sequence[str] = ()) -> list[Schedule]:
    """Those of the settings, or these of them; raises `ConfigError` for one there is not."""
    known = config.schedules
    for name in names:
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            near = did_you_mean(name, known)
            raise ConfigError(f"there is no schedule {name!r}; schedules: {there}{near}")
    return [Schedule.of(name, known[name]) for name in sorted(names or known)]


def standing(registry: Registry, config: Config) -> list[Standing]:
    """How each stands at this moment. Nothing is settled by looking."""
    gates, now = _gates(registry), registry.clock.now()
    found = []
    for schedule in named(config):
        pause = pause_of(gates, schedule.name, now)
        memory = Memory.read(gates.schedules.get(schedule.name))
        looked = due(schedule, gates, now)
        shown = looked.memory if looked else memory and memory.without_old(now)
        at = None if pause else schedule.after(now)
        found.append(
            Standing(
                *(schedule, None if at is None else stamp(at), pause, memory),
                *(shown.missed if shown else (), shown.missed_count if shown else 0),
                _trouble(config, schedule, now),
            )
        )
    return found


def run(
    registry: Registry, config: Config, names: Sequence[str], *, overlap: bool = False
) -> list[Fired]:
    """Jobs of these now; without names, of all those that are due."""
    if names:
        return [run_now(registry, config, one, overlap=overlap) for one in named(config, names)]
    return [_settled(registry, config, one) for one in named(config)]


def _settled(registry: Registry, config: Config, schedule: Schedule) -> Fired:
    """One that cannot be made keeps no other from it."""
    try:
        return settle(registry, config, schedule)
    except MamError as problem:
        return Fired(schedule.name, trouble=problem.message)


def _trouble(config: Config, schedule: Schedule, now: float) -> str:
    try:
        checked(request(config, schedule), now)
    except MamError as problem:
        return problem.message
    return ""


def pause(
    registry: Registry,
    config: Config,
    names: Sequence[str],
    why: str = "",
    until: str | None = None,
) -> None:
    """Nothing is registered by these, or by any where none is named."""
    registry.check_allowed(Right.PAUSE)
    check_text("why", why)
    chosen = [one.name for one in named(config, names)] if names else [""]
    moment = stamp(_moment(until, registry.clock.now())) if until is not None else None
    for name in chosen:
        registry.pause(GateKind.SCHEDULE, name, why=why, until=moment)


def resume(registry: Registry, config: Config, names: Sequence[str]) -> bool:
    """Go on from now: what passed meanwhile was not missed. False when none of them was paused."""
    registry.check_allowed(Right.PAUSE)
    now = registry.clock.now()
    chosen = [one.name for one in named(config, names)] if names else [""]
    with registry.store.transaction(create=True) as tx:
        gates = tx.gates_to_change()
        paused = [name for name in chosen if gates.find(GateKind.SCHEDULE, name)]
        for name in paused:
            gates = gates.without(GateKind.SCHEDULE, name)
        about = named(config, names) if paused else []
        for schedule in about:
            memory = Memory.read(gates.schedules.get(schedule.name)) or Memory("")
            settled = max(memory.until, stamp(now))
            kept = memory._replace(until=settled, rule=schedule.rule)
            gates = gates.with_schedule(schedule.name, kept.to_dict())
        if paused:
            tx.set_gates(gates)
    return bool(paused)


def _moment(text: str, now: float) -> float:
    try:
        return parse_moment(text, now)
    except ValueError as problem:
        raise ConfigError(f"until: {problem}") from None


def _gates(registry: Registry) -> Gates:
    try:
        return registry.store.facts().gates()
    except RegistryMissing:
        return Gates()


# -- while a command lives ---------------------------------------------------------------------


def scheduling(
    registry_path: str,
    config: Config,
    *,
    config_path: str | None = None,
    allow_network: bool = False,
) -> AbstractContextManager[Duty]:
    """While the block lasts, schedules are run; what hinders one is a warning, and tried again.

    Here is looked as well whether the files of the settings have changed: `config` is renewed.
    """
    settings = Settings(config, config_path)
    return side_duty(
        "mam-schedules",
        _HINDERED,
        lambda registry, duty: _go_on(registry, settings, duty),
        registry_path,
        config,
        allow_network=allow_network,
    )


def _go_on(registry: Registry, settings: Settings, duty: Duty) -> None:
    config = settings.config
    troubles: dict[str, Once] = {}
    soonest = _SOONEST_SEC

    def look() -> None:
        nonlocal soonest
        if words := settings.look().words():
            warn(words)
        soonest = paced(LOOK_SEC)
        for schedule in named(config):
            name = schedule.name
            trouble = troubles.setdefault(name, Once(f"schedule {name} is not run"))
            try:
                at = _look(registry, config, schedule)
                trouble.over()
                if at is not None:
                    soonest = min(soonest, at - registry.clock.now())
            except Exception as problem:  # whatever it is, the next look may not meet it
                trouble.tell(problem)

    duty.rounds(lambda: max(_SOONEST_SEC, soonest), look, Once(_HINDERED))


def _look(registry: Registry, config: Config, schedule: Schedule) -> float | None:
    """When it is due next, where that is known. Without a lock first: most find nothing to do."""
    looked = due(schedule, _gates(registry), registry.clock.now())
    if looked is None or not looked.is_new:
        return looked.next if looked else None
    fired = settle(registry, config, schedule)
    if fired.missed_count:
        warn(fired.remark)
    return schedule.after(registry.clock.now())
