"""Relays and publishers for tests: real ones, in threads and processes; none is left behind."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from mam_core.config import load
from mam_core.operations.relay import new_relay
from mam_core.registry import Registry
from mam_core.wiring import open_registry
from mam_core.work.processes import pids, read_fact
from tests.support.patience import PATIENCE_SEC, eventually

#: Publishes events of one job in one process, each acknowledged by a line with its number.
PUBLISHER = """
import sys
from mam_core.wiring import open_registry
with open_registry(sys.argv[1]) as registry:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(sys.argv[3])):
        print(registry.publish(sys.argv[2], "progress", detail=str(number)).seq, flush=True)
        registry.store.outbox.ring()
"""

#: A relay as a process of its own.
RELAY = """
import sys, threading
from mam_core.config import load
from mam_core.operations.relay import new_relay
from mam_core.wiring import open_registry
with open_registry(sys.argv[1]) as registry:
    print("ready", flush=True)
    new_relay(registry, sys.argv[1], load()).run(threading.Event())
"""


@contextmanager
def relay_in_thread(registry_path: Path) -> Iterator[None]:
    """What a worker or a console has: a relay beside its own work."""
    with open_registry(str(registry_path)) as registry:
        stop = threading.Event()
        relay = new_relay(registry, str(registry_path), load())
        thread = threading.Thread(target=relay.run, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(PATIENCE_SEC)
            assert not thread.is_alive()


def left_behind(registry_path: Path) -> list[psutil.Process]:
    """The relays that publishers left behind for this registry."""
    place, found = os.fsencode(registry_path), []
    for pid in pids():
        words = read_fact(pid, "cmdline").split(b"\0")
        if place in words and any(b"left_relay" in word for word in words):
            with suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(pid))
    return found


@contextmanager
def none_left_behind(registry_path: Path) -> Iterator[None]:
    """Ends the relays that were left behind; without a broker they would wait for one a while."""
    try:
        yield
    finally:
        for process in left_behind(registry_path):
            process.kill()
            process.wait(PATIENCE_SEC)


def published(registry: Registry, job_id: str) -> list[int]:
    """The numbers of the events that history tells of, in its order."""
    audit = registry.store.audit
    return [line["seq"] for line in audit.events(job_id) if line["event"] == "published"]


def payload_of(registry: Registry, job_id: str, seq: int) -> dict[str, Any]:
    lines = (line for line in registry.store.audit.events(job_id) if line.get("seq") == seq)
    content: dict[str, Any] = next(line for line in lines if line["event"] == "published")[
        "payload"
    ]
    return content


def waiting(registry: Registry) -> list[tuple[str, int]]:
    return [(post.job_id, post.seq) for post in registry.store.outbox.posts(100_000)]


def until_empty(registry: Registry, seconds: float = 3 * PATIENCE_SEC) -> None:
    deadline = time.monotonic() + seconds
    while left := registry.store.outbox.posts(5):
        assert time.monotonic() < deadline, f"still queued: {left}"
        time.sleep(0.05)


def until_published(registry: Registry, job_id: str, seq: int) -> None:
    eventually(lambda: seq in published(registry, job_id), f"event {seq} of {job_id} published")
