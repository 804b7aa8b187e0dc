"""Bring what waits in the outbox to the brokers: as a thread, as a command, or left behind."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from mam_core.config import Config
from mam_core.disk import explain
from mam_core.own_python import own_python
from mam_core.registry import Registry

if TYPE_CHECKING:
    from mam_core.events.relay import Left, Relay, Stop

__all__ = [
    "LINGER_SEC",
    "PATIENCE_SEC",
    "drain",
    "leave_behind",
    "new_relay",
    "waits_for_embedded",
]

#: How long one that is not to live long waits for a broker that is down.
PATIENCE_SEC = 15.0
#: How long it waits for one more event: the next process of an agent need not start another.
LINGER_SEC = 2.0

#: What the one left behind gets of our environment: where things are and how to log in. Nothing
#: about a job: whoever ends an agent by its variables must not find a relay.
_KEPT: tuple[str, ...] = (
    "HOME",
    "PATH",
    "TMPDIR",
    "LANG",
    "USER",
    "LOGNAME",
    "XDG_CONFIG_HOME",
    "MAM_CONFIG",
    "MAM_STORE",
)
_KEPT += ("DELEGATE_JOB_LOGS_DIR", "VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR")
_KEPT_KINDS = ("MQTT_", "PYTHON", "PG")

#: So many posts are looked at to learn where they want to go.
_LOOKED_AT = 100

_left: list[int] = []

_START = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from mam_core.operations.left_relay import main; main(*sys.argv[1:])"
)


def new_relay(registry: Registry, registry_path: str, config: Config) -> Relay:
    """A relay for `Relay.run` in a thread of a long-lived process."""
    from mam_core.events.connecting import Sender
    from mam_core.events.connection import resolve
    from mam_core.events.relay import Relay
    from mam_core.record_parts import Broker
    from mam_core.wiring import mqtt_client

    def dial(broker: Broker) -> Sender:
        # By a callable: it is asked again at the last moment, since the broker may move.
        return mqtt_client(lambda: resolve(broker, config, registry_path=registry_path))

    return Relay(registry, dial)


def drain(
    registry: Registry,
    registry_path: str,
    config: Config,
    stop: Stop,
    *,
    patience_sec: float,
    linger_sec: float = 0.0,
) -> Left | None:
    """Until the outbox is empty or patience ends; None when another relay is at work."""
    from mam_core.wiring import outbox_path

    relay = new_relay(registry, registry_path, config)
    try:
        return relay.drain(stop, patience_sec=patience_sec, linger_sec=linger_sec)
    except OSError as problem:
        raise explain(problem, f"cannot use {outbox_path(registry_path)}") from problem


def waits_for_embedded(registry: Registry, registry_path: str) -> bool:
    """Something is queued that only the registry's own broker can take."""
    from mam_core.events.embedded import Role, with_login

    brokers = {post.broker[:5]: post.broker for post in registry.store.outbox.posts(_LOOKED_AT)}
    return any(with_login(registry_path, each, Role.OPERATOR) for each in brokers.values())


def leave_behind(registry_path: str, *, config_path: str | None = None) -> bool:
    """Start a relay that outlives us, holds nothing of ours and ends when its work is done.

    False when none can be started: the event is in the outbox, and the next relay takes it.
    Not by `subprocess`, whose import alone takes as long as the rest of a publish.
    """
    environ = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or name.startswith(_KEPT_KINDS)
    }
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    command = [*own_python(), "-c", _START, source, registry_path]
    if config_path:
        command.append(os.path.abspath(config_path))
    nowhere = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
    for pid in list(_left):  # of a process that lives long enough to see them end
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                continue
        _left.remove(pid)
    try:
        _left.append(os.posix_spawn(sys.executable, command, environ, file_actions=nowhere))
    except OSError:
        return False
    return True
