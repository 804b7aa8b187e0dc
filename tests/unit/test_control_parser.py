"""What ``tmux -C`` prints is read right however it is cut, and never believed beyond its bounds."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam_core.tmux.control_parser import ControlParser, Garbled, Notice, Reply, unescape
from tests.support.rows import each_row

Item = Reply | Notice

_STREAM = (
    b"%begin 1700000000 271 0\n%end 1700000000 271 0\n%session-changed $0 a\n"
    b"%begin 1700000001 276 1\nfirst \xff\xfe\n%end 1 2 3\n%exit\n\n%end 1700000001 276 1\n"
    b"%output %1 a\\012b\\134\n%begin 1700000001 277 1\ncan't find pane\n%error 1700000001 277 1\n"
    b"%exit\n"
)
_ITEMS: list[Item] = [
    Reply(271, False, False, ()),
    Notice("session-changed", b"$0 a"),
    Reply(276, True, False, (b"first \xff\xfe", b"%end 1 2 3", b"%exit", b"")),
    Notice("output", b"%1 a\nb\\"),
    Reply(277, True, True, (b"can't find pane",)),
    Notice("exit", b""),
]


def fed(parser: ControlParser, pieces: list[bytes]) -> list[Item]:
    return [item for piece in pieces for item in parser.feed(piece)]


def test_replies_and_notices_are_told_apart() -> None:
    assert ControlParser().feed(_STREAM) == _ITEMS


def test_it_makes_no_difference_where_a_read_ends() -> None:
    for at in range(len(_STREAM) + 1):
        assert fed(ControlParser(), [_STREAM[:at], _STREAM[at:]]) == _ITEMS
    assert fed(ControlParser(), [bytes([byte]) for byte in _STREAM]) == _ITEMS


def test_a_stream_that_is_cut_off_gives_what_is_whole() -> None:
    for at in range(len(_STREAM)):
        found = ControlParser().feed(_STREAM[:at])
        assert found == _ITEMS[: len(found)]


@given(
    st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=20),
    st.lists(st.integers(0, 400), max_size=6),
)
def test_any_lines_of_a_pane_come_back_as_they_were(lines: list[bytes], cuts: list[int]) -> None:
    guard = b"1700000009 12345 1"
    lines = [line for line in lines if line not in (b"%end " + guard, b"%error " + guard)]
    stream = b"".join(
        line + b"\n" for line in [b"%begin " + guard, *lines, b"%end " + guard, b"%exit"]
    )
    places = sorted({0, *(cut for cut in cuts if cut < len(stream)), len(stream)})
    pieces = [stream[a:b] for a, b in pairwise(places)]
    assert fed(ControlParser(), pieces) == [
        Reply(12345, True, False, tuple(lines)),
        Notice("exit", b""),
    ]


_SHARDS = (
    *(b"%begin 1 2 1", b"%end 1 2 1", b"%error 1 2 1", b"%begin 1 2 0", b"%end 9 9 1", b"%begin"),
    *(b"%end", b"%begin x y z", b"%output %1 \\0", b"%", b"", b"\n", b"\r\n", b"text", b"\xff"),
    *(b"%begin 1 2 1\n", b"%end 1 2 1\n", b"%exit\n", b"\0", b"%begin " + b"9" * 50 + b" 1 1\n"),
)


@given(st.lists(st.one_of(st.sampled_from(_SHARDS), st.binary(max_size=30)), max_size=60))
def test_whatever_comes_is_read_or_refused_within_bounds(pieces: list[bytes]) -> None:
    parser = ControlParser(line_limit=200, reply_limit=400)
    try:
        for piece in pieces:
            for item in parser.feed(piece):
                assert isinstance(item, Reply | Notice)
            assert parser.held <= 600
    except Garbled:
        pass


def test_random_and_damaged_streams_end_in_nothing_worse_than_garbled() -> None:
    chance = random.Random(6)
    whole = _STREAM * 3
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 8)):
            at = chance.randrange(len(data))
            if chance.random() < 0.3:
                del data[at : at + chance.randrange(1, 30)]
            else:
                data[at] = chance.randrange(256)
        parser = ControlParser(line_limit=500, reply_limit=500)
        try:
            while data:
                step = chance.randrange(1, 60)
                parser.feed(bytes(data[:step]))
                del data[:step]
        except Garbled:
            continue
        assert parser.held <= 1000


def test_an_endless_line_and_an_endless_reply_are_refused() -> None:
    def until(parser: ControlParser, piece: bytes) -> None:
        for _ in range(1000):
            parser.feed(piece)

    with pytest.raises(Garbled, match="line is too long"):
        until(ControlParser(line_limit=1000, reply_limit=5000), b"%x" * 100)
    begun = ControlParser(line_limit=1000, reply_limit=5000)
    begun.feed(b"%begin 1 2 1\n")
    with pytest.raises(Garbled, match="reply is too long"):
        until(begun, b"x" * 100 + b"\n")


@each_row("line", [b"text", b"", b"%end 1 2 1", b"%error 1 2 1", b"%begin 1 2", b"%begin a b c"])
def test_what_cannot_stand_between_replies_is_refused(line: bytes) -> None:
    with pytest.raises(Garbled):
        ControlParser().feed(line + b"\n")


@given(st.binary(max_size=60))
def test_escapes_of_output_are_undone(data: bytes) -> None:
    escaped = b"".join(
        b"\\%03o" % byte if byte < 32 or byte == 92 else bytes([byte]) for byte in data
    )
    assert unescape(escaped) == data
