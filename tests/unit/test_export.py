"""Jobs in a file of one's own: nothing secret, nothing that acts, nothing written over."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.errors import InvalidField
from mam_core.operations.export import CannotExport, export, export_rows
from mam_core.operations.why import Reasons
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.wiring import open_registry

HOSTILE = '=HYPERLINK("x")\n"two", \x1b[31m'


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with open_registry(str(tmp_path / "jobs")) as opened:
        yield opened


@pytest.fixture
def job_id(registry: Registry) -> str:
    request = {"prompt": HOSTILE, "agent": "codex", "agent_session": "tmux:c", "auth_token": True}
    return registry.register([request])[0].job_id


def test_a_table_holds_texts_and_no_formulas(
    registry: Registry, job_id: str, tmp_path: Path
) -> None:
    said = export(registry, [job_id, "gone"], str(tmp_path / "out.csv"))
    assert said.endswith("out.csv; 1 could not be read")
    with open(tmp_path / "out.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["job_id"], row["priority"], row["prompt"]) == (job_id, "0", f"'{HOSTILE}")
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o600


def test_records_are_whole_but_for_their_secrets(
    registry: Registry, job_id: str, tmp_path: Path
) -> None:
    export(registry, [job_id], str(tmp_path / "out.json"))
    (record,) = json.loads((tmp_path / "out.json").read_bytes())
    assert (record["prompt"], record["auth_token"]) == (HOSTILE, "[redacted]")
    export(registry, [], str(tmp_path / "none.json"))
    assert json.loads((tmp_path / "none.json").read_bytes()) == []


def test_a_job_without_a_record_is_written_as_the_log_has_it(
    registry: Registry, job_id: str, tmp_path: Path
) -> None:
    registry.claim("tmux:c")
    registry.finish(job_id, Status.ERROR, attempt=1, reason=Reason.EXIT, detail="it left with 3")
    registry.archive([job_id])
    said = export(registry, [job_id, "gone"], str(tmp_path / "out.json"))
    assert said.startswith("1 job is in ")
    assert said.endswith("; 1 without a record, as the audit log has it; 1 could not be read")
    (record,) = json.loads((tmp_path / "out.json").read_bytes())
    assert [record[key] for key in ("status", "reason", "detail", "attempt", "auth_token")] == [
        *("error", "exit", "it left with 3", 1, "[redacted]")
    ]
    assert (record["job_id"], record["prompt"]) == (job_id, HOSTILE)
    assert record["ended_at"]
    export(registry, [job_id], str(tmp_path / "out.csv"))
    assert "it left with 3" in (tmp_path / "out.csv").read_text()
    export(registry, [job_id], str(tmp_path / "out.md"))
    assert (tmp_path / "out.md").read_text().startswith(f"# Job {job_id}\n")


def test_other_rows_are_a_table_too(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"name": "a", "queue": 2}, {"name": "=b", "says": None}]
    assert export_rows(rows, str(tmp_path / "rows.csv"), "session").startswith("2 sessions are in")
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    assert lines == ["name,queue,says", "a,2,", "'=b,,"]
    export_rows(rows, str(tmp_path / "rows.json"), "session")
    assert json.loads((tmp_path / "rows.json").read_bytes()) == rows
    with pytest.raises(InvalidField, match="must end in"):
        export_rows(rows, str(tmp_path / "rows.md"), "session")


def test_a_page_for_each_job_is_for_people(registry: Registry, job_id: str, tmp_path: Path) -> None:
    export(registry, [job_id, "gone"], str(tmp_path / "out.md"))
    page = (tmp_path / "out.md").read_text()
    assert page.startswith(f"# Job {job_id}\n")
    assert "\x1b" not in page


def test_no_file_is_written_over_and_its_ending_must_say_how(
    registry: Registry, job_id: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.csv").write_text("mine")
    with pytest.raises(CannotExport, match="is there already"):
        export(registry, [job_id], str(tmp_path / "mine.csv"))
    assert (tmp_path / "mine.csv").read_text() == "mine"
    with pytest.raises(CannotExport, match="cannot be written"):
        export(registry, [job_id], str(tmp_path / "no" / "such.csv"))
    with pytest.raises(InvalidField, match=r"must end in \.csv or \.json"):
        export(registry, [job_id], str(tmp_path / "out.txt"))


@pytest.mark.parametrize(
    ("prompt", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1+1", "'+1+1"),
        ("-1+1", "'-1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("＝1+1", "'＝1+1"),
        ("\n=1+1", "'\n=1+1"),
        (" \t=1+1", "' \t=1+1"),
        ("--5", "'--5"),
        ("-٣", "'-٣"),
        ("-5", "-5"),
        ("a=b", "a=b"),
        ("'=quoted", "'=quoted"),
    ],
)
def test_no_cell_is_a_formula(registry: Registry, tmp_path: Path, prompt: str, cell: str) -> None:
    request = {"prompt": prompt, "agent": "codex", "agent_session": "tmux:c"}
    export(registry, [registry.register([request])[0].job_id], str(tmp_path / "out.csv"))
    with open(tmp_path / "out.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["prompt"] == cell


def test_pages_of_many_jobs_look_at_their_queue_once(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each says how many are ahead of it; 2,000 jobs took minutes."""
    requests = [
        {"prompt": f"job {number}", "agent": "codex", "agent_session": "tmux:c"}
        for number in range(5)
    ]
    jobs = [one.job_id for one in registry.register(requests)]
    looks: list[str] = []

    def line(reasons: Reasons, label: str) -> list[tuple[int, int, str]]:
        looks.append(label)
        return really(reasons, label)

    really = Reasons._line
    monkeypatch.setattr(Reasons, "_line", line)
    export(registry, jobs, str(tmp_path / "out.md"))
    assert looks == ["tmux:c"]
    text = (tmp_path / "out.md").read_text()
    assert "1 job is ahead of it" in text
    assert "4 jobs are ahead of it" in text
