"""From an agent's doings to events: what is told, and at which pace."""

from __future__ import annotations

import json

import pytest

from mam_core.agents.streams import Happening, Kind, ToolState
from mam_core.agents.streams.events import Pace, Told, told
from mam_core.events.event import LAST_WORDS, EventName
from tests.support.recordings import FORMATS, read, recordings
from tests.support.rows import each_row

TEXT = Told(EventName.PROGRESS, "reading", {})


def progress(detail: str) -> Told:
    return TEXT._replace(detail=detail)


class TestWhatIsTold:
    @each_row(
        ("happening", "event"),
        [
            (Happening(Kind.TEXT, "Looking."), Told(EventName.PROGRESS, "Looking.", {})),
            (
                Happening(Kind.TOOL, "ls", {"tool": "Bash", "state": ToolState.STARTED}),
                Told(EventName.PROGRESS, "Bash: ls", {"tool": "Bash"}),
            ),
            (
                Happening(Kind.TOOL, "", {"tool": "Bash", "state": ToolState.FAILED}),
                Told(EventName.PROGRESS, "Bash", {"tool": "Bash", "state": "failed"}),
            ),
            (
                Happening(
                    Kind.TOOL, "", {"tool": "Write", "state": ToolState.ENDED, "file": "out.md"}
                ),
                Told(EventName.ARTIFACT, "out.md", {"tool": "Write"}, urgent=True),
            ),
            (
                Happening(Kind.TOKENS, "", {"input": 5, "output": 2}),
                Told(EventName.PROGRESS, "", {"tokens": {"input": 5, "output": 2}}),
            ),
            (
                Happening(Kind.COST, "", {"cost": 0.5}),
                Told(EventName.PROGRESS, "", {"cost": 0.5}),
            ),
            (
                Happening(Kind.RETRY, "overloaded", {"attempt": 2}),
                Told(EventName.PROGRESS, "overloaded", {"retry": {"attempt": 2}}),
            ),
            (
                Happening(Kind.QUESTION, "May I?", {"tool": "Bash", "waits": True}),
                Told(EventName.PERMISSION_REQUIRED, "May I?", {"tool": "Bash"}, urgent=True),
            ),
            (
                Happening(Kind.QUESTION, "Red or blue?", {"tool": "Ask", "waits": False}),
                Told(EventName.LOG, "Red or blue?", {"tool": "Ask"}, urgent=True),
            ),
            (
                Happening(Kind.DENIAL, "ls", {"tool": "Bash"}),
                Told(EventName.LOG, "ls", {"denied": "Bash"}, urgent=True),
            ),
            (
                Happening(Kind.QUOTA, "limit", {"until": 1794799034.0}),
                Told(
                    EventName.LOG,
                    "limit",
                    {"level": "error", "quota_until": "2026-11-16T03:17:14Z"},
                    urgent=True,
                ),
            ),
            (
                Happening(Kind.ERROR, "401"),
                Told(EventName.LOG, "401", {"level": "error"}, urgent=True),
            ),
            (
                Happening(Kind.RESULT, "Done.", {"ok": True}),
                Told(EventName.PROGRESS, "Done.", {"result": True}),
            ),
            (Happening(Kind.LOG, "a warning"), Told(EventName.LOG, "a warning", {})),
        ],
    )
    def test_each_kind(self, happening: Happening, event: Told) -> None:
        assert told(happening) == event

    @pytest.mark.parametrize("kind", [Kind.PARTIAL, Kind.THINKING, Kind.SESSION])
    def test_mere_activity_is_not(self, kind: Kind) -> None:
        assert told(Happening(kind, "thoughts of its own", {"session": "s"})) is None
        assert told(Happening(Kind.TEXT, " \n ")) is None

    def test_no_happening_ends_a_job(self) -> None:
        """The worker checks and ends: what an agent says is a report (decision 15)."""
        for agent in FORMATS:
            for record in recordings(agent):
                for happening in read(record).happenings:
                    event = told(happening)
                    assert event is None or event.name not in LAST_WORDS
                    assert event is None or json.dumps(dict(event.data), allow_nan=False)


class TestThePace:
    def test_the_first_goes_at_once_and_then_the_latest_wins(self) -> None:
        pace = Pace(per_second=2)
        assert pace.offer(progress("a"), 0.0) == [progress("a")]
        assert pace.offer(progress("b"), 0.1) == []
        assert pace.offer(progress("c"), 0.2) == []
        assert pace.due(0.4) == []
        assert pace.due(0.5) == [progress("c")]
        assert pace.due(9.0) == []

    def test_totals_survive_the_words_that_overtake_them(self) -> None:
        pace = Pace()
        pace.offer(TEXT, 0.0)
        pace.offer(Told(EventName.PROGRESS, "", {"tokens": {"input": 7}}), 0.1)
        pace.offer(Told(EventName.PROGRESS, "", {"cost": 0.5}), 0.2)
        pace.offer(Told(EventName.PROGRESS, "Bash", {"tool": "Bash"}), 0.3)
        assert pace.rest(0.4) == [
            Told(EventName.PROGRESS, "Bash", {"tokens": {"input": 7}, "cost": 0.5, "tool": "Bash"})
        ]

    def test_what_a_person_must_know_waits_for_nobody_and_keeps_its_order(self) -> None:
        pace = Pace()
        pace.offer(TEXT, 0.0)
        assert pace.offer(progress("then"), 0.1) == []
        question = Told(EventName.PERMISSION_REQUIRED, "May I?", {}, urgent=True)
        assert pace.offer(question, 0.2) == [progress("then"), question]

    def test_a_thousand_a_second_become_a_few(self) -> None:
        pace = Pace(per_second=2)
        sent = [
            event
            for number in range(10_000)
            for event in pace.offer(progress(str(number)), number / 1000)
        ]
        assert len(sent) == 20
        assert pace.rest(10.0) == [progress("9999")]

    def test_a_storm_of_urgent_ones_is_calmed(self) -> None:
        pace = Pace()
        error = Told(EventName.LOG, "401", {"level": "error"}, urgent=True)
        sent = [event for n in range(5000) for event in pace.offer(error, n / 1000)]
        assert 20 <= len(sent) <= 40

    def test_a_clock_that_goes_back_stops_nothing(self) -> None:
        pace = Pace()
        pace.offer(TEXT, 100.0)
        error = Told(EventName.LOG, "401", {}, urgent=True)
        assert pace.offer(error, 50.0) == [error]

    def test_the_prompt_is_taken_out(self) -> None:
        """G23"""
        pace = Pace("Please write the quarterly report.")
        assert pace.offer(progress("Please write the quarterly report."), 0.0) == [
            progress("[prompt]")
        ]
