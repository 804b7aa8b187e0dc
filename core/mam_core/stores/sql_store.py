"""A registry in a database: records, archive, pauses, outbox and audit log in one place.

One transaction is one change, with its audit lines and its event. What belongs to
a host (sessions, the embedded broker, the files of attempts) stays in folders there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from mam_core import registry_marks
from mam_core.disk import Folder, keep_out_of_git
from mam_core.errors import JobNotFound, RegistryMissing, UnreadableRecord
from mam_core.locations import realm_of
from mam_core.records import Job, check_job_id
from mam_core.stores import sql_answers
from mam_core.stores.base import Bid, NameKind, Paper, Progress, Query, Want
from mam_core.stores.sql_audit import SqlAudit
from mam_core.stores.sql_base import Database, Row
from mam_core.stores.sql_outbox import Bell, SqlOutbox
from mam_core.stores.sql_transaction import SqlTransaction, not_found
from mam_core.summaries import Summary, Unreadable

if TYPE_CHECKING:
    from mam_core.audit import AuditLine
    from mam_core.events.watch import Watch


class SqlStore:
    """Any thread may use it. `path` is the registry folder of this host, `logs` its log folder."""

    def __init__(
        self,
        database: Database,
        path: str,
        logs: str,
        make_bell: Callable[[], Bell],
        url: str = "",
    ) -> None:
        self.database = database
        self.url = url
        self.path = path
        self.audit = SqlAudit(database, logs)
        self._make_bell = make_bell
        self._has_folder = False
        self._known: tuple[str, str] | None = None

    @property
    def realm(self) -> str:
        return self._identity()[0]

    @property
    def secret(self) -> str | None:
        return self._identity()[1]

    @property
    def outbox(self) -> SqlOutbox:
        return SqlOutbox(self.database, self._make_bell())

    def _identity(self) -> tuple[str, str | None]:
        if self._known is None:
            with suppress(RegistryMissing), self.database.reading() as talk:
                self._known = talk.ask("identity")[0]
        # Before the first job there is nobody who would share it.
        return self._known or (realm_of(self.database.place), None)

    # -- reading, without a lock -----------------------------------------------------------

    def get(self, job_id: str) -> Job:
        return sql_answers.decoded(self._row(job_id))

    def raw(self, job_id: str) -> bytes:
        try:
            return sql_answers.written_out(self._row(job_id))
        except UnreadableRecord:
            with self.database.reading() as talk:
                if rows := talk.ask("raw_unreadable", job_id=job_id):
                    return bytes(rows[0][0])
            raise

    def _row(self, job_id: str) -> Row:
        check_job_id(job_id)
        try:
            with self.database.reading() as talk:
                if rows := talk.ask("get", job_id=job_id):
                    return (job_id, *rows[0])
                raise not_found(talk, job_id, self.database.place)
        except RegistryMissing as missing:
            raise JobNotFound(f"there is no job {job_id}: {missing}") from None

    def find(self, query: Query) -> tuple[list[Summary], list[Unreadable]]:
        try:
            with self.database.reading() as talk:
                found = sql_answers.find(talk, query, self.database.dialect)
                return found, [Unreadable(*row) for row in talk.ask("unreadable")]
        except RegistryMissing:
            return [], []

    def queued(self) -> dict[str, int]:
        with suppress(RegistryMissing), self.database.reading() as talk:
            return {str(label): int(count) for label, count in talk.ask("queued")}
        return {}

    def has(self, kind: NameKind, name: str) -> bool:
        with suppress(RegistryMissing), self.database.reading() as talk:
            return sql_answers.has(talk, kind, name)
        return False

    def names(self, kind: NameKind) -> list[str]:
        with suppress(RegistryMissing), self.database.reading() as talk:
            return sql_answers.names(talk, kind)
        return []

    def ahead(self, want: Want, job: Summary) -> int:
        with suppress(RegistryMissing), self.database.reading() as talk:
            return sql_answers.ahead(talk, want, job)
        return 0

    def unreadable(self) -> list[Unreadable]:
        with suppress(RegistryMissing), self.database.reading() as talk:
            return [Unreadable(*row) for row in talk.ask("unreadable")]
        return []

    def bodies(self, query: Query) -> Iterator[Job | Unreadable]:
        with suppress(RegistryMissing):
            yield from sql_answers.bodies(self.database, query)
            yield from self.unreadable()

    def stored(self, query: Query) -> Iterator[bytes | Unreadable]:
        with suppress(RegistryMissing):
            yield from sql_answers.stored(self.database, query)
            yield from self.unreadable()

    def facts(self) -> sql_answers.Looks:
        return sql_answers.Looks(self.database)

    def paper(self, name: Paper) -> bytes | None:
        with suppress(RegistryMissing), self.database.reading() as talk:
            return sql_answers.read_paper(talk, name)
        return None

    def changed_since(self, number: int | None) -> tuple[int, dict[str, int]]:
        """The number of now, and each job that was written or taken away after `number`, with the
        transaction that did it; without a number, none."""
        with self.database.reading() as talk:
            # The number first: what is written between the two questions is told once more.
            now = int(talk.ask("change_number")[0][0])
            rows = talk.ask("changed_since", since=number) if number is not None else []
            return now, {job_id: int(changed) for job_id, changed in rows}

    def watch(self, wake: Callable[[], None]) -> Watch:
        return self.database.watch(self.changed_since, wake)

    def now(self) -> float | None:
        return self.database.now()

    def close(self) -> None:
        self.database.close()

    # -- writing ---------------------------------------------------------------------------

    def claim_at_once(
        self, want: Want, bid: Bid, tell: Callable[[Job, Job], AuditLine]
    ) -> Job | None:
        if self.database.at_once is None:
            return None
        from mam_core.stores import sql_claims

        asked = sql_claims.statement(want, bid, tell, self.database.dialect)
        return sql_claims.answer(self.database.at_once(*asked), bid) if asked else None

    @contextmanager
    def transaction(
        self, *, create: bool = False, progress: Progress | None = None
    ) -> Iterator[SqlTransaction]:
        if create:
            self._make_folder()
        with self.database.writing(create=create) as change:
            transaction = SqlTransaction(change, self.database.dialect, self.database.place)
            yield transaction
            if transaction.changes_something:
                transaction.write(progress)

    def remember(self) -> None:
        if self.database.file is not None:
            registry_marks.remember(self.database.file)

    def removal(self) -> str:
        file = self.database.file
        return registry_marks.removal(file, is_there=os.path.lexists(file)) if file else ""

    def forget_removal(self) -> None:
        if self.database.file is not None:
            registry_marks.forget(self.database.file)
            if any(self.find(Query())):
                registry_marks.remember(self.database.file)  # those of now, as in a folder

    def _make_folder(self) -> None:
        """What belongs to this host has a place before anybody needs it."""
        if not self._has_folder:
            with Folder.open(self.path, create=True) as folder:
                folder.check_owner()
            keep_out_of_git(self.path)
            self._has_folder = True
