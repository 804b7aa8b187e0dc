"""One test for a whole table: no row is left out, and no failure is hidden."""

from __future__ import annotations

import pytest

from tests.support.rows import each_row, every_row


def test_every_row_is_tried_and_every_failure_is_named() -> None:
    tried = []

    @each_row(("number", "word"), [(1, "a"), (2, "b"), (3, "c")])
    def odd(number: int, word: str) -> None:
        tried.append(word)
        assert number == 2, f"{word} is odd"

    with pytest.raises(BaseExceptionGroup) as failed:
        odd()
    assert tried == ["a", "b", "c"]
    assert failed.value.message == "2 of 3 rows failed: row 1 (1, 'a'), row 3 (3, 'c')"
    assert [str(one).splitlines()[0] for one in failed.value.exceptions] == ["a is odd", "c is odd"]
    assert failed.value.exceptions[0].__notes__ == ["in row 1 (1, 'a')"]


def test_an_exception_that_is_not_raised_is_a_failure() -> None:
    @each_row("number", [1])
    def raises(number: int) -> None:
        with pytest.raises(KeyError):
            str(number)

    with pytest.raises(BaseExceptionGroup, match="1 of 1 rows failed"):
        raises()


def test_a_table_without_rows_fails() -> None:
    with pytest.raises(AssertionError, match="no row was tried"), every_row():
        pass


@each_row("number", [1, 2])
def test_fixtures_are_shared_by_all_rows(request: pytest.FixtureRequest, number: int) -> None:
    assert "number" not in request.fixturenames
    assert number in (1, 2)
