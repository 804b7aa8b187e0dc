"""What a stranger installs: the wheel holds what it should, and works with nothing else around.

"Nothing else" is a Python without its site folder: no clone, no package of anybody's. It is also
installed by the tools that people use. The long forms, which fetch every package anew, are release
tests: pip takes five seconds of processor time, pipx nine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

from mam_core.cli.completion import SCRIPTS
from mam_core.cli.main import VERBS
from mam_core.cli.manpage import man_page
from mam_core.version import __version__ as VERSION
from tests.packaging.test_project import ROOT
from tests.support.clinic import Terminal
from tests.support.terminal import terminal

# One build for all of these, in one process.
pytestmark = pytest.mark.xdist_group("wheel")

#: How the files of this distribution begin; the command and the imports are named otherwise.
NAME = f"mam_console-{VERSION}"
DATA = f"{NAME}.data/data/share"
SHARED = {
    f"{DATA}/man/man1/mam.1",
    f"{DATA}/bash-completion/completions/mam",
    f"{DATA}/zsh/site-functions/_mam",
    f"{DATA}/fish/vendor_completions.d/mam.fish",
}
#: Beside the code: statements of the stores, rules of the screens, pages for people.
ENDINGS = {".py", ".typed", ".sql", ".toml", ".tcss", ".md", ".html", ".css", ".js", ".json"}
#: All that is no code, compressed. Recordings or pictures would be ten times as much.
MOST_DATA = 250_000


def run(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=100,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    hatch = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist"]
    done = run(*hatch, "-d", folder, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


class Bare:
    """``mam`` as it is unpacked, by a Python without any package; every warning is an error."""

    def __init__(self, code: Path, folder: Path) -> None:
        self.code, self.folder = code, folder

    def __call__(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-S", "-P", "-W", "error", "-m", "mam_core", *words]
        path = os.pathsep.join([env.pop("PYTHONPATH", ""), str(self.code)]).strip(os.pathsep)
        return run(*command, cwd=self.folder, PYTHONPATH=path, **env)

    def ok(self, *words: str, **env: str) -> str:
        done = self(*words, **env)
        assert done.returncode == 0, done.stderr
        assert "Warning" not in done.stderr
        return done.stdout


@pytest.fixture
def bare(unpacked: Path, tmp_path: Path) -> Bare:
    folder = tmp_path / "project"
    folder.mkdir()
    return Bare(unpacked, folder)


@pytest.fixture
def worker(unpacked: Path, tmp_path: Path) -> Bare:
    """A host that has the worker's part alone."""
    code = tmp_path / "code"
    shutil.copytree(unpacked / "mam_core", code / "mam_core")
    folder = tmp_path / "project"
    folder.mkdir()
    return Bare(code, folder)


class TestTheWheel:
    def test_holds_the_code_its_data_and_nothing_else(self, wheel: Path) -> None:
        with zipfile.ZipFile(wheel) as archive:
            infos = archive.infolist()
        names = {info.filename for info in infos}
        tops = {name.split("/")[0] for name in names}
        assert tops == {"mam_core", "mam_tui", f"{NAME}.dist-info", f"{NAME}.data"}
        assert {name for name in names if name.startswith(f"{NAME}.data")} == SHARED
        assert {"mam_core/py.typed", "mam_tui/py.typed"} <= names
        code = {name for name in names if name.startswith(("mam_core/", "mam_tui/"))}
        assert {os.path.splitext(name)[1] for name in code} <= ENDINGS
        assert {info.compress_type for info in infos} == {zipfile.ZIP_DEFLATED}
        data = [info.compress_size for info in infos if not info.filename.endswith(".py")]
        assert sum(data) < MOST_DATA

    def test_holds_every_page_of_the_manual(self, unpacked: Path) -> None:
        pages = {page.name for page in (ROOT / "docs").glob("*.md")}
        assert {page.name for page in (unpacked / "mam_core/docs").glob("*.md")} == pages

    def test_holds_the_completions_and_the_man_page_of_this_code(self, unpacked: Path) -> None:
        share = unpacked / DATA
        assert (share / "man/man1/mam.1").read_text() == man_page()
        assert (share / "bash-completion/completions/mam").read_text() == SCRIPTS["bash"] + "\n"
        assert (share / "zsh/site-functions/_mam").read_text().startswith("#compdef mam\n")

    def test_publishes_no_tools_of_ours_and_no_address(self, unpacked: Path) -> None:
        about = message_from_string((unpacked / f"{NAME}.dist-info/METADATA").read_text())
        assert about["Name"] == "mam-console"
        assert about.get_all("Provides-Extra") == ["postgres"]
        assert about.get_all("Project-URL") is None
        asked = about.get_all("Requires-Dist") or []
        assert not [one for one in asked if re.match(r"(?:hatchling|uv|pytest|mypy)\b", one)]
        assert not [one for one in asked if "==" in one.partition(";")[0]], "a pin is for the lock"

    def test_leaves_nothing_behind_when_it_is_built(self, built: Path) -> None:
        assert sorted(path.suffix for path in built.iterdir()) == [".gz", ".whl"]


class TestTheSource:
    def test_can_be_built_from(self, built: Path, tmp_path: Path) -> None:
        (archive,) = built.glob("*.tar.gz")
        with tarfile.open(archive) as source:
            names = {name.partition("/")[2] for name in source.getnames()}
        needed = {".ci/build_hook.py", "pyproject.toml", "LICENSE", "README.md", "test", "mam"}
        assert needed <= names
        assert "docs/operating.md" in names
        assert not [name for name in names if name.startswith(("tests/samples", "screenshots"))]

    @pytest.mark.release
    def test_gives_the_same_wheel(self, built: Path, wheel: Path, tmp_path: Path) -> None:
        (archive,) = built.glob("*.tar.gz")
        with tarfile.open(archive) as source:
            source.extractall(tmp_path, filter="data")
        hatch = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d"]
        done = run(*hatch, tmp_path, cwd=tmp_path / NAME)
        assert done.returncode == 0, done.stderr
        with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(tmp_path / wheel.name) as other:
            assert {i.filename: i.CRC for i in one.infolist()} == {
                i.filename: i.CRC for i in other.infolist()
            }


class TestTheManPage:
    def test_names_every_verb_and_option(self) -> None:
        text = man_page().replace("\\-", "-")
        for verb in VERBS:
            assert f"\n.SS {verb}\n" in text
        assert "\\fB--agent-session\\fR, \\fB--label\\fR \\fILABEL\\fR" in text
        assert text.isascii()

    @pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
    def test_is_sound(self) -> None:
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-z"],
            input=man_page(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


class TestAWorkersHost:
    def test_registers_runs_and_tells_without_any_package(self, worker: Bare) -> None:
        worker.ok("init", "--yes", "--agent", "shell")
        job = worker.ok("register", "--prompt", "echo hi > a.txt", "--artifact", "a.txt").strip()
        told = worker("work", "--agent-session", "tmux:shell", "--agents", "shell", "--drain")
        assert told.returncode == 0, told.stderr
        assert (worker.folder / "a.txt").read_text() == "hi\n"
        assert worker.ok("status", job) == "completed\n"
        assert "attempt_ended" in worker.ok("logs", job)
        assert worker.ok("help", "operating").startswith("Operating guide\n")
        assert "there is no console; every verb works" in worker.ok("doctor")

    def test_the_console_is_one_clear_sentence(
        self, worker: Bare, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        done = worker()
        assert done.returncode == 2
        assert re.fullmatch(r"mam: [^\n]+\n", done.stderr)
        monkeypatch.setenv("PYTHONPATH", str(worker.code))
        person = Terminal(cwd=worker.folder, python=("-S", "-P"))
        person.until(lambda shown: "has the worker's part alone" in shown, "a sentence")
        assert person.code() == 1

    def test_so_it_is_where_only_textual_is_missing(
        self, bare: Bare, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PYTHONPATH", str(bare.code))
        person = Terminal(cwd=bare.folder, python=("-S", "-P"))
        person.until(lambda shown: "needs the package textual" in shown, "a sentence")
        assert person.code() == 1


class TestStrangeSurroundings:
    def test_a_projects_own_core_and_tui_do_not_matter(self, bare: Bare) -> None:
        for name in ("core", "tui", "records", "config", "operations"):
            (bare.folder / name).mkdir()
            (bare.folder / name / "__init__.py").write_text("raise SystemExit('the wrong one')\n")
        theirs = str(bare.folder)
        assert VERSION in bare.ok("--version", PYTHONPATH=theirs)
        given = ("--agent", "shell", "--agent-session", "l", "--prompt", "echo from the project")
        job = bare.ok("register", *given, PYTHONPATH=theirs).strip()
        bare.ok("work", "--agent-session", "l", "--agents", "shell", "--drain", PYTHONPATH=theirs)
        assert bare.ok("status", job, PYTHONPATH=theirs) == "completed\n"

    def test_with_all_packages_they_warn_of_nothing_either(self, tmp_path: Path) -> None:
        strict = [sys.executable, "-W", "error", "-X", "dev", "-P", "-m", "mam_core"]
        for words in (["submit", "--agent", "shell", "--prompt", "echo hi"], ["nodes"], ["doctor"]):
            done = run(*strict, *words, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            assert "Warning" not in done.stderr

    @pytest.mark.parametrize(
        "words",
        [
            "--help",
            "--version",
            "config",
            "config --schema",
            "list",
            "list --json",
            "sessions",
            "attention",
            "nodes",
            "completion bash",
            "help configuration",
            "broker --status",
            "logs --list",
        ],
    )
    def test_common_verbs_warn_of_nothing(self, bare: Bare, words: str) -> None:
        done = bare(*words.split())
        assert done.returncode in (0, 1), done.stderr
        assert "Warning" not in done.stderr
        assert "mistake in mam" not in done.stderr


@pytest.fixture(scope="module")
def home(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the locked packages and the wheel, and no more."""
    place = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    uv = [str(Path(sys.executable).parent / "uv"), "-q", "--system-certs", "pip", "install"]
    uv += ["--python", str(place / "bin/python")]
    lock = ROOT / "requirements.lock"
    for more in (["--require-hashes", "-r", str(lock)], ["--no-deps", str(wheel)]):
        done = subprocess.run([*uv, *more], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return place


@pytest.mark.release
@pytest.mark.timeout(600)
class TestInstalled:
    def test_it_runs_a_job_and_brings_its_manual(self, home: Path, tmp_path: Path) -> None:
        mam = home / "bin/mam"
        assert str(home) in run(mam, "--version", cwd=tmp_path).stdout
        done = run(mam, "submit", "--agent", "shell", "--prompt", "echo hi", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert run(mam, "help", "formats", cwd=tmp_path).stdout.startswith("File formats")
        assert (home / "share/man/man1/mam.1").exists()
        assert (home / "share/bash-completion/completions/mam").exists()

    def test_it_opens_the_console(self, home: Path, tmp_path: Path) -> None:
        with terminal(tmp_path) as shown:
            shown.run(f"{home}/bin/mam")
            shown.until("board")
            shown.press("q")


def works(mam: Path, home: Path, project: Path) -> None:
    """The command answers from `home`, in an empty folder and with other code in its way."""
    project.mkdir()
    told = run(mam, "--version", cwd=project)
    assert told.stdout == f"mam {VERSION} ({next(home.rglob('mam_core/version.py')).parent})\n"
    listed = run(mam, "list", cwd=project)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert list(project.iterdir()) == []
    for name in ("textual", "paho", "argparse"):
        (project / f"{name}.py").write_text("raise SystemExit('the wrong one')\n")
    disturbed = run(mam, "list", cwd=project, PYTHONPATH=str(project))
    assert (disturbed.returncode, disturbed.stdout, disturbed.stderr) == (0, listed.stdout, "")


class TestInstallers:
    """uv takes the packages from its cache, where the set-up of the environment has put them."""

    UV = str(Path(sys.executable).parent / "uv")
    LOCKED = ("-c", str(ROOT / "requirements.lock"))

    def ok(self, *command: str | Path, cwd: Path, **env: str) -> str:
        done = run(*command, cwd=cwd, **env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def uv(self, *words: str | Path, cwd: Path, **env: str) -> str:
        """Offline; where its cache was cleared in the meantime, from the index."""
        done = run(self.UV, "-q", "--offline", *words, cwd=cwd, **env)
        if done.returncode == 0:
            return done.stdout
        return self.ok(self.UV, "-q", "--system-certs", *words, cwd=cwd, **env)

    def test_uv_tool_install(self, wheel: Path, tmp_path: Path) -> None:
        place = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
        self.uv("tool", "install", *self.LOCKED, wheel, cwd=tmp_path, **place)
        works(tmp_path / "bin/mam", tmp_path / "tools", tmp_path / "project")
        assert "console" in self.ok(tmp_path / "bin/mam", "--help", cwd=tmp_path)

    def test_uvx(self, wheel: Path, tmp_path: Path) -> None:
        words = ("tool", "run", *self.LOCKED, "--from", wheel, "mam", "--version")
        assert self.uv(*words, cwd=tmp_path).startswith(f"mam {VERSION} (")

    def test_pip_install_without_other_packages(self, wheel: Path, tmp_path: Path) -> None:
        """As docs/operating.md says of a host that only runs jobs."""
        home = tmp_path / "venv"
        self.ok(sys.executable, "-m", "venv", "--without-pip", home, cwd=tmp_path)
        pip = (home / "bin/python", "-I", _bundled_pip(), "-q", "--disable-pip-version-check")
        self.ok(*pip, "install", "--no-index", "--no-deps", wheel, cwd=tmp_path)
        works(home / "bin/mam", home, tmp_path / "project")

    @pytest.mark.release
    @pytest.mark.timeout(600)
    def test_pip_install(self, wheel: Path, tmp_path: Path) -> None:
        home = tmp_path / "venv"
        self.ok(sys.executable, "-m", "venv", home, cwd=tmp_path)
        self.ok(home / "bin/pip", "-q", "install", f"{wheel}[postgres]", cwd=tmp_path)
        works(home / "bin/mam", home, tmp_path / "project")

    @pytest.mark.release
    @pytest.mark.timeout(600)
    def test_pipx_install(self, wheel: Path, tmp_path: Path) -> None:
        place = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
        place["PIPX_MAN_DIR"] = str(tmp_path / "man")
        pipx = [self.UV, "-q", "--system-certs", "tool", "run", "pipx"]
        self.ok(*pipx, "install", wheel, cwd=tmp_path, **place)
        works(tmp_path / "bin/mam", tmp_path / "pipx", tmp_path / "project")
        assert (tmp_path / "man/man1/mam.1").exists()


def _bundled_pip() -> Path:
    """The pip that this Python brings along, which can be run from its archive."""
    ask = "ROOT=$0; source .ci/setup.sh; VENV=$1; bundled_pip"
    return Path(run("bash", "-c", ask, ROOT, sys.prefix, cwd=ROOT).stdout.strip())
