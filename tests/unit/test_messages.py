"""What of a person's text is delivered: words, and nothing that a terminal obeys."""

from __future__ import annotations

import pytest

from mam_core.errors import UnreadableRecord
from mam_core.messages import Message, MessageKind, Stage, without_controls
from tests.support.rows import each_row


@each_row(
    ("text", "delivered"),
    [
        ("plain words", "plain words"),
        ("quotes ' \" ; $(rm -rf /) `x` \\", "quotes ' \" ; $(rm -rf /) `x` \\"),
        ("별을 세어라…\ntwo\tlines", "별을 세어라…\ntwo\tlines"),
        ("end of paste\x1b[201~rm -rf /\r", "end of pasterm -rf /\n"),
        ("the same in C1\x9b201~!", "the same in C1!"),
        ("nested \x1b\x1b[31m[201~", "nested [201~"),
        ("title \x1b]0;evil\x07 done", "title  done"),
        ("title \x1b]0;evil\x1b\\ done", "title  done"),
        ("a title without end \x1b]0;words", "a title without end 0;words"),
        ("an unfinished \x1b", "an unfinished "),
        ("windows\r\nline", "windows\nline"),
        ("\x00\x01\x08\x0b\x7f\x85\x9fgone", "gone"),
        ("half a character \ud800!", "half a character \ufffd!"),
        ("two halves \ud83d\ude00", "two halves 😀"),
        ("bytes that are no UTF-8 \udcff", "bytes that are no UTF-8 \ufffd"),
    ],
)
def test_nothing_that_a_terminal_obeys_is_delivered(text: str, delivered: str) -> None:
    """H5: controls are stripped."""
    assert without_controls(text) == delivered
    assert without_controls(delivered) == delivered, "a second look finds nothing more"


def test_no_control_character_is_left_whatever_surrounds_it() -> None:
    for code in (*range(0x20), *range(0x7F, 0xA0)):
        for around in ("a{}b", "\x1b{}[201~", "\x1b[{}201~", "\x9b{}\x1b]{}"):
            left = without_controls(around.replace("{}", chr(code)))
            assert not [c for c in left if c not in "\n\t" and (c < " " or "\x7f" <= c < "\xa0")]


@each_row(
    ("text", "verdict"),
    [("y", True), (" Yes\n", True), ("n", False), ("NO", False), ("yes, but", None), ("2", None)],
)
def test_an_answer_is_yes_or_no_only_when_it_says_nothing_else(
    text: str, verdict: bool | None
) -> None:
    assert Message(1, MessageKind.ANSWER, text, "ann", "", 1).verdict is verdict


def test_stages_only_go_forward() -> None:
    assert Stage.SUBMITTED.follows(Stage.SENT)
    assert Stage.REFUSED.follows(Stage.TYPED)
    assert not Stage.TYPED.follows(Stage.SUBMITTED)
    assert not Stage.TYPED.follows(Stage.TYPED)
    assert not any(stage.follows(Stage.ACCEPTED) for stage in Stage)


@each_row(
    "data",
    [
        None,
        "say",
        {},
        {"n": 1, "kind": "shout", "text": "", "attempt": 1},
        {"n": -1, "kind": "say", "text": "", "attempt": 1},
        {"n": 1, "kind": "say", "text": 5, "attempt": 1},
        {"n": 1, "kind": "say", "text": "", "attempt": 1, "stage": "lost"},
    ],
)
def test_what_is_no_message_is_named(data: object) -> None:
    with pytest.raises(UnreadableRecord):
        Message.from_dict(data)
