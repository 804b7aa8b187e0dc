"""The autoscaler as it runs: on the side of a long-lived command, in a thread of its own."""

from __future__ import annotations

from pathlib import Path

from mam_core import acts
from mam_core.acts import Deed
from mam_core.config import load
from mam_core.operations.autoscaling import autoscaling
from mam_core.registry import Registry
from mam_core.stores.base import Paper
from mam_core.wiring import open_registry
from tests.support.jobs import add
from tests.support.patience import eventually
from tests.support.proc import FakeProc

SETTINGS = """
[groups.p1]
slots = 1
max = 3

[autoscale]
enabled = true
every_sec = 0.1
watch_sec = 600
check = ["/bin/sh", "-c", "test $MAM_GROUP != p1"]
"""


def test_n42_n7_it_steps_up_and_takes_the_step_back_when_the_operators_check_says_no(
    tmp_path: Path,
) -> None:
    """Issue 10, item 4, with a real thread, a real check, and a machine of the test's own."""
    (tmp_path / "mam.toml").write_text(SETTINGS)
    config, place = load(str(tmp_path / "mam.toml")), str(tmp_path / "jobs")
    proc = FakeProc(tmp_path / "proc")
    with open_registry(place, config=config) as registry:
        for _ in range(3):
            add(registry, group="p1")
        registry.claim("alpha")
        with autoscaling(place, config, gauge=proc.gauge):

            def stepped() -> bool:
                proc.set(1, 1)
                return Deed.TAKEN_BACK in deeds(registry)

            eventually(stepped, "a step up was taken back")
            who = acts.decode(registry.store.paper(Paper.ACTS)).keeper
            assert who is not None
            assert who.node == registry.node
        done = acts.decode(registry.store.paper(Paper.ACTS))
        assert done.keeper is None, "whoever ends lets another one decide at once"
        changes = [act for act in done.acts if act.deed.is_change]
        assert [(act.deed, act.after) for act in changes] == [(Deed.UP, 2), (Deed.TAKEN_BACK, 1)]
        assert changes[1].why == "the check sh ended with 1"
        assert registry.store.facts().gates().slots == {"p1": 1}


def deeds(registry: Registry) -> list[Deed]:
    return [act.deed for act in acts.decode(registry.store.paper(Paper.ACTS)).acts]
