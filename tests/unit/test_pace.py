"""How long loops pause between two looks: as usual, or less where the environment says so."""

from __future__ import annotations

import pytest

from mam_core.pace import POLL_VARIABLE, paced, paced_retry


def test_without_the_variable_a_pause_is_the_usual_one(usual_pace: None) -> None:
    assert paced(0.5) == 0.5


def test_the_variable_caps_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(POLL_VARIABLE, "0.1")
    assert [paced(usual) for usual in (2.0, 0.1, 0.05)] == [0.1, 0.1, 0.05]


def test_it_caps_the_pause_before_a_try_to_connect_ten_times_higher(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(POLL_VARIABLE, "0.1")
    assert [paced_retry(usual) for usual in (2.0, 0.5)] == [1.0, 0.5]


@pytest.mark.parametrize("said", ["", "soon", "0", "-1", "nan", "inf"])
def test_what_is_no_positive_number_caps_nothing(
    monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setenv(POLL_VARIABLE, said)
    assert paced(0.5) == 0.5
