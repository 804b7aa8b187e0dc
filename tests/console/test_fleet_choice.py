"""Which screens are seen together, on which page, and where each of them stands."""

from __future__ import annotations

from collections import Counter

import pytest

from mam_core.records import Status
from mam_tui.desk import Desk
from mam_tui.filters import parse as filter_of
from mam_tui.fleet.choice import By, Choice, Fleet
from mam_tui.fleet.places import places
from tests.console.fleet_story import rows, session
from tests.console.story import summary


class TestTheChoice:
    def test_all_by_filter_by_group_and_round_again(self, desk: Desk) -> None:
        desk.board.load(
            [
                summary(1, Status.RUNNING, group="night"),
                summary(2, Status.RUNNING, group="day"),
                summary(3, Status.RUNNING),
            ]
        )
        desk.sessions.put([*rows(3), session(4)])
        ships = Fleet(desk)
        ships.derive()
        assert [row.name for row in ships.rows] == ["s01", "s02", "s03", "s04"]
        desk.board.narrow(filter_of("job0003"))
        seen = []
        for _ in range(4):
            ships.choose_next()
            seen.append((ships.choice.words, [row.name for row in ships.rows]))
        assert seen == [
            ("by filter", ["s03"]),
            ("group day", ["s02"]),
            ("group night", ["s01"]),
            ("all sessions", ["s01", "s02", "s03", "s04"]),
        ]
        ships.choose(Choice(By.FILTER))
        desk.board.narrow(filter_of(""))
        ships.derive()  # without a filter there is nothing to choose by
        assert ships.choice.by is By.ALL

    def test_pages_follow_the_focus_and_marks_stick_to_names(self, desk: Desk) -> None:
        desk.sessions.put(rows(20))
        ships = Fleet(desk)
        ships.resize(-1)
        ships.derive()
        assert (ships.per_page, ships.page, ships.pages) == (4, 0, 5)
        ships.go(0, 1, 2)
        assert ships.at == 2
        ships.go(0, 1, 2)
        assert (ships.at, ships.page) == (4, 1)
        ships.go(-1, 0, 2)
        assert (ships.at, ships.page) == (3, 0)
        ships.turn(99)
        ships.go(0, 1, 2)
        ships.go(0, 1, 2)  # there is nothing below
        assert (ships.at, ships.page) == (18, 4)
        ships.marks = {"s03", "s19"}
        desk.sessions.put(rows(18))
        ships.derive()
        assert (ships.marks, ships.at, ships.pages) == ({"s03"}, 17, 5)

    @pytest.mark.parametrize("count", [1, 2, 3, 5, 9, 16])
    def test_places_fill_the_room_and_never_overlap(self, count: int) -> None:
        for size in ((120, 38), (60, 18), (7, 3), (1, 1), (0, 0)):
            found = [place for place in places(count, *size) if place.area]
            taken = Counter(
                (x, y) for one in found for x in one.column_range for y in one.line_range
            )
            assert set(taken.values()) <= {1}
            assert all(one.right <= size[0] and one.bottom <= size[1] for one in found)
