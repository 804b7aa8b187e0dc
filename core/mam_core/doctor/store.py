"""The store that holds the records: which it is, whether it answers, whether it is safe there."""

from __future__ import annotations

from collections.abc import Iterator

from mam_core.checkup import Cure, Weight
from mam_core.doctor.findings import Area, Finding, Fix, Mended, Severity
from mam_core.doctor.ground import Look
from mam_core.wiring import checkup_of

_SEVERITIES = {
    Weight.FINE: Severity.OK,
    Weight.NOTE: Severity.NOTE,
    Weight.WARNING: Severity.WARNING,
    Weight.PROBLEM: Severity.PROBLEM,
}


def health(look: Look) -> Iterator[Finding]:
    for sign in checkup_of(look.registry.store):
        fix = _fix(sign.cure) if sign.cure else None
        severity = _SEVERITIES[sign.weight]
        yield Finding(Area.REGISTRY, sign.what, severity, sign.words, fix, f"store: {sign.what}")


def _fix(cure: Cure) -> Fix:
    return Fix(cure.words, lambda: Mended(True, cure.act()))
