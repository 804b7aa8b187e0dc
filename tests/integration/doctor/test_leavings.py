"""What killed processes left in the registry, and what can be said of its place and its broker."""

from __future__ import annotations

import os
import time

from mam_core.events.embedded import BrokerFolder
from mam_core.events.running import read_running
from mam_core.operations.broker import keep_running, status
from mam_core.operations.doctor import Severity
from tests.support.clinic import Clinic
from tests.support.patience import eventually
from tests.support.working import LABEL

OLD = time.time() - 7200


def test_prompt_files_of_attempts_that_do_not_run(shop: Clinic) -> None:
    agent = shop.agent("good", "behaves")
    running, done = shop.add(agent, "one"), shop.add(agent, "two")
    for _ in (running, done):
        shop.ok("pick", "--agent-session", LABEL)
    for job_id in (running, done):
        folder = shop.attempt_folder(job_id)
        folder.mkdir(parents=True)
        (folder / "prompt").write_text("secret")
    shop.ok("status", done, "--set", "completed")
    finding = shop.only("prompts")
    assert finding.words.startswith("1 prompt file ")
    assert shop.mended(finding) == "1 prompt file removed"
    assert (shop.attempt_folder(running) / "prompt").exists()
    assert not (shop.attempt_folder(done) / "prompt").exists()
    assert shop.findings() == []


def test_a_prompt_behind_a_link_is_somebody_elses(shop: Clinic) -> None:
    theirs = shop.folder / "theirs" / "1"
    theirs.mkdir(parents=True)
    (theirs / "prompt").write_text("not yours")
    job_id = shop.add(shop.agent("good", "behaves"))
    shop.attempt_folder(job_id).parent.symlink_to(theirs.parent)
    assert not [finding for finding in shop.findings() if finding.what == "prompts"]
    assert (theirs / "prompt").exists()


def test_temp_files_older_than_an_hour(shop: Clinic) -> None:
    """N33"""
    job_id = shop.add(shop.agent("good", "behaves"))
    shop.ok("pick", "--agent-session", LABEL)
    places = [shop.path, shop.path / ".outbox"]
    for place in places:
        place.mkdir(exist_ok=True, mode=0o700)
        for name, when in ((f".{job_id}.0a.tmp", OLD), (f".{job_id}.0b.tmp", time.time())):
            (place / name).write_text("{")
            os.utime(place / name, (when, when))
    finding = shop.only("temp files")
    assert finding.words.startswith("2 temp files")
    shop.mended(finding)
    left = [path.name for place in places for path in place.glob(".*.tmp")]
    assert left == [f".{job_id}.0b.tmp"] * 2
    assert shop.findings() == []


def test_events_that_wait_for_a_broker(shop: Clinic) -> None:
    job_id = shop.add(shop.agent("good", "behaves"))
    claimed = shop.registry.claim(LABEL)
    assert claimed is not None
    shop.registry.publish(job_id, "progress", detail="half way", attempt=claimed.attempt)
    (post,) = (shop.path / ".outbox").glob("*.json")
    assert shop.findings() == []
    os.utime(post, (OLD, OLD))
    finding = shop.only("events")
    assert finding.words == "no broker took 1 event, the oldest for 2h"
    assert shop.mended(finding) == "a broker has all of them"
    assert shop.findings() == []
    eventually(lambda: not status(str(shop.path)).running, "the broker is gone again")


def test_a_broker_that_was_killed_with_its_watcher(shop: Clinic) -> None:
    shop.add(shop.agent("good", "behaves"))
    shop.ok("pick", "--agent-session", LABEL)
    with keep_running(str(shop.path)):
        with BrokerFolder.open(str(shop.path)) as home:
            running = read_running(home)
        assert running is not None
        assert shop.findings() == []
        text = (shop.path / ".broker" / "running.json").read_bytes()
    eventually(lambda: not running.server.is_alive, "it ends")
    eventually(lambda: not running.watcher.is_alive, "its watcher ends")
    (shop.path / ".broker" / "running.json").write_bytes(text)  # as kill -9 leaves it
    finding = shop.only("running")
    assert f"its process {running.server.pid} is dead" in finding.words
    shop.mended(finding)
    assert shop.findings() == []


def test_a_registry_that_others_may_read(shop: Clinic) -> None:
    job_id = shop.add(shop.agent("good", "behaves"))
    shop.ok("pick", "--agent-session", LABEL)
    shop.path.chmod(0o755)
    (shop.path / f"{job_id}.json").chmod(0o644)
    found = shop.findings()
    assert [one.severity for one in found] == [Severity.WARNING] * 2
    for one in found:
        shop.mended(one)
    assert shop.path.stat().st_mode & 0o777 == 0o700
    assert (shop.path / f"{job_id}.json").stat().st_mode & 0o777 == 0o600
    assert shop.findings() == []


def test_a_record_that_makes_no_sense(shop: Clinic) -> None:
    shop.add(shop.agent("good", "behaves"))
    shop.ok("pick", "--agent-session", LABEL)
    (shop.path / "odd.json").write_text("{")
    (shop.path / "odd.json").chmod(0o600)
    finding = shop.only("job odd")
    assert finding.fix is None


def test_a_registry_that_is_a_link(shop: Clinic) -> None:
    """Nothing is followed, and every check that cannot look says so."""
    (shop.folder / "elsewhere").mkdir()
    shop.path.parent.mkdir()
    shop.path.symlink_to(shop.folder / "elsewhere")
    said = shop.say("doctor", "--fix", "--yes")
    assert said.code == 1
    assert "is a symbolic link" in said.out
    assert list((shop.folder / "elsewhere").iterdir()) == []
