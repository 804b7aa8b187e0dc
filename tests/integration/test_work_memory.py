"""Memory caps as a worker applies them: real processes, real limits, and what the record says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mam_core.operations.shown import Showing
from mam_core.operations.why import why
from mam_core.record_parts import MemoryCap
from mam_core.records import Reason, Status
from mam_core.work.caps import Caps, Means
from mam_core.work.launch import HEADROOM
from tests.support.patience import eventually
from tests.support.working import LABEL, Workshop

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

MIB = 1 << 20


def test_n8_eight_children_each_below_its_own_limit_are_over_it_together(shop: Workshop) -> None:
    """Fault 45, E1: a limit of one process is none of a tree; and nobody else is harmed."""
    hog = shop.add(shop.agent("hog", "eats_memory", 40, 8), memory_max=160 * MIB)
    others = [shop.add(shop.agent("good", "behaves")) for _ in range(2)]
    shop.drain(slots=2)
    job = shop.job(hog)
    assert (job.status, job.reason) == (Status.ERROR, Reason.OOM)
    assert {shop.job(one).status for one in others} == {Status.COMPLETED}
    assert job.memory_cap is not None
    assert (job.memory_cap.limit, job.memory_cap.origin) == (160 * MIB, "job")
    assert job.to_dict()["memory_cap"]["means"] in set(Means)
    assert shop.job(others[0]).memory_cap is None
    started = shop.audit(hog, "attempt_started")[0]
    assert started["memory"].startswith("160 MiB, ")
    assert shop.audit(others[0], "attempt_started")[0]["memory"] == "no cap"


def test_e1_where_we_weigh_each_process_has_a_limit_besides(shop: Workshop) -> None:
    teller = shop.agent("teller", "/bin/sh", "-c", "ulimit -d")
    job_id = shop.add(teller, memory_max=64 * MIB)
    shop.drain(caps=Caps(Means.SAMPLED))
    assert int(shop.output(job_id)) == (64 * MIB + HEADROOM) // 1024


def test_one_that_leaps_over_it_between_two_looks_and_falls_ends_as_oom(shop: Workshop) -> None:
    leap = "x = bytearray(200 << 20); raise SystemExit(1)"
    job = shop.run(shop.agent("leaper", sys.executable, "-c", leap), memory_max=64 * MIB)
    assert (job.status, job.reason) == (Status.ERROR, Reason.OOM)


def test_n47_a_group_gives_its_jobs_their_memory(shop: Workshop) -> None:
    hog = shop.add(shop.agent("hog", "eats_memory", 200, 1), group="small")
    shop.drain(caps=Caps(Means.SAMPLED, {"small": 64 * MIB}))
    job = shop.job(hog)
    assert (job.reason, job.memory_max) == (Reason.OOM, None)
    assert job.memory_cap == MemoryCap(64 * MIB, "sampled", "group small")


def test_what_it_takes_up_is_shown_while_it_runs(shop: Workshop) -> None:
    job_id = shop.add(shop.agent("hog", "eats_memory", 200, 1))
    with shop.at_work():

        def peak() -> int:
            found = Showing(shop.registry).running().get(job_id)
            return found.memory.peak if found is not None and found.memory is not None else 0

        eventually(lambda: peak() > 150 * MIB, "its memory is told")
        shop.registry.request_cancel(job_id)
        shop.until_status(job_id, Status.CANCELLED)
    told = [one["data"]["peak_memory"] for one in shop.told(job_id) if "peak_memory" in one["data"]]
    assert told == sorted(told)
    assert told[-1] >= 150 * MIB


def test_n8_switched_off_it_holds_nobody_and_says_so(shop: Workshop) -> None:
    job_id = shop.add(shop.agent("hog", "/bin/sh", "-c", "ulimit -d"), memory_max=1)
    shop.drain(caps=Caps(Means.OFF))
    assert shop.output(job_id).strip() == "unlimited"
    job = shop.job(job_id)
    assert (job.status, job.memory_cap) == (Status.COMPLETED, MemoryCap(1, "off", "job"))


def test_n8_a_scope_is_made_around_the_supervisor_and_said_to_hold_only_when_it_does(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for systemd-run, which becomes its command as the real one does: files, pid and
    reports pass through it. It limits nothing, so the record must not say that it does."""
    program = tmp_path / "bin" / "systemd-run"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$@" >{tmp_path}/said\n'
        'while [ "$1" != -- ]; do shift; done; shift; exec "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    job_id = shop.add(shop.agent("teller", "/bin/sh", "-c", "ulimit -d"), memory_max=64 * MIB)
    shop.drain(caps=Caps(Means.SCOPE))
    said = (tmp_path / "said").read_text()
    assert said.startswith("--user --scope -p MemoryMax=67108864 -p MemorySwapMax=0 ")
    job = shop.job(job_id)
    assert (job.status, job.memory_cap) == (
        Status.COMPLETED,
        MemoryCap(64 * MIB, "sampled", "job"),
    )
    assert int(shop.output(job_id)) == (64 * MIB + HEADROOM) // 1024


def test_fault45_why_says_what_holds_a_running_job(shop: Workshop) -> None:
    capped = shop.add(shop.agent("sleeper", "hangs"), memory_max=64 * MIB)
    free = shop.add("sleeper")
    shop.registry.claim(LABEL, cap_of=Caps(Means.CGROUP).of)
    shop.registry.claim(LABEL, cap_of=Caps(Means.CGROUP).of)
    assert why(shop.registry, capped).sentences[-1] == "its memory: 64 MiB, by a cgroup"
    assert why(shop.registry, free).sentences[-1] == "its memory: no cap"
