"""How the outcomes of a verb are printed: ids of what was done on stdout, sentences on stderr."""

from __future__ import annotations

from collections.abc import Sequence

from mam_core.cli.terminal import put, put_json, say
from mam_core.operations.outcome import Outcome


def put_outcomes(outcomes: Sequence[Outcome], *, as_json: bool) -> int:
    """The exit code is that of the first refusal."""
    if as_json:
        put_json([outcome.to_dict() for outcome in outcomes])
    else:
        put([outcome.job_id for outcome in outcomes if outcome.ok])
        for outcome in outcomes:
            say(outcome.message)
    return exit_code(outcomes)


def exit_code(outcomes: Sequence[Outcome]) -> int:
    return next((o.error.exit_code if o.error else 1 for o in outcomes if not o.ok), 0)
