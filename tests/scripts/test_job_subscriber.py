"""``job_subscriber.py`` for callers who know the original's manual (decision 3, section Q)."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mam_core.operations.publish import publish
from mam_core.records import Status
from mam_core.wiring import open_registry
from tests.scripts.plain import SCRIPTS, run, surroundings
from tests.support.brokers import nothing_left
from tests.support.patience import PATIENCE_SEC
from tests.support.watching import Site, Watched, begun, running

SUBSCRIBER = SCRIPTS / "job_subscriber.py"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with nothing_left(tmp_path):
        made = Site(tmp_path, "nats")
        yield made
        made.close()


def subscriber(site: Site, cwd: Path, *words: str) -> Any:
    """By its path, from anywhere, with nothing of ours in the environment (A15)."""
    command = [sys.executable, str(SUBSCRIBER), *words, "--registry-dir", str(site.path)]
    return running(command, cwd, surroundings())


def until_listening(watched: Watched) -> None:
    watched.until(lambda: watched.says("job_subscriber.py: listening to"), "it listens")


class TestTheScript:
    def test_prints_a_line_an_event_and_exits_0_when_all_completed(
        self, site: Site, here: Path
    ) -> None:
        """G17, G18, G19, E17"""
        jobs = [site.register(), site.register()]
        with subscriber(site, here, "--job", jobs[0], "--job", jobs[1]) as watched:
            until_listening(watched)
            for job_id in jobs:
                site.publish(job_id, "started", "completed")
            assert watched.code() == 0
        assert len(watched.out) == 4
        assert list(here.iterdir()) == []

    def test_exits_1_on_an_error_and_2_when_time_is_over(self, site: Site, here: Path) -> None:
        """G16, G17"""
        job_id = site.register()
        with subscriber(site, here, "--wait-any", "--timeout", "60") as watched:
            until_listening(watched)
            site.publish(job_id, "error", detail="it broke")
            assert watched.code() == 1
        assert watched.out[0].split()[1:4] == [f"job={job_id}", "seq=1", "error"]
        slow = site.register()
        for words in (["--timeout", "1"], ["--idle-timeout", "1"]):
            with subscriber(site, here, "--job", slow, *words) as watched:
                assert watched.code() == 2
            assert watched.out == []

    def test_a_completed_that_the_registry_never_issued_ends_nothing(
        self, site: Site, here: Path
    ) -> None:
        job_id = site.register()
        with subscriber(site, here, "--job", job_id) as watched:
            until_listening(watched)
            site.say(job_id, "completed", seq=1, detail="forged")
            watched.until(lambda: watched.says("(number not issued)"), "it is said")
            site.publish(job_id, "error", detail="it broke")
            assert watched.code() == 1
        assert [line.split()[2:4] for line in watched.out] == [["seq=1", "error"]]

    def test_an_unknown_job_is_1_and_a_wrong_word_is_2(self, site: Site, here: Path) -> None:
        for words, code in ((["--job", "nobody99"], 1), ([], 2), (["--job", "a", "--what"], 2)):
            with subscriber(site, here, *words) as watched:
                assert watched.code() == code
            assert watched.out == []
            assert len(watched.err) == 1
            assert watched.err[0].startswith("job_subscriber.py: ")

    def test_a_python_without_the_libraries_gets_one_sentence(self, site: Site, here: Path) -> None:
        job_id = site.register()
        answer = run(SUBSCRIBER, "--job", job_id, "--registry-dir", site.path, cwd=here)
        assert (answer.returncode, answer.stdout) == (1, "")
        assert "has no watchfiles" in answer.stderr
        assert "Traceback" not in answer.stderr


class TestTheModule:
    @pytest.fixture
    def module(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
        monkeypatch.syspath_prepend(str(SCRIPTS))
        yield importlib.import_module("job_subscriber")
        for name in ("job_subscriber", "mqtt_common"):
            sys.modules.pop(name, None)

    def test_is_a_sibling_of_mqtt_common(self, module: Any) -> None:
        importlib.import_module("mqtt_common")
        assert module.__all__ == ["subscribe"]

    def test_subscribe_answers_with_the_exit_code(
        self,
        site: Site,
        module: Any,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        job_id = site.register()
        has_begun = begun(monkeypatch)

        def agent() -> None:
            has_begun.wait(PATIENCE_SEC)
            with open_registry(str(site.path)) as registry:
                for event in ("started", "completed"):
                    publish(registry, str(site.path), site.config, job_id, event)

        speaking = threading.Thread(target=agent)
        speaking.start()
        code = module.subscribe(job_id, timeout=60, idle_timeout=50, registry_dir=site.path)
        speaking.join()
        assert code == 0
        assert len(capsys.readouterr().out.splitlines()) == 2
        live = site.register()
        assert module.subscribe(wait_any=True, timeout=1, registry_dir=str(site.path)) == 2
        site.registry.set_status(live, Status.ERROR)
        assert module.subscribe([job_id, live], registry_dir=site.path) == 1
