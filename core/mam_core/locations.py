"""Where the registry and the audit log are.

The audit log stands beside the registry folder, so that it is the same from
every working directory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

DEFAULT_REGISTRY_DIR = os.path.join(".mam", "jobs")
LEGACY_REGISTRY_DIR = os.path.join(".hermes", "jobs")
LOGS_NAME = "delegate_job_logs"

REGISTRY_VARIABLE = "MAM_REGISTRY_DIR"
STORE_VARIABLE = "MAM_STORE"
LOGS_VARIABLE = "DELEGATE_JOB_LOGS_DIR"
#: Set for whatever runs inside an attempt.
JOB_VARIABLE = "MAM_JOB_ID"


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
        return Place(
            legacy, f"using the registry in {LEGACY_REGISTRY_DIR}; `mam migrate` moves it to .mam"
        )
    left = sum(1 for name in os.listdir(legacy) if name.endswith(".json") and name[0] != ".")
    if left:
        words = f"{left} jobs are still in {LEGACY_REGISTRY_DIR} and not shown"
        return Place(ours, f"{words}; `mam migrate` moves them")
    return Place(ours)


def realm_of(registry_path: str) -> str:
    """Eight hex digits by which things outside of a registry's folder are known to belong to it."""
    import hashlib  # most commands have nothing outside

    return hashlib.sha256(os.fsencode(os.path.realpath(registry_path))).hexdigest()[:8]


def logs_path(registry_path: str, environ: Mapping[str, str] | None = None) -> str:
    """The audit log that belongs to a registry folder."""
    environ = os.environ if environ is None else environ
    named = environ.get(LOGS_VARIABLE)
    if named:
        return os.path.abspath(os.path.expanduser(named))
    return os.path.join(os.path.dirname(os.path.abspath(registry_path)), LOGS_NAME)
