"""The registry's own broker: is there a program for it, and does what is written down still live?

Nothing depends on it but how fast news travel.
"""

from __future__ import annotations

import fcntl
import math
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from mam_core.doctor.findings import Area, Finding, Fix, Mended, note, ok, warning
from mam_core.doctor.ground import Ground, Look
from mam_core.errors import MamError
from mam_core.events.connection import is_embedded_meant
from mam_core.events.embedded import BrokerFolder
from mam_core.events.handshake import ACCEPTED, connack
from mam_core.events.running import Running, read_running
from mam_core.events.servers import NoBroker, choose
from mam_core.events.watcher import KEEP, LOCK, RUNNING
from mam_core.operations.broker import status

_AREA = Area.BROKER
_PATIENCE_SEC = 3.0


def program(look: Look) -> Iterator[Finding]:
    config = look.ground.config
    if not is_embedded_meant(config):
        yield ok(_AREA, "address", f"new events go to {config.broker.host or 'the one named'}")
        return
    try:
        server, found = choose()
    except NoBroker as trouble:
        advice = "install mosquitto, or name a broker in mam.toml; jobs run all the same"
        yield warning(_AREA, "program", trouble.message, advice=advice)
    else:
        yield ok(_AREA, "program", f"{server.name} {found.version}, {found.path}")


def answers(look: Look) -> Iterator[Finding]:
    """A broker that somebody named: is anybody there, and are we let in?

    Of one that talks TLS only the port is tried; certificates are the client's business.
    """
    settings = look.ground.config.broker
    if is_embedded_meant(look.ground.config) or settings.host is None:
        yield ok(_AREA, "address", "the registry's own; a command that stays starts it")
        return
    where = f"{settings.host}:{settings.port}"
    advice = "start it, or mend [broker] in mam.toml; events wait on disk until then"
    try:
        if settings.tls:
            socket.create_connection((settings.host, settings.port), _PATIENCE_SEC).close()
            yield ok(_AREA, "answer", f"something listens on {where}")
            return
        code = connack(
            settings.host, settings.port, settings.username, settings.secret(), _PATIENCE_SEC
        )
    except OSError as trouble:
        words = f"{where} does not answer: {trouble.strerror or trouble}"
        yield warning(_AREA, "answer", words, rule="answer", advice=advice)
        return
    if code == ACCEPTED:
        yield ok(_AREA, "answer", f"{where} lets us in")
    else:
        words = f"{where} turns us away (CONNACK {code})"
        advice = "look at username and password_file of [broker]"
        yield warning(_AREA, "answer", words, rule="answer", advice=advice)


def relay(look: Look) -> Iterator[Finding]:
    """Who sends events on; one that is stopped keeps its lock until another is started."""
    try:
        sign = look.ground.registry.store.outbox.relay()
    except (OSError, MamError):
        return  # the store's own check says what is wrong with it
    if sign is None or not sign.is_quiet:
        return
    since = "is stopped" if math.isinf(sign.silent_sec) else f"silent for {sign.silent_sec:.0f} s"
    words = f"the relay of this registry, {sign.who}, {since}: it sends no events"
    advice = "`mam relay --once` takes over and sends what is queued; `fg` continues a stopped one"
    yield warning(_AREA, "relay", words, rule="silent", advice=advice)


def state(look: Look) -> Iterator[Finding]:
    try:
        home = BrokerFolder.open(look.ground.registry_path)
    except FileNotFoundError:
        return
    with home:
        running = read_running(home)
        # Whoever starts it holds the lock meanwhile, and so does the broker itself.
        is_kept = _is_locked(home, KEEP)
        is_down = is_kept and not _is_locked(home, LOCK)
    if running is None:
        if is_down and is_embedded_meant(look.ground.config):
            yield _down("it does not run")
        return
    if running.server.is_alive and running.watcher.is_alive:
        now = status(look.ground.registry_path)
        words = f"{now.kind} {now.version} on {now.host}:{now.port}, pid {now.pid}"
        yield ok(_AREA, "running", words)
    elif running.server.is_alive:
        words = f"its process {running.server.pid} lives, and nobody watches it any more"
        fix = Fix("end it: whoever needs it starts it anew", partial(_end, running))
        yield warning(_AREA, "running", words, fix, "orphan")
    elif is_down:
        yield _down(f"its process {running.server.pid} is dead")
    elif not is_kept:
        words = f"its process {running.server.pid} is dead, and its file says that it runs"
        fix = Fix(f"remove {RUNNING}", partial(_forget, look.ground))
        yield note(_AREA, "running", words, fix, "dead")


def _down(words: str) -> Finding:
    """Whoever keeps it tries again and again, and has said why it does not start."""
    advice = "`mam broker` in a terminal shows why it does not start; jobs run all the same"
    words = f"{words}, though a command keeps it"
    return warning(_AREA, "running", words, rule="down", advice=advice)


def _is_locked(home: BrokerFolder, name: str) -> bool:
    """Somebody holds it, shared or not. Ours for a moment otherwise, which disturbs nobody: all
    who want it try again."""
    try:
        fd, _ = home.folder.open_file(name)
    except (OSError, MamError):
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def _end(running: Running) -> Mended:
    if running.watcher.is_alive:
        return Mended(True, "the broker is watched by now")
    running.server.send(signal.SIGTERM)
    return Mended(True, f"the broker (pid {running.server.pid}) was asked to end")


def _forget(ground: Ground) -> Mended:
    """Only with the broker's own lock, which is free exactly when no broker is left."""
    with BrokerFolder.open(ground.registry_path) as home:
        fd = home.folder.open_in_place(LOCK, os.O_RDWR)
        try:
            with suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                home.folder.remove(RUNNING)
                return Mended(True, f"{RUNNING} is removed")
        finally:
            os.close(fd)
    return Mended(False, "a broker is being started: nothing was done")
