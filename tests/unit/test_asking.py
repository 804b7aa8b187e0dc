"""Questions between hosts: only those of the same registry, in their own time, about one job."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam_core.nodes.asking import (
    MAX_ANSWER_BYTES,
    MAX_QUESTION_BYTES,
    OLD_SEC,
    Answer,
    BadQuestion,
    Kind,
    Question,
    replies_to,
)
from tests.support.clock import NOON
from tests.support.rows import each_row

KEY, REALM = "the key of this registry", "realm"


def a_question(**changed: Any) -> Question:
    asked = Question("id1", Kind.OUTPUT, "job1", {"attempt": 2}, replies_to(REALM, "asker"), NOON)
    return asked._replace(**changed)


def parsed(payload: bytes, key: str = KEY, now: float = NOON) -> Question:
    return Question.parse(payload, key, REALM, now)


class TestAQuestion:
    def test_arrives_as_it_was_asked(self) -> None:
        assert parsed(a_question().encode(KEY)) == a_question()

    @each_row(
        ("question", "why"),
        [
            (a_question(reply_to="python/mqtt/jobs/job1/events"), "somewhere else"),
            (a_question(reply_to=replies_to("another", "asker")), "somewhere else"),
            (a_question(reply_to=replies_to(REALM, "asker") + "/#"), "somewhere else"),
            (a_question(at=NOON - OLD_SEC - 1), "another time"),
            (a_question(at=NOON + OLD_SEC + 1), "another time"),
            (a_question(at=float("nan")), "not signed|another time|cannot be read"),
            (a_question(job_id="../x"), "cannot be read"),
            (a_question(kind="delete"), "cannot be read"),
            (a_question(given={"attempt": "1; rm"}), "cannot be read"),
            (a_question(given={"x" * MAX_QUESTION_BYTES: 1}), "the limit is"),
        ],
    )
    def test_of_another_kind_is_refused(self, question: Question, why: str) -> None:
        try:
            payload = question.encode(KEY)
        except ValueError:
            return  # not even to be said
        with pytest.raises(BadQuestion, match=why):
            parsed(payload)

    def test_of_somebody_without_the_key_is_refused(self) -> None:
        with pytest.raises(BadQuestion, match="not signed"):
            parsed(a_question().encode("another key"))
        said = json.loads(a_question().encode(KEY))
        for forged in ({**said, "job_id": "job2"}, {k: v for k, v in said.items() if k != "sig"}):
            with pytest.raises(BadQuestion, match="not signed"):
                parsed(json.dumps(forged).encode())

    @given(st.binary(max_size=200))
    def test_of_any_bytes_is_refused(self, payload: bytes) -> None:
        with pytest.raises(BadQuestion):
            parsed(payload)


class TestAnAnswer:
    @pytest.mark.parametrize(
        "answer",
        [
            Answer("id1", "job1", {"lines": ["별", "\x1b[1m"]}),
            Answer("id1", "job1", None, "no such job"),
        ],
    )
    def test_arrives_as_it_was_given(self, answer: Answer) -> None:
        assert Answer.parse(answer.encode(KEY), KEY) == answer

    def test_that_is_too_long_becomes_a_sentence(self) -> None:
        long = Answer("id1", "job1", {"data": "x" * MAX_ANSWER_BYTES}).encode(KEY)
        assert len(long) < 1000
        assert "the limit is" in Answer.parse(long, KEY).trouble

    def test_of_somebody_without_the_key_is_refused(self) -> None:
        with pytest.raises(BadQuestion):
            Answer.parse(Answer("id1", "job1", {}).encode("another key"), KEY)
