"""A schedule's moment becomes a job: one transaction registers it and settles the moment.

That transaction is the lock of all who run schedules, on every host of a store: whoever comes
second finds the moment settled. A kill before its end leaves both undone, after it both done.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from mam_core.claims import is_closed
from mam_core.clock import parse_stamp, stamp
from mam_core.config import Config
from mam_core.errors import TransitionRefused
from mam_core.operations.register import missing, with_defaults
from mam_core.records import ENDED
from mam_core.registration import Registration, checked
from mam_core.registry import Registry
from mam_core.schedules.due import Due, Memory, Missed, Schedule, decide, in_words
from mam_core.stores.base import Gate, GateKind, Gates, Transaction

_KEY = "schedule"


class Fired(NamedTuple):
    """What became of a schedule that was looked at."""

    name: str
    job_id: str = ""  #: the job that was registered
    at: str = ""
    missed: tuple[Missed, ...] = ()  #: found now
    missed_count: int = 0
    trouble: str = ""  #: why it could not be looked at

    @property
    def remark(self) -> str:
        """One sentence about what was missed, however much that is; empty: nothing."""
        return missed_in_words(self.name, self.missed, self.missed_count)


def missed_in_words(name: str, missed: Sequence[Missed], count: int) -> str:
    if not missed:
        return ""
    last = missed[-1]
    return f"schedule {name} missed {in_words(count)}, the last at {last.at}: {last.why}"


def pause_of(gates: Gates, name: str, now: float) -> Gate | None:
    """What holds a schedule back, if anything does."""
    for gate in (gates.find(GateKind.SCHEDULE, name), gates.find(GateKind.SCHEDULE, "")):
        if gate is not None and is_closed(gate, now):
            return gate
    return None


def due(schedule: Schedule, gates: Gates, now: float) -> Due | None:
    """None for one that is paused."""
    if pause_of(gates, schedule.name, now) is not None:
        return None
    memory = Memory.read(gates.schedules.get(schedule.name))
    return decide(schedule, memory, now, open_since=_open_since(gates, schedule.name))


def _open_since(gates: Gates, name: str) -> float:
    """When a pause with an end of its own was over; one that was resumed has settled all."""
    closed = (gates.find(GateKind.SCHEDULE, one) for one in (name, ""))
    return max((parse_stamp(gate.until) for gate in closed if gate and gate.until), default=0.0)


def settle(registry: Registry, config: Config, schedule: Schedule) -> Fired:
    """Whatever is due at this moment; raises what a registration raises, with nothing settled."""
    values = checked(request(config, schedule), registry.clock.now())
    found = Fired(schedule.name)

    def choose(tx: Transaction, batch: Registration) -> None:
        nonlocal found
        gates = tx.gates_to_change()
        looked = due(schedule, gates, registry.clock.now())
        if looked is None or not looked.is_new:
            return
        memory, missed, count = looked.memory, looked.missed, looked.missed_count
        if looked.fire is not None:
            at = stamp(looked.fire)
            if not schedule.overlap and _is_live(tx, memory.job_id):
                late = Missed(at, f"job {memory.job_id} is not over")
                memory, missed, count = memory.with_missed([late], 1), (*missed, late), count + 1
            else:
                batch.add({**values, "key": _key(schedule.name, at)})
                memory = memory._replace(job_id=batch.answers[0].job_id, at=at)
        tx.set_gates(gates.with_schedule(schedule.name, memory.to_dict()))
        registered = (memory.job_id, memory.at) if batch.answers else ("", "")
        found = Fired(schedule.name, *registered, missed, count)

    registry.register_by(choose)
    return found


def run_now(registry: Registry, config: Config, schedule: Schedule, *, overlap: bool) -> Fired:
    """A job of this schedule at once, beside its moments."""
    now = registry.clock.now()
    values = checked(request(config, schedule), now)
    at, job_id = stamp(now), ""

    def choose(tx: Transaction, batch: Registration) -> None:
        nonlocal job_id
        gates = tx.gates_to_change()
        memory = Memory.read(gates.schedules.get(schedule.name)) or Memory(at, schedule.rule)
        if not overlap and not schedule.overlap and _is_live(tx, memory.job_id):
            raise TransitionRefused(
                f"schedule {schedule.name}: job {memory.job_id} is not over; --overlap runs it "
                "all the same"
            )
        batch.add({**values, "key": _key(schedule.name, at)})
        job_id = batch.answers[0].job_id
        memory = memory._replace(job_id=job_id, at=at)
        tx.set_gates(gates.with_schedule(schedule.name, memory.to_dict()))

    registry.register_by(choose)
    return Fired(schedule.name, job_id, at)


def request(config: Config, schedule: Schedule) -> dict[str, Any]:
    """The fields of its job. Where the template does not say, it works beside its ``mam.toml``:
    whoever happens to register it may stand anywhere."""
    home = config.folder_of("schedules", schedule.name, "template") or os.getcwd()
    made = with_defaults(
        config.template(schedule.template), {"workdir": home, **config.job_defaults()}
    )
    if lacking := missing(made):
        raise TransitionRefused(
            f"schedule {schedule.name}: template {schedule.template} has no {', '.join(lacking)}"
        )
    return made


def _key(name: str, at: str) -> str:
    return f"{_KEY}:{name}:{at}"


def _is_live(tx: Transaction, job_id: str) -> bool:
    status = tx.status_of(job_id) if job_id else None
    return status is not None and status not in ENDED
