"""Run the jobs of a session: a worker, with all that goes with it while it lives."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial

from mam_core.agents.profiles import Profile, profile_of, served_by_default
from mam_core.audit import warn
from mam_core.config import Config
from mam_core.dispatch.counterpart import counterparts
from mam_core.errors import ConfigError, RegistryGone
from mam_core.operations.announcing import Shown, announcing
from mam_core.operations.answering import answering
from mam_core.operations.live_work import LivePlace, live_worker
from mam_core.operations.on_duty import on_duty
from mam_core.operations.public_brokers import warning_of
from mam_core.pace import PARTING_SEC, paced
from mam_core.registry import Registry
from mam_core.store_urls import StoreKind, StoreUrl
from mam_core.tmux.facts import Hand
from mam_core.wiring import open_registry
from mam_core.work.caps import Caps
from mam_core.work.decision import BackOff
from mam_core.work.placard import Placard
from mam_core.work.relocation import Relocation
from mam_core.work.screen import Screen
from mam_core.work.worker import Stops, Until, Work, Worker

__all__ = ["Screen", "Stops", "Until", "work"]

#: A registry folder that is not there, or is another one, in so many looks in a row is gone; one
#: that was moved away for a moment is not.
_GONE_LOOKS = 5
_GONE_LOOK_SEC = 1.0
#: Without a right to the bytes: closing any other handle of a database would undo SQLite's locks.
_HELD = getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC

#: How a worker is made of its parts.
Make = Callable[
    [Work, Callable[[], Registry], Callable[[str], Profile], Screen, Stops],
    Worker,
]


def work(
    registry_path: str,
    config: Config,
    agent_session: str,
    stops: Stops,
    *,
    agents: Sequence[str] = (),
    slots: int = 1,
    until: Until = Until.STOPPED,
    screen: Screen | None = None,
    config_path: str | None = None,
    allow_network: bool = False,
    relocation: Relocation | None = None,
    beside: AbstractContextManager[object] | None = None,
    live: LivePlace | None = None,
    pane: Hand | None = None,
    make: Make | None = None,
) -> Worker:
    """Claim and run jobs of this label until the work is done or `stops` says so.

    `agents` are the profiles that are served; none named means all but those that are served
    only by name. `beside` is entered when all is well so far, and left when nothing runs any
    more. `live` is the pane of an interactive agent, `pane` the one that any other worker of a
    session lives in: what it works on is written there. `make` makes another worker than usual.
    The answer says how many attempts were made. Raises `RegistryGone` when a worker that is to end
    by itself lost its registry: it would wait for ever for a place to write its results to.
    """
    defaults = config.defaults
    plan = Work(
        agent_session,
        tuple(dict.fromkeys(agents)) if live else _served(config, agents),
        slots,
        until,
        defaults.heartbeat_sec,
        defaults.lease_sec,
        defaults.grace_sec,
        registry_path,
        relocation,
        BackOff(defaults.retry_sec, defaults.retry_factor, defaults.retry_max_sec),
        defaults.output_max,
        Caps.of_settings(config),
        defaults.tool_timeout_sec,
    )
    # Slots and schedules follow the files; how a job is run stays as it was at the start.
    renewed = config.copy()
    opened = partial(open_registry, registry_path, config=renewed, allow_network=allow_network)
    screen = screen or Screen()
    profiles = partial(profile_of, config)
    hand = live.hand if live is not None else pane
    placard = Placard(hand) if hand is not None else None
    if live is not None:
        worker = live_worker(live, plan, opened, profiles, screen, stops, counterparts(), placard)
    elif make is not None:
        worker = make(plan, opened, profiles, screen, stops)
    else:
        worker = Worker(plan, opened, profiles, screen, stops, counterparts(), placard)
    if warning := warning_of(None, config, registry_path):
        warn(warning)
    duty = on_duty(registry_path, renewed, config_path=config_path, allow_network=allow_network)
    shown = Shown(agent_session, plan.agents, slots, lambda: worker.running)
    waits = until is Until.STOPPED
    try:
        with (
            nullcontext() if waits else _ended_without(_homes(registry_path, config), stops),
            opened() as registry,
            beside or nullcontext(),
            duty as worker.look_again,
            announcing(registry, registry_path, config, shown),
            answering(registry, registry_path, config),
        ):
            if removal := registry.store.removal():
                warn(removal)
            worker.run()
    finally:
        if placard is not None:
            placard.close()
        screen.close()
    if worker.vanished and not waits:
        raise RegistryGone(
            f"the record of job {worker.vanished} was removed from {registry_path} while it ran: "
            "its result is lost"
        )
    return worker


@contextmanager
def _ended_without(homes: Sequence[str], stops: Stops) -> Iterator[None]:
    """End what runs when one of these is removed or replaced, and raise `RegistryGone`.

    Only the thread looks: a disk that hangs holds it, and not the end of the worker.
    """
    over = threading.Event()
    held: dict[str, int] = {}  #: while it is open, nothing else gets its number
    missing: str | None = None

    def gone() -> str | None:
        for path in homes:
            if path not in held:
                with suppress(OSError):  # the first worker of all makes it
                    held[path] = os.open(path, _HELD)
            elif not _is_same(path, held[path]):
                return path
        return None

    def look() -> None:
        nonlocal missing
        missed = 0
        while missed < _GONE_LOOKS and not over.wait(paced(_GONE_LOOK_SEC)):
            missed = missed + 1 if gone() else 0
        if not over.is_set():
            stops.hand_back()
            over.wait()
        missing = gone()
        for fd in held.values():
            os.close(fd)

    gone()
    thread = threading.Thread(target=look, name="mam-registry-gone", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(PARTING_SEC)
    if missing is not None:
        raise RegistryGone(
            f"{missing} was removed or replaced while this worker ran: "
            "what it could not write is lost"
        )


def _homes(registry_path: str, config: Config) -> tuple[str, ...]:
    """The folder of the registry, and the file of one that is kept in SQLite."""
    url = StoreUrl.parse(config.store.url or "")
    return (registry_path, url.place) if url.kind is StoreKind.SQLITE else (registry_path,)


def _is_same(path: str, fd: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except OSError:
        return False


def _served(config: Config, named: Sequence[str]) -> tuple[str, ...]:
    """A name that nobody knows is said before anything is claimed; of those that were not named,
    one that cannot be run from here is left to others, and its jobs stay pending."""
    for name in named:
        if not profile_of(config, name).is_headless:
            raise ConfigError(f"{name} is interactive: it runs in a session, not in a worker")
    if named:
        return tuple(dict.fromkeys(named))
    served = []
    for name in served_by_default(config):
        try:
            if profile_of(config, name).is_headless:
                served.append(name)
        except ConfigError as problem:
            warn(f"agent {name} is not served: {problem}")
    return tuple(served)
