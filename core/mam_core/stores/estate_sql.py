"""A database as a place to carry a registry from and to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mam_core import codec
from mam_core.audit_lines import number_of
from mam_core.errors import RegistryMissing
from mam_core.estate import Kind, Piece
from mam_core.stores import sql_answers, sql_rows
from mam_core.stores.base import Query
from mam_core.stores.sql_base import Row, Statement
from mam_core.stores.sql_rows import storable
from mam_core.stores.sql_store import SqlStore

_PAGE = 500
_LINES = re.compile(rb"[^\n]*\n|[^\n]+\Z")
#: A number that no history of ours reaches, and every database holds.
_MOST = 2**53


class SqlEstate:
    """The tables of one store."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._database = store.database
        self.place = store.database.place

    @contextmanager
    def frozen(self) -> Iterator[None]:
        with self._database.writing() as change:
            change.freeze()
            yield

    def left(self) -> list[str]:
        return []

    @contextmanager
    def opened(self) -> Iterator[None]:
        with self._store.transaction(create=True):
            pass
        yield

    def count(self) -> int:
        counted = "SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM histories)"
        with self._database.reading() as talk:
            return int(talk.ask_for(counted, {})[0][0])

    # -- from here -------------------------------------------------------------------------

    def pieces(self) -> Iterator[Piece]:
        try:
            for job_id in self._store.audit.job_ids():
                yield self._history(job_id)
            for (batch,) in self._ask("batches"):
                for job_id, body in self._ask("archived", batch=batch):
                    yield Piece(Kind.ARCHIVED, f"{batch}/{job_id}", bytes(body))
            yield from self._posts()
            for (body,) in self._ask("gates"):
                yield Piece(Kind.GATES, "", bytes(body))
            for name, body in self._ask("papers"):
                yield Piece(Kind.PAPER, name, bytes(body))
            for job_id, error in self._ask("unreadable"):
                ((body,),) = self._ask("raw_unreadable", job_id=job_id)
                yield Piece(Kind.UNREADABLE, job_id, bytes(body), why=error)
            for page in sql_answers.pages(self._database, Query()):
                for job_id, body in page:
                    yield Piece(Kind.RECORD, job_id, bytes(body))
        except RegistryMissing:
            return

    def _history(self, job_id: str) -> Piece:
        rows = self._ask("told", job_id=job_id)
        meta, status = rows[0] if rows else (None, None)
        if status is None and (known := self._store.audit.status(job_id)) is not None:
            status = codec.dumps_line(known)
        lines = list(self._store.audit.lines(job_id))
        whole = [line if line.endswith(b"\n") else line + b"\n" for line in lines[:-1]]
        data = b"".join([*whole, *lines[-1:]])
        return Piece(
            Kind.HISTORY,
            job_id,
            data,
            bytes(meta) if meta is not None else None,
            bytes(status) if status is not None else None,
        )

    def _posts(self) -> Iterator[Piece]:
        after: tuple[int, str] = (-1, "")
        while rows := self._ask("all_posts", seq=after[0], job_id=after[1], limit=_PAGE):
            for seq, job_id, body, aside in rows:
                kind = Kind.POST if aside is None else Kind.ASIDE
                yield Piece(kind, f"{seq}/{job_id}", bytes(body), why=aside or "")
            after = rows[-1][0], rows[-1][1]

    def _ask(self, name: str, **values: object) -> list[Row]:
        with self._database.reading() as talk:
            return talk.ask(name, **values)

    # -- to here ---------------------------------------------------------------------------

    def put(self, pieces: Sequence[Piece]) -> None:
        writes = [statement for piece in pieces for statement in _statements(piece)]
        with self._database.writing(create=True) as change:
            change.finish(writes, ())

    def settle(self) -> None:
        """Every commit has seen to it."""


def _statements(piece: Piece) -> list[Statement]:
    match piece.kind:
        case Kind.HISTORY:
            return _history(piece)
        case Kind.ARCHIVED:
            batch, _, job_id = piece.name.rpartition("/")
            row = {"batch": batch, "job_id": job_id, "body": piece.data}
            return [Statement("put_archived", [row])]
        case Kind.POST | Kind.ASIDE:
            seq, _, job_id = piece.name.partition("/")
            aside = None if piece.kind is Kind.POST else piece.why or "set aside"
            post = {"seq": int(seq), "job_id": job_id, "body": piece.data, "aside": aside}
            return [Statement("put_post", [post])]
        case Kind.GATES:
            return [Statement("put_gates", [{"body": piece.data}])]
        case Kind.PAPER:
            return [Statement("put_paper", [{"name": piece.name, "body": piece.data}])]
        case Kind.UNREADABLE:
            bad = {"job_id": storable(piece.name), "error": storable(piece.why), "body": piece.data}
            return [Statement("put_unreadable", [bad])]
        case Kind.RECORD:
            written = sql_rows.statements([codec.decode_job(piece.data, piece.name)])
            # Byte by byte as it stood: a key's place or a space is not ours to change.
            return [
                one._replace(rows=[{**row, "body": piece.data} for row in one.rows])
                if one.name == "put_job"
                else one
                for one in written
            ]


def _history(piece: Piece) -> list[Statement]:
    lines = _LINES.findall(piece.data)
    began = _moment(lines[0]) if lines else ""
    head = {"job_id": piece.name, "began": began, "meta": piece.meta, "status": piece.status}
    rows = []
    last = 0
    for line in lines:
        # Its own number where it has one that fits, else the next.
        number = number_of(line)
        last = number if number is not None and last < number < _MOST else last + 1
        rows.append({"job_id": piece.name, "n": last, "verbatim": True, "line": line})
    return [Statement("begin_history", [head]), *([Statement("put_line", rows)] if rows else [])]


def _moment(line: bytes) -> str:
    _, _, rest = line.partition(b'"timestamp": "')
    return storable(rest.partition(b'"')[0].decode("utf-8", "replace"))
