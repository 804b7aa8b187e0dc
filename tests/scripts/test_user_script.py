"""A script that somebody wrote for the original, run unchanged (decision 3, section Q)."""

from __future__ import annotations

import json
from pathlib import Path

from tests.scripts.plain import SCRIPTS, registry, run

#: Uses the names of the original in the ways that its documents suggest.
NIGHTLY = """
import logging
import os
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import mqtt_common
import registry
from mqtt_common import (
    DEFAULT_REGISTRY_DIR, SCHEMA_VERSION, append_event, iter_logged_events, job_log_path,
    list_logged_jobs, load_job, next_seq, read_logged_meta, read_logged_status, registry_lock,
    update_job_status, verify_hmac, with_retry,
)
from registry import pick_pending, register_job, update_status

logging.basicConfig(level=logging.WARNING)
LABEL = "tmux:nightly"

ids = [
    register_job(f"report {n}", agent="claude-code", agent_session=LABEL,
                 timeout_sec=600, expected_artifacts=[f"report-{n}.md"])
    for n in range(3)
]
assert (Path(DEFAULT_REGISTRY_DIR) / f"{ids[0]}.json").exists()
assert pick_pending("tmux:other") is None

done = []
while job_id := pick_pending(LABEL, DEFAULT_REGISTRY_DIR):
    job = load_job(job_id)
    assert job["status"] == "running" and job["schema_version"] == SCHEMA_VERSION
    for event in ("started", "progress"):
        with registry_lock():
            seq = next_seq(job_id)
        payload = {"schema_version": 1, "seq": seq, "job_id": job_id, "event": event,
                   "timestamp": "2026-06-19T09:30:00Z", "detail": "", "data": {}}
        assert verify_hmac(payload, job["auth_token"])
        append_event(job_id, {"event": "published", "payload": payload})
    done.append(job_id)
    assert update_job_status(job_id, "completed")["status"] == "completed"

assert done == ids
assert load_job(ids[0])["last_seq"] == 2
assert sorted(list_logged_jobs()) == sorted(ids)
assert read_logged_meta(ids[0])["status"] == "pending"
assert read_logged_status(ids[0])["status"] == "completed"
assert (job_log_path(ids[0]) / "events.ndjson").is_file()
assert job_log_path(ids[0]).parent == mqtt_common.LOGS_DIR
events = [line["event"] for line in iter_logged_events(ids[0])]
assert events == ["registered", "status_changed", "published", "published", "status_changed"]

update_status(ids[1], "error", registry_dir=DEFAULT_REGISTRY_DIR)
try:
    load_job("missing")
except FileNotFoundError as problem:
    print(problem, file=sys.stderr)
assert with_retry(lambda: "answer", attempts=3, base_delay=0.01) == "answer"
print("\\n".join(ids))
"""


def test_runs_from_its_own_folder_with_a_bare_python(here: Path, tmp_path: Path) -> None:
    """A16, A17, B1, E17, F11: library and command line are one registry."""
    script = tmp_path / "nightly.py"
    script.write_text(NIGHTLY)
    done = run(script, str(SCRIPTS), cwd=here)
    assert done.returncode == 0, done.stderr
    ids = done.stdout.split()
    assert len(ids) == 3
    assert done.stderr.startswith("there is no job missing")
    records = json.loads(registry("list", "--json", cwd=here).stdout)
    assert [record["status"] for record in records] == ["completed", "error", "completed"]
    assert records[0]["expected_artifacts"] == ["report-0.md"]


def test_scripts_that_import_each_other_in_any_order(here: Path) -> None:
    for order in ("registry, mqtt_common", "mqtt_common, registry"):
        code = f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); import {order}; print('ok')"
        done = run("-c", code, cwd=here)
        assert (done.stdout, done.stderr) == ("ok\n", "")


def test_a_project_with_modules_of_the_same_names_is_not_disturbed(here: Path) -> None:
    """What we add to the path goes to its end, and only when mam_core is not installed."""
    (here / "audit.py").write_text("mine = True\n")
    code = (
        f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); sys.path.insert(0, '.')\n"
        "import mqtt_common, audit\n"
        "print(audit.mine, sys.path[-1].endswith('core'))"
    )
    assert run("-c", code, cwd=here).stdout == "True True\n"
