"""The instrument itself: every payload, written raw, is seen for what it is."""

from __future__ import annotations

import pytest

from mam_core.safe_text import safe
from tests.console.hostile.payloads import CONTROLS, SEQUENCES, SHAPES
from tests.console.hostile.test_hostile_text import is_only_text
from tests.support.stream import Kind, modes_left_on, pieces

HARMLESS = ("wide",)  #: it only takes room
FRAME = b"\x1b[?1049h\x1b[1;1H\x1b[38;2;1;2;3mPWNED \xe6\x97\xa5\x1b[0m\r\n%b\x1b[?1049l"


def test_what_textual_says_is_ours() -> None:
    is_only_text(FRAME % b"")
    assert [piece.kind for piece in pieces(FRAME % b"")].count(Kind.TEXT) == 1
    assert modes_left_on(b"\x1b[?1049h\x1b[?1000;1006h\x1b[?1000l") == {"?1049", "?1006"}


@pytest.mark.parametrize("name", [*SEQUENCES, *CONTROLS, *SHAPES])
def test_a_payload_that_came_through_is_seen(name: str) -> None:
    text = {**SEQUENCES, **CONTROLS, **SHAPES}[name]
    raw = text.encode("utf-8", "surrogatepass")
    if name in HARMLESS:
        is_only_text(FRAME % raw)
    elif name == "sgr":  # a colour; that it is ours cannot be seen in the bytes
        assert safe(text) != text
    else:
        with pytest.raises(AssertionError):
            is_only_text(FRAME % raw)
