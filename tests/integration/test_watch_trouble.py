"""``mam watch`` and ``mam wait`` while things break: brokers, folders, what a machine lacks."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from mam_core.cli.main import main
from mam_core.config import load
from mam_core.events import public_brokers, servers
from mam_core.events.connection import BrokerUnreachable
from mam_core.events.feed import Feed, Item, JobChanged
from mam_core.operations.publish import publish
from mam_core.operations.watch import Watch
from mam_core.records import Status
from mam_core.wiring import open_registry
from tests.support.brokers import nothing_left
from tests.support.handles import close_later
from tests.support.jobs import LABEL, add
from tests.support.patience import PATIENCE_SEC, eventually
from tests.support.relays import none_left_behind, published
from tests.support.watching import Site, Watched, begun


@pytest.fixture(params=["nats", "mosquitto"])
def quiet_site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A Mosquitto is not started; the embedded NATS is, by the first command that keeps it."""
    with nothing_left(tmp_path):
        made = Site(tmp_path, request.param)
        with none_left_behind(made.path):
            yield made
        made.close()


@pytest.fixture
def site(quiet_site: Site) -> Site:
    quiet_site.start_broker()
    return quiet_site


def test_a_broker_killed_in_the_middle_of_500_events_costs_nothing(site: Site) -> None:
    """G3, G9, G14: every event once on stdout, in order."""
    job_id = site.register()
    may_end = threading.Event()  # a watch ends with its job, and would have nothing more to say
    with site.watching(job_id) as watched:

        def agent() -> None:
            site_of_its_own = close_later(open_registry(str(site.path), config=site.config))
            with site_of_its_own as registry:
                for number in range(499):
                    publish(
                        registry,
                        str(site.path),
                        site.config,
                        job_id,
                        "progress",
                        detail=f"{number}",
                    )
                may_end.wait(PATIENCE_SEC)
                publish(registry, str(site.path), site.config, job_id, "completed")

        speaking = threading.Thread(target=agent)
        speaking.start()
        watched.until(lambda: len(watched.out) > 100, "it is under way")
        site.kill_broker()
        if site.kind == "mosquitto":
            watched.until(lambda: watched.says("no connection to the broker"), "it is noticed")
            site.start_broker()
        may_end.set()
        speaking.join()
        assert watched.code() == 0
    assert watched.seqs() == list(range(1, 501))
    assert [line.split()[-1] for line in watched.out[:499]] == [str(n) for n in range(499)]
    if site.kind == "mosquitto":  # what was still queued is brought on by a relay left behind
        everything = list(range(1, 501))
        eventually(lambda: published(site.registry, job_id) == everything, "all is published")


def test_after_a_restart_it_listens_again(site: Site) -> None:
    """G9"""
    job_id = site.register()
    with site.watching(job_id) as watched:
        site.publish(job_id, "started")
        watched.until(lambda: len(watched.out) == 1, "the first")
        site.kill_broker()
        if site.kind == "mosquitto":
            site.start_broker()
        watched.until(lambda: len(watched.says("listening to")) == 2, "it listens again")
        site.publish(job_id, "completed")
        assert watched.code() == 0
    assert watched.seqs() == [1, 2]
    assert watched.says("no connection to the broker: ")
    received = [line["seq"] for line in site.audit(job_id, "received")]
    assert received == sorted(set(received))
    assert len(received) + watched.filled() == 2  # what the registry told first, no broker brought


def test_without_its_broker_it_reads_what_is_queued(tmp_path: Path) -> None:
    """Decision 13, G25: a broker that is down for the whole run."""
    with nothing_left(tmp_path):
        site = Site(tmp_path, "mosquitto")
        try:
            job_id = site.register()
            with none_left_behind(site.path), site.mam("watch", job_id) as watched:
                watched.until(lambda: watched.says("no connection to the broker"), "it is said")
                for number in range(50):
                    site.publish(job_id, "progress", detail=f"{number}")
                site.publish(job_id, "completed")
                assert watched.code() == 0
            assert watched.seqs() == list(range(1, 52))
            assert len(watched.says("no connection to the broker")) == 1
            assert watched.says("read from the registry")
            assert watched.err[-1].startswith(f"mam: job {job_id}: completed; 51 events, 51 read")
            assert site.audit(job_id, "received") == []  # nobody brought them
            assert site.audit(job_id, "published") == []
            assert len(site.registry.store.outbox.posts(100)) == 51
        finally:
            site.close()


def test_whoever_watches_brings_the_queued_events_to_the_broker(site: Site) -> None:
    """The relay beside: what was queued before anybody was alive is delivered."""
    job_id, other = site.register(), site.register()
    for _ in range(5):
        site.registry.publish(other, "progress")  # and nobody is started to send it
    with site.watching(job_id) as watched:
        eventually(lambda: published(site.registry, other) == [1, 2, 3, 4, 5], "delivered")
        site.publish(job_id, "completed")
        assert watched.code() == 0
    assert watched.seqs() == [1]


class TestTheFolder:
    @pytest.fixture
    def nats(self, tmp_path: Path) -> Iterator[Site]:
        with nothing_left(tmp_path):
            made = Site(tmp_path, "nats")
            yield made
            made.close()

    @contextmanager
    def _waiting(self, site: Site, job_id: str) -> Iterator[Watched]:
        """``mam wait`` that has begun, as another job shows that has ended already."""
        over = site.register()
        site.registry.set_status(over, Status.COMPLETED)
        with site.mam("wait", over, job_id) as watched:
            watched.until(lambda: watched.out, "it has begun")
            yield watched

    def _waits(self, watched: Watched) -> None:
        threading.Event().wait(3)  # longer than a record may be gone
        assert watched.process.poll() is None, watched.err

    def test_wait_outlives_a_folder_that_is_moved_away_and_back(self, nats: Site) -> None:
        job_id = nats.register()
        with self._waiting(nats, job_id) as watched:
            nats.path.rename(nats.folder / "aside")
            watched.until(lambda: watched.err, "it is said")
            self._waits(watched)
            (nats.folder / "aside").rename(nats.path)
            watched.until(lambda: watched.says("watching "), "it is back")
            nats.registry.set_status(job_id, Status.COMPLETED)
            assert watched.code() == 0
        assert watched.out[1:] == [f"{job_id} completed"]

    def test_a_registry_that_is_replaced_by_an_empty_one_is_the_end(self, nats: Site) -> None:
        job_id = nats.register()
        with self._waiting(nats, job_id) as watched:
            nats.path.rename(nats.folder / "aside")
            nats.path.mkdir(mode=0o700)
            assert watched.code() == 1
        assert watched.out[1:] == [f"{job_id} gone"]

    def test_watch_outlives_it_too(self, nats: Site) -> None:
        job_id = nats.register()
        with nats.watching(job_id) as watched:
            nats.path.rename(nats.folder / "aside")
            watched.until(lambda: watched.says("removed or replaced"), "it is said")
            self._waits(watched)
            (nats.folder / "aside").rename(nats.path)
            watched.until(lambda: watched.says("watching "), "it is back")
            nats.publish(job_id, "completed")
            assert watched.code() == 0
        assert watched.seqs() == [1]
        assert not watched.says("is gone")


class TestWithoutAnyBroker:
    """G25, decision 21: a machine that has no program for one."""

    @pytest.fixture(autouse=True)
    def _no_programs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for kind in (servers.Nats, servers.Mosquitto):
            monkeypatch.setattr(kind, "find", lambda self: None)

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "jobs"

    def test_the_directory_alone_is_enough(
        self, path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        has_begun = begun(monkeypatch)
        with open_registry(str(path)) as registry, none_left_behind(path):
            job_id = add(registry)

            def agent() -> None:
                has_begun.wait(PATIENCE_SEC)
                with open_registry(str(path)) as mine:
                    for event in ("started", "progress", "completed"):
                        publish(mine, str(path), load(), job_id, event)

            speaking = threading.Thread(target=agent)
            speaking.start()
            assert main(["watch", job_id, "--registry-dir", str(path), "--timeout", "60"]) == 0
            speaking.join()
        out, err = capsys.readouterr()
        assert [line.split()[3] for line in out.splitlines()] == [
            "started",
            "progress",
            "completed",
        ]
        assert err.count("there is no broker program for this machine") == 1

    def test_wait_says_nothing_about_it(
        self, path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with open_registry(str(path)) as registry:
            job_id = add(registry)
            later = threading.Timer(0.5, lambda: registry.set_status(job_id, Status.COMPLETED))
            later.start()
            assert main(["wait", job_id, "--registry-dir", str(path)]) == 0
            later.join()
        assert capsys.readouterr() == (f"{job_id} completed\n", "")


def test_a_public_broker_is_warned_of_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """G26, decision 2; nothing is sent there."""

    def refuse(*_: object, **__: object) -> object:
        raise BrokerUnreachable("tests do not go there")

    monkeypatch.setattr("mam_core.wiring.client_for", refuse)
    path = tmp_path / "jobs"
    with open_registry(str(path)) as registry:
        job_id = add(registry, broker={"host": "broker.hivemq.com", "port": 1883})
    capsys.readouterr()
    with nothing_left(tmp_path):
        for _ in range(2):
            assert main(["watch", job_id, "--registry-dir", str(path), "--timeout", "1"]) == 2
            err = capsys.readouterr().err
            assert err.count("public broker broker.hivemq.com: anyone can read and forge") == 1


def told_jobs(monkeypatch: pytest.MonkeyPatch) -> tuple[set[str], threading.Event]:
    """The jobs of which a watch in this very process has told, and whether it has begun."""
    seen: set[str] = set()
    has_begun = threading.Event()
    tell, listen = Watch._tell, Feed.__enter__

    def telling(watch: Watch, items: Sequence[Item]) -> None:
        tell(watch, items)
        seen.update(item.job_id for item in items if isinstance(item, JobChanged))

    def listening(feed: Feed) -> Feed:
        listen(feed)
        has_begun.set()
        return feed

    monkeypatch.setattr(Watch, "_tell", telling)
    monkeypatch.setattr(Feed, "__enter__", listening)
    return seen, has_begun


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_public_broker_of_a_job_that_comes_later_is_warned_of_too(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    form: list[str],
) -> None:
    """G26: `--all` does not know at its start what there will be. Said once for a broker."""
    monkeypatch.setattr(public_brokers, "_PUBLIC", ("localhost",))
    seen, has_begun = told_jobs(monkeypatch)
    path = tmp_path / "jobs"
    with nothing_left(tmp_path), open_registry(str(path)) as registry:
        add(registry)

        def come() -> None:
            has_begun.wait(PATIENCE_SEC)
            ids = set()
            for _ in range(2):
                ids.add(add(registry, broker={"host": "localhost", "port": 1}))
                registry.claim(LABEL)
            eventually(lambda: seen >= ids, "both are seen")
            os.kill(os.getpid(), signal.SIGTERM)  # the watch listens for it: it has told of jobs

        later = threading.Thread(target=come)
        later.start()
        words = ["watch", "--all", *form, "--registry-dir", str(path), "--timeout", "100"]
        assert main(words) == 0
        later.join()
    err = capsys.readouterr().err
    said = "warning: events go to the public broker localhost: anyone can read and forge them"
    assert err.count(said) == 1


def test_the_log_of_a_watch_is_json_to_the_last_line(tmp_path: Path) -> None:
    """Also while the broker is killed: notices are lines like the others."""
    with nothing_left(tmp_path):
        site = Site(tmp_path, "nats")
        job_id = site.register()
        with site.watching(job_id, "--json") as watched:
            site.kill_broker()
            watched.until(
                lambda: [i["notice"] for i in watched.items("notice")].count("broker up") == 2,
                "it is back",
            )
            site.publish(job_id, "completed")
            assert watched.code() == 0
        assert all(isinstance(json.loads(line), dict) for line in watched.out)
        assert "broker down" in [item["notice"] for item in watched.items("notice")]
        site.close()
