"""The command itself: what it asks, what it leaves alone, and what programs are told."""

from __future__ import annotations

import json
import os

from tests.support.clinic import Clinic, Terminal


def on_record(shop: Clinic) -> list[str]:
    return [one.name for one in shop.kept.all()[0]]


class TestFixing:
    def test_each_is_asked(self, shop: Clinic) -> None:
        shop.lose("a", "b")
        shop.settle()
        person = Terminal("doctor", "--fix", cwd=shop.folder)
        person.type("y")  # nobody has asked yet
        person.answer("restore session a? [y/N]", "n")
        person.answer("or forget session a? [y/N]", "y")
        person.answer("restore session b? [y/N]", "what")
        person.answer("restore session b? [y/N]", "n")
        person.answer("or forget session b? [y/N]", "")
        assert person.code() == 1, "b is left"
        assert on_record(shop) == ["b"]
        assert shop.in_tmux() == []

    def test_whoever_goes_away_has_said_no(self, shop: Clinic) -> None:
        shop.lose("a")
        shop.settle()
        person = Terminal("doctor", "--fix", cwd=shop.folder)
        person.answer("restore session a? [y/N]", "\x04")
        assert person.code() == 1
        assert shop.in_tmux() == []

    def test_without_a_terminal_it_says_what_it_would_do(self, shop: Clinic) -> None:
        shop.lose("a")
        said = shop.say("doctor", "--fix")
        assert said.code == 1
        assert "would restore session a (say --yes, or use a terminal)" in said.err
        assert shop.in_tmux() == []

    def test_yes_goes_with_fix(self, shop: Clinic) -> None:
        said = shop.say("doctor", "--yes")
        assert (said.code, said.err) == (2, "mam: --yes goes with --fix\n")

    def test_two_doctors_at_once(self, shop: Clinic) -> None:
        shop.lose("a", "b")
        words = ("doctor", "--fix", "--yes")
        with shop.mam(*words) as first, shop.mam(*words) as second:
            assert (first.code(), second.code()) == (0, 0), (first.err, second.err)
        assert sorted(shop.in_tmux()) == ["a", "b"]
        assert shop.findings() == []


class TestForPrograms:
    def test_every_finding_and_what_became_of_it(self, shop: Clinic) -> None:
        shop.lose("a")
        os.chmod(shop.path, 0o755)
        told = json.loads(shop.say("doctor", "--json").out)
        assert told["problems"] == 1
        (wrong,) = [one for one in told["findings"] if one["severity"] == "problem"]
        assert (wrong["area"], wrong["what"]) == ("sessions", "session a")
        assert [one["safe"] for one in wrong["fixes"]] == [True, False]
        assert wrong["outcome"] is None
        shop.ok("stop", "a")
        told = json.loads(shop.ok("doctor", "--fix", "--yes", "--json").out)
        assert told["problems"] == 0
        (mended,) = [one for one in told["findings"] if one["outcome"]]
        assert mended["outcome"]["done"] is True
        assert shop.path.stat().st_mode & 0o777 == 0o700
