"""`mam verify --expect`: after a merge, a table holds the categories it should, and no other."""

from __future__ import annotations

import json

import pytest

from mam_core.errors import InvalidField
from mam_core.work.categories import parse_expected
from tests.cli.conftest import Mam, is_one_sentence
from tests.support.rows import each_row

CSV = "strategy,rows\nstandard,1\nstandard,2\n"
FILES = {
    "out.csv": CSV,
    "out.tsv": CSV.replace(",", "\t"),
    "out.jsonl": '{"strategy": "standard"}\n\n{"strategy": "standard", "x": 1}\n',
}


def job(mam: Mam, name: str, text: str) -> str:
    job_id = mam.register(f"merge {name}", "--artifact", name, "--allow-collision")
    (mam.folder / name).write_text(text)  # afterwards: an older one would not be the job's
    return job_id


@pytest.mark.parametrize("name", FILES)
def test_only_expected_categories_are_in(mam: Mam, name: str) -> None:
    """N10, INV-9"""
    job_id = job(mam, name, FILES[name])
    answer = mam.ok("verify", job_id, "--expect", "strategy=standard")
    assert f"ok      {job_id}  {name}: strategy is 'standard' in all 2 rows" in answer.lines


@pytest.mark.parametrize("name", FILES)
def test_a_row_of_another_category_is_named(mam: Mam, name: str) -> None:
    """AP-17: one glob too wide."""
    job_id = job(mam, name, FILES[name].replace("standard", "reverse", 1))
    answer = mam("verify", job_id, "--expect", "strategy=standard")
    assert answer.code == 1
    words = f"{name} holds strategy 'reverse', first in row 1, which should not be there"
    assert f"FAILED  {job_id}  {words}" in answer.lines


def test_a_category_that_got_lost_is_named(mam: Mam) -> None:
    job_id = job(mam, "out.csv", CSV)
    answer = mam("verify", job_id, "--expect", "strategy=standard,reverse")
    assert answer.code == 1
    assert "out.csv has no row with strategy 'reverse'" in answer.out


def test_several_columns_each(mam: Mam) -> None:
    job_id = job(mam, "out.csv", CSV)
    answer = mam("verify", job_id, "--expect", "strategy=standard", "--expect", "rows=1")
    assert answer.code == 1
    assert "out.csv holds rows '2', first in row 2" in answer.out


def test_it_is_in_the_history(mam: Mam) -> None:
    job_id = job(mam, "out.csv", CSV)
    mam("verify", job_id, "--expect", "strategy=other")
    log = mam.folder / ".mam" / "delegate_job_logs" / job_id / "events.ndjson"
    line = json.loads(log.read_text().splitlines()[-1])
    assert (line["event"], line["passed"]) == ("verified", False)


def test_a_folder_of_parts(mam: Mam) -> None:
    job_id = mam.register("merge", "--artifact", "parts")
    (mam.folder / "parts").mkdir()
    for name, text in FILES.items():
        (mam.folder / "parts" / name).write_text(text)
    (mam.folder / "parts" / "notes.txt").write_text("x")
    assert len(mam.ok("verify", job_id, "--expect", "strategy=standard").lines) == 4


def test_a_job_without_a_table_is_no_pass(mam: Mam) -> None:
    job_id = job(mam, "out.txt", "standard")
    answer = mam("verify", job_id, "--expect", "strategy=standard")
    assert answer.code == 1
    assert "none of its artifacts is a table" in answer.out


def test_as_a_validate_recipe(mam: Mam) -> None:
    """The same words in a job's own check: it ends `completed` only when the rows are right."""
    (mam.folder / "out.csv").write_text(CSV)
    answer = mam.ok("verify", "--file", "out.csv", "--expect", "strategy=standard")
    assert answer.lines == ["ok      out.csv: strategy is 'standard' in all 2 rows"]
    assert not mam.registry.exists()
    told = mam("verify", "--json", "--file", "out.csv", "--expect", "strategy=x")
    assert (told.code, told.json[0]["passed"]) == (1, False)


@each_row(
    ("name", "text", "words"),
    [
        ("a.csv", "", "has no rows"),
        ("a.csv", "strategy\n", "has no rows"),
        ("a.csv", "other\n1\n", "row 1 has no column 'strategy'"),
        ("a.csv", "x,strategy\n1\n", "row 1 has no column 'strategy'"),
        ("a.csv", 'strategy\n"un\n', "cannot be read"),
        ("a.jsonl", "{}\n", "row 1 has no column 'strategy'"),
        ("a.jsonl", "[1]\n", "line 1 is no JSON object"),
        ("a.jsonl", "{\n", "line 1 is no JSON"),
        ("a.jsonl", "[" * 100_000 + "\n", "line 1 is no JSON"),
        ("a.parquet", "PAR1", "only .csv, .tsv, .jsonl and .ndjson are tables"),
    ],
)
def test_what_is_no_table(mam: Mam, name: str, text: str, words: str) -> None:
    (mam.folder / name).write_text(text)
    answer = mam("verify", "--file", name, "--expect", "strategy=standard")
    assert answer.code == 1
    assert words in answer.out


def test_hostile_bytes_and_missing_files(mam: Mam) -> None:
    (mam.folder / "a.csv").write_bytes(b"strategy\n\xff\xfe\n")
    (mam.folder / "b.csv").write_text("strategy\n\x1b]0;owned\x07\n")
    for name in ("a.csv", "b.csv"):
        answer = mam("verify", "--file", name, "--expect", "strategy=standard")
        assert answer.code == 1
        assert "\x1b" not in answer.out
    answer = mam("verify", "--file", "none.csv", "--expect", "strategy=standard")
    assert (answer.code, "cannot be read: no such file" in answer.out) == (1, True)


def test_values_that_are_no_text_read_as_json_has_them(mam: Mam) -> None:
    (mam.folder / "a.jsonl").write_text('{"n": 1, "b": true, "z": null}\n')
    mam.ok(
        *("verify", "--file", "a.jsonl"),
        *("--expect", "n=1", "--expect", "b=true", "--expect", "z=null"),
    )


@pytest.mark.parametrize("text", ["", "strategy", "=x"])
def test_half_an_expectation(mam: Mam, text: str) -> None:
    with pytest.raises(InvalidField):
        parse_expected([text])
    answer = mam("verify", "--file", "a.csv", "--expect", text)
    assert answer.code == 2
    assert is_one_sentence(answer.err)
    assert parse_expected(["a=1", "a=2,3"]) == {"a": frozenset("123")}
