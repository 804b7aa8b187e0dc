"""A stranger clones the project: what is in the box, and does it start?

These tests look at the project as files, so a slip in packaging is found here and not by a user.
"""

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from mam_core.version import __version__ as VERSION

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ["requirements.lock", "requirements-test.lock"]
SCRIPTS = ["mam", "test", ".ci/run"]


def project_files() -> list[Path]:
    """Files that are in the repository, or would be with the next commit."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed, so nobody can say which files belong to the project")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git clone, so nobody can say which files belong to the project")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def run(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


class TestTheLockFiles:
    @pytest.mark.parametrize("name", LOCKS)
    def test_pin_every_package_with_a_hash(self, name: str) -> None:
        text = re.sub(r"^ *#.*\n", "", (ROOT / name).read_text(), flags=re.MULTILINE)
        packages = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
        assert len(packages) > 5
        for package in packages:
            assert re.match(r"[a-z0-9-]+==\S+ ", package), package
            assert "--hash=sha256:" in package, package

    @pytest.mark.parametrize("name", LOCKS)
    def test_name_no_package_index(self, name: str) -> None:
        text = (ROOT / name).read_text()
        assert "://" not in text
        assert "index" not in re.sub(r"#.*", "", text)

    def test_agree_with_each_other(self) -> None:
        runtime, test = (
            dict(re.findall(r"^(\S+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE))
            for name in LOCKS
        )
        shared = runtime.keys() & test.keys()
        assert {name: runtime[name] for name in shared} == {name: test[name] for name in shared}

    def test_hold_all_that_the_project_asks_for(self) -> None:
        pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
        project, groups = pyproject["project"], pyproject["dependency-groups"]
        asked = [
            *project["dependencies"],
            *project["optional-dependencies"]["postgres"],
            *groups["setup"],
            *groups["test"],
        ]
        text = "\n".join((ROOT / name).read_text() for name in LOCKS)
        for requirement in asked:
            name = re.split(r"[<>=~!\[; ]", requirement)[0]
            assert re.search(rf"^{re.escape(name)}==", text, re.MULTILINE), f"{name} is not locked"


class TestTheFiles:
    def test_hold_no_path_of_the_machine_they_were_written_on(self) -> None:
        # Put together from pieces, so that this file does not find itself.
        folders = "|".join(["wo" + "rk", "ro" + "ot", "ho" + r"me/\w+", "Us" + r"ers/\w+"])
        pattern = re.compile(rf"(?<![\w.~$}}-])/(?:{folders})/")
        found = [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
            for path in project_files()
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
            if pattern.search(line)
        ]
        assert found == []

    def test_stand_where_the_documents_say(self) -> None:
        names = {path.relative_to(ROOT).parts[0] for path in project_files()}
        asked_for = {"tui", "core", "tests", "screenshots", "pyproject.toml", "README.md"}
        ours = {"bench", "docs", "CHANGELOG.md", "LICENSE", "mam", "test", *LOCKS}
        assert names >= asked_for
        assert {name for name in names - asked_for - ours if not name.startswith(".")} == set()


class TestTheScripts:
    @pytest.mark.parametrize("name", SCRIPTS)
    def test_can_be_run(self, name: str) -> None:
        assert os.access(ROOT / name, os.X_OK)

    @pytest.mark.parametrize("name", [*SCRIPTS, ".ci/setup.sh"])
    def test_are_sound_bash(self, name: str) -> None:
        assert run("bash", "-n", ROOT / name, cwd=ROOT).stderr == ""

    def test_mam_answers_from_elsewhere_through_links(self, tmp_path: Path) -> None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "first").symlink_to(ROOT / "mam")
        (tmp_path / "mam").symlink_to("bin/first")
        elsewhere = tmp_path / "a project"
        elsewhere.mkdir()

        answer = run(tmp_path / "mam", "--version", cwd=elsewhere, MAM_VENV=sys.prefix)

        assert answer.returncode == 0, answer.stderr
        assert VERSION in answer.stdout
        assert str(ROOT / "core" / "mam_core") in answer.stdout
        assert answer.stderr == ""
        assert list(elsewhere.iterdir()) == []

    def test_a_tmux_verb_without_tmux_and_root_says_how_to_get_it(self, tmp_path: Path) -> None:
        for name in ["bash", "cat", "cmp", "dirname", "readlink"]:
            (tmp_path / name).symlink_to(shutil.which(name) or name)
        (tmp_path / "id").write_text("#!/bin/sh\necho 1000\n")
        (tmp_path / "id").chmod(0o755)

        answer = run(ROOT / "mam", "--registry-dir", "x", "spawn", cwd=tmp_path, PATH=str(tmp_path))

        assert answer.returncode == 1
        assert answer.stdout == ""
        assert re.fullmatch(r"mam: this needs tmux; please install it .*\n", answer.stderr)


class TestTheClone:
    def test_is_found_in_a_folder_that_has_its_own_core_and_tui(self, tmp_path: Path) -> None:
        for name in ["core", "tui"]:
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong one')\n")

        origins = "import mam_core.version as v, mam_tui as t; print(v.__file__); print(t.__file__)"
        answer = run(sys.executable, "-c", origins, cwd=tmp_path, PYTHONPATH=str(tmp_path))

        assert answer.stderr == ""
        assert answer.stdout.splitlines() == [
            str(ROOT / "core/mam_core/version.py"),
            str(ROOT / "tui/mam_tui/__init__.py"),
        ]


@pytest.mark.release
@pytest.mark.timeout(600)
class TestAFreshClone:
    @pytest.fixture
    def clone(self, tmp_path: Path) -> Path:
        """The project as a stranger gets it: no environment, no cache, nothing that is ignored."""
        clone = tmp_path / "clone"
        for path in project_files():
            copy = clone / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        return clone

    def test_starts(self, clone: Path, tmp_path: Path) -> None:
        first = run(clone / "mam", "--version", cwd=tmp_path)
        assert first.returncode == 0, first.stderr
        assert str(clone) in first.stdout
        steps = [line.split()[1] for line in first.stderr.splitlines()]
        assert steps == ["1/4", "2/4", "3/4", "4/4"], first.stderr

        second = run(clone / "mam", "--version", cwd=tmp_path)
        assert (second.stdout, second.stderr) == (first.stdout, "")

    def test_starts_twice_at_once(self, clone: Path, tmp_path: Path) -> None:
        both = [
            subprocess.Popen(
                [clone / "mam", "--version"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
            )
            for _ in range(2)
        ]
        answers = [process.communicate()[0] for process in both]
        assert [process.returncode for process in both] == [0, 0]
        assert answers[0] == answers[1]
        assert VERSION in answers[0]

    def test_recovers_from_a_set_up_that_was_killed(self, clone: Path, tmp_path: Path) -> None:
        for moment in [0.3, 2.0, 5.0, 7.0]:
            start = subprocess.Popen(
                [clone / "mam", "--version"], cwd=tmp_path, start_new_session=True
            )
            time.sleep(moment)
            os.killpg(start.pid, 9)
            start.wait()

        answer = run(clone / "mam", "--version", cwd=tmp_path)
        assert answer.returncode == 0, answer.stderr
        assert VERSION in answer.stdout

    def test_starts_again_after_it_was_moved(self, clone: Path, tmp_path: Path) -> None:
        run(clone / "mam", "--version", cwd=tmp_path)
        moved = clone.rename(tmp_path / "moved here")
        answer = run(moved / "mam", "--version", cwd=tmp_path)
        assert answer.returncode == 0, answer.stderr
        assert str(moved) in answer.stdout
