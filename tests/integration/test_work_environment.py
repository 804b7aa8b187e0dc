"""What one job is given stays with it; and what is missing is known before anything costs."""

from __future__ import annotations

import json
import os
import shlex
import signal

import pytest

from mam_core.records import Status
from tests.support.watching import MAM
from tests.support.working import Workshop

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

_TELL = 'echo "$MAM_JOB_ID ${SECRET_OF_ONE:-nothing}"'


def test_n11_what_one_job_is_given_no_other_gets(shop: Workshop) -> None:
    """Two at once, by one worker; neither reaches the worker's own environment."""
    given = shop.agent("given", "/bin/sh", "-c", _TELL, env={"SECRET_OF_ONE": "sesame"})
    other = shop.agent("other", "/bin/sh", "-c", _TELL)
    jobs = [shop.add(agent) for agent in (given, other, given, other)]
    shop.drain(slots=2)
    said = [shop.output(job_id).split() for job_id in jobs]
    assert said == [
        [job_id, word] for job_id, word in zip(jobs, 2 * ["sesame", "nothing"], strict=True)
    ]
    assert "SECRET_OF_ONE" not in os.environ
    assert {shop.job(job_id).status for job_id in jobs} == {Status.COMPLETED}


def test_an_agent_that_delegates_uses_the_broker_that_runs(shop: Workshop) -> None:
    """In a PID namespace of its own it sees no process outside, and would wait for a broker that
    cannot be started twice."""
    ask = shlex.join([*MAM, "broker", "--status", "--json"])
    job_id = shop.add(shop.agent("asks", "/bin/sh", "-c", ask))
    with shop.mam_work() as worker:
        shop.until_status(job_id, Status.COMPLETED)
        worker.send(signal.SIGTERM)
        worker.code()
    assert json.loads(shop.output(job_id))["running"] is True


def test_n13_a_bad_folder_starts_no_process(shop: Workshop) -> None:
    """Gates come first: no prompt file, no supervisor, no attempt in the history."""
    gone = shop.folder / "gone"
    gone.mkdir()
    job_id = shop.add(shop.agent("good", "behaves"), workdir=str(gone))
    gone.rmdir()
    shop.drain()
    assert shop.job(job_id).status is Status.ERROR
    assert shop.audit(job_id, "attempt_started") == []
    assert not (shop.attempt_folder(job_id) / "process.json").exists()
