"""After a merge: does a table hold the categories that it should, and no other?

One glob that was too wide once put the rows of one category among those of another, and every
check of existence passed. So the rows themselves are looked at: CSV, TSV and JSON lines, read one
by one, so that the size of a file does not matter.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from mam_core.errors import InvalidField
from mam_core.work.validation import Check

#: So many values that should not be there are named, each at most so long.
_NAMED = 5
_LONGEST = 60
#: No row of a table has a cell longer than this.
_CELL_BYTES = 16 * 2**20

Expected = Mapping[str, frozenset[str]]


class _Strange(Exception):
    """A file is not what its name says."""


class _Found(NamedTuple):
    rows: int
    values: dict[str, dict[str, int]]  #: by column, each value with the row it was first seen in


def parse_expected(texts: Iterable[str]) -> dict[str, frozenset[str]]:
    """``COLUMN=VALUE`` or ``COLUMN=VALUE,VALUE``; a column that is said twice has them all."""
    found: dict[str, frozenset[str]] = {}
    for text in texts:
        column, equals, values = text.partition("=")
        if not column or not equals:
            raise InvalidField(f"expect: {text[:_LONGEST]!r} is not COLUMN=VALUE")
        found[column] = found.get(column, frozenset()) | frozenset(values.split(","))
    return found


def tables_in(path: str) -> list[str]:
    """The tables at a place: the file itself, or those that stand in a folder."""
    if os.path.isdir(path):
        return [os.path.join(path, name) for name in sorted(os.listdir(path)) if _reader_of(name)]
    return [path] if _reader_of(path) else []


def check_table(path: str, name: str, expected: Expected) -> list[Check]:
    """A check for each column; `name` is how the file is called in what is said."""
    try:
        found = _read(path, expected)
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        return [Check(name, False, f"{name} cannot be read: {why}")]
    except (_Strange, csv.Error, ValueError) as problem:
        return [Check(name, False, f"{name} cannot be read: {problem}")]
    return [_judged(name, column, wanted, found) for column, wanted in expected.items()]


def _judged(name: str, column: str, wanted: frozenset[str], found: _Found) -> Check:
    if not found.rows:
        return Check(name, False, f"{name} has no rows")
    there = found.values[column]
    strange = [value for value in there if value not in wanted]
    if strange:
        more = f" and {len(strange) - _NAMED} more" if len(strange) > _NAMED else ""
        told = ", ".join(_shown(value) for value in strange[:_NAMED])
        row = there[strange[0]]
        words = f"{name} holds {column} {told}{more}, first in row {row}, which should not be there"
        return Check(name, False, words)
    if lacking := sorted(wanted - there.keys()):
        told = ", ".join(map(_shown, lacking[:_NAMED]))
        return Check(name, False, f"{name} has no row with {column} {told}")
    told = ", ".join(map(_shown, sorted(wanted)[:_NAMED]))
    return Check(name, True, f"{name}: {column} is {told} in all {found.rows} rows")


def _shown(value: str) -> str:
    return repr(value if len(value) <= _LONGEST else value[:_LONGEST] + "…")


def _read(path: str, expected: Expected) -> _Found:
    reader = _reader_of(path)
    if reader is None:
        raise _Strange("only .csv, .tsv, .jsonl and .ndjson are tables")
    seen: dict[str, dict[str, int]] = {column: {} for column in expected}
    rows = 0
    with open(path, encoding="utf-8-sig", newline="") as file:
        for rows, row in enumerate(reader(file), 1):
            for column, values in seen.items():
                if column not in row:
                    raise _Strange(f"row {rows} has no column {column[:_LONGEST]!r}")
                value = row[column]
                # Of a column that is no category at all, not every value is kept.
                if value not in values and len(values) <= len(expected[column]) + 1000:
                    values[value] = rows
    return _Found(rows, seen)


def _reader_of(path: str) -> Callable[[Iterable[str]], Iterator[Mapping[str, str]]] | None:
    return _READERS.get(os.path.splitext(path)[1].lower())


def _delimited(lines: Iterable[str], delimiter: str) -> Iterator[Mapping[str, str]]:
    csv.field_size_limit(_CELL_BYTES)
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    header = next(rows, None)
    if header is None:
        return
    for row in rows:
        if row:
            yield dict(zip(header, row, strict=False))


def _json_lines(lines: Iterable[str]) -> Iterator[Mapping[str, str]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise _Strange(f"line {number} is no JSON") from None
        if not isinstance(row, dict):
            raise _Strange(f"line {number} is no JSON object")
        yield {key: _as_text(value) for key, value in row.items()}


def _as_text(value: Any) -> str:
    """A text as it is; anything else as JSON has it: ``1``, ``true``, ``null``."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_READERS: dict[str, Callable[[Iterable[str]], Iterator[Mapping[str, str]]]] = {
    ".csv": lambda lines: _delimited(lines, ","),
    ".tsv": lambda lines: _delimited(lines, "\t"),
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
}
