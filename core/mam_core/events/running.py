"""The pid file of the embedded broker: what its watcher wrote down, read with suspicion.

Whether the processes named there still live is asked of the kernel, each time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from mam_core.errors import StoreError
from mam_core.events.embedded import BrokerFolder
from mam_core.events.watcher import RUNNING
from mam_core.process_mark import ProcessMark, is_out_of_view

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
    namespace: int = 0  #: in which both have their pids; 0: not known

    @property
    def server_may_live(self) -> bool:
        return self.server.is_alive or is_out_of_view(self.namespace)

    @property
    def watcher_may_live(self) -> bool:
        """It does, or that cannot be seen from here."""
        return self.watcher.is_alive or is_out_of_view(self.namespace)


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
            namespace=int(facts.get("namespace", 0)),
        )
    except (OSError, StoreError, KeyError, TypeError, ValueError):
        return None
