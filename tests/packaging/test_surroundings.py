"""Neither a variable of Python's nor a file in the current folder puts other code before ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mam_core.own_python import own_python
from tests.packaging.test_project import ROOT
from tests.packaging.test_project import run as run_as_it_is

INSTALLED = Path(sys.executable).parent / "mam"
WAYS = pytest.mark.parametrize("mam", [ROOT / "mam", INSTALLED], ids=["clone", "installed"])


def run(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """With the environment that these tests run in, which need not be the clone's .venv."""
    return run_as_it_is(*command, cwd=cwd, MAM_VENV=sys.prefix, **env)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A project that has modules of the names that we import, and of the standard library's."""
    for name in ("textual", "paho", "libtmux", "watchfiles", "argparse", "shlex"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')\n")
    return tmp_path


@WAYS
def test_a_python_path_with_packages_of_its_own_does_not_matter(mam: Path, hostile: Path) -> None:
    told = run(mam, "doctor", cwd=hostile, PYTHONPATH=str(hostile))
    assert "the wrong one" not in told.stdout + told.stderr
    assert "textual" in told.stdout
    assert "it is not installed" not in told.stdout


@WAYS
def test_an_agent_has_the_persons_own_python_path(mam: Path, hostile: Path) -> None:
    words = ["submit", "--agent", "shell", "--prompt", 'printf %s "$PYTHONPATH" > told.txt']
    done = run(mam, *words, cwd=hostile, PYTHONPATH=str(hostile))
    assert done.returncode == 0, done.stderr
    assert (hostile / "told.txt").read_text() == str(hostile)


def test_a_clone_starts_whatever_variables_of_python_there_are(tmp_path: Path) -> None:
    strange = {
        "PYTHONHOME": str(tmp_path),
        "PYTHONPLATLIBDIR": "nowhere",
        "PYTHONSTARTUP": str(tmp_path / "nowhere.py"),
        "PYTHONWARNINGS": "error",
        "PYTHONOPTIMIZE": "2",
        "PYTHONINSPECT": "1",
    }
    done = run(ROOT / "mam", "list", cwd=tmp_path, **strange)
    assert (done.returncode, done.stderr) == (0, "")


def test_code_that_was_found_by_python_path_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`PYTHONPATH=core python3 -m mam_core`: there ``-E`` would lose us."""
    bare = [sys.executable, "-S", "-m", "mam_core", "--version"]
    done = run(*bare, cwd=tmp_path, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT / 'core'}")
    assert done.returncode == 0, done.stderr
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert own_python() == (sys.executable, "-E", "-P")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "core"))
    assert own_python() == (sys.executable, "-P")


def test_code_in_a_site_folder_that_a_variable_names_is_found_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONUSERBASE", str(ROOT))
    assert own_python() == (sys.executable, "-P")
    monkeypatch.setenv("PYTHONUSERBASE", str(ROOT / "core" / "mam"))
    assert own_python() == (sys.executable, "-E", "-P")


def test_a_start_that_nothing_disturbs_is_one_start(tmp_path: Path) -> None:
    """The re-start costs a process image; without the variables there is none."""
    (tmp_path / "told.py").write_text(
        "import os, sys\nos.execv = lambda *_: sys.exit('again')\n"
        "from mam_core.cli.main import entry\nentry()\n"
    )
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    told = [sys.executable, str(tmp_path / "told.py"), "--version"]
    for more, ends in (({}, 0), ({"PYTHONPATH": str(tmp_path)}, 1)):
        done = subprocess.run(told, env=quiet | more, capture_output=True, check=False)
        assert done.returncode == ends, done.stderr
