"""The embedded broker of a registry: run it, keep it while a command lives, tell how it stands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from mam_core import wiring
from mam_core.audit import warn
from mam_core.config import Config
from mam_core.errors import MamError
from mam_core.events.connection import is_embedded_meant
from mam_core.events.embedded import BrokerStatus

__all__ = ["BrokerStatus", "Kept", "keep_broker", "keep_running", "status"]


class Kept(NamedTuple):
    """How a long-lived command stands to the embedded broker."""

    is_meant: bool = True  #: False: the configuration sends new events to another one
    trouble: str | None = None  #: why it does not run, in a sentence


def keep_running(registry_path: str) -> AbstractContextManager[object]:
    """Start it unless it runs, and keep it until the answer is closed.

    Raises `NoBroker` where the machine has no program for it; nothing else depends on one.
    """
    return wiring.embedded_broker(registry_path).ensure_running()


@contextmanager
def keep_broker(registry_path: str, config: Config) -> Iterator[Kept]:
    """For long-lived commands: the embedded broker runs while the block does.

    Unless the configuration names another one. A broker that cannot be had
    stops nobody: that is said once, as a warning, the directory alone is left,
    and it is tried again as long as the block lasts.
    """
    if not is_embedded_meant(config):
        yield Kept(is_meant=False)
        return
    try:
        keeper = wiring.embedded_broker(registry_path).ensure_running(or_later=True)
    except MamError as problem:  # the folder itself: not ours, or no room in it
        warn(problem.message)
        yield Kept(trouble=problem.message)
        return
    with keeper:
        trouble = keeper.trouble.message if keeper.trouble else None
        if trouble:
            warn(trouble)
        yield Kept(trouble=trouble)


def status(registry_path: str) -> BrokerStatus:
    """Looks only: asking about a broker makes neither a registry nor a port."""
    return wiring.embedded_broker(registry_path).status()
