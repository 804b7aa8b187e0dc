"""The figures of publishing: one event as a process, and what the relay does with many.

A publish writes the registry and the outbox and leaves the network to others,
so it is measured against a process that does nothing but import, and against
one that does nothing but connect with paho, publish and hang up.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

import psutil
from paho.mqtt.client import Client, MQTTMessageInfo
from paho.mqtt.enums import CallbackAPIVersion

from bench.effort import Effort
from bench.figures import Figure, Measure, Wrong
from bench.ground import Ground
from bench.processes import MAM, process, python
from bench.rounds import Runner, run
from bench.yardsticks import IMPORTS
from mam_core.config import load
from mam_core.events.broker import EmbeddedBroker
from mam_core.events.embedded import Login, Role
from mam_core.events.servers import SERVERS
from mam_core.operations.relay import new_relay
from mam_core.registry import Registry
from mam_core.wiring import open_registry

_PATIENCE_SEC = 60.0

#: The least that a process needs to hand one event to a broker by paho.
PAHO = """\
import os, sys
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion
client = Client(CallbackAPIVersion.VERSION2)
client.username_pw_set(*os.environ["BENCH_LOGIN"].split())
client.connect("127.0.0.1", int(sys.argv[1]))
client.loop_start()
client.publish(sys.argv[2], sys.argv[3], qos=1).wait_for_publish(60)
client.disconnect()
client.loop_stop()
"""


class Scene(NamedTuple):
    """A registry with one job, and its broker."""

    path: str
    registry: Registry
    job_id: str
    port: int
    login: Login

    @property
    def topic(self) -> str:
        return f"python/mqtt/jobs/{self.job_id}/events"


def publish(ground: Ground) -> list[Figure]:
    """Broker up or down, relay alive or not: an agent must not feel the difference."""
    figures: list[Figure] = []
    with _scene(ground, "publish", SERVERS[0].name) as scene:
        for relayed in (True, False):
            figures += _publish(ground.effort, scene, up=True, relayed=relayed)
    # The scene's broker is gone: what is published now stays in the outbox.
    for relayed in (True, False):
        figures += _publish(ground.effort, scene, up=False, relayed=relayed)
    return figures


def _publish(effort: Effort, scene: Scene, *, up: bool, relayed: bool) -> list[Figure]:
    command = [MAM, "publish", "--registry-dir", scene.path, "--job", scene.job_id]
    command += ["--event", "progress", "--detail", "half of it is done"]
    sides = [
        _quiet(process("ours", command), command),
        process("imports", python(IMPORTS)),
    ]
    if up:
        payload = '{"event": "progress"}'
        os.environ["BENCH_LOGIN"] = " ".join(scene.login)
        paho = python(PAHO, str(scene.port), scene.topic, payload)
        sides.append(process("paho", paho))
    with ExitStack() as stack:
        if relayed:
            stack.enter_context(_relay(scene))
        else:
            # The one that the last publish left behind would serve the next one, and would take
            # a core from whoever is measured beside it.
            sides = [Runner(side.name, side.work, lambda: _end_left(scene)) for side in sides]
            stack.callback(_end_left, scene)
        samples = run(sides, effort.starts)
    words = ["relay alive" if relayed else "no relay", *([] if up else ["broker down"])]
    what = ", ".join(["mam publish", *words])
    imports = IMPORTS.removeprefix("import ")
    against = f"importing {imports}"
    ours = samples["ours"]
    made = [Figure("publish", what, against, Measure.COST, ours, samples["imports"], 1.7)]
    if up:
        one = "a paho process that connects, publishes once and disconnects"
        made.append(Figure("publish", what, one, Measure.COST, ours, samples["paho"], 0.5))
    return made


def _end_left(scene: Scene) -> None:
    """End the relays that were left behind, also those that have not come so far as their lock."""
    for each in psutil.process_iter():
        with suppress(psutil.Error):
            words = each.cmdline()
            if scene.path in words and any("left_relay" in word for word in words):
                each.kill()
                each.wait(_PATIENCE_SEC)


def _quiet(runner: Runner, command: list[str]) -> Runner:
    """As `process`, for a command that may say on stderr that its event is queued."""

    def work() -> int:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        if done.returncode or not _is_quiet(done.stderr):
            raise Wrong(f"mam publish ended with {done.returncode}: {done.stderr.decode()}")
        return 1

    return Runner(runner.name, work)


def _is_quiet(said: bytes) -> bool:
    return not said or (said.startswith(b"mam: queued") and said.count(b"\n") == 1)


def relay(ground: Ground) -> list[Figure]:
    figures = []
    for server in SERVERS:
        if server.find() is None:
            continue
        with _scene(ground, f"relay-{server.name}", server.name) as scene:
            figures.append(_relayed(ground.effort, scene, server.name))
    return figures


def _relayed(effort: Effort, scene: Scene, name: str) -> Figure:
    """The outbox is full when the clock starts, and empty when it stops."""
    registry, count = scene.registry, effort.events

    def fill() -> None:
        for number in range(count):
            registry.publish(scene.job_id, "progress", detail=f"step {number} of a long walk")

    def drain() -> int:
        if not registry.store.outbox.ring():
            raise Wrong("the relay is gone")
        _await(lambda: not registry.store.outbox.posts(1), "the outbox is not emptied")
        return count

    payload = registry.publish(scene.job_id, "progress").event.encode(None)
    with _relay(scene), _paho(scene) as client:

        def bare() -> int:
            sent = [client.publish(scene.topic, payload, qos=1) for _ in range(count)]
            _await(lambda: all(map(MQTTMessageInfo.is_published, sent)), "not acknowledged")
            return count

        samples = run([Runner("ours", drain, fill), Runner("bare", bare)], effort.rounds)
    _check_history(scene)
    against = "a bare paho QoS 1 loop"
    what = f"relay, {count} events of one job, {name}"
    return Figure("relay", what, against, Measure.SPEED, samples["ours"], samples["bare"], 0.5)


def _check_history(scene: Scene) -> None:
    lines = scene.registry.store.audit.events(scene.job_id)
    told = [line["seq"] for line in lines if line["event"] == "published"]
    if told != list(range(1, scene.registry.get(scene.job_id).last_seq + 1)):
        raise Wrong("an event is missing in the history, or stands there twice")


@contextmanager
def _scene(ground: Ground, name: str, kind: str) -> Iterator[Scene]:
    path = ground.path(name)
    server = next(each for each in SERVERS if each.name == kind)
    with (
        EmbeddedBroker(path, servers=(server,)).ensure_running() as keeper,
        open_registry(path) as registry,
    ):
        job_id = registry.register(ground.new_jobs(1))[0].job_id
        yield Scene(path, registry, job_id, keeper.port, keeper.login(Role.OPERATOR))


@contextmanager
def _relay(scene: Scene) -> Iterator[None]:
    """A relay in a thread, with a registry of its own, as a worker has one."""
    stop = threading.Event()
    with open_registry(scene.path) as registry:
        made = new_relay(registry, scene.path, load())
        thread = threading.Thread(target=made.run, args=(stop,))
        thread.start()
        try:
            _await(scene.registry.store.outbox.ring, "no relay listens")
            yield
        finally:
            stop.set()
            thread.join()


@contextmanager
def _paho(scene: Scene) -> Iterator[Client]:
    client = Client(CallbackAPIVersion.VERSION2)
    client.username_pw_set(*scene.login)
    up = threading.Event()
    client.on_connect = lambda *_: up.set()
    client.connect("127.0.0.1", scene.port)
    client.loop_start()
    try:
        if not up.wait(_PATIENCE_SEC):
            raise Wrong("the broker does not answer")
        yield client
    finally:
        client.disconnect()
        client.loop_stop()


def _await(is_so: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _PATIENCE_SEC
    while not is_so():
        if time.monotonic() > deadline:
            raise Wrong(otherwise)
        time.sleep(0.001)


FIGURES: Mapping[str, Callable[[Ground], list[Figure]]] = {
    "publish": publish,
    "relay": relay,
}
