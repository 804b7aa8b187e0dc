"""The lines of a Gantt chart: which rows of the lanes a window touches. No widget in here."""

from __future__ import annotations

from functools import cached_property

from mam_core.operations.bars import Bar, Dimension
from mam_core.operations.lanes import Lanes, LanesThen
from mam_core.operations.packing import PackedRow
from mam_tui.bars.window import TimeWindow

Key = tuple[str, int]


class GanttRow:
    """One line: bars of one lane that do not overlap. They are made when the line is drawn."""

    def __init__(
        self, lane: str, packed: PackedRow, places: range, lanes: Lanes | LanesThen, *, first: bool
    ) -> None:
        self.lane = lane
        self.is_first = first  #: of its lane
        self.places = places  #: of its bars in the whole row
        self._packed = packed
        self._lanes = lanes

    @cached_property
    def bars(self) -> list[Bar]:
        places = self.places
        return self._lanes.seen(self._packed.bars[places.start : places.stop])

    @property
    def runs(self) -> bool:
        return self.bars[-1].is_running

    def nearest(self, at: float, window: TimeWindow, now: float) -> Bar:
        return min(self.bars, key=lambda bar: abs(middle(bar, window, now) - at))


class GanttRows:
    """Laid out once for each change; what is not in the window costs nothing."""

    def __init__(
        self, lanes: Lanes | LanesThen, window: TimeWindow, by: Dimension, now: float
    ) -> None:
        self._packing = lanes.packed(by)
        self._rows: list[GanttRow] = []
        self._lines: dict[tuple[str, int], int] = {}  #: by lane and the number of its row
        begin, end = window.begin, min(window.begin + window.span, lanes.until)
        for name, packed in self._packing:
            is_first = True
            for number, row in enumerate(packed):
                places = row.window(begin, end)
                if now < begin and places and row.ends[places[-1]] > now:
                    places = places[:-1]  # it runs, and how far nobody knows
                if places:
                    self._lines[name, number] = len(self._rows)
                    self._rows.append(GanttRow(name, row, places, lanes, first=is_first))
                    is_first = False

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, line: int) -> GanttRow:
        return self._rows[line]

    def names(self) -> set[str]:
        return {row.lane for row in self._rows}

    def line_of(self, key: Key | None) -> int | None:
        """Where a bar stands; None: it is not in the window."""
        place = self._packing.place(key) if key is not None else None
        line = None if place is None else self._lines.get(place[:2])
        if place is None or line is None or place.at not in self._rows[line].places:
            return None
        return line

    def find(self, key: Key | None) -> Bar | None:
        line = self.line_of(key)
        return None if line is None else next(b for b in self._rows[line].bars if b.key == key)


def middle(bar: Bar, window: TimeWindow, now: float) -> float:
    """Of the part that is seen."""
    last = now if bar.ended_at is None else bar.ended_at
    return (max(window.begin, bar.began_at) + min(window.begin + window.span, last)) / 2
