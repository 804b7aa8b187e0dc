"""A relay that a publisher left behind: a process of its own that ends when its work is done."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from mam_core.config import load
from mam_core.disk import Folder
from mam_core.errors import MamError
from mam_core.operations.relay import LINGER_SEC, PATIENCE_SEC, drain
from mam_core.pace import paced
from mam_core.wiring import open_registry, outbox_path

#: What it has to say; nobody sees its terminal. Begun anew when it has grown beyond the limit.
LOG = "relay.log"
_LOG_BYTES = 64 * 1024
#: Between two looks at a relay that gives no sign of life.
_TRY_SEC = 1.0


def main(registry_path: str, config_path: str | None = None) -> None:
    """Let go of everything that our starter had, then drain the outbox."""
    with suppress(OSError):
        os.setsid()
    # Somebody may wait for the end of a pipe that we inherited.
    os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), 4096))
    config = load(config_path)  # from the folder that the publisher was in
    with open_registry(registry_path, config=config) as registry:
        with Folder.open(outbox_path(registry_path), create=True) as home:
            os.fchdir(home.fd)
            with suppress(OSError, MamError):  # a log that cannot be had keeps no event waiting
                _speak_to(home)
        stop = threading.Event()
        while True:
            left = drain(
                registry,
                registry_path,
                config,
                stop,
                patience_sec=PATIENCE_SEC,
                linger_sec=LINGER_SEC,
            )
            relay = registry.store.outbox.relay() if left is None else None
            if relay is None or not relay.is_quiet:
                return
            stop.wait(paced(_TRY_SEC))  # until it moves again, or is silent for long enough


def _speak_to(home: Folder) -> None:
    log = home.open_in_place(LOG, os.O_WRONLY | os.O_APPEND)
    if os.fstat(log).st_size > _LOG_BYTES:
        os.ftruncate(log, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
