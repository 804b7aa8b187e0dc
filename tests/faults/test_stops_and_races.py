"""Processes that stop, race or ask twice (promise 2; faults 8, 21, 22, 23, 24)."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.errors import LockTimeout
from mam_core.records import Reason
from mam_core.stores import lock
from tests.faults.checker import check
from tests.faults.conftest import Figures
from tests.faults.diary import Act, Diary, Entry, Phase, read_diaries
from tests.faults.ground import Ground
from tests.faults.nursery import Child, Nursery
from tests.faults.scene import history_of, look, outline
from tests.faults.single_acts import copy_stage, ids, request, set_stage
from tests.faults.system_calls import kill_at, on_stage, sampled
from tests.faults.workload import Role, wanted
from tests.support.children import is_alive
from tests.support.patience import eventually


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize("act", ["register 20 jobs", "finish", "archive"])
def test_three_recoveries_at_once_come_to_the_same_as_one(
    act: str, nursery: Nursery, place: Path
) -> None:
    """Fault 8: whoever comes first recovers; the others find nothing left to do."""
    template = Ground(place / "template")
    template.root.mkdir()
    set_stage(template)
    quiet = on_stage(nursery, act, copy_stage(template, act, place / "quiet"), [])
    for call in sampled(quiet.calls, max(1, len(quiet.calls) // 6), index_step=1000):
        killed = copy_stage(template, act, place / "killed")
        on_stage(nursery, act, killed, kill_at(call))
        twin = killed.copy_to(place / "twin")
        broken = check(killed)
        children = [nursery.start("recover", str(twin.root), hold=True) for _ in range(3)]
        for child in children:
            child.go()
        assert [child.wait().code for child in children] == [0, 0, 0]
        assert check(twin) == broken, f"killed at {call}"
        assert outline(look(twin)) == outline(look(killed)), f"killed at {call}"
        killed.remove()
        twin.remove()


def test_a_submitter_that_was_killed_asks_again_and_gets_the_same_job(
    nursery: Nursery, place: Path
) -> None:
    """Fault 24: a key makes a lost answer harmless."""
    ground = Ground(place / "ground")
    ground.diaries_dir.mkdir(parents=True)
    registry = ground.open()
    keys = ["asker.1-1-b3-0", "asker.1-1-b3-1", "asker.1-1-b3-2"]
    given = [answer.job_id for answer in registry.register([wanted(key) for key in keys])]
    registry.store.close()
    diary = Diary(ground.diaries_dir, "asker.1")
    diary.write(Phase.BEGUN, Act.REGISTER, {"keys": keys})
    diary.close()
    second = nursery.start("play", Role.SUBMITTER, str(ground.root), "asker.2", "0")
    answer = _await_done(ground, "asker.2", Act.REGISTER)
    second.kill()
    assert answer.facts["ids"] == given
    assert not check(ground)


@pytest.fixture
def stopped_holder(nursery: Nursery, place: Path) -> Iterator[tuple[Ground, Child]]:
    """A process that was stopped while it held the lock."""
    ground = Ground(place / "ground")
    ground.root.mkdir()
    set_stage(ground)
    child = nursery.start("hold lock", str(ground.root))
    mark = ground.registry_dir / ".lock"
    while not mark.read_bytes():
        time.sleep(0.01)
    child.signal(signal.SIGSTOP)
    try:
        yield ground, child
    finally:
        child.kill()


def test_who_waits_for_a_stopped_holder_is_told_whom_it_waits_for(
    stopped_holder: tuple[Ground, Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    """B5 B6, fault 23: the wait is bounded, the error names the pid, readers do not wait."""
    monkeypatch.setattr(lock, "PATIENCE_SEC", 0.2)
    ground, child = stopped_holder
    registry = ground.open()
    found = ids(registry)
    assert registry.get(found["pending"]).prompt
    with pytest.raises(LockTimeout, match=f"pid {child.pid}"):
        registry.request_cancel(found["pending"])
    child.signal(signal.SIGKILL)
    eventually(lambda: not is_alive(child.pid), "it is dead")
    assert registry.request_cancel(found["pending"]).is_ended, "a dead holder holds nothing"
    registry.store.close()
    assert not check(ground)


def test_a_worker_that_was_stopped_past_its_lease_is_a_stranger_to_its_job(
    nursery: Nursery, place: Path
) -> None:
    """Fault 21: another worker has the job; the sleeper's result is refused, and audited."""
    ground = Ground(place / "ground")
    ground.diaries_dir.mkdir(parents=True)
    registry = ground.open()
    registry.register([request("a long job")])
    sleeper = nursery.start("finish on signal", str(ground.root), "zombie")
    claim = _await_done(ground, "zombie", Act.CLAIM)
    job_id, attempt = claim.facts["job"], claim.facts["attempt"]
    sleeper.signal(signal.SIGSTOP)
    registry.requeue(job_id, Reason.LOST, attempt=attempt)
    second = registry.claim("alpha")
    assert second is not None
    assert (second.job_id, second.attempt) == (job_id, attempt + 1)
    registry.store.close()
    sleeper.signal(signal.SIGUSR1)
    sleeper.signal(signal.SIGCONT)
    assert sleeper.wait().answer == {"error": "StaleAttempt"}
    assert not check(ground)
    assert look(ground).jobs[job_id].job.attempt == attempt + 1


@pytest.mark.parametrize(
    "races", [40, pytest.param(1000, marks=[pytest.mark.release, pytest.mark.timeout(1800)])]
)
def test_a_cancel_and_a_finish_that_race_end_a_job_once(
    races: int, nursery: Nursery, place: Path, show_figures: Figures
) -> None:
    """Fault 22: one of them wins, the other is told so; one terminal status, one line."""
    ground = Ground(place / "ground")
    ground.diaries_dir.mkdir(parents=True)
    wins = {"finish": 0, "cancel": 0}
    registry = ground.open()
    for number in range(races):
        job_id = registry.register(
            [{"prompt": f"race {number}", "agent": "shell", "agent_session": "race"}]
        )[0].job_id
        job = registry.claim("race")
        assert job is not None
        children = [
            nursery.start("end", str(ground.root), job_id, how, hold=True)
            for how in ("finish", "cancel")
        ]
        for child in children if number % 2 else reversed(children):
            child.go()
        answers = [child.wait().answer for child in children]
        history = history_of(registry.store.audit, job_id)
        ends = [line for line in history.moves if line["to"] != "running"]
        assert len(ends) == 1, (answers, ends)
        assert registry.get(job_id).status == ends[0]["to"]
        wins["finish" if ends[0]["to"] == "completed" else "cancel"] += 1
        registry.archive([job_id])
    registry.store.close()
    show_figures("cancel against finish", {"races": races} | wins)
    assert not check(ground)


def _await_done(ground: Ground, player: str, act: Act) -> Entry:
    """What a player was answered, as soon as it was; the test's own time limit bounds the wait."""
    while True:
        for entry in read_diaries(ground.diaries_dir):
            if (entry.player, entry.phase, entry.act) == (player, Phase.DONE, act):
                return entry
        time.sleep(0.01)
