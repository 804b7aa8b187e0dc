"""Hosts are seen from afar: by what their workers say to a real broker, and by its will."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial

import pytest
from paho.mqtt.client import MQTTMessageInfo

from mam_core import operations
from mam_core.errors import StoreError
from mam_core.events.keeper import Keeper
from mam_core.nodes import hearing
from mam_core.nodes.status import level
from mam_core.operations.announcing import Shown, announcing
from mam_core.operations.evidence import HostsHeard, Services
from mam_core.operations.nodes import Node, NodeState, drain, nodes, undrain
from mam_core.records import Status
from mam_core.wiring import client_for, node_name
from tests.support.brokers import embedded, kill_server
from tests.support.patience import PATIENCE_SEC, eventually
from tests.support.watching import MAM
from tests.support.working import LABEL, Workshop


@pytest.fixture(params=["nats", "mosquitto"])
def broker(request: pytest.FixtureRequest, shop: Workshop) -> Iterator[Keeper]:
    with embedded(shop.path, str(request.param)).ensure_running() as keeper:
        yield keeper


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine's broker may take longer than a person waits."""
    monkeypatch.setattr(operations.nodes, "PATIENCE_SEC", PATIENCE_SEC)


def seen(shop: Workshop) -> list[Node]:
    found, trouble = nodes(shop.registry, str(shop.path), shop.config)
    assert not trouble
    return found


def run_mam(shop: Workshop, *words: str) -> subprocess.CompletedProcess[str]:
    shop.settle()
    return subprocess.run(
        [*MAM, *words], cwd=shop.folder, capture_output=True, text=True, check=False, timeout=60
    )


def heard_by_mam(shop: Workshop, *form: str) -> subprocess.CompletedProcess[str] | None:
    """A broker that takes longer than a person waits is done without, which is said."""
    done = run_mam(shop, "nodes", *form)
    return None if "only what the records say" in done.stderr else done


def state(shop: Workshop) -> NodeState | None:
    return next((node.state for node in seen(shop)), None)


class TestAWorker:
    def test_shows_itself_while_it_works_and_leaves_nothing(
        self, shop: Workshop, broker: Keeper
    ) -> None:
        shop.agent("slow", "hangs")
        job_id = shop.add("slow")
        with shop.mam_work("--slots", "3") as worker:
            shop.until_status(job_id, Status.RUNNING)
            node = eventually(
                lambda: [n for n in seen(shop) if n.state is NodeState.UP and n.running],
                "its word",
            )[0]
            assert (node.name, node.running) == (node_name(), (job_id,))
            assert (node.slots, node.sessions) == (3, (LABEL,))
            assert node.machine is not None
            assert node.machine.cores >= 1
            assert node.clock_offset is None, "a folder has no clock of its own"
            worker.send(signal.SIGTERM)
            worker.code()
        assert [node.state for node in seen(shop) if node.state is not NodeState.SILENT] == []

    def test_of_another_host_is_known_to_serve_its_label(
        self, shop: Workshop, broker: Keeper, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its processes are not seen from here; in a registry that hosts share its word counts."""
        monkeypatch.setattr(type(shop.registry.store), "secret", "shared")
        monkeypatch.setattr(operations.evidence, "_ANSWER_SEC", PATIENCE_SEC)
        pair = (LABEL, "slow")
        shop.agent("slow", "hangs")
        shop.add("slow")
        nowhere = str(shop.folder / "nowhere")
        with closing(HostsHeard(str(shop.path), shop.config)) as hosts:
            services = Services(shop.registry, nowhere, shop.config, hosts)
            assert services.of([pair])[pair].by is False
            with shop.mam_work() as worker:
                eventually(lambda: services.of([pair])[pair].by, "its word")
                drained = frozenset({node_name()})
                assert services.of([pair], drained)[pair].by is False
                worker.send(signal.SIGTERM)
                worker.code()
        deaf = Services(shop.registry, nowhere, shop.config, lambda _: None)
        assert deaf.of([pair])[pair].by is None, "whoever hears nobody knows nothing"

    def test_that_was_killed_is_missed(self, shop: Workshop, broker: Keeper) -> None:
        """Its last word stays, and when that was; the next worker of the host takes it back."""
        with shop.mam_work() as worker:
            eventually(lambda: state(shop) is NodeState.UP, "its word")
            worker.send(signal.SIGKILL)
            worker.code()
            node = eventually(
                lambda: [n for n in seen(shop) if n.state is NodeState.STALE], "its will"
            )[0]
            assert node.since is not None
        with shop.mam_work() as worker:
            eventually(lambda: state(shop) is NodeState.UP, "the next one")
            worker.send(signal.SIGTERM)
            worker.code()
        eventually(lambda: seen(shop) == [], "both words are taken back")

    def test_is_seen_again_after_its_broker_was_killed(
        self, shop: Workshop, broker: Keeper
    ) -> None:
        with shop.mam_work():
            eventually(lambda: state(shop) is NodeState.UP, "its word")
            kill_server(shop.path)
            eventually(
                lambda: (
                    nodes(shop.registry, str(shop.path), shop.config).nodes
                    and state(shop) is NodeState.UP
                ),
                "its word to the new one",
            )


class TestAHost:
    def test_of_another_name_is_heard_with_the_others(self, shop: Workshop, broker: Keeper) -> None:
        with ExitStack() as both:
            for name in ("oak", "elm.example 별/+#"):
                shop.registry.node = name
                shown = Shown(f"tmux:{name}", ("shell",), 1, tuple)
                both.enter_context(announcing(shop.registry, str(shop.path), shop.config, shown))
            eventually(lambda: len(seen(shop)) == 2, "both words")
            assert [node.name for node in seen(shop)] == ["elm.example 별/+#", "oak"]

    def test_that_has_spoken_is_in_the_first_look_of_anybody(
        self, shop: Workshop, broker: Keeper, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also where that takes longer than any pause that could be made for it."""
        monkeypatch.setattr(hearing, "_QUIET_SEC", 0.0)
        shop.registry.node = "oak"
        shown = Shown("tmux:oak", ("shell",), 1, tuple)
        with announcing(shop.registry, str(shop.path), shop.config, shown):
            eventually(lambda: seen(shop), "its word")
            assert [state(shop) for _ in range(10)] == [NodeState.UP] * 10

    def test_that_is_drained_finishes_and_claims_no_more(
        self, shop: Workshop, broker: Keeper
    ) -> None:
        shop.agent("quick", "behaves")
        with shop.mam_work():
            eventually(lambda: state(shop) is NodeState.UP, "its word")
            assert drain(shop.registry, node_name(), "new disk") == (
                f"node {node_name()} claims no more; what it runs goes on"
            )
            eventually(lambda: state(shop) is NodeState.DRAINING, "its state")
            job_id = shop.add("quick")
            assert shop.registry.claim(LABEL) is None
            undrain(shop.registry, node_name())
            shop.until_status(job_id, Status.COMPLETED)

    def test_with_rubbish_on_its_topic_is_shown_without_it(
        self, shop: Workshop, broker: Keeper
    ) -> None:
        client = client_for(str(shop.path), shop.config)
        client.reach()
        realm = shop.registry.store.realm
        shown = Shown(LABEL, ("shell",), 1, tuple)
        elm = announcing(shop.registry, str(shop.path), shop.config, shown)._look()
        elm = elm._replace(node="elm")
        for worker, payload in (("1", b"{"), ("2", b"x" * 100_000), (elm.worker, elm.encode())):
            topic = f"mam/{realm}/nodes/oak/{level(worker)}/status"
            client.publish(topic, payload, 1, True).wait_for_publish(30)
        client.stop()
        assert seen(shop) == [], "nobody speaks for another host, either"


class TestTheCommand:
    def test_shows_hosts_as_a_table_and_as_json(self, shop: Workshop, broker: Keeper) -> None:
        with shop.mam_work():
            eventually(lambda: state(shop) is NodeState.UP, "its word")
            table, told = (
                eventually(partial(heard_by_mam, shop, *form), "the broker answers in time")
                for form in ((), ("--json",))
            )
            rows = json.loads(told.stdout)
        assert table.returncode == 0
        assert table.stdout.splitlines()[0].split()[:2] == ["NODE", "STATE"]
        assert node_name() in table.stdout
        assert rows[0]["state"] == "up"
        assert rows[0]["versions"]

    def test_without_a_broker_tells_what_the_records_know(self, shop: Workshop) -> None:
        shop.agent("quick", "behaves")
        job_id = shop.add("quick")
        shop.registry.set_status(job_id, Status.RUNNING)
        done = run_mam(shop, "nodes", "--json")
        assert done.returncode == 0
        assert "only what the records say" in done.stderr
        assert json.loads(done.stdout)[0]["state"] == "silent"

    @pytest.mark.parametrize("act", ["drain", "resume"])
    def test_takes_a_host_out_and_back(self, shop: Workshop, act: str) -> None:
        shop.add(shop.agent("quick", "behaves"))
        done = run_mam(shop, "node", act, node_name())
        assert done.returncode == 0
        assert node_name() in done.stderr
        picked = run_mam(shop, "pick", "--agent-session", LABEL)
        assert picked.returncode == (3 if act == "drain" else 0)


def test_words_of_a_dead_worker_of_another_boot_are_taken_back_only_when_old(
    shop: Workshop,
) -> None:
    """Two machines may go by one name; neither is to silence the other."""
    shown = Shown(LABEL, (), 1, tuple)
    announcer = announcing(shop.registry, str(shop.path), shop.config, shown)
    ours = announcer._look()
    is_dead = announcer._is_dead
    assert not is_dead(ours)
    assert not is_dead(ours._replace(boot="another"))
    assert is_dead(ours._replace(boot="another", at=ours.at - 120))
    assert is_dead(ours._replace(worker=f"{os.getpid()}:1"))
    assert not is_dead(ours._replace(worker=f"{os.getpid()}:1", namespace=ours.namespace + 1))


def test_a_worker_tells_how_far_its_clock_is_from_the_database(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And that it does not know, where that cannot be asked just now."""

    def offset() -> float | None:
        shown = Shown(LABEL, (), 1, tuple)
        return announcing(shop.registry, str(shop.path), shop.config, shown)._look().clock_offset

    def is_away() -> float:
        raise StoreError("the database is away")

    assert offset() is None
    monkeypatch.setattr(shop.registry.store, "now", lambda: time.time() + 300)
    assert offset() == pytest.approx(-300, abs=30)
    monkeypatch.setattr(shop.registry.store, "now", is_away)
    assert offset() is None


def test_a_worker_whose_connection_is_lost_as_it_says_goodbye_ends_its_client_all_the_same(
    shop: Workshop, broker: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread would go on connecting, and be heard of again."""

    def lose(*_: object) -> None:
        raise RuntimeError("Message publish failed: The client is not currently connected.")

    shown = Shown(LABEL, (), 1, tuple)
    with announcing(shop.registry, str(shop.path), shop.config, shown):
        eventually(lambda: seen(shop), "its word")
        monkeypatch.setattr(MQTTMessageInfo, "wait_for_publish", lose)
    assert not [one for one in threading.enumerate() if one.name.startswith("paho")]
