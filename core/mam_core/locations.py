"""Where the registry and the audit log are.

A registry is found from every folder of its project, like ``mam.toml``. Scripts
of the documents look only where they are run (`registry_place`). The audit log
stands beside the registry folder, so that it is the same from every working
directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

DEFAULT_REGISTRY_DIR = os.path.join(".mam", "jobs")
LEGACY_REGISTRY_DIR = os.path.join(".hermes", "jobs")
LOGS_NAME = "delegate_job_logs"

REGISTRY_VARIABLE = "MAM_REGISTRY_DIR"
STORE_VARIABLE = "MAM_STORE"
LOGS_VARIABLE = "DELEGATE_JOB_LOGS_DIR"
#: Set for whatever runs inside an attempt.
JOB_VARIABLE = "MAM_JOB_ID"
#: Set, to its name, for whatever runs in a live agent, which takes job after job.
AGENT_VARIABLE = "MAM_LIVE_AGENT"
#: Set for what an agent runs: to every command of ours they mean "inside an agent".
ATTEMPT_VARIABLES = (
    *(JOB_VARIABLE, "MAM_ATTEMPT", "MAM_WORKDIR", "MAM_ARTIFACTS"),
    AGENT_VARIABLE,
)


def is_inside_attempt() -> bool:
    """Whether an agent runs this process: in an attempt of its own, or as a live agent."""
    return bool(os.environ.get(JOB_VARIABLE) or os.environ.get(AGENT_VARIABLE))


class Place(NamedTuple):
    """A registry folder, and what the operator should know about the choice of it."""

    path: str
    notice: str | None = None


def registry_place(
    named: str | None = None, environ: Mapping[str, str] | None = None, cwd: str | None = None
) -> Place:
    """`named`, else the variable, else ``.mam/jobs`` here, else a legacy ``.hermes/jobs`` here."""
    environ = os.environ if environ is None else environ
    chosen = os.path.expanduser(named or environ.get(REGISTRY_VARIABLE) or "")
    if os.path.isabs(chosen):
        return Place(chosen)
    cwd = cwd or os.getcwd()
    if chosen:
        return Place(os.path.join(cwd, chosen))
    ours = os.path.join(cwd, DEFAULT_REGISTRY_DIR)
    legacy = os.path.join(cwd, LEGACY_REGISTRY_DIR)
    if not os.path.isdir(legacy):
        return Place(ours)
    if not os.path.isdir(ours):
        return Place(legacy, f"using the registry in {legacy}; `mam migrate` moves it to .mam")
    left = sum(1 for name in os.listdir(legacy) if name.endswith(".json") and name[0] != ".")
    if left:
        words = f"{left} jobs are still in {legacy} and not shown"
        return Place(ours, f"{words}; `mam migrate` moves them")
    return Place(ours)


def nearest_place(
    named: str | None = None, environ: Mapping[str, str] | None = None, cwd: str | None = None
) -> Place:
    """As `registry_place`, in the nearest folder from here upward that has a registry."""
    environ = os.environ if environ is None else environ
    if named or environ.get(REGISTRY_VARIABLE):
        return registry_place(named, environ, cwd)
    return registry_place(None, {}, project_folder(cwd or os.getcwd()))


def project_folder(cwd: str) -> str:
    """The nearest folder from here upward that has a registry, or had one which was removed; where
    there is none, `cwd` itself."""
    from mam_core.registry_marks import is_marked

    homes = (DEFAULT_REGISTRY_DIR, LEGACY_REGISTRY_DIR)
    for folder in _upward(cwd):
        for path in (os.path.join(folder, home) for home in homes):
            if os.path.isdir(path) and (folder == cwd or os.stat(path).st_uid == os.geteuid()):
                return folder
        if is_marked(os.path.join(folder, DEFAULT_REGISTRY_DIR)):
            return folder
    return cwd


def _upward(cwd: str) -> Iterator[str]:
    """`cwd`, and the folders of ours above it on the same file system, the home folder the last."""
    yield cwd
    home, device, us = os.path.realpath(os.path.expanduser("~")), os.stat(cwd).st_dev, os.geteuid()
    folder, above = cwd, os.path.dirname(cwd)
    while folder not in (home, above):
        found = os.stat(above)
        if (found.st_dev, found.st_uid) != (device, us):
            return
        yield above
        folder, above = above, os.path.dirname(above)


def realm_of(registry_path: str) -> str:
    """Eight hex digits by which things outside of a registry's folder are known to belong to it."""
    import hashlib  # most commands have nothing outside

    return hashlib.sha256(os.fsencode(os.path.realpath(registry_path))).hexdigest()[:8]


def state_folder(environ: Mapping[str, str] | None = None) -> str:
    """Where mam keeps what is the person's and no registry's, beside other programs' state."""
    environ = os.environ if environ is None else environ
    base = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):  # the XDG rule: a relative one does not count
        home = environ.get("HOME") or os.path.expanduser("~")
        base = os.path.join(home, ".local", "state")
    return os.path.join(base, "mam")


def logs_path(registry_path: str, environ: Mapping[str, str] | None = None) -> str:
    """The audit log that belongs to a registry folder."""
    environ = os.environ if environ is None else environ
    named = environ.get(LOGS_VARIABLE)
    if named:
        return os.path.abspath(os.path.expanduser(named))
    return os.path.join(os.path.dirname(os.path.abspath(registry_path)), LOGS_NAME)
