"""The top line: what matters is on it at every width, and nothing stands there by half."""

from __future__ import annotations

import re

import pytest

from mam_core.operations.attention import NeedKind
from mam_core.safe_text import cell_width
from mam_tui.faces import FACES
from mam_tui.status_line import Standing, badge, status_line

BUSY = Standing(
    counts={"waiting": 3, "lost": 1, "working": 3, "queued": 2, "error": 3, "completed": 6},
    shown=14,
    total=14,
    needs={str(kind): 1 for kind in NeedKind},
    live="live",
)
COUNTS = ("◆ 3", "✗ 1", "● 3", "· 2", "✖ 3", "✔ 6")


def said(now: Standing, width: int, *, ascii_only: bool = False) -> str:
    line = "".join(one.words for one in status_line(now, width, ascii_only=ascii_only))
    assert cell_width(line) <= width
    return line


def test_with_room_for_it_everything_is_said() -> None:
    line = said(BUSY, 250)
    assert f"{len(NeedKind)} need you (1 permission, 1 question, " in line
    assert all(f"{count} {word}" in line for count, word in (("◆ 3", "waiting"), ("✔ 6", "comp")))
    assert line.endswith("live")


@pytest.mark.parametrize("width", [100, 120, 160])
def test_the_kinds_of_needs_push_nothing_off(width: int) -> None:
    """A filter, a hold, marks and every count are there; the kinds only if all of that is."""
    now = BUSY._replace(filter="codex", paused=25, marked=2, shown=4)
    line = said(now, width)
    wanted = ("PAUSED +25", "2 marked", "/codex", "4/14" if "4/14" in line else "showing 4 of 14")
    assert all(word in line for word in (*wanted, f"! {len(NeedKind)}", *COUNTS))
    assert "permission" not in line


@pytest.mark.parametrize("width", range(60, 200, 7))
def test_all_counts_have_words_or_none_has(width: int) -> None:
    line = said(BUSY, width)
    assert all(count in line for count in COUNTS)
    words = [word for word in FACES if BUSY.counts.get(word) and f" {word}" in line]
    assert len(words) in (0, len(BUSY.counts))


def test_a_lost_registry_is_said_whatever_else_there_is() -> None:
    now = BUSY._replace(lost_at=1.0, stale_sec=12.0, link="the folder is not there", live="")
    assert "REGISTRY LOST, trying again: as of" in said(now, 120)
    for width in (60, 100):
        assert re.search(r"REGISTRY LOST(, trying again:)? as of \d\d:\d\d:\d\d", said(now, width))
    assert "the folder is not there" in said(now, 250)


@pytest.mark.parametrize("width", range(24, 60, 5))
def test_what_has_no_room_is_left_out_whole_and_the_least_urgent_first(width: int) -> None:
    now = BUSY._replace(read_only=True)
    line = said(now, width)
    assert "board" in line
    assert "READ-ONLY" in line
    urgent_last = ["✔ 6", "· 2", "● 3", "✗ 1", "✖ 3", "◆ 3"]
    there = [count for count in urgent_last if count in line]
    assert there == urgent_last[len(urgent_last) - len(there) :]
    assert not re.search(r"[◆✗●·✖✔]\s*$", line)


def test_in_plain_signs() -> None:
    assert said(BUSY, 120, ascii_only=True).isascii()


def test_what_the_badge_says() -> None:
    assert badge({"permission": 2, "lost": 1}) == (
        "! 3 need you (2 permission, 1 lost)",
        "! 3 need you",
        "! 3",
    )
    assert badge({"lost": 1_000})[1] == "! 1,000 need you"
    assert badge({"lost": 1})[1] == "! 1 needs you"
