"""An audit as a person reads it: on a terminal and in the console alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mam_core.operations.audit_report import Report
from mam_core.operations.doctor import Severity
from mam_core.safe_text import one_line
from mam_core.table import Column, render

_WIDE = max(map(len, Severity))


def audit_lines(report: Report, width: int | None) -> Iterator[str]:
    """The whole report, for a person."""
    yield f"{report.at}  {one_line(report.node)}  {one_line(report.scope.words)}"
    held = report.backlog
    for word, count, more in (
        ("running", report.running, ""),
        ("queued", held.queued, f"nobody serves {len(held.unserved)}" if held.unserved else ""),
        ("blocked", held.blocked, f"{held.cannot_run} cannot run" if held.cannot_run else ""),
        ("failed", report.failed, _counts(report.failed.reasons)),
    ):
        why = f"  ({more})" if more else ""
        yield f"{word:<8} {len(count):>5}  {_counts(count.labels)}{why}".rstrip()
    if jobs := report.running.jobs:
        yield ""
        yield from render(
            [
                Column("RUNNING", [job.job_id for job in jobs]),
                Column("SESSION", [job.agent_session for job in jobs], flexible=True),
                Column("AGENT", [job.agent for job in jobs], flexible=True),
                Column("GROUP", [job.group or "-" for job in jobs], flexible=True),
                Column("SINCE", [job.started_at or "-" for job in jobs]),
                Column("NODE", [job.node or "-" for job in jobs], flexible=True),
            ],
            width,
        )
    if report.findings:
        yield ""
        for one in report.findings:
            yield f"{one.severity:<{_WIDE}}  {one_line(one.what)}: {one_line(one.words)}"
    yield ""
    yield f"advice: {report.advice_in_full}"


def _counts(found: Mapping[str, int]) -> str:
    return one_line(", ".join(f"{name} {count}" for name, count in found.items()))
