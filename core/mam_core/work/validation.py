"""`completed` is earned: the artifacts are there and new, and the job's own check agrees.

Nothing here touches the registry. Whoever wants to end a job as completed asks
first, without holding a lock, since the check is a program of the user's and
may take its time.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mam_core.clock import parse_stamp
from mam_core.records import Job, Status
from mam_core.redaction import discreet


class Check(NamedTuple):
    """One thing that was looked at; `words` is a sentence in both cases."""

    what: str  #: the artifact's name, or the validate command
    passed: bool
    words: str
    output: str = ""  #: the end of what the command printed


class Artifact(NamedTuple):
    """One that the job promised, as it stands; size and time are those of what is there."""

    check: Check
    size: int | None = None  #: bytes of a file, entries of a folder
    changed_at: float | None = None  #: the newest change, of the folder or of what is in it
    is_folder: bool = False


class Verdict(NamedTuple):
    """All that was looked at."""

    checks: tuple[Check, ...]
    remark: str = ""  #: what a reader must know even where all passed

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def words(self) -> str:
        """What is wrong, as one sentence; empty when nothing is."""
        return "; ".join(check.words for check in self.checks if not check.passed)

    def to_list(self) -> list[dict[str, Any]]:
        """For the audit log."""
        return [
            {name: value for name, value in check._asdict().items() if value != ""}
            for check in self.checks
        ]


#: A file gets the time of the kernel's last tick, which lies up to so far in the past.
_TICK_SEC = 0.01

#: Runs a job's own check: its shell line, folder, environment and time.
Run = Callable[[str, str, Mapping[str, str], float], Check]


def judge(
    job: Job,
    *,
    registry_path: str = "",
    store_url: str = "",
    environ: Mapping[str, str] | None = None,
    run: Run | None = None,
    strict: bool = False,
) -> Verdict:
    """Look at everything that the job promised. Takes as long as its validate command does.

    The command is not run where an artifact is missing: it would only say the same, later. With
    `run` it is the caller who runs it. A check whose script is no longer what it was is said to
    have changed; with `strict` it does not pass.
    """
    workdir = os.path.abspath(job.workdir or ".")
    checks = [artifact.check for artifact in _artifacts(job, workdir)]
    remark = ""
    if job.validate and all(check.passed for check in checks):
        from mam_core.work import check_files, validate_command

        if names := check_files.changed(job):
            words = "is not what it was when the job was registered"
            remark = f"check changed: {', '.join(names)} {words}"
            checks.append(Check("check changed", not strict, remark))

        surroundings = environment(job, registry_path, environ, store_url)
        command = run or validate_command.run
        checks.append(command(job.validate, workdir, surroundings, job.timeout_sec))
    return Verdict(tuple(_discreet(job, check) for check in checks), discreet(job, remark))


def look_at_artifacts(job: Job) -> list[Artifact]:
    """What `judge` would say of each artifact now, and how it stands. Nothing is run."""
    found = _artifacts(job, os.path.abspath(job.workdir or "."))
    return [artifact._replace(check=_discreet(job, artifact.check)) for artifact in found]


def environment(
    job: Job,
    registry_path: str,
    environ: Mapping[str, str] | None = None,
    store_url: str = "",
) -> dict[str, str]:
    """What an agent or a validate command is told about its job."""
    from mam_core.locations import LOGS_VARIABLE, REGISTRY_VARIABLE, STORE_VARIABLE, logs_path

    facts = {
        "MAM_JOB_ID": job.job_id,
        # A job that is judged before it was claimed is claimed by that.
        "MAM_ATTEMPT": str(job.attempt + (job.status is Status.PENDING)),
        "MAM_WORKDIR": os.path.abspath(job.workdir or "."),
        "MAM_ARTIFACTS": "\n".join(job.expected_artifacts),
    }
    if registry_path:
        facts[REGISTRY_VARIABLE] = os.path.abspath(registry_path)
        facts[LOGS_VARIABLE] = logs_path(registry_path, environ)
    if store_url:
        facts[STORE_VARIABLE] = store_url
    return {**(os.environ if environ is None else environ), **facts}


def _start(job: Job) -> float:
    """When the attempt began, to the second, as records have it, and by the clock of files.

    A job that nobody claimed has begun, at the earliest, when it was registered or given back.
    """
    began = job.started_at or (job.updated_at if job.attempt else job.created_at)
    try:
        return parse_stamp(began) - _TICK_SEC
    except ValueError:
        return 0.0


def _artifacts(job: Job, workdir: str) -> list[Artifact]:
    since = _start(job)
    return [_artifact(name, workdir, since) for name in job.expected_artifacts]


def _artifact(name: str, workdir: str, since: float) -> Artifact:
    def failed(words: str) -> Artifact:
        return Artifact(Check(name, False, f"artifact {name} {words}"))

    place = os.path.realpath(os.path.join(workdir, name))
    home = os.path.realpath(workdir)
    if os.path.commonpath((place, home)) != home:
        return failed("lies outside of the job's folder")
    try:
        state = os.stat(place)
        is_folder = stat.S_ISDIR(state.st_mode)
        entries = _states_in(place) if is_folder else []
    except FileNotFoundError:
        return failed("is missing")
    except OSError as problem:
        return failed(f"cannot be looked at: {(problem.strerror or str(problem)).lower()}")
    size = len(entries) if is_folder else state.st_size
    changed_at = max(each.st_mtime for each in (state, *entries))
    found = Artifact(Check(name, True, f"artifact {name} is there"), size, changed_at, is_folder)
    if not size:
        return found._replace(check=failed("is empty").check)
    if changed_at < since:
        return found._replace(check=failed("is older than the attempt").check)
    return found


def _states_in(folder: str) -> list[os.stat_result]:
    with os.scandir(folder) as entries:
        return [entry.stat(follow_symlinks=False) for entry in entries]


def _discreet(job: Job, check: Check) -> Check:
    """What it says is told to the world: names and outputs may hold what must not be."""
    return Check(check.what, check.passed, discreet(job, check.words), discreet(job, check.output))
