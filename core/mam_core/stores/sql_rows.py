"""A record as a row: the columns that claims, lists and filters need, and the body beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mam_core import codec
from mam_core.records import Job, Reason, Status
from mam_core.stores.index_rows import prompt_sum
from mam_core.stores.sql_base import Row, Statement
from mam_core.summaries import HEAD_CHARS, Summary, claim_order, kept_timeout, moment_of

#: So much of a prompt is kept for the text filter; of a longer one the body is read.
_FOLDED = 4000

SUMMARY = ", ".join(f'"{name}"' for name in Summary._fields)


def storable(text: str) -> str:
    """A text without what a database has no form for: half characters, and zero bytes."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def moving(job: Job) -> dict[str, Any]:
    """What every step of a job changes, with the body."""
    return _fitted(job, _moving(job))


def whole(job: Job) -> dict[str, Any]:
    """All columns."""
    return _fitted(job, _moving(job) | _fixed(job))


def _moving(job: Job) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "status": job.status.value,
        "attempt": job.attempt,
        "updated_at": job.updated_at,
        "started_at": job.started_at,
        "ended_at": job.ended_at,
        "reason": job.reason.value if job.reason else None,
        "cancel_requested_at": job.cancel_requested_at,
        "last_seq": job.last_seq,
        "node": job.node,
        "revision": job.revision,
    }


def _fixed(job: Job) -> dict[str, Any]:
    return {
        "agent": job.agent,
        "agent_session": job.agent_session,
        "group": job.group,
        "priority": job.priority,
        "order": claim_order(job),
        "created_at": job.created_at,
        "head": job.prompt[:HEAD_CHARS],
        "not_before": moment_of(job.not_before),
        "parents": " ".join(job.after),
        "timeout_sec": kept_timeout(job.timeout_sec),
        "key": job.key,
        "prompt_sum": prompt_sum(job.prompt),
    }


def _fitted(job: Job, row: dict[str, Any]) -> dict[str, Any]:
    inexact = not _is_exact(job)
    if inexact:
        row = {n: storable(v) if isinstance(v, str) else v for n, v in row.items()}
    row["inexact"] = inexact
    row["at_once"] = not (inexact or job.auth_token or job.broker.password)
    row["body"] = codec.encode_job(job)
    return row


def _is_exact(job: Job) -> bool:
    """Every column says what the record says. Asked at each step, so all texts are one."""
    texts = (
        job.agent,
        job.agent_session,
        job.group,
        job.prompt[:HEAD_CHARS],
        job.key,
        job.node,
        job.created_at,
        job.updated_at,
        job.started_at,
        job.ended_at,
        job.cancel_requested_at,
        *job.after,
    )
    joined = "\n".join(filter(None, texts))
    return storable(joined) == joined


def asks_the_same(old: Job, new: Job) -> bool:
    """Only what `moving` tells may differ."""
    return (
        old.prompt == new.prompt
        and old.agent == new.agent
        and old.agent_session == new.agent_session
        and old.group == new.group
        and old.priority == new.priority
        and old.order == new.order
        and old.created_at == new.created_at
        and old.not_before == new.not_before
        and old.after == new.after
        and old.timeout_sec == new.timeout_sec
        and old.key == new.key
        and old.workdir == new.workdir
        and old.expected_artifacts == new.expected_artifacts
    )


def statements(jobs: Sequence[Job], *, new: bool = False) -> list[Statement]:
    """All that is to be written about whole records."""
    ids = [{"job_id": job.job_id} for job in jobs]
    parents = [
        {"job_id": job.job_id, "parent": storable(parent)} for job in jobs for parent in job.after
    ]
    places = [
        {"job_id": job.job_id, "path": storable(path)}
        for job in jobs
        for path in job.artifact_paths
    ]
    cleared = [] if new else [Statement("forget_parents", ids), Statement("forget_artifacts", ids)]
    return [
        *cleared,
        Statement("new_job" if new else "put_job", [whole(job) for job in jobs]),
        Statement("put_prompt", [_prompt(job) for job in jobs]),
        *([Statement("put_parent", parents)] if parents else []),
        *([Statement("put_artifact", places)] if places else []),
    ]


def forgetting(job_ids: Sequence[str]) -> list[Statement]:
    """The record leaves, with all that was kept about it."""
    ids = [{"job_id": job_id} for job_id in job_ids]
    names = ("forget_job", "forget_prompt", "forget_parents", "forget_artifacts")
    return [Statement(name, ids) for name in names]


def _prompt(job: Job) -> dict[str, Any]:
    folded = storable(job.prompt.casefold())
    return {
        "job_id": job.job_id,
        "folded": folded[:_FOLDED],
        "whole": len(folded) <= _FOLDED and "\0" not in job.prompt,
    }


_STATUSES = {status.value: status for status in Status}
_REASONS = {reason.value: reason for reason in Reason}


def summary_of(row: Row) -> Summary:
    """From the columns of `SUMMARY`, `inexact` and, for such a row, its body."""
    *columns, inexact, body = row
    if inexact:
        return Summary.of(codec.decode_job(bytes(body), columns[0]))
    columns[1] = _STATUSES[columns[1]]
    columns[12] = _REASONS.get(columns[12])
    return Summary._make(columns)
