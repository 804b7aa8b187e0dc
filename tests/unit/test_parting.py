"""Whoever ends does not wait without limit for a thread that does not move any more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mam_core.config import Config
from mam_core.operations import side_duty, work
from mam_core.work import bounded_process
from mam_core.work.worker import Stops
from mam_tui import bridge, errands
from mam_tui.bridge import Bridge
from mam_tui.desk import Desk
from mam_tui.travel import reading_past
from mam_tui.travel.reading_past import ReadingPast
from tests.support.patience import PATIENCE_SEC, eventually


@pytest.fixture
def stuck() -> Iterator[threading.Event]:
    """What a thread waits for; it comes when the test is over."""
    event = threading.Event()
    try:
        yield event
    finally:
        event.set()


def test_a_duty_that_hangs_does_not_keep_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stuck: threading.Event
) -> None:
    monkeypatch.setattr(side_duty, "PARTING_SEC", 0.05)
    began = threading.Event()

    def serve(*_: Any) -> None:
        began.set()
        stuck.wait()

    path = str(tmp_path / "jobs")
    with side_duty.side_duty("mam-test", "it is not done", serve, path, Config()):
        began.wait()
    assert not stuck.is_set()


def test_a_disk_that_hangs_does_not_keep_a_worker_that_drains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stuck: threading.Event
) -> None:
    """Whether the registry is still there is looked at beside it."""
    monkeypatch.setattr(work, "PARTING_SEC", 0.05)
    monkeypatch.setattr(work, "_GONE_LOOK_SEC", 0.01)
    began = threading.Event()

    def hangs(*_: Any) -> bool:
        began.set()
        stuck.wait()
        return True

    monkeypatch.setattr(work, "_is_same", hangs)
    with work._ended_without([str(tmp_path)], Stops()):
        assert began.wait(PATIENCE_SEC)
    assert not stuck.is_set()


def test_a_past_that_cannot_be_read_does_not_hold_the_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stuck: threading.Event
) -> None:
    """It was left, and is asked for again, while the disk hangs."""
    monkeypatch.setattr(reading_past, "PARTING_SEC", 0.05)
    began, failed = threading.Event(), threading.Event()

    def hangs(*_: Any) -> Any:
        began.set()
        stuck.wait()
        raise OSError("too late")

    monkeypatch.setattr(reading_past, "loading", hangs)
    desk = Desk(str(tmp_path / "jobs"), Config())
    reading = ReadingPast(desk, lambda _: None, lambda _: None, lambda _: failed.set())
    reading.start(None)
    assert began.wait(PATIENCE_SEC)
    reading.stop()
    reading.start(None)
    reading.close()
    assert reading.is_busy
    stuck.set()
    eventually(lambda: not reading.is_busy, "the second one ends after the first")
    assert failed.is_set()


def test_a_check_that_cannot_be_killed_does_not_keep_who_runs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of another user (sudo), or one that a disk holds."""
    monkeypatch.setattr(bounded_process, "PARTING_SEC", 0.05)
    monkeypatch.setattr(bounded_process, "_GRACE_SEC", 0.05)
    started: list[subprocess.Popen[bytes]] = []
    monkeypatch.setattr(bounded_process, "_signal", lambda process, _: started.append(process))
    ended = bounded_process.run_bounded(["sleep", "600"], str(tmp_path), os.environ, 0.05)
    assert ended.code is None
    started[0].kill()
    started[0].wait()


def test_a_console_is_left_though_its_feed_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stuck: threading.Event
) -> None:
    monkeypatch.setattr(bridge, "PARTING_SEC", 0.05)
    began = threading.Event()

    def hangs(*_: Any, **__: Any) -> Any:
        began.set()
        stuck.wait()
        raise OSError("too late")

    monkeypatch.setattr(bridge, "open_feed", hangs)
    made = Bridge(str(tmp_path / "jobs"), Config(), lambda: None, with_duties=False)
    made.start()
    began.wait()
    made.close()
    assert not stuck.is_set()


def test_a_command_whose_end_hangs_ends_when_it_is_asked_for_the_third_time() -> None:
    program = (
        "import threading\n"
        "from mam_core.cli.interrupts import until_interrupted\n"
        "with until_interrupted() as wish:\n"
        "    print('waits', flush=True)\n"
        "    wish.wait()\n"
        "    print('asked', flush=True)\n"
        "    threading.Event().wait()\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "asked\n"
        assert process.poll() is None
        process.send_signal(signal.SIGINT)  # two of one kind could become one
        assert process.poll() is None

        def is_over() -> bool:
            process.send_signal(signal.SIGTERM)
            return process.poll() is not None

        eventually(is_over, "it ends")
        assert process.returncode == -signal.SIGTERM


def test_an_action_that_hangs_is_given_up_when_the_console_is_left(
    monkeypatch: pytest.MonkeyPatch, stuck: threading.Event
) -> None:
    monkeypatch.setattr(errands, "_PATIENCE_SEC", 0.05)
    errands.beside(stuck.wait)
    assert not errands.await_all()
    (errand,) = [one for one in threading.enumerate() if one.name == "mam-errand"]
    assert errand.daemon  # Python waits for every other kind when it ends, and without limit
    stuck.set()
    monkeypatch.setattr(errands, "_PATIENCE_SEC", 60.0)
    assert errands.await_all()
