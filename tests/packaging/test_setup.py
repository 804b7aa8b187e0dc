"""The set-up of a clone, when something is missing, broken or in the way.

Most of these have a Python that only pretends: it makes folders in the place of installing, so that
a whole set-up takes a moment. What it stands for is done really by the tests of a fresh clone.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.faults.small_disk import CannotMount, make_read_only, small_disk
from tests.packaging.test_project import ROOT
from tests.support.patience import eventually

#: The parts of a clone that a set-up looks at.
PARTS = [
    "mam",
    "test",
    ".ci/setup.sh",
    "pyproject.toml",
    "requirements.lock",
    "requirements-test.lock",
]
TOOLS = """
    awk bash cat cksum cmp cp dirname grep head id mkdir mv readlink rm sleep sort tail touch tr wc
"""

#: Answers what .ci/setup.sh asks of a Python, an installed one and a uv; $TROUBLE goes wrong.
PRETENDER = r"""#!/usr/bin/env bash
venv=$(dirname "$(dirname "$0")")
case "${0##*/} $*" in
    *"import ensurepip, venv"*)
        [[ $TROUBLE != old ]] || exit 1
        [[ $TROUBLE != no-venv ]] || { echo "venv is missing" >&2; exit 1; }
        echo "$0" ;;
    *fcntl* | *_mam_console.pth*) exec "REAL" "$@" ;;
    *-IV*) echo "Python 3.11.99" ;;
    *"-m venv"*)
        [[ $TROUBLE != full ]] || { echo "Error: [Errno 28] No space left on device" >&2; exit 1; }
        folder="${@: -1}"
        rm -rf "$folder"
        mkdir -p "$folder/bin" "$folder/lib/python3.11/site-packages"
        cp "$0" "$folder/bin/python" ;;
    *"import ensurepip, glob"*) echo pip ;;
    *"byte-code"*) ;;
    *"pip -q"*install*)
        if [[ $TROUBLE == hang ]]; then touch "$venv/hangs"; sleep 60; fi
        if [[ $TROUBLE == no-network ]]; then
            echo "WARNING: Retrying after connection broken by 'NewConnectionError'" >&2
            echo "ERROR: No matching distribution found for uv==1" >&2
            exit 1
        fi
        if [[ $TROUBLE == broken-package && -e $venv/bin/uv ]]; then
            printf 'ERROR: the archive is damaged\nhint: see above\n' >&2
            exit 1
        fi
        cp "$0" "$venv/bin/uv" ;;
    uv*sync*)
        [[ $TROUBLE != broken-package ]] || { echo "error: damaged" >&2; exit 2; }
        for name in textual paho; do
            mkdir -p "$venv/lib/python3.11/site-packages/$name"
            touch "$venv/lib/python3.11/site-packages/$name/__init__.py"
        done ;;
    uv*install*) touch "$venv/lib/python3.11/site-packages/_mam_console.pth" "$venv/bin/mam" ;;
    *compileall*) ;;
    "python -I $venv/bin/mam "*) echo "mam runs in $venv with ${*:3}" ;;
    *) echo "asked for: $*" >&2; exit 99 ;;
esac
"""


class Clone:
    """A clone, and a machine that has just what the scripts need."""

    def __init__(self, root: Path, machine: Path) -> None:
        self.root, self.machine = root, machine
        for name in PARTS:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        # Links to the system's programs have a folder of their own, in which nothing is written:
        # a program of the test's, written through a link, would replace the machine's.
        (machine / "system").mkdir(parents=True)
        for name in TOOLS.split():
            (machine / "system" / name).symlink_to(shutil.which(name) or name)
        (machine / "bin").mkdir()
        self.put("python3", PRETENDER.replace("REAL", sys.executable))
        self.put("tmux", "#!/bin/sh\n")

    def put(self, name: str, text: str) -> None:
        program = self.machine / "bin" / name
        program.write_text(text)
        program.chmod(0o755)

    def use_real_python(self) -> None:
        (self.machine / "bin/python3").unlink()
        (self.machine / "bin/python3").symlink_to(os.path.realpath(sys.executable))

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def site(self) -> Path:
        return self.venv / "lib/python3.11/site-packages"

    def environ(self, **more: str) -> dict[str, str]:
        home = {"HOME": str(self.machine), "PATH": f"{self.machine}/bin:{self.machine}/system"}
        home["TROUBLE"] = ""
        return {**home, "PYENV_ROOT": str(self.machine / "pyenv"), **more}

    def __call__(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words or [self.root / "mam", "list"],
            cwd=self.machine,
            env=self.environ(**more),
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=100,
        )

    def ask(self, program: str, **more: str) -> subprocess.CompletedProcess[str]:
        """What the functions of .ci/setup.sh say."""
        program = f'ROOT=$0; source "$0/.ci/setup.sh"; {program}'
        return self("bash", "-c", program, str(self.root), **more)

    def runs(self, **more: str) -> str:
        done = self(**more)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("mam runs in "), done.stdout
        assert done.stdout.endswith("with list\n")
        return done.stderr

    def fails(self, *words: str, **more: str) -> str:
        """The one sentence, after the lines about progress."""
        done = self(*words, **more)
        assert done.returncode == 1
        assert done.stdout == ""
        *before, last = done.stderr.splitlines()
        assert all(re.match(r"\w+: \d/\d ", line) for line in before), done.stderr
        assert "Traceback" not in last
        return last


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "a clone", tmp_path / "machine")


class TestTheFirstStart:
    def test_says_how_far_it_is_and_the_second_is_quiet(self, clone: Clone) -> None:
        told = clone.runs().splitlines()
        assert [line.split()[1] for line in told] == ["1/4", "2/4", "3/4", "4/4"]
        assert told[0] == f"mam: 1/4 making an environment with Python 3.11.99 in {clone.venv}"
        assert re.fullmatch(r"mam: 3/4 installing \d\d packages", told[2])
        assert clone.runs() == ""

    def test_an_update_says_its_two_steps(self, clone: Clone) -> None:
        clone.runs()
        with (clone.root / "requirements.lock").open("a") as lock:
            lock.write("# another\n")
        assert re.fullmatch(
            r"mam: 1/2 installing \d+ packages\nmam: 2/2 compiling byte code\n", clone.runs()
        )

    def test_a_verb_that_needs_tmux_looks_for_it_before_anything_is_made(
        self, clone: Clone
    ) -> None:
        (clone.machine / "bin/tmux").unlink()
        clone.put("id", "#!/bin/sh\necho 1000\n")
        told = clone.fails(str(clone.root / "mam"), "spawn")
        assert told.startswith("mam: this needs tmux; please install it (Debian: apt-get install")
        assert not clone.venv.exists()
        assert clone.runs()


class TestSomethingIsMissing:
    def test_no_python(self, clone: Clone) -> None:
        done = clone.ask("candidates() { echo python3.99; }; find_python")
        assert done.returncode == 1
        assert "Python 3.11 or newer was not found; please install it (Debian: " in done.stderr

    def test_python_without_venv(self, clone: Clone) -> None:
        done = clone.ask("candidates() { echo python3; }; find_python", TROUBLE="no-venv")
        assert done.returncode == 1
        assert "the venv module of python3 is missing; please install it (Debian: " in done.stderr

    def test_a_python_that_is_not_on_the_path_but_with_pyenv(self, clone: Clone) -> None:
        place = clone.machine / "pyenv/versions/3.99.1/bin"
        place.mkdir(parents=True)
        shutil.copy(clone.machine / "bin/python3", place / "python")
        done = clone.ask("PYTHON_VERSION=3.99; find_python")
        assert done.stdout.strip() == str(place / "python"), done.stderr

    def test_the_python_that_the_gate_was_asked_for(self, clone: Clone) -> None:
        told = clone.fails(str(clone.root / "test"), "--python", "3.99")
        assert told.startswith("test: Python 3.99 was not found; please install it ")
        assert clone.fails(str(clone.root / "test"), "--python") == (
            "test: --python needs a version such as 3.13."
        )
        assert not list(clone.root.glob(".venv*/bin"))

    def test_no_network(self, clone: Clone) -> None:
        told = clone.fails(TROUBLE="no-network")
        assert told == (
            "mam: could not fetch uv: the package index cannot be reached. "
            "Check the network or the proxy and start again."
        )
        assert clone.runs()

    def test_a_package_that_cannot_be_installed(self, clone: Clone) -> None:
        *_, before, told = clone(TROUBLE="broken-package").stderr.splitlines()
        assert before == "mam: uv could not do it; trying pip, which may take a minute"
        assert told == (
            "mam: could not install the packages: "
            "ERROR: the archive is damaged (start again to retry)"
        )
        assert clone.runs()


class TestSomethingIsBroken:
    def test_the_interpreter_is_gone(self, clone: Clone) -> None:
        clone.runs()
        (clone.venv / "bin/python").unlink()
        (clone.venv / "bin/python").symlink_to("/nowhere/python3.11")
        assert "1/4 making" in clone.runs()

    def test_half_of_the_packages_are_gone(self, clone: Clone) -> None:
        clone.runs()
        shutil.rmtree(clone.site / "textual")
        assert "1/4 making" in clone.runs()
        assert (clone.site / "textual").is_dir()
        assert clone.runs() == ""

    @pytest.mark.parametrize("name", ["bin/mam", "lib/python3.11/site-packages/_mam_console.pth"])
    def test_the_way_to_our_code_is_gone(self, clone: Clone, name: str) -> None:
        clone.runs()
        (clone.venv / name).unlink()
        assert "1/4 making" in clone.runs()

    def test_what_a_person_added_is_no_damage(self, clone: Clone) -> None:
        clone.runs()
        (clone.site / "ipython").mkdir()
        assert clone.runs() == ""

    def test_a_file_is_in_its_place(self, clone: Clone) -> None:
        clone.venv.write_text("something of the person's")
        told = clone.fails()
        assert told == (
            f"mam: {clone.venv} is a file, and a folder is needed there; "
            "please remove it and start again."
        )
        clone.venv.unlink()
        assert clone.runs()

    def test_the_clone_was_moved(self, clone: Clone) -> None:
        clone.runs()
        clone.root = clone.root.rename(clone.root.with_name("moved"))
        assert f"1/4 making an environment with Python 3.11.99 in {clone.venv}" in clone.runs()

    def test_the_way_to_our_code_has_an_umlaut_and_the_locale_has_none(
        self, tmp_path: Path
    ) -> None:
        """Python 3.11 would read it as ASCII, fail, and not start."""
        clone = Clone(tmp_path / "mein Büro", tmp_path / "machine")
        clone.use_real_python()
        (clone.root / "code").mkdir()
        (clone.root / "code/probe.py").touch()
        made = clone.ask(
            'python=python3; python3 -m venv --without-pip "$VENV"\n'
            'for site in "$VENV"/lib/python*/site-packages; do\n'
            '    printf "%s\\n" "$ROOT/code" >"$site/_mam_console.pth"\n'
            "done\n"
            "paths_in_ascii && keep_byte_code_here"
        )
        assert made.returncode == 0, made.stderr
        program = "import probe; print(ascii(probe.__cached__))"
        for locale in ("C", "C.UTF-8"):
            told = clone(str(clone.venv / "bin/python"), "-c", program, LC_ALL=locale)
            assert told.stderr == ""
            assert "mein B\\xfcro/.venv/byte-code/" in told.stdout

    def test_a_set_up_is_killed(self, clone: Clone) -> None:
        start = subprocess.Popen(
            [clone.root / "mam", "list"],
            cwd=clone.machine,
            env=clone.environ(TROUBLE="hang"),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        eventually((clone.venv / "hangs").exists, "it is fetching")
        os.killpg(start.pid, signal.SIGKILL)
        start.wait()
        assert "1/4 making" in clone.runs()


class TestADiskThatIsFull:
    def test_is_one_sentence(self, clone: Clone) -> None:
        told = clone.fails(TROUBLE="full")
        assert told == (
            f"mam: could not make {clone.venv}: the disk is full. Free some space and start again."
        )
        assert clone.runs()

    def test_also_with_a_real_python(self, tmp_path: Path) -> None:
        try:
            with small_disk("size=1m") as disk:
                clone = Clone(disk / "clone", tmp_path / "machine")
                clone.use_real_python()
                with (disk / "fill").open("wb", buffering=0) as filler, suppress(OSError):
                    while filler.write(bytes(4096)):
                        pass
                told = clone.fails()
                assert told == (
                    f"mam: could not make {clone.venv}: the disk is full. Free some space "
                    "and start again."
                )
        except CannotMount as why:
            pytest.skip(str(why))


class TestAnIndexThatIsOutOfReach:
    def test_is_one_sentence_with_a_real_python(self, clone: Clone) -> None:
        clone.use_real_python()
        nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "1"}
        told = clone.fails(PIP_CONFIG_FILE=os.devnull, **nowhere)
        assert "the package index cannot be reached" in told


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Clone]:
    """A clone that cannot be written to; for root that takes a mount."""
    if os.geteuid() != 0:
        clone = Clone(tmp_path / "clone", tmp_path / "machine")
        clone.root.chmod(0o555)
        yield clone
        clone.root.chmod(0o755)
        return
    try:
        with small_disk("size=1m") as disk:
            clone = Clone(disk / "clone", tmp_path / "machine")
            make_read_only(disk)
            yield clone
    except CannotMount as why:
        pytest.skip(str(why))


class TestACloneThatCannotBeWrittenTo:
    def test_has_its_environment_in_the_persons_cache_folder(self, closed: Clone) -> None:
        assert "1/4 making" in closed.runs()
        (venv,) = (closed.machine / ".cache/mam").glob("venv-*/")
        assert venv.is_dir()
        assert (closed.machine / ".cache/mam").stat().st_mode & 0o777 == 0o700
        assert f"mam runs in {venv} " in closed().stdout
        assert closed.runs() == ""
        assert not closed.venv.exists()

    def test_or_where_the_person_says(self, closed: Clone) -> None:
        place = closed.machine / "mine"
        closed.runs(XDG_CACHE_HOME=str(place))
        assert len(list((place / "mam").glob("venv-*/"))) == 1

    def test_without_any_place_it_says_so(self, closed: Clone) -> None:
        (closed.machine / ".cache").write_text("in the way")
        told = closed.fails()
        assert told.endswith("please set MAM_VENV to a new folder of your own and start again.")
        place = closed.machine / "mine"
        closed.runs(MAM_VENV=str(place))
        assert place.is_dir()

    def test_uses_one_that_is_there_and_ready(self, tmp_path: Path) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root can close a folder to itself, by a mount")
        try:
            with small_disk("size=2m") as disk:
                clone = Clone(disk / "clone", tmp_path / "machine")
                clone.runs()
                make_read_only(disk)
                assert clone.runs() == ""
                assert not (clone.machine / ".cache").exists()
        except CannotMount as why:
            pytest.skip(str(why))
