"""What a database answers about its records: lists, filters, and the next job to be claimed.

The columns choose, the record decides: a candidate's body is read and judged by
`claims` like in every other store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from mam_core import codec
from mam_core.claims import is_closed, may_claim, slots_of
from mam_core.errors import RegistryMissing, UnreadableRecord
from mam_core.records import Job, Status
from mam_core.stores.base import Facts, GateKind, Gates, NameKind, Paper, Query, Want
from mam_core.stores.gates_file import decode_gates
from mam_core.stores.sql_base import Change, Database, Row, Talk
from mam_core.stores.sql_rows import SUMMARY, storable, summary_of
from mam_core.stores.sql_text import Dialect
from mam_core.summaries import Summary, Unreadable

_GATES = "the table gates"
#: So many bodies are in memory at once.
_PAGE = 500

_CANDIDATES = """
    SELECT job_id, body, (SELECT body FROM gates WHERE id = 1) FROM jobs
    WHERE status = 'pending' AND agent_session = :label
        AND (not_before IS NULL OR not_before <= :now)
        AND (parents = '' OR NOT EXISTS (
            SELECT 1 FROM parents LEFT JOIN jobs AS above ON above.job_id = parent
            WHERE child = jobs.job_id AND (above.status IS NULL OR above.status <> 'completed')))"""
#: How many is part of the text: a planner that does not know it plans anew for every claim.
_IN_CLAIM_ORDER = ' ORDER BY priority DESC, "order", job_id LIMIT {page}'
_BEFORE = """ AND (priority > :priority OR (priority = :priority
        AND ("order" < :turn OR ("order" = :turn AND job_id < :job_id))))"""
#: Who else claims at this moment has locked its candidate; ours is the next one.
_FOR_CLAIM = {Dialect.SQLITE: "", Dialect.POSTGRES: " FOR UPDATE OF jobs SKIP LOCKED"}

_HAS_TEXT = {
    Dialect.SQLITE: "(instr(folded, :text) > 0 OR instr(lower(job_id), :text) > 0)",
    Dialect.POSTGRES: "(strpos(folded, :text) > 0 OR strpos(lower(job_id), :text) > 0)",
}


def decoded(row: Row) -> Job:
    """The record of a row that holds id and body, and perhaps a claim that came after it."""
    job_id, body, *claim = row
    try:
        job = codec.decode_job(bytes(body), job_id)
    except UnreadableRecord as problem:
        raise UnreadableRecord(f"job {job_id} cannot be read: {problem}") from None
    if not claim or claim[0] is None:
        return job
    from mam_core.stores import sql_claims

    return sql_claims.claimed(job, sql_claims.decode(claim[0]))


def written_out(row: Row) -> bytes:
    """The same as bytes, as they would be kept."""
    return bytes(row[1]) if row[2] is None else codec.encode_job(decoded(row))


class TalkFacts:
    """What the claim rules ask, in one talk."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._gates: Gates | None = None

    def status_of(self, job_id: str) -> Status | None:
        rows = self._talk.ask("status_of", job_id=storable(job_id))
        return Status(rows[0][0]) if rows else None

    def running_in(self, group: str) -> int:
        return int(self._talk.ask("running_in", group=storable(group))[0][0])

    def gates(self) -> Gates:
        if self._gates is None:
            self._gates = read_gates(self._talk)
        return self._gates

    def learn_gates(self, body: bytes | None) -> Gates:
        """They came along with another answer."""
        self._gates = Gates() if body is None else decode_gates(bytes(body), _GATES)
        return self._gates


def read_gates(talk: Talk) -> Gates:
    rows = talk.ask("gates")
    return decode_gates(bytes(rows[0][0]), _GATES) if rows else Gates()


def read_paper(talk: Talk, name: Paper) -> bytes | None:
    rows = talk.ask("paper", paper=str(name))
    return bytes(rows[0][0]) if rows else None


class Looks:
    """Facts for whoever only looks: each is a talk of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def status_of(self, job_id: str) -> Status | None:
        with suppress(RegistryMissing), self._database.reading() as talk:
            return TalkFacts(talk).status_of(job_id)
        return None

    def running_in(self, group: str) -> int:
        with suppress(RegistryMissing), self._database.reading() as talk:
            return TalkFacts(talk).running_in(group)
        return 0

    def gates(self) -> Gates:
        with suppress(RegistryMissing), self._database.reading() as talk:
            return read_gates(talk)
        return Gates()


# -- lists -----------------------------------------------------------------------------------


def find(talk: Talk, query: Query, dialect: Dialect) -> list[Summary]:
    """In order of registration."""
    where, values = _conditions(query)
    exact = "CASE WHEN inexact THEN body END"
    rows = talk.ask_for(f"SELECT {SUMMARY}, inexact, {exact} FROM jobs {where}", values)
    found: list[Summary] = []
    for row in rows:
        with suppress(UnreadableRecord):  # changed by other hands: told as such by whoever reads it
            found.append(summary_of(row))
    found.sort(key=lambda one: (one.order, one.job_id))
    if query.text is None:
        return found
    has_text = _with_text(talk, query.text, dialect)
    return [one for one in found if _matches(talk, one, query, has_text)]


def has(talk: Talk, kind: NameKind, name: str) -> bool:
    same = f'SELECT 1 FROM jobs WHERE "{kind}" = :name'
    live = "status IN ('pending', 'running')"  # as the indexes of live jobs have it, word by word
    return any(
        talk.ask_for(f"{same}{where} LIMIT 1", {"name": storable(name)})
        for where in (f" AND {live}", "")
    )


def names(talk: Talk, kind: NameKind) -> list[str]:
    rows = talk.ask_for(f'SELECT DISTINCT "{kind}" FROM jobs', {})
    return sorted(str(name) for (name,) in rows if name)


def _with_text(talk: Talk, text: str, dialect: Dialect) -> Mapping[str, bool]:
    """By id: True where the text is found, False where only the record can tell."""
    condition = _HAS_TEXT[dialect]
    sql = f"SELECT job_id, {condition} FROM prompts WHERE {condition} OR NOT whole"
    rows = talk.ask_for(sql, {"text": storable(text.casefold())})
    return {job_id: bool(sure) for job_id, sure in rows}


def _matches(talk: Talk, summary: Summary, query: Query, known: Mapping[str, bool]) -> bool:
    sure = known.get(summary.job_id)
    if sure is not False:
        return bool(sure)
    rows = talk.ask("get", job_id=summary.job_id)
    with suppress(UnreadableRecord):
        return bool(rows) and query.matches(decoded((summary.job_id, *rows[0])))
    return False


def pages(database: Database, query: Query) -> Iterator[list[Row]]:
    """Ids and bodies, in order of registration, a page a talk."""
    where, values = _conditions(query)
    also = f"{where} AND" if where else "WHERE"
    sql = (
        f'SELECT "order", job_id, body, claim FROM jobs '
        f'{also} ("order", job_id) > (:after, :after_id) ORDER BY "order", job_id LIMIT {_PAGE}'
    )
    after: tuple[int, str] = (-(2**63), "")
    while True:
        with database.reading() as talk:
            rows = talk.ask_for(sql, {**values, "after": after[0], "after_id": after[1]})
        if not rows:
            return
        after = rows[-1][0], rows[-1][1]
        yield [(row[1], written_out(row[1:])) for row in rows]


def bodies(database: Database, query: Query) -> Iterator[Job | Unreadable]:
    for page in pages(database, query):
        for row in page:
            try:
                job = decoded(row)
            except UnreadableRecord as problem:
                yield Unreadable(row[0], str(problem))
                continue
            if query.matches(job):
                yield job


def stored(database: Database, query: Query) -> Iterator[bytes]:
    """As it is kept; parsed only where a text is looked for."""
    for page in pages(database, query):
        for job_id, body in page:
            data = bytes(body)
            if query.text is not None and not query.matches(codec.decode_job(data, job_id)):
                continue
            yield data


def _conditions(query: Query) -> tuple[str, dict[str, Any]]:
    conditions: list[str] = []
    values: dict[str, Any] = {}
    if query.statuses:
        # Our own words, so they may stand in the text: the index of running jobs goes by it.
        each = [f"status = '{status.value}'" for status in sorted(query.statuses)]
        conditions.append(f"({' OR '.join(each)})")
    for column in ("agent_session", "group", "agent"):
        if (wanted := getattr(query, column)) is not None:
            conditions.append(f'"{column}" = :{column}')
            values[column] = storable(wanted)
    return (f"WHERE {' AND '.join(conditions)}" if conditions else ""), values


def named(letter: str, texts: list[str], values: dict[str, Any]) -> str:
    names = {f"{letter}{number}": storable(text) for number, text in enumerate(texts)}
    values |= names
    return ", ".join(f":{name}" for name in names)


# -- claims ----------------------------------------------------------------------------------


def next_claimable(change: Change, want: Want, facts: TalkFacts, dialect: Dialect) -> Job | None:
    """Mostly the first candidate is the one, and one question is enough: it is asked as if nothing
    were held back, and the answer brings what is."""
    rows = change.ask_for(*first_candidate(want, dialect))
    if not rows:
        return None
    gates = facts.learn_gates(rows[0][2])
    limited = sorted({*want.slots, *gates.slots})
    with suppress(UnreadableRecord):
        job = decoded(rows[0][:2])
        if job.group not in limited and may_claim(job, want, facts):
            return job
    # All of them at once, in order, and before they are counted: no two claimers wait for each
    # other, and none counts what the other is about to change.
    change.hold([f"group {group}" for group in limited])
    full = [group for group in limited if _is_full(group, gates, want, facts)]
    sql, values = _candidates(want, gates, full)
    sql += _IN_CLAIM_ORDER + _FOR_CLAIM[dialect]
    passed_over: set[str] = set()
    page = 1
    while True:
        rows = change.ask_for(sql.format(page=page), values)
        for row in rows:
            if row[0] not in passed_over:
                passed_over.add(row[0])
                with suppress(UnreadableRecord):
                    job = decoded(row[:2])
                    if may_claim(job, want, facts):
                        return job
        if len(rows) < page:
            return None
        page *= 4


def first_candidate(want: Want, dialect: Dialect) -> tuple[str, dict[str, Any]]:
    """As if nothing were held back: id, body, and what is."""
    sql, values = _candidates(want, Gates())
    return (sql + _IN_CLAIM_ORDER + _FOR_CLAIM[dialect]).format(page=1), values


def ahead(talk: Talk, want: Want, job: Summary) -> int:
    """How many come first, as far as the columns can tell."""
    facts = TalkFacts(talk)
    gates = facts.gates()
    full = [group for group in {*want.slots, *gates.slots} if _is_full(group, gates, want, facts)]
    sql, values = _candidates(want, gates, full)
    turn = {"priority": job.priority, "turn": job.order, "job_id": job.job_id}
    rows = talk.ask_for(f"SELECT count(*) FROM ({sql}{_BEFORE}) AS before", values | turn)
    return int(rows[0][0])


def _is_full(group: str, gates: Gates, want: Want, facts: Facts) -> bool:
    limit = slots_of(group, gates, want.slots)
    return limit is not None and facts.running_in(group) >= limit


def _candidates(want: Want, gates: Gates, full: Sequence[str] = ()) -> tuple[str, dict[str, Any]]:
    """Pending jobs that no rule of `claims` holds back, as far as the columns can tell."""
    conditions = [_CANDIDATES]
    values: dict[str, Any] = {"label": storable(want.agent_session), "now": want.now}
    shut = [gate for gate in gates.closed if is_closed(gate, want.now)]
    if any(gate.kind is GateKind.ALL for gate in shut):
        conditions.append("1 = 0")
    if want.agents is not None:
        served = named("a", sorted(want.agents), values) or "NULL"
        conditions.append(f"agent IN ({served})")
    if paused := [gate.name for gate in shut if gate.kind is GateKind.AGENT]:
        conditions.append(f"agent NOT IN ({named('p', paused, values)})")
    if groups := [*full, *(gate.name for gate in shut if gate.kind is GateKind.GROUP)]:
        held_back = named("g", groups, values)
        conditions.append(f'("group" IS NULL OR "group" NOT IN ({held_back}))')
    return " AND ".join(conditions), values
