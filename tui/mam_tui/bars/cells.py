"""One row of bars as cells: block by block, down to an eighth of a column. No widget in here.

A bar that has room says its job and ends with the sign of its outcome; one that has none is
the sign alone. Where several would stand in one cell, the one that matters most is seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from mam_core.operations.bars import Bar
from mam_tui.bars.faces import OUTCOMES
from mam_tui.faces import Face
from mam_tui.widgets.time_axis import PARTS, TimeAxis

_BLOCKS = " ▏▎▍▌▋▊▉█"
_FULL = "█"
_WAIT, _WAIT_ASCII = "▒", "="
_FULL_ASCII = "#"
#: A bar of fewer columns than this has no room for the name of its job.
_ROOM_FOR_A_NAME = 9
CURSOR, NOW, GRID, WAITING = "cursor", "now", "grid", "waiting"


class Cell(NamedTuple):
    """One column."""

    sign: str = " "
    style: str = ""
    turned: bool = False  #: sign and ground change colours
    rank: int = 99  #: of the bar that it belongs to


_EMPTY = Cell()


class Scene(NamedTuple):
    """What rows are drawn on."""

    axis: TimeAxis
    now: float
    ascii_only: bool = False

    def ground(self) -> list[Cell]:
        """Where nothing ran: ticks, and the line of now."""
        return list(_ground(self.axis, self.axis.column(self.now), self.ascii_only))


@lru_cache(maxsize=4)  # the same for all lines of a picture
def _ground(axis: TimeAxis, now: int | None, ascii_only: bool) -> tuple[Cell, ...]:
    cells = [_EMPTY] * axis.width
    for tick in axis.ticks():
        cells[tick.column] = Cell("." if ascii_only else "┊", GRID)
    if now is not None:
        cells[now] = Cell("|" if ascii_only else "│", NOW)
    return tuple(cells)


def cells_of(bars: Iterable[Bar], scene: Scene, cursor: tuple[str, int] | None) -> list[Cell]:
    """Bars that do not overlap, by their beginning."""
    cells = scene.ground()
    chosen: Bar | None = None
    for bar in bars:
        if bar.key == cursor:
            chosen = bar
        _draw(cells, bar, scene)
    if chosen is not None:
        _draw_chosen(cells, chosen, scene)
    return cells


def _place(bar: Bar, scene: Scene) -> tuple[int, int]:
    end = scene.now if bar.ended_at is None else bar.ended_at
    return scene.axis.part(bar.began_at), scene.axis.part(end)


def columns_of(bar: Bar, scene: Scene) -> range:
    """Where it is seen; at least one column."""
    first, last = _place(bar, scene)
    start = min(first // PARTS, scene.axis.width - 1)
    return range(start, max(start + 1, -(-last // PARTS)))


def _draw(cells: list[Cell], bar: Bar, scene: Scene) -> None:
    face = OUTCOMES[bar.outcome]
    glyph = face.ascii if scene.ascii_only else face.glyph
    first, last = _place(bar, scene)
    column, begun = divmod(first, PARTS)
    if scene.ascii_only:  # whole columns are all there is
        column, begun = column + (begun > PARTS // 2), 0
        last = -(-last // PARTS) * PARTS
    if last // PARTS - column - bool(begun) < 1:  # no whole column of its own
        at = min(column, len(cells) - 1)
        if face.rank < cells[at].rank:
            cells[at] = Cell(glyph, face.style, rank=face.rank)
        return
    if begun:
        if cells[column].rank == _EMPTY.rank:
            cells[column] = Cell(_BLOCKS[begun], face.style, turned=True, rank=face.rank)
        column += 1
    elif column and cells[column - 1].sign == _FULL:  # else two would look like one
        cells[column - 1] = cells[column - 1]._replace(sign=_BLOCKS[PARTS - 1])
    full = _FULL_ASCII if scene.ascii_only else _FULL
    end, rest = divmod(last, PARTS)
    cells[column:end] = [Cell(full, face.style, rank=face.rank)] * (end - column)
    if rest:
        cells[end] = Cell(_BLOCKS[rest], face.style, rank=face.rank)
    _draw_waits(cells, bar, scene, range(column, end))
    cells[end - 1] = Cell(glyph, face.style, turned=not scene.ascii_only, rank=face.rank)
    if end - column >= _ROOM_FOR_A_NAME and not scene.ascii_only:
        _name(cells, bar.job_id, face, range(column, end - 2))


def _draw_waits(cells: list[Cell], bar: Bar, scene: Scene, own: range) -> None:
    sign = _WAIT_ASCII if scene.ascii_only else _WAIT
    for wait in bar.waits:
        end = wait.ended_at if wait.ended_at is not None else scene.now
        first, last = scene.axis.part(wait.began_at), scene.axis.part(end)
        # As long as it is seen at all it has a column, however short it was.
        columns = range(first // PARTS, max(first // PARTS + 1, last // PARTS))
        for at in columns:
            if at in own:
                cells[at] = cells[at]._replace(sign=sign, style=WAITING)


def _name(cells: list[Cell], job_id: str, face: Face, room: range) -> None:
    """As much of a name as stands before the first wait."""
    if not job_id.isascii() or len(job_id) + 1 > len(room):
        return
    places = room[1 : len(job_id) + 1]
    if all(cells[at].sign == _FULL for at in places):
        for sign, at in zip(job_id, places, strict=True):
            cells[at] = Cell(sign, face.style, True, face.rank)


def _draw_chosen(cells: list[Cell], bar: Bar, scene: Scene) -> None:
    """Over everything else: with brackets, which are seen without colours, too."""
    face = OUTCOMES[bar.outcome]
    glyph = face.ascii if scene.ascii_only else face.glyph
    own = columns_of(bar, scene)
    room = len(own)
    name = bar.job_id if bar.job_id.isascii() else ""
    if room < 3:
        words = glyph + " " * (room - 1)
    else:
        text = f"{name} " if len(name) + 2 <= room - 2 else ""
        words = f"[{text:<{room - 3}}{glyph}]"
    for at, sign in zip(own, words, strict=True):
        kept = cells[at].style == WAITING and sign == " "
        cells[at] = Cell(cells[at].sign if kept else sign, CURSOR, rank=-1)
