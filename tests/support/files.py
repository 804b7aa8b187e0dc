"""A registry of files for tests, and what can be seen of one from outside."""

from __future__ import annotations

from pathlib import Path

from mam_core.registry import Registry
from mam_core.stores.base import Query


def rows(registry: Registry) -> dict[str, str]:
    """Every row of a list: the readable by status, the others by their error."""
    found, unreadable = registry.store.find(Query())
    return {row.job_id: row.status for row in found} | {row.job_id: row.error for row in unreadable}


def temps(place: Path) -> list[str]:
    return [path.name for path in place.iterdir() if path.name.endswith(".tmp")]


def told(registry: Registry, job_id: str) -> list[tuple[int, str]]:
    return [(line["n"], line["event"]) for line in registry.store.audit.events(job_id)]
