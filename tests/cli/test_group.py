"""``mam group`` and ``mam capacity``."""

from __future__ import annotations

from pathlib import Path

import pytest

from mam_core.machine import Machine
from mam_core.operations import capacity
from tests.cli.conftest import Mam, is_one_sentence
from tests.support.rows import each_row

SETTINGS = """
[groups.p1]
slots = 2
min = 1
max = 4
memory = "4G"
cpu = 0.5

[groups.odd]
slots = 1
"""


@pytest.fixture(autouse=True)
def _settings(mam: Mam) -> None:
    Path(mam.folder / "mam.toml").write_text(SETTINGS)


class TestGroup:
    def test_shows_slots_origin_and_what_runs_and_waits(self, mam: Mam) -> None:
        """Issue 10, item 3."""
        for _ in range(4):
            mam.register("x", "--group", "p1")
        mam.ok("pick", "--label", "tmux:a")
        (odd, p1) = mam.ok("group", "--json").json
        assert (odd["group"], odd["running"], odd["waiting"]) == ("odd", 0, 0)
        assert (p1["slots"], p1["min"], p1["max"], p1["running"], p1["waiting"]) == (2, 1, 4, 1, 3)
        assert "mam.toml" in p1["origin"]
        line = next(line for line in mam.ok("group").lines if line.startswith("p1"))
        assert line.split()[:5] == ["p1", "2", "1-4", "1", "3"]
        assert mam.ok("group").err == "mam: autoscaling is off\n"

    def test_changes_the_slots_while_all_runs_and_back(self, mam: Mam) -> None:
        for _ in range(4):
            mam.register("x", "--group", "p1")
        assert mam.ok("group", "p1", "--slots", "3", "--why", "it is night").err == (
            "mam: group p1 has 3 slots now, before 2\n"
        )
        for _ in range(3):
            mam.ok("pick", "--label", "tmux:a")
        assert mam("pick", "--label", "tmux:a").code == 3
        assert mam.ok("group", "p1", "--slots", "1").err == (
            "mam: group p1 has 1 slot now, before 3; 3 run and go on, none is claimed before "
            "they are fewer\n"
        )
        shown = mam.ok("group", "p1", "--json").json
        assert shown["origin"].startswith("ann, ")
        assert [(act["by"], act["before"], act["after"], act["why"]) for act in shown["acts"]] == [
            ("ann", 2, 3, "it is night"),
            ("ann", 3, 1, ""),
        ]
        assert "it is night" in mam.ok("group", "--log").out
        assert mam.ok("group", "p1", "--reset").err == (
            "mam: group p1 has 2 slots now, before 1; 3 run and go on, none is claimed before "
            "they are fewer\n"
        )

    @pytest.mark.parametrize(("slots", "side"), [(0, "below"), (5, "above")])
    def test_n45_beyond_its_bounds_only_by_force(self, mam: Mam, slots: int, side: str) -> None:
        refused = mam("group", "p1", "--slots", str(slots))
        assert (refused.code, is_one_sentence(refused.err)) == (1, True)
        assert f"{slots} slots are {side} [groups.p1]" in refused.err
        assert mam.ok("group", "p1", "--json").json["slots"] == 2
        mam.ok("group", "p1", "--slots", str(slots), "--force")
        assert mam.ok("group", "p1", "--json").json["slots"] == slots

    def test_a_name_that_nobody_knows_is_a_mistake_unless_it_is_meant(self, mam: Mam) -> None:
        for words in (["group", "od"], ["group", "od", "--slots", "1"]):
            refused = mam(*words)
            assert (refused.code, refused.out) == (1, "")
            assert "unknown group 'od'. Did you mean odd?" in refused.err
        assert not (mam.registry / ".gates").exists()
        mam.ok("group", "new", "--slots", "1", "--force")
        assert mam.ok("group", "new", "--json").json["slots"] == 1

    @each_row(
        "words",
        [
            ["--slots", "2"],
            ["p1", "--slots", "many"],
            ["p1", "--slots", "-1", "--force"],
            ["p1", "--slots", "99999", "--force"],
            ["p1", "--slots", "2", "--reset"],
            ["a/\x1b[31mb", "--slots", "2", "--force"],
        ],
    )
    def test_nonsense_is_one_sentence(self, mam: Mam, words: list[str]) -> None:
        answer = mam("group", *words)
        assert (answer.code, is_one_sentence(answer.err)) == (2, True)


class TestCapacity:
    def test_n6_is_the_formula_with_its_figures(
        self, mam: Mam, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen = Machine(8, 1.5, 64 << 30, 40 << 30)
        monkeypatch.setattr(capacity, "look", lambda: seen)
        answer = mam.ok("capacity", "--json").json
        assert (answer["cores"], answer["memory_free"]) == (8, 40 << 30)
        (odd, p1) = answer["groups"]
        assert (p1["by_memory"], p1["by_cpu"], p1["fits"]) == (8.0, 12.8, 8)
        assert (odd["fits"], odd["by_memory"], odd["by_cpu"]) == (None, None, None)
        first, *table = mam.ok("capacity").lines
        assert first == "8 cores, load 1.50, memory 40.0G available of 64.0G"
        assert next(line for line in table if line.startswith("p1")).split()[:4] == [
            *("p1", "8", "8", "12.8"),
        ]
        assert "memory decides" in table[-1]
