"""``mam watch``: its grammar, its lines and what it says beside them; brokers are elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from mam_core.cli import watch_lines
from mam_core.cli.watch_lines import JsonLines, Lines, Sparing, counted, event_line
from mam_core.events.event import Event
from mam_core.events.feed import EventHeard, JobChanged, Notice, NoticeKind, Origin
from mam_core.operations.ending import Ending, How, Tally
from mam_core.record_parts import Broker
from mam_core.records import Job, Status
from mam_core.summaries import Unreadable
from tests.cli.conftest import Mam, Process, is_one_sentence
from tests.support.rows import each_row


def heard(**fields: Any) -> EventHeard:
    values: dict[str, Any] = {
        "job_id": "abc12345",
        "attempt": 1,
        "seq": 7,
        "event": "progress",
        "timestamp": "2026-06-19T09:30:00Z",
        "detail": "half way",
        **fields,
    }
    event = Event(**values)
    return EventHeard(event, event.to_dict(), Origin.BROKER, 0.0, 0)


class TestGrammar:
    @each_row(
        "words",
        [
            [],
            ["JOB", "--all"],
            ["--wait-any", "--all"],
            ["--job", "JOB", "--wait-any"],
            ["JOB", "--timeout", "0"],
            ["JOB", "--timeout", "-1"],
            ["JOB", "--idle-timeout", "soon"],
            ["--all", "--timeout", "inf"],
            ["JOB", "--nonsense"],
        ],
    )
    def test_what_makes_no_sense_is_refused(self, mam: Mam, words: list[str]) -> None:
        """I5, E14"""
        job_id = mam.register()
        answer = mam("watch", *(job_id if word == "JOB" else word for word in words))
        assert (answer.code, answer.out) == (2, "")
        assert is_one_sentence(answer.err)

    @pytest.mark.parametrize("word", ["nobody99", "../x", "a/b"])
    def test_an_unknown_job_is_one_sentence(self, mam: Mam, word: str) -> None:
        for named in ([word], ["--job", word]):
            answer = mam("watch", *named)
            assert (answer.code, answer.out) == (1, "")
            assert is_one_sentence(answer.err)
        assert list(mam.folder.iterdir()) == []

    def test_a_record_that_cannot_be_read_is_one_sentence(self, mam: Mam) -> None:
        mam.write("broken01")
        mam.path("broken01").write_text("{")
        answer = mam("watch", "broken01")
        assert answer.code == 1
        assert "broken01" in answer.err.splitlines()[0]

    def test_ended_jobs_are_told_and_their_ends_counted(self, mam: Mam) -> None:
        good, bad, called_off = (mam.register(word) for word in ("one", "two", "three"))
        mam.ok("status", good, "--set", "completed")
        mam.ok("status", bad, "--set", "error")
        mam.ok("cancel", called_off)
        answer = mam.ok("watch", good, "--job", good)
        assert answer.out == ""
        assert answer.err == f"mam: job {good} had ended already: completed (override)\n"
        assert mam("watch", good, bad).code == 1
        assert mam("watch", called_off).code == 1
        line = json.loads(mam.ok("watch", good, "--json").out)
        assert (line["kind"], line["job_id"], line["origin"]) == ("job", good, "rescan")
        assert line["job"]["status"] == "completed"

    def test_needs_libraries_and_says_which(
        self, mam: Mam, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A bare Python gets a sentence, not a thread that dies."""
        job_id = mam.register()
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        monkeypatch.setattr("mam_core.operations.watch.on_duty", _nothing)
        for verb in ("watch", "wait"):
            answer = mam(verb, job_id)
            assert answer.code == 1
            assert "has no watchfiles" in answer.err


class _nothing:
    def __init__(self, *_: object, **__: object) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None: ...


class TestALine:
    """Section Q, G18."""

    def test_has_the_originals_form(self) -> None:
        line = event_line(heard())
        assert line == f"2026-06-19T09:30:00Z job=abc12345 seq=7 {'progress':<20} half way"

    def test_is_one_line_and_harmless_whatever_was_sent(self) -> None:
        """Promise 7: foreign text through one door."""
        line = event_line(heard(detail="a\nb\x1b[2J\u202e", timestamp="2026-06-19 09:30:00\x07"))
        assert line.isprintable()
        assert line.startswith("2026-06-19T09:30:00\\x07 job=")
        assert line.endswith("a\\nb\\x1b[2J\\u202e")

    def test_without_a_time_of_the_sender_has_ours(self) -> None:
        assert re.match(r"20\d\d-\d\d-\d\dT\S+Z job=", event_line(heard(timestamp="")))


class TestWhatIsSaidBeside:
    @pytest.fixture
    def said(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        lines: list[str] = []
        monkeypatch.setattr(watch_lines, "say", lines.append)
        return lines

    def test_is_few_of_a_kind(self, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        now = [1000.0]
        monkeypatch.setattr("time.monotonic", lambda: now[0])
        sparing = Sparing()
        for number in range(8):
            sparing.say("gap", f"number {number}")
        sparing.say("repeat", "once")
        assert said == [f"number {number}" for number in range(5)] + ["once"]
        now[0] += 20
        sparing.say("gap", "number 8")
        assert said[6:] == ["… and 3 more of this kind: gap", "number 8"]
        sparing.close()
        assert len(said) == 8

    def test_counts_what_a_sum_stands_for(self, said: list[str]) -> None:
        """G15: a flood is told in few words, and in exact numbers."""
        lines = Lines()
        lines.tell([Notice(NoticeKind.DROPPED, None, "junk", 0.0)] * 5)
        lines.tell([Notice(NoticeKind.DROPPED, None, "more", 0.0, 980)] * 2)
        lines.close({}, {})
        assert said == ["junk"] * 5 + ["… and 1960 more of this kind: dropped"]

    def test_of_one_reason_hides_no_other(self, said: list[str]) -> None:
        """A flood of forged numbers does not hide the one message that differs."""
        lines = Lines()
        flood = Notice(NoticeKind.DROPPED, None, "forged", 0.0, reason="number not issued")
        lines.tell([flood] * 30)
        lines.tell([Notice(NoticeKind.DROPPED, None, "other", 0.0, reason="differs")])
        lines.close({}, {})
        assert said == [
            *["forged"] * 5,
            "other",
            "… and 25 more of this kind: dropped, number not issued",
        ]

    def test_are_records_that_go_and_come(self, said: list[str]) -> None:
        lines = Lines()
        gone = JobChanged("a", None, Origin.DIRECTORY, 0.0)
        back = JobChanged("a", Job("a", Status.PENDING), Origin.DIRECTORY, 0.0)
        lines.tell([gone, gone, back, JobChanged("a", Unreadable("a", "empty"), Origin.RESCAN, 0)])
        assert said == [
            "the record of job a is gone",
            "the record of job a is there again",
            "the record of job a cannot be read: empty",
        ]
        del said[:]
        lost = Notice(NoticeKind.DIRECTORY_LOST, None, "the folder was removed", 0.0)
        lines.tell([lost, gone, back])
        assert said == ["the folder was removed"]  # which says it all

    def test_is_an_end_that_no_event_told(self, said: list[str]) -> None:
        lines = Lines()
        lines.end(Ending("a", Status.COMPLETED, How.EVENT, "job a ended"))
        lines.end(Ending("b", Status.CANCELLED, How.REGISTRY, "job b ended: cancelled"))
        assert said == ["job b ended: cancelled"]
        for _ in range(1000):
            lines.end(Ending("c", None, How.TIMEOUT, "job c timed out"))
        lines.close({}, {})
        assert said[-1] == "… and 995 more of this kind: timeout"

    def test_is_a_sum_for_what_was_odd(self, said: list[str]) -> None:
        endings = {name: Ending(name, Status.ERROR, How.EVENT, "") for name in "ab"}
        Lines().close(endings, {"a": Tally(5), "b": Tally(9, 2, 1, 3, 4, 1)})
        assert said == [
            "job b: error; 9 events, 2 read from the registry, 1 missing, 1 late, 3 repeated, "
            "4 dropped"
        ]
        assert counted(Tally(1)) == "1 event"

    def test_as_json_is_only_what_no_line_says(
        self, said: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        lines = JsonLines()
        lines.end(Ending("a", Status.ERROR, How.REGISTRY, "it ended"))
        lines.end(Ending("a", None, How.TIMEOUT, "it timed out"))
        assert said == ["it timed out"]
        secret = Job("a", Status.RUNNING, auth_token="token!", broker=Broker(password="word!"))
        lines.tell(
            [
                JobChanged("a", secret, Origin.DIRECTORY, 0.0),
                JobChanged("b", Unreadable("b", "empty"), Origin.RESCAN, 0.0),
                JobChanged("c", None, Origin.BROKER, 0.0),
                heard(detail="\x1b[2J"),
                Notice(NoticeKind.GAP, "a", "one did not come", 0.0),
            ]
        )
        out = capsys.readouterr().out
        assert "token!" not in out
        assert "word!" not in out
        assert "\x1b" not in out
        told = [json.loads(line) for line in out.splitlines()]
        assert [each["kind"] for each in told] == ["job", "job", "job", "event", "notice"]
        assert told[1]["job"] == {"job_id": "b", "status": "unreadable", "error": "empty"}
        assert told[2]["job"] is None
        assert told[3]["event"]["detail"] == "\x1b[2J"
        assert (told[4]["notice"], told[4]["job_id"]) == ("gap", "a")
        assert all(each["age_sec"] > 0 for each in told)


def test_help_tells_the_exit_codes(mam: Mam, process: Callable[..., Process]) -> None:
    assert "2 not in time" in mam.ok("--help").out
    assert process("watch", "--help").returncode == 0
