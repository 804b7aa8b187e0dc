"""A repository that names programs of its own: none runs when mam uses git on it.

Each kind is first shown to be real: a person's own git springs the trap.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from mam_core import worktrees
from mam_core.git import GitFailed
from mam_core.git_repository import Deadline, Repository
from mam_core.operations.diff import diff
from mam_core.work.git_snapshot import take
from mam_core.work.git_state import git_state
from tests.support.repositories import git, new_repository, private_git
from tests.support.working import Workshop, workshop

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

#: More than is read of a file of settings.
PADDING = "# padding\n" * 120_000
HOOKS = (
    *("post-checkout", "post-index-change", "reference-transaction", "pre-commit", "commit-msg"),
    *("prepare-commit-msg", "post-commit"),
)


class Trap(NamedTuple):
    """A program that notes that it ran."""

    path: Path
    log: Path

    @property
    def runs(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    path, log = tmp_path / "trap", tmp_path / "runs"
    path.write_text(f'#!/bin/sh\necho "$0 $*" >>{log}\n[ -t 0 ] || cat\n')
    path.chmod(0o755)
    return Trap(path, log)


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    private_git(monkeypatch, tmp_path)
    return new_repository(tmp_path / "repo", **{"b.txt": "b\n"})


def filters(trap: Trap, before: str = "") -> str:
    """Settings that name a filter of each sort; ``required`` makes git give up without it."""
    return (
        f'{before}[filter "evil.name=x"]\n\tclean = {trap.path}\n\tsmudge = {trap.path}\n'
        f'\trequired\n[filter "long"]\n\tprocess = {trap.path}\n'
    )


def with_attributes(
    repo: Path, attributes: str = "*.txt filter=evil.name=x\n*.p filter=long\n"
) -> None:
    (repo / ".gitattributes").write_text(attributes)
    (repo / "raw.p").write_text("raw\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "attributes")


def append(repo: Path, settings: str) -> None:
    with (repo / ".git" / "config").open("a") as file:
        file.write(settings)


def plain_filter(repo: Path, trap: Trap) -> None:
    with_attributes(repo)
    append(repo, filters(trap))


def padded_filter(repo: Path, trap: Trap) -> None:
    with_attributes(repo)
    append(repo, filters(trap, PADDING))


def included_filter(repo: Path, trap: Trap) -> None:
    with_attributes(repo)
    (repo / ".git" / "more").write_text(filters(trap))
    append(repo, '[include]\n\tpath = more\n[IncludeIf "onbranch:**"]\n\tpath = more\n')


def filter_of_the_worktree(repo: Path, trap: Trap) -> None:
    with_attributes(repo)
    git(repo, "config", "extensions.worktreeConfig", "true")
    (repo / ".git" / "config.worktree").write_text(filters(trap))


def filter_by_info_attributes(repo: Path, trap: Trap) -> None:
    (repo / ".git" / "info").mkdir(exist_ok=True)
    (repo / ".git" / "info" / "attributes").write_text("* filter=evil.name=x\n")
    append(repo, filters(trap))


def split_over_lines(repo: Path, trap: Trap) -> None:
    """Written so that only git itself would read a filter in it."""
    with_attributes(repo)
    append(repo, f'[core] ; [x]\n\teol = \\\nlf\n[FILTER "evil.name=x"] ClEaN=\\\n"{trap.path}"\n')


def hooks(repo: Path, trap: Trap) -> None:
    for name in HOOKS:
        shutil.copy(trap.path, repo / ".git" / "hooks" / name)


def hooks_elsewhere(repo: Path, trap: Trap) -> None:
    (repo / "hooks").mkdir()
    for name in HOOKS:
        shutil.copy(trap.path, repo / "hooks" / name)
    append(repo, f"[core]\n\thooksPath = {repo}/hooks\n")


def hooks_in_the_settings(repo: Path, trap: Trap) -> None:
    """As newer versions of git know them."""
    for name in HOOKS:
        append(repo, f'[hook "{name}"]\n\tcommand = {trap.path}\n\tevent = {name}\n')


def file_system_monitor(repo: Path, trap: Trap) -> None:
    append(repo, f"[core]\n\tfsmonitor = {trap.path}\n\tfsmonitorHookVersion = 2\n")


def diff_programs(repo: Path, trap: Trap) -> None:
    with_attributes(repo, "*.txt diff=evil\n*.p diff=text\n")
    append(
        repo,
        f'[diff]\n\texternal = {trap.path}\n[diff "evil"]\n\tcommand = {trap.path}\n'
        f'[diff "text"]\n\ttextconv = {trap.path}\n',
    )


def aliases_pagers_and_editors(repo: Path, trap: Trap) -> None:
    words = ("status", "add", "diff", "log", "worktree", "ls-files")
    append(repo, "[alias]\n" + "".join(f"\t{word} = !{trap.path}\n" for word in (*words, "st")))
    append(repo, "[pager]\n" + "".join(f"\t{word} = {trap.path}\n" for word in words))
    append(repo, f"[core]\n\tpager = {trap.path}\n\teditor = {trap.path}\n")


def signing_programs(repo: Path, trap: Trap) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "unsigned")
    signed = "tree {}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\ngpgsig {}\n\nsigned\n"
    signature = "-----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----"
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    made = subprocess.run(
        ["git", "-C", repo, "hash-object", "-t", "commit", "-w", "--stdin"],
        input=signed.format(tree, signature).encode(),
        capture_output=True,
        check=True,
    )
    git(repo, "reset", "-q", "--hard", made.stdout.decode().strip())
    append(
        repo,
        f"[gpg]\n\tprogram = {trap.path}\n[log]\n\tshowSignature = true\n"
        f"[commit]\n\tgpgSign = true\n[user]\n\tsigningKey = x\n",
    )


def what_fetches(repo: Path, trap: Trap) -> None:
    """A missing object that a remote has promised: git would fetch it, by any program."""
    (repo / "gone.txt").write_text("gone\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "gone")
    name = git(repo, "rev-parse", "HEAD:gone.txt")
    (repo / ".git" / "objects" / name[:2] / name[2:]).unlink()
    git(repo, "update-index", "--skip-worktree", "gone.txt")
    (repo / "gone.txt").unlink()
    git(repo, "config", "core.repositoryFormatVersion", "1")
    program = f'"{trap.path} </dev/null; false"'
    append(
        repo,
        f'[extensions]\n\tpartialClone = far\n[remote "far"]\n\turl = far.example.invalid:x\n'
        f"\tpromisor = true\n\tuploadpack = {program}\n"
        f"[core]\n\tsshCommand = {program}\n\taskPass = {trap.path}\n\tgitProxy = {trap.path}\n"
        f"\talternateRefsCommand = {trap.path}\n[credential]\n\thelper = {trap.path}\n"
        f"[protocol]\n\tallow = always\n[ssh]\n\tvariant = simple\n",
    )


def submodule(repo: Path, trap: Trap) -> None:
    """It has settings of its own, which git reads when it looks for changes in it."""
    inner = new_repository(repo.parent / "inner", **{".gitattributes": "* filter=evil.name=x\n"})
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    git(repo, "commit", "-qm", "submodule")
    with (repo / ".git" / "modules" / "sub" / "config").open("a") as file:
        file.write(filters(trap))
    (repo / "sub" / "a.txt").write_text("changed\n")


KINDS = (
    *(plain_filter, padded_filter, included_filter, filter_of_the_worktree),
    *(filter_by_info_attributes, split_over_lines, hooks, hooks_elsewhere, hooks_in_the_settings),
    *(file_system_monitor, diff_programs, aliases_pagers_and_editors, signing_programs),
    *(what_fetches, submodule),
)
#: What only some versions of git do.
NOT_EVERYWHERE = {hooks_in_the_settings}


def as_a_person_would(repo: Path) -> None:
    for words in (
        *(("status",), ("st",), ("add", "--update"), ("diff", "HEAD"), ("log", "-p", "-2")),
        *(
            ("cat-file", "-p", "HEAD:gone.txt"),
            ("commit", "-qm", "more"),
            ("checkout", "-qf", "HEAD", "--", "."),
        ),
    ):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", repo, *words],
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )


@pytest.mark.parametrize("plant", KINDS, ids=lambda kind: kind.__name__)
def test_no_program_of_the_repository_runs(
    repo: Path, trap: Trap, plant: Callable[[Path, Trap], None]
) -> None:
    plant(repo, trap)
    kept = repo.parent / "kept"
    shutil.copytree(repo, kept, symlinks=True)
    (repo / "a.txt").write_text("changed\n")
    as_a_person_would(repo)
    assert trap.runs or plant in NOT_EVERYWHERE, "the trap is none"
    trap.log.unlink(missing_ok=True)
    shutil.rmtree(repo)
    kept.rename(repo)

    for name in ("a.txt", "raw.p", "new.txt"):
        (repo / name).write_text("changed\n")
    registry = str(repo.parent / "place" / ".mam" / "jobs")
    state = git_state(str(repo), "job/1/start")
    assert state is not None
    assert (state.dirty, state.trouble) == (True, "")
    compared = Repository.of(str(repo))
    assert compared is not None
    patch = ("diff", "--no-ext-diff", "--no-textconv", str(state.commit), str(state.tree))
    assert b"+changed" in compared.ask(*patch, deadline=Deadline(60))
    compared.ask("log", "-z", "--format=%H", "-n5", str(state.commit), deadline=Deadline(60))
    try:
        made = worktrees.planned(registry, "one", str(repo))
        assert worktrees.create(made)
    except GitFailed:
        assert plant is what_fetches  # a file of the commit is not here
    else:
        assert Path(made.path, "a.txt").read_text() == "one\n"
        clean = git_state(made.path)
        assert clean is not None
        assert (clean.commit, clean.dirty) == (state.commit, False)
        Path(made.path, "a.txt").write_text("changed\n")
        assert "1 uncommitted change" in worktrees.losses(made)
        Path(made.path, "a.txt").write_text("one\n")
        worktrees.remove(made)
    assert trap.runs == 0


def test_no_program_that_the_environment_names_runs(
    repo: Path, trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_attributes(repo)
    named = ("EXTERNAL_DIFF", "SSH", "SSH_COMMAND", "PAGER", "EDITOR", "ASKPASS", "PROXY_COMMAND")
    for name in named:
        monkeypatch.setenv(f"GIT_{name}", str(trap.path))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'filter.long.process={trap.path}'")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "filter.evil.name=x.clean")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(trap.path))
    for name in ("a.txt", "raw.p"):
        (repo / name).write_text("changed\n")
    state = git_state(str(repo), "job/1/start")
    assert state is not None
    assert state.tree
    assert trap.runs == 0


def test_a_filter_that_appears_meanwhile_does_not_run(repo: Path, trap: Trap) -> None:
    """Git reads our settings and not a copy that was looked at before: nothing can be swapped."""
    with_attributes(repo)
    real = str(shutil.which("git"))
    place = repo.parent / "late"
    place.mkdir()
    late = place / "git"
    settings = filters(trap).replace("\n", "\\n").replace("\t", "")
    late.write_text(f"#!/bin/sh\nprintf '{settings}' >>{repo}/.git/config\nexec {real} \"$@\"\n")
    late.chmod(0o755)
    (repo / "a.txt").write_text("changed\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
        state = git_state(str(repo), "job/1/start")
    assert state is not None
    assert state.tree
    assert "[filter" in (repo / ".git" / "config").read_text()
    assert trap.runs == 0


@pytest.mark.parametrize("name", ["config", "index", "config.worktree"])
def test_what_is_no_plain_file_holds_nobody_up(repo: Path, name: str) -> None:
    place = repo / ".git" / name
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    (repo / "new.txt").write_text("changed\n")
    if name == "index":  # git itself would wait for somebody to write into it
        repository = Repository.of(str(repo))
        assert repository is not None
        with pytest.raises(OSError, match="no regular file"):
            take(repository, Deadline(60))
    else:
        assert git_state(str(repo)) is not None


def test_how_files_are_stored_is_still_believed(repo: Path) -> None:
    """Else every file of a repository with other line ends would seem changed."""
    append(repo, '[core]\n\tautocrlf = "true" # as on Windows\n\tfilemode = false\n')
    (repo / "a.txt").unlink()
    git(repo, "checkout", "-q", "a.txt")
    assert (repo / "a.txt").read_bytes() == b"one\r\n"
    os.utime(repo / "a.txt", (1, 1))  # so that git reads it
    (repo / "b.txt").chmod(0o755)
    state = git_state(str(repo))
    assert state is not None
    assert not state.dirty


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_repository_of_another_user_is_refused_as_git_refuses_it(repo: Path) -> None:
    for place in (repo, repo / ".git"):
        os.chown(place, 12345, 12345)
    (repo / "a.txt").write_text("secret\n")
    assert git_state(str(repo), "job/1/start") is None
    git(repo, "config", "--global", "safe.directory", str(repo))
    assert git_state(str(repo), "job/1/start") is not None


@pytest.fixture
def shop(tmp_path: Path, repo: Path) -> Iterator[Workshop]:
    with workshop(tmp_path) as made:
        shutil.rmtree(made.workdir)
        shutil.move(repo, made.workdir)
        yield made
        made.until_nobody_lives()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")
def test_a_job_that_sets_traps_springs_none(shop: Workshop, trap: Trap, tmp_path: Path) -> None:
    """The whole way: an agent writes filters, hooks and a monitor, the worker looks afterwards."""
    settings: Mapping[str, str] = {
        "config": filters(trap, PADDING),
        "config.worktree": filters(trap),
    }
    for name, content in settings.items():
        (tmp_path / name).write_text(content)
    script = (
        "git config extensions.worktreeConfig true;"
        f"git config core.fsmonitor {trap.path}; git config core.hooksPath {tmp_path}/hooks;"
        f"cat {tmp_path}/config >>.git/config; cp {tmp_path}/config.worktree .git/;"
        "echo '* filter=evil.name=x diff=evil' >.gitattributes; echo two >a.txt; echo new >new.txt"
    )
    (tmp_path / "hooks").mkdir()
    for name in HOOKS:
        shutil.copy(trap.path, tmp_path / "hooks" / name)
    job_id = shop.run(shop.agent("sets-traps", "/bin/sh", "-c", script)).job_id
    found = diff(shop.registry, job_id)
    assert [file.path for file in found.files] == [".gitattributes", "a.txt", "new.txt"]
    assert trap.runs == 0
