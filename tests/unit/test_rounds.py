"""Looks that are taken again and again, on a thread of their own."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from mam_tui import rounds
from mam_tui.rounds import Rounds
from tests.support.clock import FakeClock
from tests.support.patience import eventually


@pytest.mark.parametrize(("took_sec", "pause_sec"), [(0.0, 3.0), (0.1, 3.0), (1.0, 10.0)])
def test_a_slow_look_is_taken_less_often(
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    usual_pace: None,
    took_sec: float,
    pause_sec: float,
) -> None:
    """It has at most a tenth of the time."""
    monkeypatch.setattr(rounds, "time", SimpleNamespace(monotonic=clock.since_boot))
    made = Rounds("mam-test", lambda: clock.pass_time(took_sec), 3.0)
    pauses: list[float] = []
    wait_for = made._changed.wait_for

    def noted(is_so: Callable[[], bool], timeout: float | None = None) -> bool:
        if timeout is not None:
            pauses.append(timeout)
        return wait_for(is_so, timeout)

    monkeypatch.setattr(made._changed, "wait_for", noted)
    made.watch()
    eventually(lambda: len(pauses) > 1, "it pauses after the first look")
    made.close()
    assert made._thread is not None
    made._thread.join()
    assert pauses == [0.0, pytest.approx(pause_sec)]
