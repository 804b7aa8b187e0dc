"""Telling the audit log what brokers took, and only then forgetting the posts.

An audit log that cannot be written holds nobody up for long: the lines are
tried again for a few seconds, then given up with a warning, and as long as
that state lasts no further line is waited for.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from typing import Any

from mam_core.audit import AuditEvent, AuditLine, warn
from mam_core.audit_base import Audit
from mam_core.clock import Clock, fine_stamp
from mam_core.events.post import Post
from mam_core.stores.base import Outbox

_PATIENCE_SEC = 5.0
#: More are looked up again.
_MAX_JOBS = 10_000

#: A post that was taken, and its line.
Told = tuple[Post, dict[str, Any]]


class Tellings:
    """`published` lines, each once."""

    def __init__(self, audit: Audit, outbox: Outbox, clock: Clock) -> None:
        self._audit = audit
        self._outbox = outbox
        self._clock = clock
        self._owed: dict[str, list[Told]] = {}
        self._told: dict[str, set[int]] = {}  #: of the jobs that were looked up
        self._fails_since: float | None = None

    def forget(self) -> None:
        """Another relay may have been at work since."""
        self._told.clear()

    @property
    def is_owing(self) -> bool:
        return bool(self._owed)

    @property
    def owed_jobs(self) -> Collection[str]:
        return self._owed.keys()

    def knows(self, post: Post) -> bool:
        """It was told before, by a relay that was killed before it could remove it: done now."""
        told = self._told.get(post.job_id)
        if told is None:
            if len(self._told) > _MAX_JOBS:
                self._told.clear()
            told = self._told[post.job_id] = self._audit.published_since(post.job_id, post.seq)
        if post.seq not in told:
            return False
        self._outbox.done([post])
        told.discard(post.seq)
        return True

    def tell(self, job_id: str, taken: Iterable[tuple[Post, dict[str, Any]]]) -> None:
        """Of one job, in order."""
        moment = fine_stamp(self._clock.now())
        lines = [
            (
                post,
                AuditLine(
                    AuditEvent.PUBLISHED,
                    moment,
                    {
                        "attempt": post.attempt,
                        "seq": post.seq,
                        "topic": post.topic,
                        "payload": content,
                        **({"said_at": post.said_at} if post.said_at else {}),
                    },
                ).to_dict(job_id),
            )
            for post, content in taken
        ]
        if job_id in self._owed:
            self._owed[job_id] += lines
        elif not self._written(job_id, lines):
            self._owed[job_id] = lines

    def pay(self) -> bool:
        """Try again what could not be written; True when something is no longer owed."""
        before = len(self._owed)
        for job_id in list(self._owed):
            # What failed may have failed half-way.
            first = self._owed[job_id][0][0].seq
            told = self._audit.published_since(job_id, first)
            missing = [pair for pair in self._owed[job_id] if pair[0].seq not in told]
            stand = [pair for pair in self._owed[job_id] if pair[0].seq in told]
            self._forget_posts(job_id, stand)
            if not missing or self._written(job_id, missing):
                del self._owed[job_id]
            else:
                self._owed[job_id] = missing
        return len(self._owed) < before

    def _written(self, job_id: str, lines: list[Told]) -> bool:
        """They stand, or are given up; the posts are gone."""
        if self._audit.append_all(job_id, [line for _, line in lines]):
            self._fails_since = None
        else:
            now = time.monotonic()
            self._fails_since = self._fails_since or now
            if now - self._fails_since < _PATIENCE_SEC:
                return False
            warn(f"{len(lines)} events of job {job_id} were published and are not in its log")
        self._forget_posts(job_id, lines)
        return True

    def _forget_posts(self, job_id: str, lines: list[Told]) -> None:
        """Remembered as told until they are gone: a folder that cannot be written stops nobody."""
        told = self._told.setdefault(job_id, set())
        told.update(post.seq for post, _ in lines)
        self._outbox.done([post for post, _ in lines])
        told.difference_update(post.seq for post, _ in lines)
