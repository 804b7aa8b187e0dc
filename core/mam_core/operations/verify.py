"""Check again what jobs promised to leave behind, and change nothing by it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mam_core.audit import AuditEvent
from mam_core.operations.files_there import need_its_files
from mam_core.operations.outcome import Outcome, for_each
from mam_core.records import Job, Status
from mam_core.redaction import discreet, without_secrets
from mam_core.registry import Registry
from mam_core.work.categories import Expected, check_table, tables_in
from mam_core.work.validation import Check, Verdict, judge


@dataclass(frozen=True, slots=True)
class Verified:
    """One job: `outcome` says whether all is as promised, `checks` what was looked at."""

    outcome: Outcome
    checks: tuple[Check, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {**self.outcome.to_dict(), "checks": [check._asdict() for check in self.checks]}


def verify(
    registry: Registry, job_ids: Sequence[str], expected: Expected | None = None
) -> list[Verified]:
    """The checks that `completed` is earned by, made now; with `expected`, also whether the tables
    among the artifacts hold these categories and no others.

    Takes as long as the jobs' own validate commands do. The audit log gets a line; the record
    stays as it is, whatever the checks say.
    """
    checks: dict[str, tuple[Check, ...]] = {}

    def act(job_id: str) -> Outcome:
        job = registry.notice(job_id)
        need_its_files(registry, job, job.attempt)
        job = as_it_ran(registry, job)
        verdict = judge(
            job,
            registry_path=getattr(registry.store, "path", ""),
            store_url=registry.store.url,
            strict=registry.strict_checks,
        )
        if expected:
            verdict = Verdict((*verdict.checks, *_categories(job, expected)))
        checks[job_id] = verdict.checks
        _note(registry, job, verdict)
        return Outcome(job_id, verdict.passed, f"job {job_id} {_words(job, verdict)}", job)

    return [Verified(outcome, checks.get(outcome.job_id, ())) for outcome in for_each(job_ids, act)]


def verify_files(paths: Sequence[str], expected: Expected) -> list[Check]:
    """The same for files of no job: what a validate command or a merge asks."""
    return [check for path in paths for check in _of_place(path, path, expected)]


def _categories(job: Job, expected: Expected) -> list[Check]:
    """Only of artifacts inside of the job's folder: what is said of another is no verdict."""
    home = os.path.realpath(job.workdir or ".")
    found: list[Check] = []
    for name in job.expected_artifacts:
        place = os.path.realpath(os.path.join(home, name))
        if os.path.commonpath((place, home)) == home and tables_in(place):
            found += _of_place(place, name, expected)
    if not found:
        words = "none of its artifacts is a table (.csv, .tsv, .jsonl, .ndjson) to look into"
        return [Check("categories", False, words)]
    return [
        Check(one.what, one.passed, discreet(job, one.words), discreet(job, one.output))
        for one in found
    ]


def _of_place(place: str, name: str, expected: Expected) -> list[Check]:
    if not os.path.isdir(place):
        return check_table(place, name, expected)
    tables = tables_in(place)
    if not tables:
        return [Check(name, False, f"{name} holds no table")]
    return [
        check
        for path in tables
        for check in check_table(path, os.path.join(name, os.path.basename(path)), expected)
    ]


def as_it_ran(registry: Registry, job: Job) -> Job:
    """A session with a worktree of its own ran it there: that is where its artifacts are."""
    for line in registry.store.audit.events(job.job_id):
        if (line.get("event"), line.get("attempt")) == (AuditEvent.ATTEMPT_STARTED, job.attempt):
            workdir = line.get("workdir")
            if isinstance(workdir, str) and os.path.isdir(workdir):
                return job.evolve(workdir=workdir)
    return job


def _note(registry: Registry, job: Job, verdict: Verdict) -> None:
    facts = {
        "attempt": job.attempt,
        "status": job.status,
        "passed": verdict.passed,
        "checks": verdict.to_list(),
    }
    line = registry.note(AuditEvent.VERIFIED, **without_secrets(job, facts))
    registry.store.audit.append(job.job_id, line.to_dict(job.job_id))


def _words(job: Job, verdict: Verdict) -> str:
    as_it_stands = f"is {job.status} and was judged as it stands: " if job.is_live else ""
    if not verdict.checks:
        return f"{as_it_stands}promises nothing, so there is nothing to check"
    if not verdict.passed:
        return f"{as_it_stands}does not keep what it promised: {verdict.words}"
    if job.status in (Status.ERROR, Status.CANCELLED):
        return f"keeps what it promised, and stays {job.status}"
    return f"{as_it_stands}keeps what it promised"
