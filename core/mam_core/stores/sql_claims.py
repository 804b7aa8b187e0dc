"""A claim in one statement, for a database that is a journey away.

It asks the same question as every claim, with the same words, and takes the answer only
where the columns can tell all: no pause is set, the group has no limit, no text was
changed to fit a column. Whatever else is left to the transaction that reads and judges.

The record stays as it was registered, and the claim stands beside it: what
`changes.claimed` makes of the two is the record, for us and for all who read it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from mam_core import changes, codec
from mam_core.audit import AuditLine
from mam_core.clock import stamp
from mam_core.errors import UnreadableRecord
from mam_core.record_parts import Lease
from mam_core.records import Job, Status
from mam_core.stores import sql_answers
from mam_core.stores.base import Bid, Gates, Want
from mam_core.stores.gates_file import encode_gates
from mam_core.stores.sql_audit import dated
from mam_core.stores.sql_base import Row, Values
from mam_core.stores.sql_rows import storable
from mam_core.stores.sql_text import DATE_IN_ORDER, Dialect

#: Told of a job that stands for any; where it stands in the line, the database puts the real one.
_ANY = Job(
    job_id="any-job-5c0e9d1b", status=Status.PENDING, attempt=710_385_926, revision=640_917_352
)
_NOTHING_SHUT = encode_gates(Gates())

_AT_ONCE = """
    WITH picked (id, record, gates) AS ({picked}),
    taken AS (
        UPDATE jobs SET
            status = 'running', attempt = attempt + 1, revision = revision + 1,
            updated_at = :at, started_at = :at, ended_at = NULL, reason = NULL,
            cancel_requested_at = NULL, node = :node, changed = pg_current_xact_id()::text::bigint,
            at_once = FALSE, claim = :claim
        FROM picked
        WHERE job_id = id AND at_once AND coalesce(gates, :nothing_shut) = :nothing_shut{limits}
        RETURNING job_id, record, attempt, revision),
    told AS (
        INSERT INTO history_lines (job_id, n, verbatim, line)
        SELECT taken.job_id, 1 + coalesce(before.n, 0), FALSE, {line}
        FROM taken LEFT JOIN LATERAL (
            SELECT n, line FROM history_lines WHERE job_id = taken.job_id ORDER BY n DESC LIMIT 1)
            AS before ON TRUE)
    SELECT job_id, record FROM taken"""


def statement(
    want: Want, bid: Bid, tell: Callable[[Job, Job], AuditLine], dialect: Dialect
) -> tuple[str, Values] | None:
    """With its values. None where a claim by this claimer cannot be made in one."""
    line = _line(bid, tell)
    if line is None or storable(bid.node) != bid.node:
        return None
    picked, values = sql_answers.first_candidate(want, dialect)
    limited = sql_answers.named("l", sorted(want.slots), values)
    sql = _AT_ONCE.format(
        picked=picked,
        limits=f' AND ("group" IS NULL OR "group" NOT IN ({limited}))' if limited else "",
        line=line[0],
    )
    values |= line[1]
    values |= {"at": stamp(bid.now), "node": bid.node, "claim": encode(bid)}
    return sql, {**values, "nothing_shut": _NOTHING_SHUT}


def answer(rows: Sequence[Row], bid: Bid) -> Job | None:
    """The job as it is now, if one was claimed."""
    for job_id, record in rows:
        # Changed by other hands: a running job that nobody can read.
        with suppress(UnreadableRecord):
            return claimed(codec.decode_job(record, job_id), bid)
    return None


def claimed(job: Job, bid: Bid) -> Job:
    return changes.claimed(job, bid.now, node=bid.node, pid=bid.pid, lease=bid.lease)


def encode(bid: Bid) -> bytes:
    data = bid._asdict()
    if bid.lease is not None:
        data["lease"] = bid.lease.to_dict()
    return codec.dumps_line(data)


def decode(data: bytes) -> Bid:
    found = json.loads(data)
    if found["lease"] is not None:
        found["lease"] = Lease.from_dict(found["lease"])
    return Bid(**found)


def _line(bid: Bid, tell: Callable[[Job, Job], AuditLine]) -> tuple[str, dict[str, Any]] | None:
    """The audit line, as an expression around what only the database knows, and its parts.

    None where it cannot be taken apart, because somebody has the name of our stand-in.
    """
    parts = [codec.dumps_line(tell(_ANY, claimed(_ANY, bid)).to_dict(_ANY.job_id))]
    columns = {
        _ANY.job_id: "taken.job_id",
        str(_ANY.revision + 1): "revision::text",
        str(_ANY.attempt + 1): "attempt::text",
    }
    words = []
    for number, (stands_for, column) in enumerate(columns.items()):
        before, mark, after = parts.pop().partition(stands_for.encode())
        if not mark or stands_for.encode() in after:
            return None
        parts += [before, after]
        words += [f":part{number}", f"convert_to({column}, 'UTF8')"]
    words.append(f":part{len(columns)}")
    found = dated(parts[0])
    words[0] = f":head || {DATE_IN_ORDER} || :rest"
    return " || ".join(words), {**found, **{f"part{n}": part for n, part in enumerate(parts) if n}}
