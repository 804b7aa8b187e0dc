"""The outbox of the files store: ``.outbox/<seq>-<job_id>.json``, one file a post.

The names sort by number, so the oldest event of every job comes first. What is
no post (a stranger's file, half of one after a power cut) is set aside as
``<name>.bad`` and never looked at again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from mam_core.audit import warn
from mam_core.disk import Folder
from mam_core.errors import MamError, RegistryGone, RegistryMissing
from mam_core.events.post import Post
from mam_core.records import check_job_id
from mam_core.stores.base import RelaySign
from mam_core.stores.bell_file import FileBell
from mam_core.stores.commit import OUTBOX
from mam_core.stores.post_files import (
    MIN_DIGITS,
    SUFFIX,
    decode_post,
    encode_post,
    file_name,
    post_name,
)

__all__ = ["FilesOutbox", "decode_post", "encode_post", "post_name"]

BAD = ".bad"

_MAX_HEADER_BYTES = 64 * 1024
_MAX_POST_BYTES = _MAX_HEADER_BYTES + 1024 * 1024
#: What one call of `posts` may bring into memory.
_MAX_BYTES = 16 * 1024 * 1024

_NOTHING: Mapping[str, int] = MappingProxyType({})
_NOBODY: Mapping[int, int] = MappingProxyType({})


class FilesOutbox:
    """The folder ``.outbox`` of one registry. One object serves one thread at a time.

    The folder is open during a call, and as long as we are the relay.
    """

    def __init__(self, registry_path: str) -> None:
        self.path = os.path.join(os.path.abspath(registry_path), OUTBOX)
        self._folder: Folder | None = None  #: while we are the relay
        self._bell = FileBell(self._opened)
        self._said: set[str] = set()
        self._immovable: set[str] = set()

    # -- for everybody ---------------------------------------------------------------------

    def posts(self, limit: int, past: Mapping[str, int] = _NOTHING) -> list[Post]:
        """The oldest, of each job in order; of a job in `past` only those above its number."""
        with self._opened() as folder:
            return [] if folder is None else self._posts(folder, limit, past)

    def _posts(self, folder: Folder, limit: int, past: Mapping[str, int]) -> list[Post]:
        import heapq  # for relays only

        found: list[Post] = []
        waiting: set[str] = set()
        size = 0
        for name in heapq.nsmallest(limit, self._names(folder, past)):
            job_id = name.partition("-")[2]
            if job_id in waiting:
                continue
            try:
                post = self._read(folder, name)
            except OSError as problem:
                # Perhaps for a moment only, so the later ones of the job must wait as well.
                waiting.add(job_id)
                self._say_once(name, f"cannot be read: {problem.strerror}")
                continue
            if post is None:
                continue
            found.append(post)
            size += len(post.payload)
            if size > _MAX_BYTES:
                break
        return found

    def holds(self, job_id: str, seq: int) -> bool:
        """No broker has taken this event yet."""
        name = file_name(seq, check_job_id(job_id))
        with self._opened() as folder:
            return folder is not None and (folder.has(name) or folder.has(name + BAD))

    def named(self, job_id: str, seqs: Iterable[int]) -> list[Post]:
        names = [file_name(seq, check_job_id(job_id)) for seq in seqs]
        with self._opened() as folder:
            found = [] if folder is None else [self._read(folder, name) for name in names]
        return [post for post in found if post is not None]

    def done(self, posts: Iterable[Post]) -> None:
        with self._opened() as folder:
            if folder is not None:
                for post in posts:
                    folder.remove(post_name(post))

    def set_aside(self, post: Post, why: str) -> None:
        """Nobody will ever take it: keep it out of the way of those behind it."""
        with self._opened() as folder:
            if folder is not None:
                self._set_aside(folder, post_name(post), why)

    def ring(self) -> bool:
        return self._bell.ring()

    def lanes(self) -> Mapping[str, bool]:
        return self._bell.lanes()

    def relay(self) -> RelaySign | None:
        return self._bell.relay()

    # -- for the relay ---------------------------------------------------------------------

    @contextmanager
    def relaying(self) -> Iterator[bool]:
        with self._opened(create=True) as self._folder:
            try:
                with self._bell.relaying() as is_first:
                    yield is_first
            finally:
                self._folder = None

    def beat(self) -> bool:
        return self._bell.beat()

    def tell_lanes(self, lanes: Mapping[str, bool]) -> None:
        self._bell.tell_lanes(lanes)

    def wait(self, timeout: float, others: Mapping[int, int] = _NOBODY) -> bool:
        return self._bell.wait(timeout, others)

    # -- inside ----------------------------------------------------------------------------

    @contextmanager
    def _opened(self, create: bool = False) -> Iterator[Folder | None]:
        if self._folder is not None:
            if not self._folder.is_present():  # what stands there now is not what our lock is about
                raise RegistryGone(f"{self.path} was removed or replaced")
            yield self._folder
            return
        place = os.path.dirname(self.path)
        try:
            with Folder.open(place) as registry:
                folder = registry.subfolder(OUTBOX, create=create)
        except FileNotFoundError:
            if create:
                raise RegistryMissing(f"there is no registry at {place} yet") from None
            yield None
            return
        with folder:
            folder.check_owner()
            if folder.is_loose:
                folder.tighten()
            yield folder

    def _names(self, folder: Folder, past: Mapping[str, int]) -> Iterator[str]:
        with folder.entries() as entries:
            for entry in entries:
                # What looks like a post is read, and set aside if it is none.
                number, _, rest = entry.name.partition("-")
                if not number.isdecimal() or len(number) < MIN_DIGITS:
                    continue
                job_id = rest.removesuffix(SUFFIX)
                if job_id == rest or entry.name in self._immovable:
                    continue
                if int(number) > past.get(job_id, -1):
                    yield entry.name

    def _read(self, folder: Folder, name: str) -> Post | None:
        try:
            data, _ = folder.read(name, _MAX_POST_BYTES)
            return decode_post(data, name)
        except FileNotFoundError:
            return None  # sent this moment
        except MamError as problem:
            self._set_aside(folder, name, problem.message)
            return None

    def _set_aside(self, folder: Folder, name: str, why: str) -> None:
        try:
            folder.replace(name, name + BAD)
        except FileNotFoundError:
            return
        except OSError as problem:
            self._immovable.add(name)
            why = f"{why}; it cannot be renamed: {problem.strerror}"
        self._say_once(name, f"is never sent and set aside as {BAD}: {why}")

    def _say_once(self, name: str, words: str) -> None:
        if name not in self._said:
            self._said.add(name)
            warn(f"{self.path}/{name} {words}")
