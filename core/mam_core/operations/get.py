"""One record, also one that this version only understands as JSON."""

from __future__ import annotations

from typing import NamedTuple

from mam_core import codec
from mam_core.errors import UnreadableRecord
from mam_core.records import SCHEMA_VERSION, Job
from mam_core.registry import Registry


class Foreign(NamedTuple):
    """A record of another schema version: shown as it is stored, never rewritten."""

    stored: bytes
    notice: str


def get(registry: Registry, job_id: str) -> Job | Foreign:
    """Raises `JobNotFound`, and `UnreadableRecord` for what is no record of any version."""
    try:
        return registry.get(job_id)
    except UnreadableRecord as problem:
        stored = registry.store.raw(job_id)
        if _is_of_another_version(stored):
            return Foreign(stored, problem.message)
        raise


def _is_of_another_version(stored: bytes) -> bool:
    try:
        return codec.loads(stored).get("schema_version") not in (None, SCHEMA_VERSION)
    except UnreadableRecord:
        return False
