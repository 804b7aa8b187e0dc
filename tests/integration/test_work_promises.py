"""What else a worker promises: a prompt file of its own, a lease that it renews, the agent's word
checked, model and session handed on, and all of it in time."""

from __future__ import annotations

import os
import signal

import pytest

from mam_core.config import Config
from mam_core.config.tables import Defaults
from mam_core.events import public_brokers
from mam_core.operations import sweeping
from mam_core.records import Reason, Status
from mam_core.work import sweep
from tests.support.patience import eventually
from tests.support.recordings import SAMPLES
from tests.support.stopping import stop
from tests.support.working import Workshop

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")


def test_while_it_runs_its_prompt_is_in_a_file_for_nobody_else(shop: Workshop) -> None:
    """Issue 5, 1; decision 10."""
    line = 'stat -c "%a of %U" "$0"; cat "$0"'
    command = ("/bin/sh", "-c", line, "{prompt_file}")
    job = shop.run(shop.agent("reader", *command, prompt="file"), "a secret plan")
    mode, _, rest = shop.output(job.job_id).partition(" of ")
    assert mode == "600"
    assert rest.endswith("a secret plan")


def test_a_lease_is_renewed_for_as_long_as_it_runs(shop: Workshop) -> None:
    shop.set(heartbeat_sec=0.1)
    job_id = shop.add(shop.agent("stuck", "hangs"))
    with shop.at_work():
        shop.until_said(job_id, "hangs")

        def renewals() -> int:
            lease = shop.job(job_id).lease
            return lease.renewals if lease else 0

        eventually(lambda: renewals() >= 3, "its lease is renewed")
        assert shop.job(job_id).attempt == 1
    assert shop.job(job_id).reason is Reason.STOPPED


@pytest.mark.parametrize(
    ("recording", "status", "reason"),
    [
        ("plain.default", Status.COMPLETED, None),
        ("error401.default", Status.ERROR, Reason.AGENT),
        ("permission.default", Status.ERROR, Reason.REFUSED),
    ],
)
def test_what_an_agent_calls_success_is_looked_at(
    shop: Workshop, recording: str, status: Status, reason: Reason | None
) -> None:
    """Issue 5, 4 and 5: it exits with 0 each time; what it said of itself decides."""
    path = SAMPLES / "claude" / f"{recording}.jsonl"
    job = shop.run(shop.agent("claude", "replays", path, mode="stream", stream="stream-json"))
    assert (job.status, job.reason) == (status, reason)


def test_a_model_and_the_session_to_resume_reach_the_agent(shop: Workshop) -> None:
    """Issue 5, 4 and 6: the session that it named itself is taken up by the next attempt."""
    recording = SAMPLES / "claude" / "error401.default.jsonl"
    line = f'echo "words: $*" >&2; cat "{recording}"'
    shop.agent(
        *("resumer", "/bin/sh", "-c", line, "sh"),
        mode="stream",
        stream="stream-json",
        model_flag="--model",
        resume=["--resume", "{session}"],
    )
    first = shop.run("resumer", model="opus")
    assert first.status is Status.ERROR
    session = first.agent_session_id
    assert session
    assert "words: --model opus\n" in shop.output(first.job_id)
    shop.registry.retry(first.job_id, resume=True)
    shop.drain()
    assert f"words: --model opus --resume {session}\n" in shop.output(first.job_id, 2)
    shop.registry.retry(first.job_id)
    shop.drain()
    assert "words: --model opus\n" in shop.output(first.job_id, 3)


def test_a_public_broker_is_warned_of_at_every_attempt(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """G26, decision 2: whoever runs the job is not the one who registered it."""
    monkeypatch.setattr(public_brokers, "_PUBLIC", ("localhost",))
    good = shop.agent("good", "behaves")
    ids = [shop.add(good, broker={"host": "localhost", "port": 1}) for _ in range(2)]
    shop.add(good)
    caplog.clear()
    shop.drain()
    said = [record.getMessage() for record in caplog.records if "public" in record.getMessage()]
    words = "go to the public broker localhost: anyone can read and forge them"
    assert said == [f"the events of job {job_id} {words}" for job_id in ids]


def longest(settings: Defaults) -> float:
    """From the last heartbeat until a lost job is back: the lease runs out just after a look, and
    what it ran is to be ended first."""
    unseen = settings.lease_sec + settings.sweep_sec * (1 + sweeping.SPREAD)
    return unseen + settings.grace_sec + sweep.PATIENCE_SEC


def test_a_lost_job_is_back_within_45_seconds(shop: Workshop) -> None:
    """Issue 5, 7, promise 3: the sum of the usual settings; and with shorter ones it is back by the
    slowest way, a worker that hangs over an agent that does not want to end. The settings are its
    only waits, so that the sum is the bound; how fast this machine was proves nothing."""
    assert longest(Config().defaults) <= 45
    shop.set(lease_sec=4.0, heartbeat_sec=1.0, sweep_sec=1.0, grace_sec=1.0)
    job_id = shop.add(shop.agent("hostile", "hostile"))
    with shop.mam_work() as worker, shop.mam("watch", "--all"):
        shop.until_said(job_id, "ready")
        stop(worker.process.pid, shop.path)
        eventually(lambda: shop.job(job_id).status is Status.PENDING, "it is back")
        worker.send(signal.SIGKILL)
    job = shop.job(job_id)
    assert (job.reason, job.losses, job.failures) == (Reason.LOST, 1, 0)
    assert not shop.survivors()
