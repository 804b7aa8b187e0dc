"""Whoever ends does not wait without limit for a thread that does not move any more."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mam_core.config import Config
from mam_core.operations import side_duty
from mam_tui import bridge, errands
from mam_tui.bridge import Bridge
from tests.support.patience import eventually


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
