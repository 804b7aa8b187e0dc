"""The two clocks of an attempt: what they say, and when they stand still."""

from __future__ import annotations

import pytest

from mam_core.work.patience import Due, Patience


@pytest.fixture
def patience() -> Patience:
    return Patience(1000.0, timeout_sec=100, idle_timeout_sec=20)


def test_a_busy_agent_hears_nothing_until_four_fifths_have_passed(patience: Patience) -> None:
    for second in range(1000, 1080, 5):
        patience.sign_of_life(second)
        assert patience.look(second) is None
    patience.sign_of_life(1080)
    assert patience.look(1080) is Due.TIMEOUT_NEAR
    assert patience.look(1081) is None, "a warning is said once"


def test_the_wall_clock_ends_also_a_busy_agent(patience: Patience) -> None:
    """I6"""
    patience.sign_of_life(1099.9)
    assert patience.look(1100) is Due.TIMEOUT


def test_silence_is_a_hint_then_warned_of_and_then_ends_it(patience: Patience) -> None:
    """I6"""
    assert patience.look(1009) is None
    assert patience.look(1010) is Due.SILENCE
    assert patience.look(1015) is None, "a hint is given once"
    assert patience.look(1016) is Due.IDLE_TIMEOUT_NEAR
    assert patience.look(1017) is None
    assert patience.look(1020) is Due.IDLE_TIMEOUT


def test_a_sign_of_life_begins_the_silence_anew_and_with_it_the_warning(
    patience: Patience,
) -> None:
    assert patience.look(1016) is Due.IDLE_TIMEOUT_NEAR
    patience.sign_of_life(1019)
    assert patience.look(1028) is None
    assert patience.look(1034) is Due.SILENCE
    assert patience.look(1035) is Due.IDLE_TIMEOUT_NEAR


def test_an_old_agent_is_warned_of_its_silence_too() -> None:
    patience = Patience(0.0, timeout_sec=100, idle_timeout_sec=40)
    patience.sign_of_life(80)
    assert patience.look(80) is Due.TIMEOUT_NEAR
    assert patience.look(85) is None
    patience.sign_of_life(61)
    assert patience.look(95) is Due.IDLE_TIMEOUT_NEAR


def test_who_waits_for_a_person_is_not_idle_but_grows_old(patience: Patience) -> None:
    """Decision 23"""
    patience.wait_for_person(1010, True)
    assert patience.look(1060) is None
    assert patience.idle(1060) == 0
    patience.wait_for_person(1060, False)
    assert patience.look(1069) is None
    assert patience.look(1080) is Due.IDLE_TIMEOUT
    patience.wait_for_person(1080, True)
    assert patience.look(1099) is Due.TIMEOUT_NEAR
    assert patience.look(1100) is Due.TIMEOUT


def test_the_next_look_is_never_late(patience: Patience) -> None:
    now = 1000.0
    heard: list[Due] = []
    while not heard or heard[-1] is not Due.IDLE_TIMEOUT:
        now += patience.next_look(now)
        if (due := patience.look(now)) is not None:
            heard.append(due)
    assert heard == [Due.SILENCE, Due.IDLE_TIMEOUT_NEAR, Due.IDLE_TIMEOUT]
    assert now == pytest.approx(1020)
