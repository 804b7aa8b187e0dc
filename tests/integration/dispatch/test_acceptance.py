"""The four acceptance criteria of the dispatch document, as it numbers them (M32)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.support.dispatching import STATUS_QUERY, SUMMARY_QUERY, Node, jq, remote_shell

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

needs_jq = pytest.mark.skipif(not shutil.which("jq"), reason="needs jq")
needs_rsync = pytest.mark.skipif(not shutil.which("rsync"), reason="needs rsync")


def test_acceptance_1_the_registry_is_made_from_the_specs(node: Node) -> None:
    """M15, M2, M4: `dispatch-registry.json` is correctly initialised."""
    for name in ("S01-first.md", "S02-second-part.md", "S15.md", "notes.md"):
        node.spec(name)
    said = node.dispatch("init", "specs").stderr
    assert "3 tasks added to 0 in" in said
    data = json.loads(node.path.read_text())
    assert (data["version"], data["specs_dir"]) == (1, "~/specs")
    assert data["updated_at"][-6] in "+-"
    assert data["tasks"] == {
        "S01": {"status": "pending", "spec": "S01-first.md"},
        "S02": {"status": "pending", "spec": "S02-second-part.md"},
        "S15": {"status": "pending", "spec": "S15.md"},
    }


def test_acceptance_2_two_dispatchers_never_claim_one_task(node: Node, other: Node) -> None:
    """M6, M5: two processes, two nodes, 50 tasks, each run once."""
    runs, here = node.folder / "runs", node.folder / "here"
    here.mkdir()
    names = [f"S{n:02}" for n in range(50)]
    # Whoever is first waits for the other, so that both are at it.
    meet = f"touch {here}/$NODE_NAME; while [ $(ls {here} | wc -l) -lt 2 ]; do sleep 0.05; done"
    node.init(**{name: f"{meet}; echo {name} >> {runs}" for name in names})
    words = ("run", "--slots", "4", "--specs", str(node.specs))
    with node.dispatching(*words) as one, other.dispatching(*words) as two:
        assert (one.code(), two.code()) == (0, 0), (one.err, two.err)
    assert sorted(runs.read_text().split()) == names
    assert set(node.statuses().values()) == {"completed"}
    assert {task["attempt"] for task in node.tasks.values()} == {1}
    assert {task["node"] for task in node.tasks.values()} == {"mac1", "mac2"}


@needs_jq
def test_acceptance_3_the_queries_of_the_document_show_the_progress(node: Node) -> None:
    """M19, M20, M21: word for word, by jq, and the same by our own verbs."""
    node.init(S01="echo done", S02="exit 3", S03="echo done", S04="true")
    node.dispatch("run", "S01", "S02", code=1)
    assert jq(SUMMARY_QUERY, node.path, "-r") == "completed: 1 | failed: 1 | pending: 2\n"
    assert node.dispatch("summary").stdout == jq(SUMMARY_QUERY, node.path, "-r")
    ours = node.dispatch("status", "--json").stdout
    assert json.loads(ours) == json.loads(jq(STATUS_QUERY, node.path))
    assert node.dispatch("status").stdout.splitlines() == [
        "completed  1  S01",
        "failed     1  S02",
        "pending    2  S03 S04",
    ]


@needs_rsync
def test_acceptance_4_remote_nodes_stay_in_step_by_rsync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M22, M24: each node works on its copy; the master gets the claims of both."""
    with remote_shell(tmp_path, monkeypatch):
        master = Node(tmp_path / "mac1", "mac1")
        master.init(S01="echo one", S02="echo two", S03="echo three")
        for name, task in (("gcp1", "S01"), ("gcp2", "S02")):
            node = Node(tmp_path / name, name)
            shutil.copytree(master.specs, node.specs, dirs_exist_ok=True)
            node.dispatch("sync", "mac1:dispatch-registry.json")
            assert node.statuses()[task] == "pending"
            node.dispatch("run", task, "--sync", "mac1:dispatch-registry.json")
        assert {name: task.get("node") for name, task in master.tasks.items()} == {
            "S01": "gcp1",
            "S02": "gcp2",
            "S03": None,
        }
        assert master.dispatch("summary").stdout == "completed: 2 | pending: 1\n"
