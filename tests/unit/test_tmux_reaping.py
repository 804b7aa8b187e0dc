"""A death without a code is worth a nudge, but not one for every look."""

from __future__ import annotations

from itertools import pairwise

from mam_core.tmux.facts import PaneFact
from mam_core.tmux.reaping import Overlooked

_LIVES = PaneFact("%1", "a", 7, False, None, None, "", "tmux:a", "", "", 0, 80, 24, 0.0, 0.0)
_OVERLOOKED = _LIVES._replace(dead=True)


def test_only_a_death_without_a_code_is_overlooked() -> None:
    overlooked = Overlooked(lambda: 0.0)
    known = (_OVERLOOKED._replace(exit_code=0), _OVERLOOKED._replace(exit_signal=9))
    assert not overlooked.among([_LIVES, *known])
    assert overlooked.among([_LIVES, _OVERLOOKED])


def test_the_tries_are_further_and_further_apart_and_then_end() -> None:
    moments = [tenth / 10 for tenth in range(1000)]
    time = iter(moments)
    overlooked = Overlooked(lambda: next(time))
    tried = [moment for moment in moments if overlooked.among([_OVERLOOKED])]
    assert len(tried) == 8
    pauses = [after - before for before, after in pairwise(tried)]
    assert pauses == sorted(pauses)


def test_each_pane_has_its_own_tries() -> None:
    overlooked = Overlooked(lambda: 0.0)
    assert overlooked.among([_OVERLOOKED])
    assert not overlooked.among([_OVERLOOKED])
    assert overlooked.among([_OVERLOOKED, _OVERLOOKED._replace(pane_id="%2")])
