"""What an attempt changed in the git repository that its folder is in.

Its beginning and its end are in the audit log: a commit each, and a snapshot where
something was not committed. While it runs, its folder as it stands now is the end.
What cannot be known is said: that the end was not recorded, that something was left
out of a snapshot, that somebody else worked in the same folder meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from mam_core.errors import JobNotFound, MamError, UnreadableRecord
from mam_core.git_repository import Deadline, GitSilent, Repository
from mam_core.operations.attempts import Span, attempts_of, neighbours
from mam_core.operations.files_there import need_its_files
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.work.git_state import git_state

_PATIENCE_SEC = 60.0
_MAX_COMMITS = 200

#: Our own words for what would else be the user's taste, or a program that a repository names.
_DIFF = (
    *("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--find-renames"),
)
_LOG = ("log", "-z", "--no-color", "--format=%H%x09%at%x09%an%x09%s", f"-n{_MAX_COMMITS}")


class NoDiff(MamError):
    """It is not known what the attempt changed."""

    title = "No diff"


class Change(NamedTuple):
    """One file. The counts of a binary one are None."""

    path: str
    additions: int | None
    deletions: int | None
    old_path: str | None = None  #: where it was before it was moved


class Commit(NamedTuple):
    """One commit that was made meanwhile. Author and subject are foreign words."""

    commit: str
    at: float
    author: str
    subject: str


class Diff(NamedTuple):
    """From the start of an attempt to its end, or to now."""

    job_id: str
    attempt: int
    workdir: str
    until_now: bool
    files: tuple[Change, ...]
    commits: tuple[Commit, ...]  #: newest first
    notes: tuple[str, ...]  #: what a reader must know to believe it
    text: bytes  #: as git writes it

    @property
    def additions(self) -> int:
        return sum(file.additions or 0 for file in self.files)

    @property
    def deletions(self) -> int:
        return sum(file.deletions or 0 for file in self.files)

    def to_dict(self) -> dict[str, Any]:
        return {
            **self._asdict(),
            "files": [file._asdict() for file in self.files],
            "commits": [commit._asdict() for commit in self.commits],
            "additions": self.additions,
            "deletions": self.deletions,
            "text": self.text.decode("utf-8", "replace"),
        }


def diff(registry: Registry, job_id: str, attempt: int | None = None) -> Diff:
    """Of the newest attempt that was started, or of the one that is named. Raises `NoDiff`,
    or `RanElsewhere`."""
    span = _span(registry, job_id, attempt)
    with suppress(JobNotFound, UnreadableRecord):  # of a job that was cleaned away the log is here
        need_its_files(registry, registry.get(job_id), span.attempt)
    start = span.start_git
    if start is None:
        raise NoDiff(
            f"nothing is known of attempt {span.attempt} of job {job_id}: its folder is in no git "
            f"repository, or git gave no answer when it began ({span.workdir or 'no folder'})"
        )
    if not os.path.isdir(span.workdir):
        raise NoDiff(f"the folder of attempt {span.attempt} is gone: {span.workdir}")
    repository = Repository.of(span.workdir)
    if repository is None:
        raise NoDiff(f"{span.workdir} is no longer in a git repository")
    end, until_now, notes = _end(registry, span)
    notes += [*_doubts(start, "start"), *_doubts(end, "end"), *_others(registry, span, repository)]
    compared = _Compared(repository, start, end)
    try:
        files, text = compared.files(), compared.text()
        commits, more = compared.commits()
    except GitSilent as problem:
        raise NoDiff(
            f"git cannot compare the start of attempt {span.attempt} with its end: {problem}"
        ) from None
    return Diff(
        job_id, span.attempt, span.workdir, until_now, files, commits, (*notes, *more), text
    )


def _span(registry: Registry, job_id: str, attempt: int | None) -> Span:
    spans = {span.attempt: span for span in attempts_of(registry, job_id)}
    if not spans:
        if not registry.store.audit.has(job_id):
            raise JobNotFound(f"there is no job {job_id}")
        raise NoDiff(f"no worker has started job {job_id} yet: nothing was changed")
    if attempt is None:
        return spans[max(spans)]
    if attempt not in spans:
        known = ", ".join(map(str, sorted(spans)))
        raise NoDiff(f"job {job_id} was not started as attempt {attempt}: there is {known}")
    return spans[attempt]


def _end(registry: Registry, span: Span) -> tuple[Mapping[str, Any], bool, list[str]]:
    if span.end_git is not None:
        return span.end_git, False, []
    notes = []
    if span.has_ended or not _is_running(registry, span):
        notes.append("its end was not recorded: shown is the folder as it stands now")
    now = git_state(span.workdir, look_sec=_PATIENCE_SEC, snapshot_sec=_PATIENCE_SEC)
    if now is None:
        raise NoDiff(f"git gives no answer about {span.workdir}")
    return now.to_dict(), True, notes


def _is_running(registry: Registry, span: Span) -> bool:
    try:
        job = registry.get(span.job_id)
    except MamError:
        return False
    return job.status is Status.RUNNING and job.attempt == span.attempt


def _doubts(git: Mapping[str, Any], when: str) -> list[str]:
    notes = []
    if git.get("dirty") and not git.get("tree"):
        why = f" ({git['trouble']})" if git.get("trouble") else ""
        notes.append(f"what was not committed at its {when} was not kept{why}: it is missing here")
    names = git.get("left_out")
    if isinstance(names, list) and names:
        count = git.get("left_out_count", len(names))
        shown = ", ".join(map(str, names[:5])) + (" …" if len(names) > 5 else "")
        notes.append(f"{count} files that git does not track were left out at its {when}: {shown}")
    return notes


def _others(registry: Registry, span: Span, repository: Repository) -> list[str]:
    names = [
        f"{other.job_id} (attempt {other.attempt})"
        for other in neighbours(registry, span, repository.top)
    ]
    if not names:
        return []
    shown = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
    return [f"somebody else worked in this repository meanwhile, and is in it, too: {shown}"]


class _Compared:
    """Two states of one repository."""

    def __init__(
        self, repository: Repository, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> None:
        self._repository = repository
        self._deadline = Deadline(_PATIENCE_SEC)
        self._commits = (_object(start.get("commit")), _object(end.get("commit")))
        trees = (_object(start.get("tree")), _object(end.get("tree")))
        sides = (tree or at for tree, at in zip(trees, self._commits, strict=True))
        self._sides = [side or self._nothing() for side in sides]

    def files(self) -> tuple[Change, ...]:
        told = self._ask(*_DIFF, "--numstat", "-z", *self._sides).split(b"\0")
        found: list[Change] = []
        rest = iter(told)
        for entry in rest:
            if not entry:
                continue
            added, deleted, path = (*entry.split(b"\t", 2), b"", b"")[:3]
            old = None if path else _name(next(rest, b""))
            name = _name(path or next(rest, b""))
            found.append(Change(name, _count(added), _count(deleted), old))
        return tuple(found)

    def text(self) -> bytes:
        return self._ask(*_DIFF, *self._sides)

    def commits(self) -> tuple[tuple[Commit, ...], list[str]]:
        start, end = self._commits
        if end is None or start == end:
            return (), []
        notes = []
        if start and self._ask("rev-list", "-n1", start, f"^{end}"):
            notes.append(
                "its start is not among the ancestors of its end: it went to another branch, or "
                "rewrote history"
            )
        told = self._ask(*_LOG, end, *([f"^{start}"] if start else []), "--")
        entries = (entry.split(b"\t", 3) for entry in told.split(b"\0") if entry.strip())
        commits = tuple(
            Commit(_name(entry[0]).strip(), float(entry[1]), _name(entry[2]), _name(entry[3]))
            for entry in entries
            if len(entry) == 4 and entry[1].isdigit()
        )
        if len(commits) == _MAX_COMMITS:
            notes.append(f"only the newest {_MAX_COMMITS} commits are listed")
        return commits, notes

    def _nothing(self) -> str:
        """The tree of a repository without a commit."""
        return self._ask("hash-object", "-t", "tree", "--stdin").decode("ascii").strip()

    def _ask(self, *words: str) -> bytes:
        return self._repository.ask(*words, deadline=self._deadline, at_top=True)


def _object(value: Any) -> str | None:
    """The name of an object, out of a file that others can write."""
    if isinstance(value, str) and 40 <= len(value) <= 64 and set(value) <= set("0123456789abcdef"):
        return value
    return None


def _name(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _count(data: bytes) -> int | None:
    return int(data) if data.isdigit() else None
