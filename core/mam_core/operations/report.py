"""A page about jobs for people who were not there: asked, happened, left behind, spent.

The file stands alone, as HTML or Markdown by its ending. What is secret, what looks like a
key and where somebody lives is not in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mam_core.agents.states import moment
from mam_core.clock import stamp
from mam_core.errors import InvalidField, JobNotFound, MamError
from mam_core.operations.evidence import Services
from mam_core.operations.export import create
from mam_core.operations.history import History, HistoryBusy
from mam_core.operations.listing import listing, query
from mam_core.operations.reports import html_page, job_markdown
from mam_core.operations.reports.account import Account, account_of
from mam_core.operations.reports.discretion import tell_of
from mam_core.operations.why import Reasons
from mam_core.records import Status
from mam_core.registry import Registry

DAY_SEC = 86400.0
#: A page with more is one that nobody reads, and no browser likes.
MOST_JOBS = 200
#: Of each job, where there are several.
_FEW_LINES = 20
_MANY_LINES = 100


class _Page(NamedTuple):
    accounts: Sequence[Account]
    title: str
    now: float
    notes: Sequence[str]


def report(
    registry: Registry,
    path: str,
    job_ids: Sequence[str] = (),
    since_sec: float = DAY_SEC,
    *,
    services: Services | None = None,
) -> str:
    """Write a new file about these jobs, or about all that something happened to in so many
    seconds; what was done, in words. `services` know who serves pending jobs.

    Raises `JobNotFound` for one that was named and is neither registered nor logged, and
    `CannotExport` for a file that is there already.
    """
    written = _WRITERS.get(os.path.splitext(path)[1].lower())
    if written is None:
        raise InvalidField(f"{path} must end in {' or '.join(_WRITERS)}")
    now = registry.clock.now()
    named = list(dict.fromkeys(job_ids))
    chosen = named or list(active_since(registry, now - since_sec))
    if not chosen:
        raise JobNotFound(f"nothing happened to any job since {stamp(now - since_sec)}")
    notes = []
    if len(chosen) > MOST_JOBS:
        notes.append(f"These are {MOST_JOBS} of {len(chosen)} jobs: those that changed last.")
    lines = _FEW_LINES if len(chosen) > 1 else _MANY_LINES
    reasons = Reasons(registry, services)
    accounts = []
    for job_id in chosen[:MOST_JOBS]:
        try:
            accounts.append(account_of(registry, job_id, lines, reasons))
        except MamError as problem:
            if named:
                raise
            notes.append(problem.message)
    title = f"Job {accounts[0].job_id}" if len(accounts) == 1 else f"{len(accounts)} jobs"
    if not named:
        title += f" since {stamp(now - since_sec)}"
    place = create(path, written(_Page(accounts, title, now, notes)).encode("utf-8", "replace"))
    left = f"; {len(chosen) - MOST_JOBS} more are left out" if len(chosen) > MOST_JOBS else ""
    count = "1 job" if len(accounts) == 1 else f"{len(accounts)} jobs"
    return f"a report about {count} is in {place}{left}"


def active_since(registry: Registry, at: float) -> Iterator[str]:
    """Jobs that run, or that something happened to; those that changed last come first.

    Also those whose record is gone, from the index of the audit log.
    """
    found: dict[str, float] = {}
    for job in listing(registry, query()).jobs:
        changed = moment(job.updated_at) or 0.0
        if changed >= at or job.status is Status.RUNNING:
            found[job.job_id] = changed
    for job_id, changed in _logged_since(registry, at):
        found.setdefault(job_id, changed)
    return iter(sorted(found, key=lambda job_id: -found[job_id]))


def _logged_since(registry: Registry, at: float) -> Iterator[tuple[str, float]]:
    with History(registry) as history:
        try:
            for _ in history.refresh():
                pass
        except HistoryBusy:
            pass  # another process brings it up to date: what is there will do
        last = None
        while page := history.page(last):
            for row in page:
                if row.entry.changed_at < at:
                    return
                yield row.entry.job_id, row.entry.changed_at
            last = page[-1]


def _html(page: _Page) -> str:
    return html_page.page_of(page.accounts, page.title, page.now, page.notes)


def _markdown(page: _Page) -> str:
    pages = [tell_of(one.job)(job_markdown.page_of(one, page.now)) for one in page.accounts]
    notes = "".join(f"\n---\n\n{note}\n" for note in page.notes)
    return "\n---\n\n".join(pages) + notes


_WRITERS: Mapping[str, Callable[[_Page], str]] = {".html": _html, ".md": _markdown}
