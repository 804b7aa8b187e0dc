"""A fault at every system call of every act (promises 1, 4, 10; faults 1, 2, 7, 8, 10, 11, 13).

Killed there, an act has happened wholly or not at all. Where the call fails
instead, the caller gets one clear error, and nothing is half-done either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.faults.checker import check, violations
from tests.faults.conftest import Figures
from tests.faults.figures import listed
from tests.faults.ground import Ground, recover
from tests.faults.leftovers import temp_files
from tests.faults.nursery import Nursery
from tests.faults.scene import look, outline
from tests.faults.single_acts import ACTS, ON_BARE_GROUND, PROBE, REFUSED, copy_stage, set_stage
from tests.faults.system_calls import Call, Run, fail_at, kill_at, on_stage, sampled, watch

pytestmark = pytest.mark.usefixtures("strace")

#: The short form looks at every fifth call; of a batch, which repeats itself, at fewer.
_STEP = 5
_BATCH_STEP = 60
_INDEX_STEP = 20

SCALES = [
    pytest.param(False, id="some"),
    pytest.param(True, id="every", marks=[pytest.mark.release, pytest.mark.timeout(1800)]),
]


class Stage(NamedTuple):
    """An act, the registry before it, and what the registry looks like before and after."""

    act: str
    template: Ground
    calls: list[Call]
    before: dict[str, Any]
    after: dict[str, Any]

    def aims(self, every: bool) -> list[Call]:
        if every:
            return self.calls
        step = _BATCH_STEP if self.act == "register 20 jobs" else _STEP
        return sampled(self.calls, step, _INDEX_STEP)


@pytest.fixture(params=list(ACTS))
def stage(request: pytest.FixtureRequest, nursery: Nursery, place: Path) -> Stage:
    """The act is run once without a fault, to see its calls and what it comes to."""
    act = request.param
    template = Ground(place / "template")
    template.root.mkdir()
    if act not in ON_BARE_GROUND:
        set_stage(template)
    before = outline(look(template))
    quiet = copy_stage(template, act, place / "quiet")
    run = on_stage(nursery, act, quiet, [])
    assert ("error" if act in REFUSED else "ok") in run.ended.answer["act"], run.ended
    assert check(quiet) == []
    return Stage(act, template, run.calls, before, outline(look(quiet)))


@pytest.mark.parametrize("every", SCALES)
def test_an_act_killed_at_any_call_has_happened_wholly_or_not_at_all(
    every: bool, stage: Stage, nursery: Nursery, place: Path, show_figures: Figures
) -> None:
    """D4, faults 1 2 10: kill -9 on entering the n-th call; then one recovery and the rules."""
    found: list[str] = []
    killed = happened = 0
    for call in stage.aims(every):
        ground = copy_stage(stage.template, stage.act, place / "run")
        run = on_stage(nursery, stage.act, ground, kill_at(call))
        killed += run.ended.was_killed
        broken = check(ground)
        now = outline(look(ground))
        happened += now == stage.after
        if now not in (stage.before, stage.after):
            broken.append(_half_done(stage, now))
        if run.ended.code == 0 and now != stage.after:
            broken.append("it was answered and has not happened")
        found += [f"{stage.act}, killed at {call}: {sentence}" for sentence in broken]
        ground.remove()
    show_figures(
        f"killed: {stage.act}",
        {"calls": len(stage.calls), "kills": killed, "done": happened, "violations": len(found)},
    )
    assert not found, listed(found)


@pytest.mark.parametrize("every", SCALES)
def test_a_call_that_fails_costs_one_clear_error_and_nothing_else(
    every: bool, stage: Stage, nursery: Nursery, place: Path, show_figures: Figures
) -> None:
    """D5 F13, faults 11 13: ENOSPC and EIO at the n-th write, sync, rename, creation."""
    found: list[str] = []
    failed = 0
    for call, error in _failures(stage, every):
        ground = copy_stage(stage.template, stage.act, place / "run")
        run = on_stage(nursery, stage.act, ground, fail_at(call, error), probe=True)
        broken = []
        if run.was_hit:
            failed += 1
            broken = [*_answers_clearly(stage, run), *_leaves_no_trace(stage, ground, run)]
        where = f"{stage.act}, {error} at {call}"
        found += [f"{where}: {sentence}" for sentence in broken]
        ground.remove()
    show_figures(
        f"failing: {stage.act}",
        {"calls": len(stage.calls), "failures": failed, "violations": len(found)},
    )
    assert not found, listed(found)


@pytest.mark.parametrize("every", SCALES)
@pytest.mark.parametrize("moment", ["fsync", "rename", "ftruncate"])
@pytest.mark.parametrize("act", ["register", "archive"])
def test_a_recovery_that_is_killed_too_is_finished_by_the_next(
    every: bool, act: str, moment: str, nursery: Nursery, place: Path, show_figures: Figures
) -> None:
    """Faults 2 8 10: the first holder dies before, at or after its renames, the second anywhere."""
    template = Ground(place / "template")
    template.root.mkdir()
    set_stage(template)
    quiet = on_stage(nursery, act, copy_stage(template, act, place / "quiet"), []).calls
    first = [
        call
        for call in quiet
        if call.name.startswith(moment) and "/jobs" in call.text
        if not call.in_index
    ]
    on_stage(nursery, act, template, kill_at(first[0]))
    once = template.copy_to(place / "once")
    calls = watch(nursery.start("recover", str(once.root), hold=True)).calls
    known = check(once)
    found = list(known)
    for call in calls if every else sampled(calls, 1, _INDEX_STEP):
        ground = template.copy_to(place / "run")
        watch(nursery.start("recover", str(ground.root), hold=True), *kill_at(call))
        broken = [sentence for sentence in check(ground) if sentence not in known]
        if outline(look(ground)) != outline(look(once)):
            broken.append("it came to something else than one recovery")
        found += [f"{act} killed at {first[0]}, then {call}: {sentence}" for sentence in broken]
        ground.remove()
    show_figures(f"twice: {act}, {moment}", {"calls": len(calls), "violations": len(found)})
    assert not found, listed(found)


@pytest.mark.parametrize("act", ["register", "finish", "cancel", "claim", "register 20 jobs"])
def test_what_is_answered_survives_a_power_cut(act: str, nursery: Nursery, place: Path) -> None:
    """D1 D2, fault 7: content synced, then renamed, then the folder synced, then the answer.

    A claim may be lost with the power, not torn: its folder is not synced (decision 19).
    """
    ground = Ground(place / "ground")
    ground.root.mkdir()
    set_stage(ground)
    calls = on_stage(nursery, act, ground, []).calls
    names = [call.name for call in calls]
    renames = [
        number
        for number, call in enumerate(calls)
        if call.name.startswith("rename") and ".json" in call.text and "/jobs>" in call.text
    ]
    assert len(renames) == (20 if act == "register 20 jobs" else 1)
    for number in renames:
        temp = re.findall(r'"([^"]+\.tmp)"', calls[number].text)[0]
        synced = [
            before
            for before, call in enumerate(calls[:number])
            if call.name in ("syncfs", "sync") or (call.name == "fsync" and temp in call.text)
        ]
        written = [
            n for n, call in enumerate(calls) if re.match(rf"write\(\d+<[^>]*{temp}>", call.text)
        ]
        assert synced, f"{temp} was renamed before it was synced"
        assert max(written) < max(synced)
    folder = [n for n, call in enumerate(calls) if re.match(r"fsync\(\d+<.*/jobs>\)", call.text)]
    if act == "claim":
        assert folder == []
    else:
        assert max(renames) < max(folder) < len(names) - 1


_MAY_BE_FULL = ("open", "write", "pwrite", "fsync", "fdatasync", "sync", "rename", "mkdir")
_MAY_BREAK = (*_MAY_BE_FULL, "ftruncate", "fchmod", "chmod", "utimensat")


def _failures(stage: Stage, every: bool) -> Iterator[tuple[Call, str]]:
    # The very last write is the child's own answer, not the registry's.
    aims = stage.aims(every)[:-1]
    # A sync is where a store learns that the disk lied: none of them is left out.
    syncs = [call for call in stage.calls if "sync" in call.name and not call.in_index]
    for number, call in enumerate(dict.fromkeys([*aims, *syncs])):
        both = every or call in syncs
        full = call.name.startswith(_MAY_BE_FULL)
        if full and (both or number % 2):
            yield call, "ENOSPC"
        if call.name.startswith(_MAY_BREAK) and (both or not full or not number % 2):
            yield call, "EIO"


def _answers_clearly(stage: Stage, run: Run) -> Iterator[str]:
    """One error of ours, or none at all when only the audit log was hit."""
    if run.ended.code != 0 or "crash" in (run.ended.answer or {}):
        yield f"the process ended with {run.ended}"
        return
    for name, answer in run.ended.answer.items():
        if "crash" in answer:
            yield f"the caller of {name} got a traceback: {answer['crash']}"
    act, after = run.ended.answer["act"], run.ended.answer["next"]
    if act.get("message", "one line").count("\n"):
        yield f"the error is more than one line: {act['message']}"
    # After a failed sync this process writes nothing more; after anything else it goes on.
    if act.get("error") != "SyncFailed" and "ok" not in after:
        yield f"the next call of the same process fails: {after}"
    if act.get("error") == "SyncFailed" and after.get("error") != "StoreError":
        yield f"the disk did not take a write and the process goes on writing: {after}"


def _leaves_no_trace(stage: Stage, ground: Ground, run: Run) -> Iterator[str]:
    for temp in temp_files(look(ground)):
        yield f"a temp file stands there after the error: {temp}"
    recover(ground)
    scene = look(ground)
    yield from violations(scene)
    now = outline(scene, without=PROBE)
    if now not in (stage.before, stage.after):
        yield _half_done(stage, now)
    answer = (run.ended.answer or {}).get("act", {})
    if "ok" in answer and now != stage.after:
        yield "the caller was told that all is well and it has not happened"


def _half_done(stage: Stage, now: dict[str, Any]) -> str:
    seen, old, new = _flat(now), _flat(stage.before), _flat(stage.after)
    odd = [
        f"{name}: {old.get(name)} -> {seen.get(name)}, not {new.get(name)}"
        for name in sorted({*seen, *old, *new})
        if seen.get(name) != new.get(name)
    ]
    return f"it is half-done: {'; '.join(odd)}"


def _flat(outline: Any, path: str = "") -> dict[str, str]:
    if not isinstance(outline, dict):
        return {path: str(outline)}
    return {k: v for name in outline for k, v in _flat(outline[name], f"{path}/{name}").items()}
