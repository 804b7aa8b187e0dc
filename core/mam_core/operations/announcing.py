"""Let others see this worker and its host, for as long as it works."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from mam_core.clock import SystemClock
from mam_core.config import Config
from mam_core.errors import MamError
from mam_core.machine import look
from mam_core.nodes.announcer import Announcer
from mam_core.nodes.status import WorkerStatus
from mam_core.process_mark import ProcessMark, pid_namespace
from mam_core.registry import Registry
from mam_core.version import __version__
from mam_core.wiring import client_for

#: A word of another boot may be that of another machine which goes by the same name.
_OLD_SEC = 60.0


class Shown(NamedTuple):
    """What a worker shows of itself; asked anew for each word."""

    agent_session: str
    agents: tuple[str, ...]
    slots: int
    running: Callable[[], tuple[str, ...]]


def announcing(registry: Registry, registry_path: str, config: Config, shown: Shown) -> Announcer:
    """Said to the broker of new jobs; where there is none, nobody hears it, and nothing else."""
    mark = ProcessMark.of(os.getpid())
    assert mark is not None
    started_at = time.time()
    namespace = pid_namespace()
    node = registry.node

    def realm() -> str:
        with registry.store.transaction(create=True):
            pass  # the registry is there now, also where this worker came before the first job
        return registry.store.realm

    def status() -> WorkerStatus:
        return WorkerStatus(
            node,
            _name(mark),
            time.time(),
            started_at,
            __version__,
            mark.boot_id,
            namespace,
            shown.agent_session,
            shown.agents,
            shown.slots,
            shown.running(),
            look(),
            _clock_offset(registry),
        )

    def is_dead(other: WorkerStatus) -> bool:
        if other.boot != mark.boot_id:
            return time.time() - other.at > _OLD_SEC
        return other.namespace == namespace and not _is_alive(other)

    return Announcer(
        lambda: client_for(registry_path, config),
        realm,
        status,
        is_dead,
        config.defaults.heartbeat_sec,
    )


def _clock_offset(registry: Registry) -> float | None:
    """How far this host's clock is ahead of the store's; None where there is nothing to go by.

    A broker has no clock that it tells of: a word that goes there and back shows how long that
    takes, and not what time it is.
    """
    try:
        shared = registry.store.now()
    except (MamError, OSError):
        return None
    return None if shared is None else round(time.time() - shared, 3)


def _name(mark: ProcessMark) -> str:
    return f"{mark.pid}:{mark.started}"


def _is_alive(status: WorkerStatus) -> bool:
    pid, _, started = status.worker.partition(":")
    boot = SystemClock().boot_id()
    return pid.isdigit() and ProcessMark(int(pid), started, boot).is_alive
