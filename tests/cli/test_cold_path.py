"""Agents call mam once per event, so a start must be light: what it imports is counted here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Mam, Process, execute

HEAVY = {
    "asyncio",
    "concurrent",
    "email",
    "http",
    "libtmux",
    "logging",
    "mam_tui",
    "multiprocessing",
    "paho",
    "psycopg",
    "random",
    "rich",
    "shutil",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
    "textual",
    "tomllib",
    "urllib",
    "watchfiles",
}

PROGRAM = """
import sys
before = set(sys.modules)
from mam_core.cli.main import main
code = main(sys.argv[1:])
print(*sorted(set(sys.modules) - before), sep="\\n", file=sys.stderr)
sys.exit(code)
"""


def imported(folder: Path, *words: str) -> set[str]:
    # Without site, so that nothing is there but what mam itself asks for.
    root = Path(sys.modules["mam_core"].__path__[0]).parent
    start = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(root)!r})"]
    start[-1] += PROGRAM
    answer = execute([*start, *words], cwd=folder)
    assert answer.returncode in (0, 2, 3), answer.stderr
    return set(answer.stderr.splitlines())


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["pick", "--agent-session", "tmux:a"],
        ["pick", "--agent-session", "tmux:nobody"],
        ["status", "JOB"],
        ["heartbeat", "JOB"],
        ["register", "--prompt", "p", "--agent", "a", "--agent-session", "l"],
        ["list"],
        ["logs", "JOB"],
    ],
    ids=" ".join,
)
def test_a_start_imports_nothing_heavy(mam: Mam, words: list[str]) -> None:
    mam.register("one")
    mam.register("two")
    job_id = mam.ok("pick", "--label", "tmux:a").out.strip()
    loaded = imported(mam.folder, *(job_id if word == "JOB" else word for word in words))
    assert {name.partition(".")[0] for name in loaded} & HEAVY == set()


def test_help_and_version_import_no_verb_and_no_registry(mam: Mam) -> None:
    for words in (["--help"], ["--version"]):
        ours = {name for name in imported(mam.folder, *words) if name.startswith("mam_core.")}
        assert ours <= {
            "mam_core.cli",
            "mam_core.cli.main",
            "mam_core.cli.repeats",
            "mam_core.cli.terminal",
            "mam_core.cli.usage",
            "mam_core.errors",
            "mam_core.safe_text",
            "mam_core.version",
        }


def test_a_verb_imports_no_other_verb(mam: Mam) -> None:
    loaded = imported(mam.folder, "pick", "--agent-session", "tmux:a")
    verbs = {name for name in loaded if name.startswith(("mam_core.cli.", "mam_core.operations."))}
    assert verbs == {
        "mam_core.cli.context",
        "mam_core.cli.main",
        "mam_core.cli.parser",
        "mam_core.cli.pick",
        "mam_core.cli.repeats",
        "mam_core.cli.terminal",
        "mam_core.cli.usage",
        "mam_core.operations.pick",
    }


def test_a_thousand_jobs_are_one_process(mam: Mam, process: Callable[..., Process]) -> None:
    """N25: one call, one lock"""
    lines = "".join(f'{{"prompt": "part {n}"}}\n' for n in range(1000))
    answer = process(
        "register", "--bulk", "-", "--agent", "a", "--label", "l", stdin=None, input=lines
    )
    assert answer.returncode == 0, answer.stderr
    assert len(set(answer.stdout.split())) == 1000
    assert len(mam.ok("list", "--json").json) == 1000


#: `logging` is imported for the first time while the finders are asked for another module, as a
#: second thread does between two finders.
_MEANWHILE = """
import sys
from mam_core.cli.terminal import hear_warnings


class Meanwhile:
    def find_spec(self, name, path=None, target=None):
        if name == "colorsys":
            import logging


hear_warnings()
sys.meta_path.insert(len(sys.meta_path) - 1, Meanwhile())  # before the one that knows the files
import colorsys

assert sys.modules["logging"].getLogger("mam").handlers
"""


def test_the_first_warning_takes_no_module_from_another_thread(tmp_path: Path) -> None:
    """What has to be done for it is done while other threads import, too."""
    answer = execute([sys.executable, "-c", _MEANWHILE], cwd=tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")
