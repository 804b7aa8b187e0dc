"""A table as one test: every row is tried, and every row that fails is named.

A test for each row costs set-up, a home folder and a report; where a row is a line of a table and
not a story of its own, that is most of its price.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

_NAME_CHARS = 60


class Rows:
    """Counts the rows that were tried, and keeps what went wrong in each."""

    def __init__(self) -> None:
        self._tried = 0
        self._failed: dict[str, BaseException] = {}

    @contextmanager
    def row(self, *values: object) -> Iterator[None]:
        """Try one row, known by these values; the next is tried whatever happens."""
        self._tried += 1
        try:
            yield
        except (Exception, pytest.fail.Exception) as problem:
            known = f"row {self._tried} ({', '.join(map(repr, values))[:_NAME_CHARS]})"
            problem.add_note(f"in {known}")
            self._failed[known] = problem

    def judge(self) -> None:
        """Raise all failures together; a table without rows proves nothing and fails, too."""
        assert self._tried, "no row was tried"
        if self._failed:
            words = f"{len(self._failed)} of {self._tried} rows failed: {', '.join(self._failed)}"
            raise BaseExceptionGroup(words, list(self._failed.values()))


@contextmanager
def every_row() -> Iterator[Rows]:
    """For a loop that a test writes itself: ``with rows.row(value): …`` for each row."""
    rows = Rows()
    yield rows
    rows.judge()


def each_row(
    names: str | tuple[str, ...], table: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As ``pytest.mark.parametrize``, in one test.

    All rows share its fixtures, so it is for rows that leave nothing behind, or begin anew.
    """
    given = {names} if isinstance(names, str) else set(names)
    rows = [
        {names: row} if isinstance(names, str) else dict(zip(names, row, strict=True))
        for row in table
    ]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def all_rows(*args: Any, **fixtures: Any) -> None:
            with every_row() as tried:
                for row in rows:
                    with tried.row(*row.values()):
                        test(*args, **fixtures, **row)

        signature = inspect.signature(test)
        asked = [one for name, one in signature.parameters.items() if name not in given]
        all_rows.__signature__ = signature.replace(parameters=asked)  # type: ignore[attr-defined]
        return all_rows

    return decorate
