"""One act at a time, each from the same small registry: the material for faults at a system call.

The stage holds one job of every kind, found by its key. An act is what a child
process does while a fault is aimed at it; the same act without a fault shows
what it should have come to.
"""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from mam_core.clock import stamp
from mam_core.config import Config, Value
from mam_core.errors import MamError
from mam_core.leases import LeaseTerms
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.schedules.due import Memory, Schedule
from mam_core.schedules.firing import settle
from mam_core.stores.base import GateKind, Query
from tests.faults.ground import Ground, recover
from tests.faults.workload import CANARY_PASSWORD, CANARY_TOKEN
from tests.support.clock import NOON, FakeClock

PROBE = "probe"
TICK = Schedule("tick", "t", 1800.0, None, None, "every 1800 s")
WORKER = LeaseTerms("worker-1", 60.0)


def request(key: str, label: str = "alpha", **fields: Any) -> dict[str, Any]:
    return {
        "key": key,
        "prompt": f"the prompt of {key}",
        "agent": "shell",
        "agent_session": label,
        "broker": {"host": "127.0.0.1", "port": 1883, "password": CANARY_PASSWORD},
        "auth_token": CANARY_TOKEN,
        **fields,
    }


def set_stage(ground: Ground) -> None:
    """A registry with one job of each kind, and one in the archive."""
    registry = ground.open()
    for key in ("running", "leased", "error", "cancelled", "completed", "archived"):
        registry.register([request(key, label=key)])
    registry.register([request("pending"), request("other")])
    for key in ("running", "error", "completed", "archived"):
        registry.claim(key)
    registry.claim("leased", lease=WORKER)
    found = ids(registry)
    registry.next_seq(found["running"])
    registry.finish(found["error"], Status.ERROR, attempt=1, reason=Reason.EXIT)
    registry.finish(found["completed"], Status.COMPLETED, attempt=1)
    registry.finish(found["archived"], Status.COMPLETED, attempt=1)
    registry.request_cancel(found["cancelled"])
    registry.archive([found["archived"]])
    with registry.store.transaction() as tx:
        kept = Memory(stamp(NOON), TICK.rule).to_dict()
        tx.set_gates(tx.gates_to_change().with_schedule(TICK.name, kept))
    registry.store.close()


def copy_stage(template: Ground, act: str, root: Path) -> Ground:
    """The stage as it was before the act; whatever is derived from the records is up to date."""
    ground = template.copy_to(root)
    if act not in ON_BARE_GROUND | ON_COPIED_GROUND:
        recover(ground)
        store = ground.open().store
        store.find(Query())
        store.close()
    return ground


def ids(registry: Registry) -> dict[str, str]:
    """Job ids by key."""
    return {
        job.key: job.job_id
        for job in registry.store.bodies(Query())
        if not isinstance(job, tuple) and job.key
    }


def _register(registry: Registry) -> None:
    registry.register([request("new")])


def _register_many(registry: Registry) -> None:
    registry.register([request(f"new-{number}") for number in range(20)])


def _claim(registry: Registry) -> None:
    job = registry.claim("alpha", lease=WORKER)
    assert job is not None


def _finish(registry: Registry) -> None:
    registry.finish(ids(registry)["running"], Status.COMPLETED, attempt=1)


def _finish_late(registry: Registry) -> None:
    """A zombie's result: refused, and the refusal is audited."""
    registry.finish(ids(registry)["error"], Status.COMPLETED, attempt=1)


def _requeue(registry: Registry) -> None:
    registry.requeue(ids(registry)["leased"], Reason.LOST, attempt=1)


def _cancel(registry: Registry) -> None:
    registry.request_cancel(ids(registry)["pending"], "not needed")


def _ask_to_cancel(registry: Registry) -> None:
    registry.request_cancel(ids(registry)["leased"], "not needed")


def _retry(registry: Registry) -> None:
    registry.retry(ids(registry)["error"])


def _edit(registry: Registry) -> None:
    registry.edit(ids(registry)["pending"], {"prompt": "another one", "priority": 5})


def _next_seq(registry: Registry) -> None:
    registry.next_seq(ids(registry)["running"], attempt=1)


def _archive(registry: Registry) -> None:
    found = ids(registry)
    registry.archive([found["completed"], found["cancelled"]])


def _restore(registry: Registry) -> None:
    assert registry.restore()


def _pause(registry: Registry) -> None:
    registry.pause(GateKind.ALL, why="a fault run")


def _set_slots(registry: Registry) -> None:
    registry.set_slots("nightly", 3, why="a fault run")


def _fire(registry: Registry) -> None:
    """A job for a moment of a schedule; the moment is settled with it, or neither is."""
    registry.clock = FakeClock(NOON + 1800)
    fields = {"prompt": "p", "agent": "shell", "agent_session": "alpha", "workdir": "/"}
    values: dict[tuple[str, ...], Value] = {
        ("templates", "t", name): Value(text, "flag", "") for name, text in fields.items()
    }
    fired = settle(registry, Config(values), TICK)
    assert fired.job_id


ACTS: dict[str, Callable[[Registry], None]] = {
    "register": _register,
    "register the first job": _register,
    "register 20 jobs": _register_many,
    "claim": _claim,
    "claim with a stale index": _claim,
    "finish": _finish,
    "finish too late": _finish_late,
    "requeue": _requeue,
    "cancel": _cancel,
    "ask to cancel": _ask_to_cancel,
    "retry": _retry,
    "edit": _edit,
    "next_seq": _next_seq,
    "archive": _archive,
    "restore": _restore,
    "pause": _pause,
    "change slots": _set_slots,
    "fire a schedule": _fire,
}

#: Those that begin where there is no registry yet.
ON_BARE_GROUND = frozenset({"register the first job"})
#: Those that begin with an index that was made for another folder.
ON_COPIED_GROUND = frozenset({"claim with a stale index"})
#: Those that end with a clear refusal when all goes well.
REFUSED = frozenset({"finish too late"})


def perform(act: str, root: str, probe: bool) -> dict[str, Any]:
    """The body of the child: act, then, if asked, try whether the same process can go on."""
    registry = Ground(Path(root)).open()
    answers = {"act": _try(lambda: ACTS[act](registry))}
    if probe:
        with suppress(OSError):
            os.ftruncate(-1, 0)  # does nothing, and is seen: the border between act and probe
        answers["next"] = _try(lambda: registry.register([request(PROBE)]))
    registry.store.close()
    return answers


def rehearse() -> None:
    """Every act once, without a fault, so that a process knows all that it needs for them."""
    with tempfile.TemporaryDirectory(prefix="mam-rehearsal-") as folder:
        for number, act in enumerate(ACTS):
            ground = Ground(Path(folder) / str(number))
            ground.root.mkdir()
            if act not in ON_BARE_GROUND:
                set_stage(ground)
            perform(act, str(ground.root), False)


def _try(call: Callable[[], Any]) -> dict[str, Any]:
    try:
        call()
    except MamError as problem:
        return {"error": type(problem).__name__, "message": str(problem)}
    except BaseException:
        return {"crash": traceback.format_exc()}
    return {"ok": True}


def take_lock_once(root: str) -> None:
    """The body of a child that only recovers."""
    recover(Ground(Path(root)))
