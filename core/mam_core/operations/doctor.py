"""Look at everything that can go out of step, and mend it where the operator says so.

Nothing is changed by looking. A mismatch is told when two looks, a moment apart, have
seen it: between a record and a process there is always a moment in which one of them
is behind. Before anything is mended, it is looked at once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from mam_core.doctor.checks import CHECKS
from mam_core.doctor.findings import Area, Check, Finding, Fix, Mended, Severity
from mam_core.doctor.ground import Ground, Look
from mam_core.errors import MamError
from mam_core.rights import Right

__all__ = [
    "Answer",
    "Area",
    "Finding",
    "Fix",
    "Ground",
    "Look",
    "Mended",
    "Severity",
    "examine",
    "mend",
]

#: Between the two looks: longer than a change of record, process and pane takes on a busy host.
APART_SEC = 1.0


class Answer(NamedTuple):
    """What one check has found; never empty: a check without findings is one that is well."""

    check: Check
    findings: tuple[Finding, ...]


def examine(
    ground: Ground,
    *,
    checks: Sequence[Check] = CHECKS,
    pause: Callable[[float], object] = time.sleep,
    first: Look | None = None,
) -> list[Answer]:
    """All checks, in order. Takes a second longer where something seems to be wrong.

    `first` is a look that the caller goes on using; it serves as the first of the two.
    """
    asked = [check for check in checks if ground.has_registry or not check.is_about_registry]
    first = first or Look(ground)
    found = [(check, _ask(check, first)) for check in asked]
    if any(_is_in_doubt(check, findings) for check, findings in found):
        pause(APART_SEC)
        second = Look(ground)
        found = [
            (check, _seen_twice(findings, _ask(check, second)))
            if _is_in_doubt(check, findings)
            else (check, findings)
            for check, findings in found
        ]
    return [Answer(check, tuple(findings) or (_well(check),)) for check, findings in found]


def _is_in_doubt(check: Check, findings: Iterable[Finding]) -> bool:
    return check.twice and any(one.severity is not Severity.OK for one in findings)


def _seen_twice(before: Iterable[Finding], after: Iterable[Finding]) -> list[Finding]:
    """As they are now: what was not there a moment ago may not be there in a moment."""
    known = {one.name for one in before}
    return [one for one in after if one.severity is Severity.OK or one.name in known]


def _ask(check: Check, look: Look) -> list[Finding]:
    """What cannot be looked at is unknown: that is said, and is no verdict."""
    try:
        return list(check.look(look))
    except (MamError, OSError) as trouble:
        words = f"this could not be looked at: {_words(trouble)}"
        return [Finding(check.area, check.name, Severity.WARNING, words, rule="unknown")]


def _well(check: Check) -> Finding:
    return Finding(check.area, check.name, Severity.OK, "nothing is wrong")


def mend(ground: Ground, check: Check, finding: Finding, choice: int = 0) -> Mended:
    """Do one fix of a finding, if it is still there; `choice` counts what is offered instead.

    Raises `NotAllowed` inside an attempt. Any other error of the fix is in the answer.
    """
    ground.registry.check_allowed(Right.DOCTOR)
    now = next((one for one in _ask(check, Look(ground)) if one.name == finding.name), None)
    if now is None or now.fix is None:
        return Mended(True, f"{finding.what}: this is in order by now")
    wanted = finding.fix.choices[choice].words if finding.fix else ""
    fix = next((one for one in now.fix.choices if one.words == wanted), None)
    if fix is None:
        return Mended(False, f"{finding.what} is not as it was: nothing was done")
    try:
        return fix.act()
    except (MamError, OSError) as trouble:
        return Mended(False, f"{finding.what}: {_words(trouble)}")


def _words(trouble: MamError | OSError) -> str:
    if isinstance(trouble, MamError):
        return trouble.message
    where = f"{trouble.filename}: " if isinstance(trouble.filename, str) else ""
    return f"{where}{(trouble.strerror or str(trouble)).lower()}"
