"""Tell an event of a job: numbered and on disk when this returns, at the broker soon after."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any

from mam_core.config import Config
from mam_core.errors import MamError
from mam_core.frozen import frozen
from mam_core.pace import paced
from mam_core.publishing import Published
from mam_core.record_parts import Broker
from mam_core.registry import Registry
from mam_core.rights import Right

#: How long `wait` waits; a relay that is started for it gives up a little earlier.
WAIT_SEC = 20.0

_LOOK_SEC = (0.005, 0.1)
_LOGIN = ("username", "password")


class NotTaken(MamError):
    """No broker has taken the event yet: it is queued."""

    title = "Queued"


class Prospect(StrEnum):
    """What is known about an event's way to its broker when it stands in the outbox."""

    SENT = "sent"  #: a relay has it, and the broker takes events
    WAITS = "waits"  #: a relay has it, and cannot reach the broker
    WOKEN = "woken"  #: a relay has it, and tries the broker now
    STARTED = "started"  #: no relay was alive: one was started
    ALONE = "alone"  #: nor could one be started


@frozen
class Sent:
    """An event that is in the outbox."""

    published: Published
    prospect: Prospect


def publish(
    registry: Registry,
    registry_path: str,
    config: Config,
    job_id: str,
    event: str,
    *,
    detail: str = "",
    data: Mapping[str, Any] | None = None,
    attempt: int | None = None,
    config_path: str | None = None,
) -> Sent:
    """Number it, sync the status, put it into the outbox and see that somebody brings it on."""
    registry.check_allowed(Right.PUBLISH, job_id)
    published = registry.publish(
        job_id,
        event,
        detail=detail,
        data=data,
        attempt=attempt,
        route=_route(registry_path, config),
    )
    with suppress(OSError, MamError):
        # It is numbered and on disk: whatever is wrong with the bell, nobody is to tell it again.
        if registry.store.outbox.ring():
            return Sent(published, _prospect(registry, published.broker))
    from mam_core.operations.relay import leave_behind

    is_started = leave_behind(registry_path, config_path=config_path)
    return Sent(published, Prospect.STARTED if is_started else Prospect.ALONE)


def _prospect(registry: Registry, broker: Broker) -> Prospect:
    """By the word of the relay that was just rung for."""
    match registry.store.outbox.lanes().get(broker.place):
        case None:
            return Prospect.WOKEN
        case is_up:
            return Prospect.SENT if is_up else Prospect.WAITS


def wait_until_taken(registry: Registry, sent: Sent, timeout: float = WAIT_SEC) -> None:
    """Raises `NotTaken` when no broker has it by then."""
    job_id, seq = sent.published.job.job_id, sent.published.seq
    outbox = registry.store.outbox
    deadline = time.monotonic() + timeout
    pause, longest = _LOOK_SEC
    while outbox.holds(job_id, seq):
        if time.monotonic() > deadline:
            raise NotTaken(
                f"event {seq} of job {job_id} is queued: no broker has taken it in {timeout:g} s"
            )
        time.sleep(paced(pause))
        pause = min(longest, pause * 1.5)


def _route(registry_path: str, config: Config) -> Callable[[Broker], Broker] | None:
    """What our own environment says about the broker; the relay's may be another one."""
    corrections = {
        place[1]: said.value
        for place, said in config.values.items()
        if place[0] == "broker" and said.source == "environment" and place[1] in Broker._fields
    }
    if not corrections:
        return None

    def corrected(broker: Broker) -> Broker:
        login = {name: corrections[name] for name in _LOGIN if name in corrections}
        place = {name: value for name, value in corrections.items() if name not in login}
        routed = broker._replace(**place)
        if not login:
            return routed
        from mam_core.events.embedded import Role, with_login

        # The registry's own broker knows no login but those that it made itself.
        is_own = with_login(registry_path, routed, Role.OPERATOR) is not None
        return routed if is_own else routed._replace(**login)

    return corrected
