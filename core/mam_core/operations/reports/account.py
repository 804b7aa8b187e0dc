"""All that is known about one job, gathered once, before any page is written.

From the record, the audit log, the output log and the folder it ran in; without a
record, from the logs alone. Texts are as they were found: whoever writes a page makes
them safe and discreet.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from mam_core.audit import AuditEvent
from mam_core.errors import JobNotFound, MamError
from mam_core.operations.artifacts import Artifacts, artifacts
from mam_core.operations.bars import Bar, BarReader
from mam_core.operations.output import attempts_with_output, read_output, without_escapes
from mam_core.operations.record import record
from mam_core.operations.timeline import Timeline, timeline
from mam_core.operations.why import Reasons, why
from mam_core.records import Job, check_job_id
from mam_core.registry import Registry
from mam_core.replay.entries import Act, act_of, first_entry, with_line
from mam_core.summaries import Summary

_OUTPUT_BYTES = 64 * 1024
_MOST_ACTS = 200


class Deed(NamedTuple):
    """What a person did; of what was said to the agent, also how far that got."""

    act: Act
    stage: str = ""


class Printed(NamedTuple):
    """The end of what an attempt printed."""

    attempt: int
    text: str


class Account(NamedTuple):
    """One job. `job` is None where there is no record any more."""

    job_id: str
    job: Job | None
    values: Mapping[str, Any]  #: the record without its secrets, or as it was registered
    told: Timeline
    bars: tuple[Bar, ...]  #: the attempts
    sentences: tuple[str, ...]  #: why it stands where it does
    artifacts: Artifacts | None
    deeds: tuple[Deed, ...]
    printed: Printed | None

    @property
    def status(self) -> str:
        """In a word; of a job that is gone, how its last attempt ended."""
        if self.told.status is not None:
            return str(self.told.status)
        return str(self.bars[-1].outcome) if self.bars else "unknown"

    @property
    def cost(self) -> float | None:
        known = [bar.cost for bar in self.bars if bar.cost is not None]
        return sum(known) if known else None

    @property
    def tokens(self) -> int | None:
        known = [bar.tokens for bar in self.bars if bar.tokens is not None]
        return sum(known) if known else None


def account_of(
    registry: Registry, job_id: str, output_lines: int = 100, reasons: Reasons | None = None
) -> Account:
    """Raises `JobNotFound` for a job that is neither registered nor logged."""
    told = timeline(registry, check_job_id(job_id))
    job = None
    with suppress(MamError):
        job = registry.get(job_id)
    values: Mapping[str, Any] = registry.store.audit.meta(job_id) or {}
    with suppress(MamError):
        values = record(registry, job_id).values
    reader = BarReader(registry)
    bars = reader.read_gone(job_id) if job is None else reader.read(Summary.of(job))
    return Account(
        job_id,
        job,
        values,
        told,
        bars,
        _sentences(registry, told, reasons),
        _artifacts(registry, told),
        _deeds(registry, job_id),
        _printed(registry, job_id, output_lines),
    )


def _sentences(registry: Registry, told: Timeline, reasons: Reasons | None) -> tuple[str, ...]:
    if told.status is not None:
        with suppress(JobNotFound):
            return tuple(why(registry, told.job_id, reasons=reasons).sentences)
    return ()


def _artifacts(registry: Registry, told: Timeline) -> Artifacts | None:
    if told.status is not None:
        with suppress(MamError, OSError):
            return artifacts(registry, told.job_id)
    return None


def _deeds(registry: Registry, job_id: str) -> tuple[Deed, ...]:
    """In order; a receipt belongs to the message whose number it has."""
    found: list[Deed] = []
    said: dict[int, int] = {}
    entry = first_entry(job_id, registry.store.audit.meta(job_id))
    for line in registry.store.audit.events(job_id):
        number = line.get("message")
        if (act := act_of(entry, line)) is not None and len(found) < _MOST_ACTS:
            if line.get("event") == AuditEvent.MESSAGE_SENT and isinstance(number, int):
                said[number] = len(found)
            found.append(Deed(act))
        elif line.get("event") == AuditEvent.MESSAGE_RECEIPT and number in said:
            at = said[number]
            found[at] = found[at]._replace(stage=str(line.get("stage") or "")[:40])
        entry = with_line(entry, line)
    return tuple(found)


def _printed(registry: Registry, job_id: str, lines: int) -> Printed | None:
    numbers = attempts_with_output(registry, job_id)
    if not numbers or not lines:
        return None
    with suppress(MamError, OSError):
        piece = read_output(registry, job_id, numbers[-1], limit=_OUTPUT_BYTES)
        kept = without_escapes(piece.data).splitlines()[-lines:]
        return Printed(numbers[-1], "\n".join(line[:4000] for line in kept))
    return None
