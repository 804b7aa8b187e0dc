"""Change what a pending job asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mam_core.errors import InvalidField
from mam_core.fields import EDITABLE
from mam_core.operations.outcome import Outcome
from mam_core.records import DEFAULTS
from mam_core.registry import Registry
from mam_core.rights import Right


def edit(
    registry: Registry, job_id: str, values: Mapping[str, Any], clear: Iterable[str] = ()
) -> Outcome:
    """New `values` by the record's keys; those named in `clear` go back to their defaults.

    Raises for a value that is wrong and for a job that is not pending any more.
    """
    cleared = {name: _default(name) for name in clear}
    both = sorted(cleared.keys() & values.keys())
    if both:
        raise InvalidField(f"{both[0]} is both set and cleared")
    registry.check_allowed(Right.EDIT, job_id)
    before = registry.get(job_id)
    job = registry.edit(job_id, {**values, **cleared})
    if job.revision == before.revision:
        return Outcome(job_id, True, f"job {job_id} is already like that", job)
    old, new = before.to_dict(), job.to_dict()
    changed = ", ".join(name for name in EDITABLE if old[name] != new[name])
    return Outcome(job_id, True, f"job {job_id}: changed {changed}", job)


def _default(name: str) -> Any:
    """What a new job has there; the prompt, the agent and the label have no default."""
    if name not in CLEARABLE:
        raise InvalidField(f"{name[:40]!r} cannot be cleared; what can: {', '.join(CLEARABLE)}")
    return DEFAULTS[name]


CLEARABLE = tuple(name for name in EDITABLE if DEFAULTS[name] != "")
