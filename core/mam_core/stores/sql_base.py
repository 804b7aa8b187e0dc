"""What a store in a database asks of the database: short talks, each of which is one transaction.

`sqlite` and `postgres` answer; everything above is written once for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mam_core.stores.sql_text import Dialect

if TYPE_CHECKING:
    from mam_core.events.watch import Watch

Row = tuple[Any, ...]
Values = Mapping[str, Any]
#: From a number to that of now, and what was written after it; see `SqlStore.changed_since`.
ChangedSince = Callable[[int | None], tuple[int, dict[str, int]]]


class Statement(NamedTuple):
    """A named change, made once for each set of values."""

    name: str
    rows: Sequence[Values]


class Talk(Protocol):
    """Asking. Errors of the database come out as ours: `StoreError`, `LockTimeout`."""

    def ask(self, name: str, **values: Any) -> list[Row]:
        """A query of ``queries.sql``."""

    def ask_for(self, sql: str, values: Values) -> list[Row]:
        """One that was put together from parts."""


class Change(Talk, Protocol):
    """Asking inside of a transaction, and one chance to write."""

    def hold(self, names: Sequence[str]) -> None:
        """Nobody else goes past one of these names until we are done; a no-op where nobody can."""

    def freeze(self) -> None:
        """Nobody else changes anything until we are done, which may take long."""

    def finish(
        self,
        writes: Sequence[Statement],
        asides: Sequence[Statement],
        progress: Callable[[int, int], None] | None = None,
    ) -> bool:
        """All of `writes` or none of them; and of `asides` what can be had, with a warning.

        True when all of those stand, too.
        """


class Database(Protocol):
    """One database with the tables of a registry. Any thread may use it."""

    dialect: Dialect
    place: str  #: for people: no password in it

    def reading(self) -> AbstractContextManager[Talk]:
        """Raises `RegistryMissing` where there are no tables yet."""

    def writing(self, *, create: bool = False) -> AbstractContextManager[Change]:
        """A transaction; without `finish` nothing of it stays.

        Raises `RegistryMissing` where there are no tables yet, unless they are to be made.
        """

    @property
    def file(self) -> str | None:
        """That it is kept in; None: a server has it."""

    @property
    def at_once(self) -> Callable[[str, Values], list[Row]] | None:
        """Makes a change by one statement, and answers what that does; nothing where it failed.

        None where a talk is no journey, and nothing would be won.
        """

    def now(self) -> float | None:
        """The time of day that all hosts share; None where there is one host only."""

    def watch(self, changed_since: ChangedSince, wake: Callable[[], None]) -> Watch:
        """Whoever sees that there is something to ask `changed_since` for."""

    def close(self) -> None: ...
