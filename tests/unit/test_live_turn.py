"""When a turn of a live agent is over, and when it only looks so."""

from __future__ import annotations

from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.work.live.turn import STAYS_SEC, Turn, TurnEnd

WORKING, IDLE = AgentState.WORKING, AgentState.IDLE


def sign(state: AgentState, channel: Channel, rule: str, at: float, **more: bool) -> Sign:
    return Sign(state, channel, rule, at, "words", **more)


def prompt(at: float) -> Sign:
    return sign(WORKING, Channel.HOOK, "UserPromptSubmit", at)


def stop(at: float) -> Sign:
    return sign(IDLE, Channel.HOOK, "Stop", at, turn_over=True)


def idle_file(at: float, *, over: bool = True) -> Sign:
    return sign(IDLE, Channel.STATUS, "status idle", at, turn_over=over)


class Story:
    """A turn that has begun; every sign comes at its own time."""

    def __init__(self, *signs: Sign) -> None:
        self.turn = Turn()
        self.turn.begin()
        for one in signs:
            self.turn.hear(one, one.at)
        self._last = signs[-1] if signs else None

    def end(self, at: float, *, interrupted: bool = False) -> TurnEnd | None:
        self.turn.look(self._last, self._last.at if self._last else at, lambda: interrupted)
        return self.turn.look(self._last, at, lambda: interrupted)


class TestTheEnd:
    def test_an_end_counts_when_it_stays(self) -> None:
        story = Story(prompt(0), stop(5))
        assert story.end(5 + STAYS_SEC - 0.1) is None
        assert story.end(5 + STAYS_SEC) == TurnEnd(False, "words")

    def test_a_queued_prompt_40_ms_later_is_no_end(self) -> None:
        story = Story(prompt(0), stop(5), prompt(5.04))
        assert story.end(20) is None
        assert not story.turn.was_interrupted(20)

    def test_a_failure_is_told(self) -> None:
        failed = sign(IDLE, Channel.HOOK, "StopFailure", 5, turn_over=True, failed=True)
        assert Story(prompt(0), failed, idle_file(5.2)).end(9) == TurnEnd(True, "words")

    def test_a_late_word_of_a_lower_channel_does_not_undo_it(self) -> None:
        spinner = sign(WORKING, Channel.TITLE, "spinner", 5.5)
        assert Story(prompt(0), stop(5), spinner, idle_file(5.6)).end(9) is not None

    def test_before_a_prompt_was_taken_nothing_ends(self) -> None:
        turn = Turn()
        turn.hear(stop(1), 1)
        assert turn.look(stop(1), 9, lambda: False) is None
        assert not turn.was_interrupted(9)

    def test_the_screen_alone_ends_nothing(self) -> None:
        seen = sign(IDLE, Channel.SCREEN, "ready", 5, turn_over=True)
        assert Story(prompt(0), seen).end(60) is None


class TestEsc:
    def test_idle_by_its_status_file_without_a_stop_is_an_interrupt(self) -> None:
        story = Story(prompt(0), idle_file(5))
        assert story.end(9) is None
        assert story.turn.was_interrupted(9)

    def test_where_no_hook_speaks_the_screen_is_asked(self) -> None:
        busy = sign(WORKING, Channel.STATUS, "status busy", 0)
        assert Story(busy, idle_file(5)).end(9) is not None
        assert Story(busy, idle_file(5)).end(9, interrupted=True) is None

    def test_codex_says_idle_and_not_done(self) -> None:
        idle = sign(IDLE, Channel.OSC, "osc 7501: idle without done", 5, turn_over=True)
        story = Story(sign(WORKING, Channel.OSC, "osc 7501: working", 0), idle)
        assert story.end(9) is None
        assert story.turn.was_interrupted(9)

    def test_the_next_prompt_is_a_turn_again(self) -> None:
        story = Story(prompt(0), idle_file(5))
        assert story.end(9) is None
        for one in (prompt(10), stop(12)):
            story.turn.hear(one, one.at)
        assert story.end(12 + STAYS_SEC) == TurnEnd(False, "words")
