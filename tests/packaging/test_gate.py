"""The tiers of ./test: what bare --fast chooses, what --repeat finds."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def choice() -> ModuleType:
    spec = importlib.util.spec_from_file_location("choose_tests", ROOT / ".ci" / "choose_tests.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestBareFast:
    def test_a_changed_module_brings_tests_of_its_name_then_those_that_import_it(
        self, choice: ModuleType
    ) -> None:
        ranked = choice.rank(["core/mam_core/codec.py"])
        assert ranked[0] == "tests/unit/test_codec.py"
        assert "tests/unit/test_records.py" in ranked

    def test_a_changed_test_comes_first(self, choice: ModuleType) -> None:
        changed = ["core/mam_core/codec.py", "tests/unit/test_cron.py"]
        assert choice.rank(changed)[0] == "tests/unit/test_cron.py"

    def test_a_changed_page_or_script_brings_the_tests_of_pages_or_packaging(
        self, choice: ModuleType
    ) -> None:
        assert all(path.startswith("tests/docs/") for path in choice.rank(["docs/events.md"]))
        assert "tests/packaging/test_gate.py" in choice.rank([".ci/setup.sh"])

    def test_the_choice_fits_in_a_minute_and_keeps_every_changed_test(
        self, choice: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        durations = tmp_path / "durations"
        monkeypatch.setattr(choice, "DURATIONS", durations)
        quick, slow, mine = "tests/unit/test_a.py", "tests/faults/test_b.py", "tests/cli/test_c.py"
        durations.write_text(json.dumps({quick: 1.0, slow: 1000.0, mine: 500.0}))
        assert choice.within_budget([slow, quick], []) == [quick]
        assert choice.within_budget([mine, quick], [mine]) == [mine]

    def test_without_git_it_says_what_to_do(
        self, choice: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(SystemExit, match=r"cannot run git \(.*\); name some tests"):
            choice.changed_files()


def test_repeat_names_what_fails_sometimes(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("pytest_plugins = ['tests.support.repeated']\n")
    (tmp_path / "test_it.py").write_text(
        "import itertools\n"
        "numbers = itertools.count()\n"
        "def test_good(): pass\n"
        "def test_flaky(): assert next(numbers) != 2\n"
    )
    without = ["-p", "no:cacheprovider", "-p", "no:libtmux"]  # an old one does not load
    command = [sys.executable, "-m", "pytest", "-q", *without, "--repeat", "5"]
    answer = subprocess.run(
        [*command, "--rootdir", tmp_path, "-c", "/dev/null", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 1
    assert "test_it.py::test_flaky: failed 1 of 5" in answer.stdout
    assert "test_good: failed" not in answer.stdout
    assert "9 passed" in answer.stdout
