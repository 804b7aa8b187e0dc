"""The state that a job is shown in, from plain facts: each with witness, rule and age."""

from __future__ import annotations

from typing import Any

import pytest

from mam_core.agents.hearing import Heard
from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.agents.states import LeaseFacts, Pane, Shown, ShownState, near_limit, shown
from mam_core.board.why import Hold
from mam_core.claims import Rule
from mam_core.clock import stamp
from mam_core.limits import FADING, WEAK, Limit, NearLimit
from mam_core.record_parts import Lease
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
        holds = (Hold(Rule.PAUSED, "it is paused", ""), Hold(Rule.NOT_YET, "not yet", ""))
        found = shown(a_job(Status.PENDING), NOW, holds=holds)
        assert found == Shown(
            ShownState.BLOCKED, "it is paused; not yet", "registry", "paused", NOW - 60
        )


class TestSilence:
    """The last of the witnesses: a hint with an age, until anything else is heard."""

    SILENT = Sign(AgentState.WORKING, Channel.SILENCE, "no output", NOW - 28, "silent for 60 s")

    def test_is_shown_where_nobody_better_speaks(self) -> None:
        told = heard(event(1, "progress", "a line"), event(2, "state", **self.SILENT.to_dict()))
        found = shown(a_job(), NOW, lease=FRESH, heard=told)
        said = (ShownState.WORKING, "silent for 60 s", "silence", "no output", NOW - 28)
        assert found[:5] == said

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
        assert found[:5] == (expected, "why", "hook", "PreToolUse", NOW - 29)
        assert found.heard_at == NOW - 29
        assert found.limit is not None

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
        assert found[:5] == (ShownState.WORKING, "half", "event", "progress", NOW - 28)

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


class TestDoubt:
    """A guess does not look like a fact."""

    def test_its_words_are_those_of_states_and_channels(self) -> None:
        assert {state.word for state in ShownState} >= FADING
        assert {str(channel) for channel in Channel} >= WEAK

    @pytest.mark.parametrize(
        ("state", "channel", "age_sec", "heard_sec", "is_guess"),
        [
            (ShownState.WORKING, Channel.HOOK, 10, 10, False),
            (ShownState.WORKING, Channel.HOOK, 600, 10, False),
            (ShownState.WORKING, Channel.HOOK, 600, 130, True),
            (ShownState.WORKING, Channel.SCREEN, 1, 1, True),
            (ShownState.STARTING, Channel.TITLE, 1, 1, True),
            (ShownState.WAITING, Channel.SCREEN, 3600, 3600, False),
            (ShownState.IDLE, Channel.HOOK, 3600, 3600, False),
        ],
    )
    def test_work_fades_and_a_question_does_not(
        self, state: ShownState, channel: Channel, age_sec: int, heard_sec: int, is_guess: bool
    ) -> None:
        one = Shown(state, "", channel, "a rule", NOW - age_sec, heard_at=NOW - heard_sec)
        assert one.is_doubtful(NOW) is is_guess

    def test_a_worker_that_sees_it_live_leaves_no_doubt(self) -> None:
        """A model that thinks for minutes: no event, but bytes and processor time."""
        one = Shown(ShownState.WORKING, "", Channel.HOOK, "a rule", NOW - 600, NOW - 600)
        assert not one._replace(limit=NearLimit(Limit.WALL, NOW + 9)).is_doubtful(NOW)
        assert one._replace(limit=NearLimit(Limit.IDLE, NOW + 9)).is_doubtful(NOW)
        assert one._replace(limit=NearLimit(Limit.TOOL, NOW + 9)).is_doubtful(NOW)


class TestNearLimit:
    def test_silence_counts_from_where_its_worker_told_of_it(self) -> None:
        job = a_job(lease=Lease("node:12:3:0", 30.0))
        wall = NearLimit(Limit.WALL, NOW - 60 + job.timeout_sec)
        silent = NearLimit(Limit.TOOL, NOW + 5, "Bash pytest")
        told = Heard(job.attempt, limit=silent)
        assert near_limit(job, ShownState.WORKING, Heard(job.attempt)) == wall
        assert near_limit(job, ShownState.WORKING, told) == silent
        assert near_limit(job, ShownState.WORKING, told._replace(attempt=7)) == wall
        waiting = near_limit(job, ShownState.WAITING, told)
        assert waiting == wall._replace(limit=Limit.WAITING)

    def test_it_is_told_by_an_event_and_taken_back_by_another(self) -> None:
        silent = NearLimit(Limit.IDLE, NOW + 5)
        told = {"attempt": 1, "seq": 1, "event": "state", "data": {"limit": silent.to_event()}}
        one = Heard(1).event(told)
        assert one.limit == silent
        one = one.event({**told, "seq": 2, "event": "log", "data": {}})
        assert one.limit == silent, "a warning is no sign of life"
        assert one.event({**told, "seq": 3, "data": {"limit": None}}).limit is None
        for foreign in (7, {}, {"limit": "moon", "ends_at": 1}, {"limit": "idle"}):
            assert one.event({**told, "seq": 3, "data": {"limit": foreign}}).limit is None
        for number in ("-inf", "inf", "nan", -1e300, 1e300, 10**400):
            limit = {"limit": "wall", "ends_at": number}
            assert one.event({**told, "seq": 3, "data": {"limit": limit}}).limit is None
