"""The view of hosts: what they say to a real broker is seen, and what can be done to them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mam_core.config import load
from mam_core.events import mqtt
from mam_core.machine import Machine
from mam_core.nodes.status import Topics, WorkerStatus
from mam_core.operations.nodes import NodeLooks
from mam_core.registry import Registry
from mam_core.safe_text import safe
from mam_core.wiring import client_for, open_registry
from mam_tui.screens.confirm import Confirm
from mam_tui.screens.forms.line_form import LineForm
from mam_tui.screens.nodes import NodesScreen
from tests.console.detail_story import HOSTILE
from tests.console.staging import Opened, add, opened
from tests.support.brokers import embedded, nothing_left
from tests.support.jobs import WORKER


class Farm:
    """A registry with a broker, and hosts that are only words on it."""

    def __init__(self, path: str, registry: Registry) -> None:
        self.path, self.registry = path, registry
        self.opened = ExitStack()

    def start(self) -> None:
        self.opened.enter_context(embedded(Path(self.path), "nats").ensure_running())

    def stop(self) -> None:
        self.opened.close()

    def says(self, node: str, *, is_gone: bool = False, **changed: Any) -> None:
        """Retained, as of a worker that said it and went on, or was killed."""
        word = WorkerStatus(
            node=node,
            worker="41:900",
            at=time.time(),
            started_at=time.time() - 60,
            version="0.1.0",
            boot="boot-one",
            namespace=7,
            agent_session="tmux:claude",
            agents=("claude-code",),
            slots=4,
            running=(),
            machine=Machine(8, 1.5, 16 << 30, 4 << 30),
        )._replace(**changed)
        topics = Topics.of(self.registry.store.realm, node, word.worker)
        client = client_for(self.path, load())
        client.reach()
        said = [client.publish(topics.status, word.encode(), 1, True)]
        said.append(client.publish(topics.will, b"gone" if is_gone else b"", 1, True))
        for one in said:
            one.wait_for_publish(30)
        client.stop()


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    with nothing_left(tmp_path), open_registry(str(tmp_path / "jobs")) as registry:
        add(registry)
        made = Farm(str(tmp_path / "jobs"), registry)
        made.start()
        yield made
        made.stop()


def states(console: Opened) -> dict[str, str]:
    return {node.name: str(node.state) for node in console.desk.nodes.rows}


def written(folder: Path) -> str:
    (place,) = folder.glob("nodes-*.csv")
    return place.read_text()


async def on(console: Opened, name: str) -> NodesScreen:
    """On the view, with the cursor on this host."""
    await console.press("9")
    view: NodesScreen = await console.until_on(NodesScreen)
    await console.until(lambda: name in states(console), f"{name} is listed")
    view.table.move([node.name for node in console.desk.nodes.rows].index(name))
    await console.pilot.pause()
    return view


async def test_every_host_is_seen_as_it_says_itself(
    farm: Farm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up, stale since when and never idle, silent; load, memory, slots, clock, last word."""
    monkeypatch.chdir(tmp_path)
    ours = farm.registry.claim("tmux:c", lease=WORKER)
    assert ours is not None
    farm.says("elm", running=("job1", "job2"), clock_offset=-300.25)
    now = time.time()
    farm.says("ash", is_gone=True, at=now - 250, running=("job3",))
    async with opened(farm.path, (200, 24), clock=lambda: now) as console:
        await on(console, "elm")
        all_of_them = {"elm": "up", "ash": "stale", farm.registry.node: "silent"}
        await console.until(lambda: states(console) == all_of_them, "every host was heard")
        await console.until_seen("● up", "2/4", "1.5/8", "4.0/16 GiB", "job1 +1", "-300.2s")
        await console.until_seen("✗ stale since 4m1", "unknown", "◌ silent", "never", ours.job_id)
        assert "idle" not in console.text().split("\n", 1)[1]
        await console.press("e")
        await console.until_on(LineForm)
        await console.press("enter")
        await console.until(lambda: console.desk.deeds, "it is written")
        deed = console.desk.deeds[-1]
        assert (deed.ok, deed.command) == (True, "mam nodes --json")
        assert "elm,up," in written(tmp_path)
        await console.pilot.resize_terminal(60, 20)
        await console.until_seen("STATE", "NODE", "RUNS", "FREE", "HEARD", "✗ stale since 4m1")


async def test_a_host_is_drained_and_taken_back_by_key(farm: Farm) -> None:
    farm.says("elm", running=("job1",))
    async with opened(farm.path) as console:
        await on(console, "elm")
        await console.press("r")
        await console.until_told("back to work: nobody has drained it")
        await console.press("m")
        await console.until_told("say: here are hosts: enter shows the jobs of one")
        await console.press("x")
        await console.until_on(Confirm)
        await console.until_seen("Drain elm?", "job1: goes on to its end")
        await console.press("n")  # the way out is the default
        assert not console.desk.deeds
        await console.press("x")
        await console.until_on(Confirm)
        await console.press("y")
        await console.until(lambda: states(console).get("elm") == "draining", "it drains")
        assert console.desk.deeds[-1].command == "mam node drain elm"
        await console.until_seen("◍ draining", "drained")
        await console.press("x")
        await console.until_told("it is drained already; r takes it back")
        await console.press("r")
        await console.until_on(Confirm)
        await console.press("y")
        await console.until(lambda: states(console).get("elm") == "up", "it is back")
        assert console.desk.deeds[-1].command == "mam node resume elm"


async def test_enter_shows_the_jobs_of_a_host(farm: Farm) -> None:
    """And of no other whose name begins alike."""
    for name in ("elm", "elm2"):
        farm.registry.node = name
        add(farm.registry, f"on {name}")
        assert farm.registry.claim("tmux:c")
    farm.says("elm")
    async with opened(farm.path) as console:
        watch = (await on(console, "elm")).watch_nodes
        assert watch.rounds._is_watched
        await console.press("enter")
        await console.until(lambda: console.app.screen is console.app.board, "on the board")
        await console.until(lambda: not watch.rounds._is_watched, "nobody looks at hosts any more")
        assert console.desk.board.filter.text == "node:elm"
        rows = [row.summary.node for row in console.desk.board.view() if row.summary]
        assert rows == ["elm"]
        await console.command("hosts")
        await console.until_on(NodesScreen)


async def test_nothing_is_changed_read_only_or_in_a_held_picture(farm: Farm) -> None:
    farm.says("elm")
    async with opened(farm.path, read_only=True) as console:
        view = await on(console, "elm")
        await console.press("x")
        await console.until_told("this console is read-only")
        await console.press("p")
        await console.until_seen("PAUSED")
        farm.says("ash")
        await console.until(lambda: not view.watch_nodes.rounds._is_watched, "nobody looks")
        assert "ash" not in states(console)
        await console.press("p")
        await console.until(lambda: "ash" in states(console), "it goes on")
        assert not console.desk.deeds


async def test_a_lost_broker_is_said_and_heals(farm: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was heard last stays, dimmed; a drain is the registry's and works all the same."""
    monkeypatch.setattr(mqtt, "_RECONNECT_SEC", (1, 1))
    farm.says("elm")
    async with opened(farm.path) as console:
        view = await on(console, "elm")
        farm.stop()
        await console.until_seen("the broker does not answer: hosts are as they were heard last")
        assert view.table.stale
        assert states(console) == {"elm": "up"}
        await console.press("x")
        await console.until_on(Confirm)
        await console.press("y")
        await console.until_seen("◍ draining")
        farm.start()
        await console.until(lambda: not view.table.stale, "it is heard again")
        assert "does not answer" not in console.text()


async def test_without_a_broker_the_records_speak(tmp_path: Path) -> None:
    with open_registry(str(tmp_path / "jobs")) as registry:
        add(registry)
        job = registry.claim("tmux:c", lease=WORKER)
        assert job is not None
        async with opened(str(tmp_path / "jobs")) as console:
            await on(console, registry.node)
            await console.until_seen("the broker does not answer: hosts cannot be heard", "silent")


async def test_with_no_host_at_all_it_says_what_to_do(farm: Farm) -> None:
    """And with one that has a hostile name, it does nothing that the name says."""
    async with opened(farm.path, (200, 24)) as console:
        await console.press("9")
        await console.until_seen("no host works on this registry just now", "docs/hosts.md")
        await console.press("x", "enter", "e")
        await console.until_told("there is no host here")
        name = HOSTILE.replace("/", "")[:40]
        farm.says(name, agent_session=HOSTILE, version=HOSTILE[:60], running=(HOSTILE,))
        await on(console, name)
        text = console.text()
        assert safe(text, keep="\n") == text
        await console.press("enter")
        await console.until_told("its name cannot be written in a filter")


async def test_a_store_that_cannot_be_read_leaves_the_picture(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said, dimmed, and tried again."""
    farm.says("elm")
    async with opened(farm.path) as console:
        view = await on(console, "elm")
        with monkeypatch.context() as broken:
            broken.setattr(NodeLooks, "look", _no_store)
            await console.until_seen("the database is away", "elm")
            assert view.table.stale
        await console.until(lambda: not view.table.stale, "it heals")


def _no_store(self: NodeLooks) -> None:
    raise OSError("the database is away")
