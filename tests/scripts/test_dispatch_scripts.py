"""``init_registry.sh`` and ``dispatch_with_registry.sh``, called as their document has it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scripts.plain import SCRIPTS
from tests.support.dispatching import SUMMARY_QUERY, Node, jq
from tests.support.relays import none_left_behind

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

INIT, DISPATCH = "init_registry.sh", "dispatch_with_registry.sh"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "mac1", "mac1")


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """In a clone of their own, whose ``mam`` is the one that is tested."""
    clone = tmp_path / "clone"
    (clone / "core" / "mam_core").mkdir(parents=True)
    shutil.copytree(SCRIPTS, clone / "core" / "scripts")
    (clone / "mam").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mam_core.cli.main "$@"\n')
    (clone / "mam").chmod(0o755)
    return clone / "core" / "scripts"


def call(script: Path, node: Node, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [script, *words],
        cwd=node.folder,
        env=node.environ(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_from_specs_to_a_summary(node: Node, scripts: Path, tmp_path: Path) -> None:
    """Make the registry, run one task by name, run the rest, ask with the document's own query."""
    node.spec("S01-login.md", "echo one")
    node.spec("S02-billing.md", 'test "$API_MODE" = zai')
    node.spec("S03-search.md", "exit 3")
    made = call(scripts / INIT, node, SPECS_DIR=str(node.specs))
    assert (made.returncode, made.stdout) == (0, ""), made.stderr
    assert node.statuses() == dict.fromkeys(("S01", "S02", "S03"), "pending")
    linked = tmp_path / "dispatch"
    linked.symlink_to(scripts / DISPATCH)
    with none_left_behind(node.folder / ".mam" / "jobs"):
        one = call(linked, node, "S02", API_MODE="zai")
        assert (one.returncode, one.stdout) == (0, "S02 completed\n"), one.stderr
        rest = call(scripts / DISPATCH, node)
        assert rest.returncode == 1
        again = call(scripts / DISPATCH, node, "S01")
    assert rest.stdout.splitlines()[0] == "S01 completed"
    assert rest.stdout.splitlines()[1].startswith("S03 failed: ")
    assert (again.returncode, again.stdout) == (1, ""), "nothing is done twice"
    assert jq(SUMMARY_QUERY, node.path, "-r") == "completed: 2 | failed: 1\n"
    node.spec("S04.md")
    more = call(scripts / INIT, node, str(node.specs))
    assert more.returncode == 0
    assert node.statuses()["S01"] == "completed", "what is there stays"
    assert node.statuses()["S04"] == "pending"


def test_the_documents_folder_is_the_default(node: Node, scripts: Path) -> None:
    folder = node.folder / "Downloads" / "specs" / "clawmarketing"
    folder.mkdir(parents=True)
    (folder / "S07-x.md").write_text("echo")
    environ = {"REGISTRY": ""}
    assert call(scripts / INIT, node, **environ).returncode == 0
    made = json.loads((node.folder / "Downloads" / "dispatch-registry.json").read_text())
    assert set(made["tasks"]) == {"S07"}


@pytest.mark.parametrize("name", [INIT, DISPATCH])
def test_a_copy_runs_the_mam_of_the_path_or_says_that_there_is_none(
    node: Node, tmp_path: Path, name: str
) -> None:
    copy = tmp_path / name
    shutil.copy(SCRIPTS / name, copy)
    lacking = call(copy, node, "--help", PATH=os.defpath)
    assert lacking.returncode == 1
    assert (
        lacking.stderr == f"{name}: mam is not on your PATH, and this script is in no clone of it\n"
    )
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mam").symlink_to(Path(sys.executable).parent / "mam")
    found = call(copy, node, "--help", PATH=f"{tmp_path / 'bin'}:{os.defpath}")
    assert found.returncode == 0
    assert found.stdout.startswith("usage: mam dispatch")
