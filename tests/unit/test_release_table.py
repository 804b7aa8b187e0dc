"""The table at the end of a release: parts in their order, and what was lost counted on its own."""

from __future__ import annotations

from tests.support.release_table import figures, lines


def test_each_part_has_its_lines_and_losses_are_summed_up() -> None:
    told = [
        ("load: 20 sessions", {"jobs": 5000, "lost": 0}),
        ("faults: kill -9", {"kills": 1000, "violations": 2}),
        ("inputs: records", {"tried": 10_000, "exceptions": 1}),
        ("something else", 7),
    ]
    table = lines(figures(told), failed=1)
    assert table == [
        "",
        "faults survived",
        "  kill -9                              1,000 kills",
        "",
        "inputs tried",
        "  records                              10,000 tried",
        "",
        "load held",
        "  20 sessions                          5,000 jobs",
        "",
        "what was lost: 3",
        "1 tests failed: their figures are not in here",
    ]


def test_without_figures_there_is_no_table() -> None:
    assert lines(figures([("else", {"x": 1})]), failed=0) == []
