"""What no job may do to another, run for real (docs/safety.md names the line of each)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mam_core.operations.clean import Selection, clean
from mam_core.records import Reason, Status
from mam_core.wiring import open_registry
from tests.support.working import LABEL, Workshop

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

ROOT = Path(__file__).parents[2]
MAM = [sys.executable, "-m", "mam_core.cli.main"]


def files_of(shop: Workshop, job_id: str) -> set[str]:
    """Every path below the project whose name, or whose folder's, holds the job's id."""
    paths = (path.relative_to(shop.folder) for path in shop.folder.rglob("*"))
    return {str(path) for path in paths if job_id in str(path)}


def test_two_jobs_that_are_alike_share_no_path(shop: Workshop) -> None:
    """N1, N39, INV-1: every path that is made for a job holds its id."""
    agent = shop.agent("good", "behaves")
    one, other = shop.add(agent), shop.add(agent)
    shop.drain(slots=2)
    assert {shop.job(job_id).status for job_id in (one, other)} == {Status.COMPLETED}
    mine, theirs = files_of(shop, one), files_of(shop, other)
    assert mine
    assert mine & theirs == set()
    assert {path.replace(one, "ID") for path in mine if "outbox" not in path} == {
        path.replace(other, "ID") for path in theirs if "outbox" not in path
    }


def test_two_who_clean_at_once_harm_nobody(shop: Workshop) -> None:
    """N3, N40, INV-3: a file that somebody else removed is removed."""
    ids = [shop.add(shop.agent("good", "behaves"), f"part {n}") for n in range(30)]
    for job_id in ids:
        shop.registry.set_status(job_id, Status.COMPLETED)
    gone: list[str] = []
    troubles: list[Exception] = []

    def go() -> None:
        try:
            with open_registry(str(shop.path), config=shop.config) as mine:
                gone.extend(clean(mine, Selection()).job_ids)
        except Exception as trouble:
            troubles.append(trouble)

    threads = [threading.Thread(target=go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert troubles == []
    assert sorted(gone) == sorted(ids), "each by one of them"


def test_no_code_of_ours_looks_before_it_unlinks() -> None:
    """N3, N40: between the look and the act another job may have been there."""
    found = []
    for path in sorted((ROOT / "core").rglob("*.py")):
        text = path.read_text()
        found += [
            f"{path.name}: {match[0]}"
            for match in re.finditer(r"if [^\n]*exists\([^\n]*\n\s+[^\n]*(?:unlink|remove)\(", text)
        ]
    assert found == []


def test_what_one_agent_is_given_no_other_has(shop: Workshop) -> None:
    """N11, INV-5: an override is one profile's, and ends with its attempt."""
    say = ("/bin/sh", "-c", 'cat >/dev/null; echo "it is [${MY_APP_THRESHOLD-unset}]"')
    fifty = shop.agent("fifty", *say, env={"MY_APP_THRESHOLD": "50"})
    plain = shop.agent("plain", *say)
    ids = [shop.add(agent, f"part {n}") for n, agent in enumerate((fifty, plain, fifty, plain))]
    shop.drain(slots=2)
    said = [re.search(r"\[(\w+)\]", shop.output(job_id)) for job_id in ids]
    assert [match and match[1] for match in said] == ["50", "unset", "50", "unset"]
    assert "MY_APP_THRESHOLD" not in os.environ


def test_a_retried_a_cancelled_and_a_cleaned_job_remove_nothing_of_a_live_one(
    shop: Workshop,
) -> None:
    """N15, AP-2: they share a folder, and a live one has its checkpoint there."""
    good = shop.agent("good", "behaves")
    live = shop.add(good, "live", expected_artifacts=["checkpoint_live.json"])
    assert shop.registry.claim(LABEL) is not None
    checkpoint = shop.workdir / "checkpoint_live.json"
    checkpoint.write_text("{}")
    others = [shop.add(good, f"other {n}") for n in range(3)]
    shop.registry.request_cancel(others[0])
    shop.registry.set_status(others[1], Status.ERROR)
    shop.registry.retry(others[1])
    shop.registry.set_status(others[2], Status.COMPLETED)
    clean(shop.registry, Selection())
    assert checkpoint.read_text() == "{}"
    assert shop.job(live).status is Status.RUNNING
    assert shop.path.joinpath(f"{live}.json").exists()


def test_an_old_error_is_never_shown_as_the_current_one(shop: Workshop) -> None:
    """N16, N37, AP-3: each attempt has its output, and a fresh one begins with nothing."""
    fail_once = (
        'cat >/dev/null; if [ $MAM_ATTEMPT = 1 ]; then echo "old error"; exit 3; fi; echo new'
    )
    job_id = shop.add(shop.agent("once", "/bin/sh", "-c", fail_once))
    shop.drain()
    failed = shop.job(job_id)
    assert failed.status is Status.ERROR
    again = shop.registry.retry(job_id)
    assert (again.reason, again.detail) == (None, None)
    shop.drain()
    done = shop.job(job_id)
    assert (done.status, done.reason, done.attempt) == (Status.COMPLETED, None, 2)
    assert "old error" in shop.output(job_id, 1)
    assert "old error" not in shop.output(job_id, 2)
    assert {content["attempt"] for content in shop.told(job_id)} == {1, 2}


def test_a_merge_that_took_too_much_is_not_completed(shop: Workshop) -> None:
    """N10, N20, INV-9: the recipe of docs/safety.md, as the job's own check."""
    recipe = f"'{sys.executable}' -m mam_core.cli.main verify --file merged.csv --expect side=LONG"
    merge = "cat >/dev/null; cat part_*.csv > merged.csv"
    (shop.workdir / "part_1.csv").write_text("side\nLONG\n")
    agent = shop.agent("merge", "/bin/sh", "-c", merge)
    fields = {"expected_artifacts": ["merged.csv"], "validate": recipe}
    assert shop.run(agent, "a part", **fields).status is Status.COMPLETED
    (shop.workdir / "part_2.csv").write_text("SHORT\n")
    job = shop.run(agent, "too much", **fields)
    assert (job.status, job.reason) == (Status.ERROR, Reason.VALIDATION)
    assert "holds side 'SHORT'" in (job.detail or "")


def test_counts_go_by_type_and_not_by_lines(shop: Workshop) -> None:
    """N27, AP-14: what looks like more or fewer lines to a tool is as many events."""
    shop.set_nothing()
    good = shop.agent("good", "behaves")
    job_id = shop.add(good)
    claimed = shop.registry.claim(LABEL)
    assert claimed is not None
    details = ["a\nb\nc", "\u2028\u2029\x85", "x" * 3000, "", "\r\n", "é" * 50]
    for detail in details:
        shop.registry.publish(job_id, "progress", detail=detail, attempt=1)
    told = shop.told(job_id)
    assert [content["event"] for content in told] == ["progress"] * len(details)
    log = (Path(shop.registry.store.audit.path) / job_id / "events.ndjson").read_bytes()
    lines = [json.loads(line) for line in log.split(b"\n") if line]
    assert [line["n"] for line in lines] == list(range(1, len(lines) + 1))
    shop.settle()
    answer = subprocess.run(
        [*MAM, "audit", "--json", "--registry-dir", str(shop.path)],
        cwd=shop.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert json.loads(answer.stdout)["counts"]["running"] == 1


def test_the_same_protection_without_pueue_mise_and_systemd(shop: Workshop, tmp_path: Path) -> None:
    """N50: with a PATH that has nothing on it but what the agent itself is."""
    agent = shop.agent("good", "/bin/sh", "-c", "cat > out.txt; echo done >> out.txt")
    job_id = shop.add(agent, expected_artifacts=["out.txt"], memory_max=512 * 2**20)
    shop.settle()
    empty = tmp_path / "empty"
    empty.mkdir()
    bare = {"PATH": str(empty), "HOME": str(tmp_path), "TMUX_TMPDIR": str(empty)}

    def mam(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*MAM, *words, "--registry-dir", str(shop.path)],
            cwd=shop.folder,
            env=bare,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    worked = mam("work", "--label", LABEL, "--agents", agent, "--drain")
    assert worked.returncode == 0, worked.stderr
    assert shop.job(job_id).status is Status.COMPLETED
    audited = mam("audit")
    assert audited.returncode == 0, audited.stdout + audited.stderr
    assert mam("schedule", "list").returncode == 0
    assert mam("deploy").returncode == 0
