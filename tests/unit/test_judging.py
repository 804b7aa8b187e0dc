"""Which of an agent's signs is believed: real walks replayed, and each rule by itself."""

from __future__ import annotations

import pytest

from mam_core.agents.judging import (
    OLD_SEC,
    RECHECK_SEC,
    SETTLE_SEC,
    TASKS_SEC,
    TITLE_SEC,
    Judge,
    Misses,
)
from mam_core.agents.signs import AgentState, Channel, Sign
from tests.support.rows import each_row
from tests.support.screens import expected_states
from tests.support.walks import FOLDERS, Walk, expected_path, table, walks

IDLE, WORKING, WAITING = AgentState.IDLE, AgentState.WORKING, AgentState.WAITING
ENDED, UNKNOWN = AgentState.ENDED, AgentState.UNKNOWN


def judge_of(*signs: tuple[AgentState, Channel, str, float]) -> Judge:
    judge = Judge()
    for sign in signs:
        judge.hear(Sign(*sign))
    return judge


def state(judge: Judge, now: float) -> AgentState | None:
    believed = judge.believed(now)
    return believed.state if believed is not None else None


class TestRealWalks:
    @each_row("folder", FOLDERS)
    def test_are_believed_as_a_person_checked_it(self, folder: str) -> None:
        assert table(folder) == expected_path(folder).read_text()

    @pytest.mark.parametrize("folder", FOLDERS[1:])
    def test_are_right_at_the_moment_of_every_screen(self, folder: str) -> None:
        expected = expected_states()
        for name in walks(folder):
            walk = Walk(folder, name)
            walk.replay()
            for shot, sign in walk.at_shots.items():
                assert sign is not None, (name, shot)
                assert sign.state == expected[folder, shot], (name, shot)

    def test_of_claude_go_through_the_states_of_its_screens_in_their_order(self) -> None:
        """Its screens have no times. Before the dialogs of a start are answered nothing speaks."""
        expected = expected_states()
        for name in walks("claude"):
            if name == "dialogs.tmux":
                continue
            believed = iter([str(sign.state) for _, sign in Walk("claude", name).replay()])
            screens = [
                state
                for (folder, shot), state in sorted(expected.items())
                if folder == "claude" and shot.startswith(f"{name}.")
            ]
            for number, wanted in enumerate(screens):
                if number and screens[number - 1] == wanted:
                    continue  # two screens of one state
                assert wanted in believed, (name, wanted)


class TestEsc:
    """No hook tells of it."""

    def test_is_told_by_the_status_file_once_it_has_settled(self) -> None:
        judge = judge_of(
            (WORKING, Channel.HOOK, "PreToolUse", 10.0),
            (IDLE, Channel.STATUS, "status idle", 14.0),
        )
        assert state(judge, 14.1) is WORKING
        assert state(judge, 14.0 + SETTLE_SEC) is IDLE

    def test_is_believed_at_once_when_the_screen_agrees(self) -> None:
        judge = judge_of(
            (WORKING, Channel.HOOK, "PreToolUse", 10.0),
            (IDLE, Channel.STATUS, "status idle", 14.0),
            (IDLE, Channel.SCREEN, "claude-code@1: interrupted", 14.2),
        )
        assert state(judge, 14.2) is IDLE

    def test_is_not_believed_when_the_screen_still_works(self) -> None:
        judge = judge_of(
            (WORKING, Channel.HOOK, "UserPromptSubmit", 10.0),
            (IDLE, Channel.TITLE, "title: Ready", 14.0),
            (WORKING, Channel.SCREEN, "gemini@1: working", 14.8),
        )
        assert state(judge, 20.0) is WORKING

    def test_is_seen_on_the_screen_twice_where_hooks_are_alone(self) -> None:
        judge = judge_of((WORKING, Channel.HOOK, "UserPromptSubmit", 10.0))
        assert not judge.wants_screen(10.1)
        assert judge.wants_screen(11.0), "once after each change"
        judge.hear(Sign(IDLE, Channel.SCREEN, "claude-code@1: interrupted", 11.0))
        assert state(judge, 11.0) is WORKING
        assert judge.wants_screen(12.0), "they disagree"
        judge.hear(Sign(IDLE, Channel.SCREEN, "claude-code@1: interrupted", 12.0))
        assert state(judge, 12.0) is IDLE

    def test_at_a_question_ends_the_waiting(self) -> None:
        judge = judge_of(
            (WAITING, Channel.HOOK, "PermissionRequest", 10.0),
            (WAITING, Channel.STATUS, "status waiting", 10.2),
            (IDLE, Channel.STATUS, "status idle", 20.0),
        )
        assert state(judge, 21.0) is IDLE

    def test_stays_told_when_the_next_turn_begins(self) -> None:
        """The question of before must not flash up between the status file and the hook."""
        judge = judge_of(
            (WAITING, Channel.HOOK, "PermissionRequest", 10.0),
            (IDLE, Channel.STATUS, "status idle", 12.0),
            (WORKING, Channel.STATUS, "status busy", 15.0),
        )
        assert state(judge, 15.0) is WORKING


class TestWhatIsNotTheTurn:
    def test_a_subagent_that_stops_leaves_the_agent_at_work(self) -> None:
        judge = judge_of(
            (WORKING, Channel.HOOK, "PreToolUse", 1.0), (IDLE, Channel.HOOK, "SubagentStop", 2.0)
        )
        assert state(judge, 99.0) is WORKING

    def test_a_session_that_was_compacted_did_not_start(self) -> None:
        judge = judge_of(
            (WORKING, Channel.HOOK, "PreCompact", 1.0),
            (IDLE, Channel.HOOK, "SessionStart: compact", 2.0),
        )
        assert state(judge, 99.0) is WORKING

    def test_background_tasks_go_on_after_the_turn(self) -> None:
        judge = judge_of(
            (WORKING, Channel.HOOK, "Stop: background tasks", 1.0),
            (IDLE, Channel.STATUS, "status idle", 1.2),
            (IDLE, Channel.SCREEN, "claude-code@1: done", 20.0),
            (IDLE, Channel.SCREEN, "claude-code@1: done", 30.0),
        )
        assert state(judge, 100.0) is WORKING
        assert state(judge, 1.0 + TASKS_SEC) is IDLE, "killed ones end without a word"


class TestLowerChannels:
    def test_that_spoke_before_do_not_count(self) -> None:
        judge = judge_of(
            (WORKING, Channel.STATUS, "status busy", 1.0), (IDLE, Channel.HOOK, "Stop", 2.0)
        )
        assert state(judge, 60.0) is IDLE

    def test_a_title_must_stand_longer_since_a_model_may_write_it(self) -> None:
        judge = judge_of(
            (WORKING, Channel.HOOK, "BeforeAgent", 1.0), (IDLE, Channel.TITLE, "title: Ready", 5.0)
        )
        assert state(judge, 5.0 + SETTLE_SEC) is WORKING
        assert state(judge, 5.0 + TITLE_SEC) is IDLE

    def test_an_answered_question_is_told_by_the_status_before_the_tool_has_ended(self) -> None:
        judge = judge_of(
            (WAITING, Channel.HOOK, "PermissionRequest", 1.0),
            (WORKING, Channel.STATUS, "status busy", 8.0),
        )
        assert state(judge, 9.0) is WORKING

    def test_a_channel_that_says_unknown_says_nothing(self) -> None:
        judge = judge_of(
            (WORKING, Channel.HOOK, "UserPromptSubmit", 1.0),
            (UNKNOWN, Channel.TITLE, "title: no spinner", 5.0),
        )
        assert state(judge, 60.0) is WORKING
        assert judge.wants_screen(5.0 + SETTLE_SEC), "but the screen is asked"

    def test_a_sign_that_came_late_changes_nothing(self) -> None:
        judge = judge_of((IDLE, Channel.HOOK, "Stop", 5.0), (WORKING, Channel.HOOK, "Pre", 4.0))
        assert state(judge, 6.0) is IDLE


class TestScreen:
    def test_a_dialog_is_what_titles_lie_about(self) -> None:
        judge = judge_of(
            (WORKING, Channel.TITLE, "title: Working", 1.0),
            (WAITING, Channel.SCREEN, "gemini@1: quota menu", 5.0),
        )
        assert state(judge, 5.0) is WAITING

    def test_a_dialog_that_is_just_being_answered_does_not_come_back(self) -> None:
        judge = judge_of(
            (WORKING, Channel.HOOK, "PostToolUse", 5.0),
            (WAITING, Channel.SCREEN, "claude-code@1: permission", 5.1),
        )
        assert state(judge, 5.2) is WORKING

    def test_a_frozen_channel_falls_to_an_idle_screen(self) -> None:
        """PreToolUse, and then nothing: the word of before is old."""
        judge = judge_of((WORKING, Channel.HOOK, "PreToolUse", 1.0))
        judge.hear(Sign(IDLE, Channel.SCREEN, "claude-code@1: input box", 2.0))
        judge.hear(Sign(IDLE, Channel.SCREEN, "claude-code@1: input box", 4.0))
        assert state(judge, 4.0) is WORKING, "a moment ago it said otherwise"
        judge.hear(Sign(WORKING, Channel.SCREEN, "claude-code@1: working", 5.0))
        judge.hear(Sign(IDLE, Channel.SCREEN, "claude-code@1: done", 2.0 + OLD_SEC))
        judge.hear(Sign(IDLE, Channel.SCREEN, "claude-code@1: done", 4.0 + OLD_SEC))
        assert state(judge, 5.0 + OLD_SEC) is IDLE

    def test_an_old_idle_falls_to_a_screen_that_works(self) -> None:
        judge = judge_of(
            (IDLE, Channel.HOOK, "Stop", 1.0),
            (WORKING, Channel.SCREEN, "claude-code@1: working", 3.0),
        )
        assert state(judge, 3.0) is IDLE
        judge.hear(Sign(WORKING, Channel.SCREEN, "claude-code@1: working", 4.0))
        assert state(judge, 4.0) is WORKING

    def test_alone_is_believed_and_asked_every_second(self) -> None:
        judge = Judge()
        assert state(judge, 1.0) is None
        assert judge.wants_screen(1.0)
        judge.hear(Sign(IDLE, Channel.SCREEN, "aider@1: prompt", 1.0))
        assert state(judge, 1.0) is IDLE
        assert not judge.wants_screen(1.5)
        judge.hear(Sign(UNKNOWN, Channel.SCREEN, "", 2.0))
        assert state(judge, 2.0) is UNKNOWN, "never a guess"

    def test_is_asked_now_and_then_while_nothing_is_heard(self) -> None:
        judge = judge_of(
            (WORKING, Channel.HOOK, "PreToolUse", 1.0),
            (WORKING, Channel.SCREEN, "claude-code@1: working", 2.0),
        )
        assert not judge.wants_screen(2.0 + RECHECK_SEC - 1)
        assert judge.wants_screen(2.0 + RECHECK_SEC)

    def test_that_says_ended_is_left_to_the_process(self) -> None:
        judge = judge_of(
            (IDLE, Channel.HOOK, "Stop", 1.0),
            (ENDED, Channel.SCREEN, "claude-code@1: ended", 3.0),
            (ENDED, Channel.SCREEN, "claude-code@1: ended", 5.0),
        )
        assert state(judge, 6.0) is IDLE


class TestDeath:
    def test_by_exit_is_a_fact(self) -> None:
        judge = judge_of(
            (WORKING, Channel.HOOK, "PreToolUse", 5.0), (ENDED, Channel.PROCESS, "exit 1", 4.0)
        )
        assert state(judge, 5.0) is ENDED

    def test_wants_two_misses(self) -> None:
        judge = judge_of(
            (WORKING, Channel.HOOK, "PreToolUse", 1.0),
            (ENDED, Channel.PROCESS, "missing pane", 2.0),
        )
        assert state(judge, 2.0) is WORKING
        judge.hear(Sign(ENDED, Channel.PROCESS, "missing pane", 3.5))
        assert state(judge, 3.5) is ENDED

    def test_is_not_where_it_spoke_in_between(self) -> None:
        judge = judge_of(
            (ENDED, Channel.PROCESS, "missing pane", 2.0),
            (WORKING, Channel.HOOK, "PreToolUse", 3.0),
            (ENDED, Channel.PROCESS, "missing pane", 4.0),
        )
        assert state(judge, 4.0) is WORKING

    def test_a_tmux_error_is_unknown_and_counts_for_nothing(self) -> None:
        judge = judge_of(
            (WORKING, Channel.HOOK, "PreToolUse", 1.0),
            (ENDED, Channel.PROCESS, "missing pane", 2.0),
            (UNKNOWN, Channel.PROCESS, "tmux failed", 3.5),
        )
        assert state(judge, 9.0) is WORKING

    def test_two_misses_are_apart(self) -> None:
        misses = Misses(1.0)
        assert [misses.missed(at) for at in (0.0, 0.5, 1.0)] == [False, False, True]
        misses.seen()
        assert not misses.missed(9.0)
