"""The two clocks of an attempt: what they say, and when they stand still."""

from __future__ import annotations

import pytest

from mam_core.agents.calls import OpenCall
from mam_core.limits import Limit
from mam_core.work.patience import Due, Next, Patience


@pytest.fixture
def patience() -> Patience:
    return Patience(1000.0, timeout_sec=100, idle_timeout_sec=20, has_printed=True)


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
    patience = Patience(0.0, timeout_sec=100, idle_timeout_sec=40, has_printed=True)
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


class TestTools:
    """Decision 32"""

    CALL = OpenCall("1", "Bash", "pytest")

    @pytest.fixture
    def patience(self) -> Patience:
        return Patience(
            0.0, timeout_sec=1000, idle_timeout_sec=20, tool_timeout_sec=100, has_printed=True
        )

    def test_an_open_call_holds_the_idle_clock_for_as_long_as_a_tool_may_take(
        self, patience: Patience
    ) -> None:
        patience.at_tools(5, [self.CALL])
        patience.sign_of_life(5)
        assert patience.next_end() == Next(Limit.TOOL, 5, 105, self.CALL)
        assert patience.look(15) is Due.SILENCE
        assert patience.look(84) is None
        assert patience.look(85) is Due.TOOL_TIMEOUT_NEAR
        assert patience.look(104) is None
        assert patience.look(105) is Due.TOOL_TIMEOUT

    def test_its_end_lets_the_clock_go(self, patience: Patience) -> None:
        patience.at_tools(5, [self.CALL])
        patience.at_tools(40, [])
        patience.sign_of_life(40)
        assert patience.next_end() == Next(Limit.IDLE, 40, 60)
        assert patience.look(60) is Due.IDLE_TIMEOUT

    def test_an_agent_that_shows_life_within_a_long_call_is_not_ended_for_it(
        self, patience: Patience
    ) -> None:
        """A sub-agent at work for half an hour; from then on it may be silent as any agent."""
        patience.at_tools(0, [self.CALL])
        patience.sign_of_life(99)
        assert patience.next_end() == Next(Limit.IDLE, 99, 119)
        assert patience.look(118) is Due.IDLE_TIMEOUT_NEAR
        assert patience.look(119) is Due.IDLE_TIMEOUT

    def test_of_several_calls_the_one_that_began_last_holds_longest(
        self, patience: Patience
    ) -> None:
        inner = OpenCall("2", "Bash", "make")
        patience.at_tools(0, [self.CALL])
        patience.at_tools(90, [self.CALL, inner])
        patience.sign_of_life(90)
        assert patience.next_end() == Next(Limit.TOOL, 90, 190, inner)
        patience.at_tools(95, [self.CALL])
        patience.sign_of_life(95)
        assert patience.next_end() == Next(Limit.IDLE, 95, 115)

    def test_the_wall_clock_goes_on_and_a_question_stops_both_others(
        self, patience: Patience
    ) -> None:
        patience.at_tools(940, [self.CALL])
        patience.sign_of_life(940)
        assert patience.next_end().limit is Limit.WALL
        patience.wait_for_person(950, True)
        assert patience.next_end() == Next(Limit.WAITING, 0, 1000)
        patience.wait_for_person(960, False)
        assert patience.look(1000) is Due.TIMEOUT

    def test_what_was_asked_about_counts_from_the_answer(self, patience: Patience) -> None:
        patience.at_tools(5, [self.CALL])
        patience.wait_for_person(6, True)
        patience.wait_for_person(300, False)
        assert patience.next_end() == Next(Limit.TOOL, 300, 400, self.CALL)

    def test_a_limit_for_tools_below_the_idle_limit_shortens_nothing(self) -> None:
        patience = Patience(0.0, timeout_sec=1000, idle_timeout_sec=20, tool_timeout_sec=5)
        patience.at_tools(0, [self.CALL])
        assert patience.next_end() == Next(Limit.IDLE, 0, 20)


class TestBeforeTheFirstOutput:
    def test_it_is_told_early_and_once(self) -> None:
        patience = Patience(0.0, timeout_sec=1000, idle_timeout_sec=120)
        assert patience.look(29) is None
        assert patience.look(30) is Due.NO_OUTPUT
        words = "no output since start (30 s); ends at 120 s (idle timeout)"
        assert patience.silence_words(Due.NO_OUTPUT, 30, "") == words
        assert patience.look(95) is None, "that it is silent was said"
        patience.output(95)
        assert patience.look(154) is None
        assert patience.look(155) is Due.SILENCE
        words = "no output for 60 s; ends at 120 s (idle timeout)"
        assert patience.silence_words(Due.SILENCE, 155, "") == words

    def test_a_hint_holds_until_the_agent_shows_life(self) -> None:
        patience = Patience(0.0, timeout_sec=1000, idle_timeout_sec=120)
        held = []
        for now in (29, 30, 31):
            patience.look(now)
            held.append(patience.has_hinted)
        patience.sign_of_life(32)
        assert [*held, patience.has_hinted] == [False, True, True, False]

    def test_work_alone_is_no_output(self) -> None:
        patience = Patience(0.0, timeout_sec=1000, idle_timeout_sec=120)
        patience.sign_of_life(20)
        assert patience.look(50) is Due.NO_OUTPUT
        assert patience.silence_words(Due.NO_OUTPUT, 50, "").startswith(
            "no output since start (50 s)"
        )

    def test_a_call_is_named(self) -> None:
        patience = Patience(0.0, timeout_sec=3600, idle_timeout_sec=120)
        patience.output(3)
        patience.at_tools(3, [TestTools.CALL])
        words = "tool call Bash pytest for 60 s; ends at 1800 s (tool timeout)"
        assert patience.silence_words(Due.SILENCE, 63, "Bash pytest") == words


def test_every_moment_with_something_to_say_is_looked_at() -> None:
    patience = Patience(0.0, timeout_sec=1000, idle_timeout_sec=20, tool_timeout_sec=100)
    patience.at_tools(0.0, [TestTools.CALL])
    now, heard = 0.0, []
    while Due.TOOL_TIMEOUT not in heard:
        now += patience.next_look(now)
        if (due := patience.look(now)) is not None:
            heard.append(due)
    assert heard == [Due.NO_OUTPUT, Due.TOOL_TIMEOUT_NEAR, Due.TOOL_TIMEOUT]
    assert now == pytest.approx(100)
