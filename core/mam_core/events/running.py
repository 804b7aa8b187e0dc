"""The pid file of the embedded broker: what its watcher wrote down, read with suspicion.

Whether the processes named there still live is asked of the kernel, each time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from mam_core.errors import StoreError
from mam_core.events.embedded import BrokerFolder
from mam_core.events.watcher import RUNNING
from mam_core.process_mark import ProcessMark

_LIMIT = 64 * 1024


@dataclass(frozen=True, slots=True)
class Running:
    """What the watcher wrote down."""

    server: ProcessMark
    watcher: ProcessMark
    kind: str
    version: str
    port: int
    since_boot: float


def read_running(home: BrokerFolder) -> Running | None:
    """What the last watcher wrote down; None when there is nothing, or nothing sensible."""
    try:
        data, _ = home.folder.read(RUNNING, _LIMIT)
        facts = json.loads(data)
        return Running(
            server=ProcessMark.from_dict(facts["server"]),
            watcher=ProcessMark.from_dict(facts["watcher"]),
            kind=str(facts["kind"]),
            version=str(facts["version"]),
            port=int(facts["port"]),
            since_boot=float(facts["since_boot"]),
        )
    except (OSError, StoreError, KeyError, TypeError, ValueError):
        return None
