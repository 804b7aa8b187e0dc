"""The outbox in a table: posts wait there until a broker has taken them.

How the relay is woken and who may be it differs by database, and is a `Bell`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Protocol

from mam_core.audit import warn
from mam_core.errors import RegistryMissing, UnreadableRecord
from mam_core.events.post import Post
from mam_core.records import check_job_id
from mam_core.stores.base import RelaySign
from mam_core.stores.post_files import decode_post, file_name
from mam_core.stores.sql_base import Database, Row, Statement

#: So many keys are asked for at once.
_PAGE = 1000
#: What one call of `posts` may bring into memory.
_MAX_BYTES = 16 * 1024 * 1024


class Bell(Protocol):
    """Wakes the relay, and there is one of those at a time."""

    def ring(self) -> bool: ...
    def wait(self, timeout: float, others: Mapping[int, int]) -> bool: ...
    def relaying(self) -> AbstractContextManager[bool]: ...
    def beat(self) -> bool: ...
    def relay(self) -> RelaySign | None: ...
    def lanes(self) -> Mapping[str, bool]: ...
    def tell_lanes(self, lanes: Mapping[str, bool]) -> None: ...


class SqlOutbox:
    """The posts of one registry. One object serves one thread at a time."""

    def __init__(self, database: Database, bell: Bell) -> None:
        self._database = database
        self._bell = bell
        self.ring = bell.ring
        self.relaying = bell.relaying
        self.beat = bell.beat
        self.relay = bell.relay
        self.lanes = bell.lanes
        self.tell_lanes = bell.tell_lanes

    def posts(self, limit: int, past: Mapping[str, int] = MappingProxyType({})) -> list[Post]:
        found: list[Post] = []
        size = 0
        for seq, job_id in self._keys():
            if seq <= past.get(job_id, -1):
                continue
            post = self._read(seq, job_id)
            if post is None:
                continue
            found.append(post)
            size += len(post.payload)
            if len(found) >= limit or size > _MAX_BYTES:
                break
        return found

    def holds(self, job_id: str, seq: int) -> bool:
        return bool(self._ask("holds_post", seq=seq, job_id=check_job_id(job_id)))

    def named(self, job_id: str, seqs: Iterable[int]) -> list[Post]:
        found = [self._read(seq, check_job_id(job_id)) for seq in seqs]
        return [post for post in found if post is not None]

    def set_aside(self, post: Post, why: str) -> None:
        self._set_aside(post.seq, post.job_id, why)

    def done(self, posts: Iterable[Post]) -> None:
        rows = [{"seq": post.seq, "job_id": post.job_id} for post in posts]
        if rows:
            with self._database.writing() as change:
                change.finish([Statement("post_done", rows)], ())

    def wait(self, timeout: float, others: Mapping[int, int] = MappingProxyType({})) -> bool:
        return self._bell.wait(timeout, others)

    def _keys(self) -> Iterator[tuple[int, str]]:
        after: tuple[int, str] = (-1, "")
        while rows := self._ask("posts_after", seq=after[0], job_id=after[1], limit=_PAGE):
            yield from rows
            after = rows[-1][0], rows[-1][1]
            if len(rows) < _PAGE:
                return

    def _read(self, seq: int, job_id: str) -> Post | None:
        rows = self._ask("post", seq=seq, job_id=job_id)
        if not rows:
            return None  # sent this moment
        try:
            return decode_post(bytes(rows[0][0]), file_name(seq, job_id))
        except UnreadableRecord as problem:
            self._set_aside(seq, job_id, problem.message)
            return None

    def _set_aside(self, seq: int, job_id: str, why: str) -> None:
        warn(f"event {seq} of job {job_id} is never sent and set aside: {why}")
        with self._database.writing() as change:
            row = {"seq": seq, "job_id": job_id, "aside": why}
            change.finish([Statement("set_post_aside", [row])], ())

    def _ask(self, name: str, **values: Any) -> list[Row]:
        try:
            with self._database.reading() as talk:
                return talk.ask(name, **values)
        except RegistryMissing:
            return []
