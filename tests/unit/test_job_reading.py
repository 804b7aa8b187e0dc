"""What is read of a job to be looked at: its record, its artifacts, its newest events."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mam_core.operations.artifacts import artifacts
from mam_core.operations.record import record
from mam_core.operations.told import told_events
from mam_core.operations.verify import verify
from mam_core.records import REDACTED
from mam_core.registry import Registry
from tests.console.detail_story import hostile, registry_in, two_attempts
from tests.support.clock import FakeClock
from tests.support.jobs import add, running


@pytest.fixture
def registry(tmp_path: Path, clock: FakeClock) -> Registry:
    return registry_in(tmp_path, clock)


class TestRecord:
    def test_no_secret_is_in_it_wherever_it_stands(self, registry: Registry) -> None:
        token = "a-token-of-the-job"
        job_id = add(registry, f"say {token} aloud", auth_token=token)
        values = record(registry, job_id).values
        assert token not in str(values)
        assert values["prompt"] == f"say {REDACTED} aloud"

    def test_one_of_another_version_is_shown_without_the_secrets_of_the_documents(
        self, registry: Registry, tmp_path: Path
    ) -> None:
        text = '{"schema_version": 9, "auth_token": "t", "broker": {"password": "p", "x": 1}}'
        add(registry)
        (tmp_path / "jobs" / "newer001.json").write_text(text)
        found = record(registry, "newer001")
        assert found.values["auth_token"] == REDACTED
        assert found.values["broker"] == {"password": REDACTED, "x": 1}
        assert "schema_version" in found.notice


class TestArtifacts:
    def test_each_as_validation_would_judge_it_and_nothing_is_run_or_written(
        self, registry: Registry, clock: FakeClock, tmp_path: Path
    ) -> None:
        names = ["good", "empty", "old", "folder", "missing", "../outside"]
        job = running(
            registry,
            workdir=str(tmp_path),
            expected_artifacts=names[:-1],
            validate=f"touch {tmp_path}/ran",
        )
        (tmp_path / "empty").touch()
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "one").touch()
        for name, ago in (("good", -5), ("old", 100)):
            (tmp_path / name).write_text("12345")
            os.utime(tmp_path / name, (clock.now() - ago, clock.now() - ago))
        before = list(registry.store.audit.lines(job.job_id))
        found = artifacts(registry, job.job_id)
        told = {one.check.what: one for one in found.found}
        assert [told[name].check.passed for name in names[:-1]] == [True, False, False, True, False]
        assert told["old"].check.words == "artifact old is older than the attempt"
        assert (told["good"].size, told["good"].changed_at) == (5, clock.now() + 5)
        assert (told["folder"].size, told["folder"].is_folder) == (1, True)
        assert told["missing"].size is None
        assert found.last_check is None
        assert not (tmp_path / "ran").exists()
        assert list(registry.store.audit.lines(job.job_id)) == before

    def test_the_last_check_is_told_with_its_attempt(
        self, registry: Registry, clock: FakeClock, tmp_path: Path
    ) -> None:
        job_id = two_attempts(registry, clock, tmp_path)
        last = artifacts(registry, job_id).last_check
        assert last is not None
        assert (last.attempt, last.passed, last.output) == (1, False, "no stars")
        (tmp_path / "missing.md").write_text("x")
        verify(registry, [job_id])
        last = artifacts(registry, job_id).last_check
        assert last is not None
        assert (last.attempt, last.passed) == (2, True)


class TestToldEvents:
    def test_also_those_that_no_broker_has_taken_in_order_and_bounded(
        self, registry: Registry, clock: FakeClock, tmp_path: Path
    ) -> None:
        job_id = two_attempts(registry, clock, tmp_path)
        told = told_events(registry, job_id, 100)
        assert [event.event for event in told] == ["started", "state", "state", "state", "progress"]
        assert [event.seq for event in told] == [1, 2, 3, 4, 5]
        assert [event.seq for event in told_events(registry, job_id, 2)] == [4, 5]

    def test_of_a_hostile_job_too(
        self, registry: Registry, clock: FakeClock, tmp_path: Path
    ) -> None:
        assert len(told_events(registry, hostile(registry, clock, tmp_path), 100)) == 2
