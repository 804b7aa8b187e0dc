"""The hold of an attempt on its job, where the registry takes its time to answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from mam_core.leases import LeaseTerms
from mam_core.registry import Registry
from mam_core.work.decision import Cause
from mam_core.work.hold import Hold, Terms
from mam_core.work.voice import Voice
from tests.support.clock import FakeClock
from tests.support.jobs import running

LEASE_SEC = 10.0


def test_a_lease_that_ends_while_the_record_is_read_is_not_renewed_as_if_it_held(
    registry: Registry, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database hangs in the look, and answers when the renewal is due as well."""
    job = running(registry, lease=LeaseTerms("us", LEASE_SEC))
    assert job.lease is not None
    shared = job.evolve(lease=job.lease._replace(store_time=clock.now()))
    said: list[str] = []
    voice = cast("Voice", SimpleNamespace(mention=said.append, told=0))
    hold = Hold(registry, shared, Terms("us", "", lease_sec=LEASE_SEC), voice, lambda: False)
    read = registry.get

    def slow(job_id: str) -> Any:
        clock.pass_time(12)
        return read(job_id)

    monkeypatch.setattr(registry, "get", slow)
    clock.pass_time(5)
    hold.keep(clock.since_boot())
    assert hold.cause is Cause.CUT_OFF
    assert "could not be renewed for 17 s" in hold.words
    assert said == [f"ending it: {hold.words}"]
