"""The state that a job is shown in, from plain facts: each with witness, rule and age."""

from __future__ import annotations

from typing import Any

import pytest

from mam_core.agents.hearing import Heard
from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.agents.states import LeaseFacts, Pane, Shown, ShownState, shown
from mam_core.claims import Refusal, Rule
from mam_core.clock import stamp
from mam_core.records import Job, Reason, Status
from mam_core.tmux.facts import PaneFact
from tests.support.rows import each_row

NOW = 1_781_861_400.0
FRESH = LeaseFacts("node:12:3:0", 30.0, 5.0, False)


def a_job(status: Status = Status.RUNNING, **fields: Any) -> Job:
    known = {"attempt": 2, "started_at": stamp(NOW - 60), "updated_at": stamp(NOW - 60)}
    return Job("abc12345", status, **{**known, **fields})


def event(seq: int, name: str, detail: str = "", attempt: int = 2, **data: Any) -> dict[str, Any]:
    at = stamp(NOW - 30 + seq)
    told = {"seq": seq, "attempt": attempt, "event": name, "detail": detail, "timestamp": at}
    return {**told, "data": data}


def state_event(seq: int, state: AgentState, words: str = "", **more: Any) -> dict[str, Any]:
    sign = Sign(state, Channel.HOOK, "PreToolUse", NOW - 30 + seq, words)
    return event(seq, "state", words, **{**sign.to_dict(), **more})


def heard(*events: dict[str, Any]) -> Heard:
    found = Heard(2)
    for one in events:
        found = found.event(one)
    return found


def a_pane(**fields: Any) -> PaneFact:
    words = ("%1", "claude", 12, False, None, None, "", "tmux:claude", "shell", "abc12345", 2)
    return PaneFact(*words, 80, 24, NOW, NOW)._replace(**fields)


class TestQueue:
    def test_a_pending_job_is_queued(self) -> None:
        assert shown(a_job(Status.PENDING), NOW).state is ShownState.QUEUED

    def test_or_blocked_with_every_reason(self) -> None:
        refusals = (Refusal(Rule.PAUSED, "it is paused"), Refusal(Rule.NOT_YET, "not yet"))
        found = shown(a_job(Status.PENDING), NOW, refusals=refusals)
        assert found == Shown(
            ShownState.BLOCKED, "it is paused; not yet", "registry", "paused", NOW - 60
        )


class TestSilence:
    """The last of the witnesses: a hint with an age, until anything else is heard."""

    SILENT = Sign(AgentState.WORKING, Channel.SILENCE, "no output", NOW - 28, "silent for 60 s")

    def test_is_shown_where_nobody_better_speaks(self) -> None:
        told = heard(event(1, "progress", "a line"), event(2, "state", **self.SILENT.to_dict()))
        found = shown(a_job(), NOW, lease=FRESH, heard=told)
        assert found == Shown(
            ShownState.WORKING, "silent for 60 s", "silence", "no output", NOW - 28
        )

    def test_is_broken_by_any_word(self) -> None:
        told = heard(event(2, "state", **self.SILENT.to_dict()), event(3, "progress", "a line"))
        found = shown(a_job(), NOW, lease=FRESH, heard=told)
        assert (found.channel, found.words) == ("event", "a line")


class TestRunning:
    def test_is_starting_until_something_is_heard(self) -> None:
        found = shown(a_job(), NOW, lease=FRESH)
        assert (found.state, found.rule, found.at) == (ShownState.STARTING, "claimed", NOW - 60)

    @each_row(
        ("state", "expected"),
        [
            (AgentState.STARTING, ShownState.STARTING),
            (AgentState.WORKING, ShownState.WORKING),
            (AgentState.WAITING, ShownState.WAITING),
            (AgentState.IDLE, ShownState.IDLE),
            (AgentState.ENDED, ShownState.FINISHING),
        ],
    )
    def test_is_shown_by_the_sign_of_its_agent(
        self, state: AgentState, expected: ShownState
    ) -> None:
        found = shown(a_job(), NOW, lease=FRESH, heard=heard(state_event(1, state, "why")))
        assert found == Shown(expected, "why", "hook", "PreToolUse", NOW - 29)

    def test_waits_with_its_question_in_the_sentence(self) -> None:
        asked = heard(state_event(1, AgentState.WAITING, "Bash: rm -r x"))
        found = shown(a_job(), NOW, lease=FRESH, heard=asked)
        assert found.sentence(NOW) == (
            "waiting for input: Bash: rm -r x (hook: PreToolUse, 29s ago)"
        )
        assert found.to_dict(NOW)["age_sec"] == 29.0

    def test_a_question_that_is_told_twice_is_one(self) -> None:
        events = heard(
            state_event(1, AgentState.WAITING), event(2, "permission_required", "may I?")
        )
        found = shown(a_job(), NOW, lease=FRESH, heard=events)
        assert (found.channel, found.words) == ("hook", "may I?")

    def test_a_question_after_the_last_sign_is_newer(self) -> None:
        events = heard(
            state_event(1, AgentState.WORKING), event(2, "permission_required", "may I?")
        )
        assert shown(a_job(), NOW, heard=events).state is ShownState.WAITING

    def test_a_sign_after_the_question_answers_it(self) -> None:
        events = heard(event(1, "permission_required"), state_event(2, AgentState.WORKING))
        assert shown(a_job(), NOW, heard=events).state is ShownState.WORKING

    def test_is_finishing_when_the_agent_has_had_its_last_word(self) -> None:
        events = heard(state_event(1, AgentState.WORKING), event(2, "completed", "all done"))
        found = shown(a_job(), NOW, lease=FRESH, heard=events)
        assert (found.state, found.words) == (
            ShownState.FINISHING,
            "the agent said completed: all done",
        )

    def test_is_not_shown_by_what_an_earlier_attempt_said(self) -> None:
        """N16"""
        events = heard(event(1, "error", "old", attempt=1))
        assert shown(a_job(), NOW, heard=events).state is ShownState.STARTING
        stranger = Heard(1).event(event(1, "error", "old", attempt=1))
        assert shown(a_job(), NOW, heard=stranger).state is ShownState.STARTING

    def test_rubbish_in_an_event_is_no_sign(self) -> None:
        events = heard(event(1, "state", "x", state="dancing"), {"event": 3}, event(2, "state"))
        assert shown(a_job(), NOW, heard=events).state is ShownState.WORKING


class TestUnsupervised:
    """No lease: its events are all there is (decision 14)."""

    def test_works_by_its_last_event(self) -> None:
        found = shown(a_job(), NOW, heard=heard(event(1, "started"), event(2, "progress", "half")))
        assert found == Shown(ShownState.WORKING, "half", "event", "progress", NOW - 28)

    def test_waits_while_its_last_event_is_a_question(self) -> None:
        events = heard(event(1, "permission_required", "may I?"))
        assert shown(a_job(), NOW, heard=events).state is ShownState.WAITING
        events = events.event(event(2, "progress"))
        assert shown(a_job(), NOW, heard=events).state is ShownState.WORKING


class TestLease:
    def test_that_is_late_makes_it_stale(self) -> None:
        late = FRESH._replace(age_sec=21.0)
        found = shown(a_job(), NOW, lease=late, heard=heard(state_event(1, AgentState.WORKING)))
        assert (found.state, found.at) == (ShownState.STALE, NOW - 21)

    def test_that_is_over_makes_it_lost(self) -> None:
        over = FRESH._replace(age_sec=40.0, is_over=True)
        found = shown(a_job(), NOW, lease=over)
        assert (found.state, found.at) == (ShownState.LOST, NOW - 10)
        assert shown(a_job(), NOW, lease=over._replace(age_sec=None)).at is None

    def test_that_is_over_says_what_the_sweep_found(self) -> None:
        line = {"event": "stale", "attempt": 2, "why": "its processes cannot be seen from here"}
        found = shown(a_job(), NOW, lease=FRESH._replace(is_over=True), heard=Heard(2).line(line))
        assert found.words == "its processes cannot be seen from here"


class TestPane:
    def test_that_is_gone_is_shown_as_such(self) -> None:
        """H10"""
        found = shown(a_job(agent_session="tmux:claude"), NOW, lease=FRESH, pane=Pane(None))
        assert (found.state, found.rule) == (ShownState.LOST, "pane gone")
        assert "tmux:claude" in found.words

    @pytest.mark.parametrize(
        ("fields", "words"),
        [({"exit_code": 3}, "exit 3"), ({"exit_signal": 9}, "signal 9")],
    )
    def test_that_is_dead_says_how(self, fields: dict[str, Any], words: str) -> None:
        dead = a_pane(dead=True, **fields)
        found = shown(a_job(), NOW, lease=FRESH, pane=Pane(dead))
        assert found.state is ShownState.LOST
        assert found.words.endswith(words)

    def test_that_is_there_changes_nothing(self) -> None:
        events = heard(state_event(1, AgentState.IDLE))
        found = shown(a_job(), NOW, lease=FRESH, heard=events, pane=Pane(a_pane()))
        assert found.state is ShownState.IDLE


def test_a_job_that_is_to_end_is_cancelling_whatever_its_agent_does() -> None:
    job = a_job(cancel_requested_at=stamp(NOW - 3), cancel_requested_by="ann")
    found = shown(job, NOW, lease=FRESH, heard=heard(state_event(1, AgentState.WORKING)))
    assert (found.state, found.words, found.at) == (
        ShownState.CANCELLING,
        "asked to end by ann",
        NOW - 3,
    )


def test_an_ended_job_says_why() -> None:
    job = a_job(Status.ERROR, reason=Reason.TIMEOUT, detail="60 s", ended_at=stamp(NOW - 5))
    assert shown(job, NOW) == Shown(ShownState.ENDED, "timeout: 60 s", "registry", "error", NOW - 5)
