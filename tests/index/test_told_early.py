"""The index is told of a change early, and of no more than has changed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from mam_core.errors import StoreError
from mam_core.records import Status
from mam_core.registry import Registry
from tests.index.site import Site, assert_same, ids_of
from tests.support.jobs import add


class TestWhatNeverHappened:
    """The index is told of a change before the disk is waited for, and believes it afterwards."""

    @pytest.mark.parametrize("call", ["replace", "fsync"])
    def test_is_not_in_the_index(
        self, site: Site, registry: Registry, monkeypatch: pytest.MonkeyPatch, call: str
    ) -> None:
        job_id = add(registry, key="nightly")

        def fail(*args: Any, **kwargs: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as broken:
            broken.setattr(os, call, fail)
            with pytest.raises(StoreError, match="full"):
                registry.claim("alpha")
            with pytest.raises(StoreError, match="full"):
                add(registry, "one more")
        again = site.open()
        assert ids_of(again) == [job_id]
        assert_same(site, registry, again)
        assert registry.claim("alpha") is not None


class TestLiveness:
    def test_a_key_and_a_prompt_are_free_when_their_job_has_ended_and_taken_when_it_is_retried(
        self, site: Site, registry: Registry
    ) -> None:
        """A claim leaves the two indexes alone that an end takes the job out of."""
        job_id = add(registry, "the same words", key="nightly")
        steps: list[Callable[[], object]] = [
            lambda: registry.claim("alpha"),
            lambda: registry.finish(job_id, Status.ERROR, attempt=1),
            lambda: registry.retry(job_id),
            lambda: registry.claim("alpha"),
            lambda: registry.set_status(job_id, Status.COMPLETED),
        ]
        for step in steps:
            assert step() is not None
            live = registry.get(job_id).is_live
            with registry.store.transaction() as tx:
                assert tx.live_with_key("nightly") == (job_id if live else None)
                assert tx.live_twin("alpha", "the same words") == (job_id if live else None)
        assert_same(site, registry)
