"""All that a registry holds, piece by piece, in a form that every store can give and take.

A piece has a name and bytes, and the same bytes in every store; so what was carried
from one to another can be compared without knowing either.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import NamedTuple, Protocol


class Kind(StrEnum):
    """What there is."""

    HISTORY = "history"  #: the lines of one job, with the record as registered beside them
    ARCHIVED = "archived"  #: a cleaned job; named by batch and id
    POST = "post"  #: an event on its way; named by number and id
    ASIDE = "post set aside"
    GATES = "gates"  #: pauses and slots, all in one
    PAPER = "paper"  #: a document of the registry itself
    UNREADABLE = "unreadable"  #: a record that nobody can read, kept as it is
    RECORD = "record"


class Piece(NamedTuple):
    """One of them. Of a history the bytes are its lines."""

    kind: Kind
    name: str
    data: bytes
    meta: bytes | None = None  #: of a history: the record as registered
    status: bytes | None = None  #: of a history: as last told, for a job without a record
    why: str = ""  #: of what is unreadable or set aside

    @property
    def key(self) -> tuple[Kind, str]:
        return self.kind, self.name

    @property
    def digest(self) -> bytes:
        """Stands for its bytes; what is derived from other pieces does not count."""
        content = hashlib.sha256(self.data)
        content.update(b"\0" + (self.meta or b""))
        return content.digest()


class Estate(Protocol):
    """A store as a place to carry from and to."""

    place: str  #: for people

    def frozen(self) -> AbstractContextManager[None]:
        """Nobody changes anything here meanwhile. Raises `RegistryMissing` where there is none."""

    def count(self) -> int:
        """About how many pieces there are."""

    def pieces(self) -> Iterator[Piece]:
        """Histories first and records last; nothing where there is no registry."""

    def left(self) -> list[str]:
        """What stands here and belongs to no job: nothing of it is carried."""

    def opened(self) -> AbstractContextManager[None]:
        """To be carried to; made where it is missing."""

    def put(self, pieces: Sequence[Piece]) -> None:
        """Some pieces, whole; one that is there is replaced."""

    def settle(self) -> None:
        """All of them are here: make sure that they stay."""
