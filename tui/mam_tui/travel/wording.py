"""What the banner of the past says, at any width: the most important stands to the end."""

from __future__ import annotations

import math
from typing import NamedTuple

from mam_core.safe_text import cell_width
from mam_tui.moments import day_and_time, span, time_of_day
from mam_tui.travel.traveller import Traveller

_LEVELS = "─▁▂▃▄▅▆▇█"
_ASCII_LEVELS = "-.:=+*#%@"
#: With less room the slider has no words beside it.
_ROOM_FOR_TIMES = 50
_DAY_SEC = 86400.0


class Slider(NamedTuple):
    """One line: what lies before the mark, the mark, and what lies after it."""

    before: str
    mark: str
    after: str
    first: int  #: the cell in which the past begins
    cells: int  #: how many it has


def headline(traveller: Traveller, now: float, width: int, leave: str, *, ascii_only: bool) -> str:
    """`leave` is the key that goes back to now."""
    back, play, stop = ("<", ">", "=") if ascii_only else ("◀", "▶", "‖")
    when = day_and_time(traveller.at)
    ago = f"({span(now - traveller.at)} ago)"
    glyph, word = (play, "playing") if traveller.is_playing else (stop, "stopped")
    speed = f"{traveller.speed}x"
    for left, right in (
        (
            f" {back} PAST  {when}  {ago}   {glyph} {word} {speed}   nothing can be changed here",
            f"{leave}: back to now ",
        ),
        (f" {back} PAST {when} {ago}  {glyph} {word} {speed}", f"{leave}: back to now "),
        (f" {back} PAST {when} {ago} {glyph} {speed}", f"{leave}: now "),
        (f" {back} PAST {when} {glyph} {speed}", f"{leave}: now "),
        (f" PAST {time_of_day(traveller.at)}", f"{leave} "),
    ):
        room = width - cell_width(left) - cell_width(right)
        if room >= 1:
            return left + " " * room + right
    return f" PAST {time_of_day(traveller.at)}"[:width].ljust(width)


def slider(traveller: Traveller, width: int, *, ascii_only: bool) -> Slider:
    """Over the whole span, the higher the more happened; a mark where we are."""
    begin = end = ""
    if width >= _ROOM_FOR_TIMES:
        tell = _day_and_hour if traveller.end - traveller.begin > _DAY_SEC else _hour
        begin, end = f" {tell(traveller.begin)} ", f" {tell(traveller.end)} "
    cells = max(1, width - len(begin) - len(end))
    levels = _ASCII_LEVELS if ascii_only else _LEVELS
    crowds = traveller.crowds(cells)
    most = math.log1p(max(crowds))
    steps = len(levels) - 1
    # Nobody would see one among a thousand: each part in which anything happened has a height.
    line = "".join(
        levels[math.ceil(steps * math.log1p(crowd) / most) if crowd else 0] for crowd in crowds
    )
    at = min(cells - 1, int(traveller.share * cells))
    mark = "O" if ascii_only else "◆"
    return Slider(begin + line[:at], mark, line[at + 1 :] + end, len(begin), cells)


def progress(share: float, width: int, leave: str, *, ascii_only: bool) -> str:
    """While the logs are read; what is shown is still of now."""
    full, empty = ("#", "-") if ascii_only else ("█", "░")
    left, right = f" reading the past {share:4.0%} ", f" {leave} stops it "
    room = width - cell_width(left) - cell_width(right)
    if room < 1:
        return f" past {share:.0%}"[:width].ljust(width)
    done = round(share * room)
    return left + full * done + empty * (room - done) + right


def _hour(at: float) -> str:
    return time_of_day(at)[:5]


def _day_and_hour(at: float) -> str:
    return day_and_time(at)[5:16]
