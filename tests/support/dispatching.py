"""Nodes for tests of the dispatch registry: folders, each with a name, a copy and a registry.

The agent of every task is claude-code, replaced in ``mam.toml`` by a shell that runs
the spec's text; so a spec says what its agent does.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from mam_core.cli.main import main
from mam_core.dispatch.layout import Whole, compose
from mam_core.dispatch.tasks import Task
from mam_core.dispatch.tasks_file import TasksFile
from tests.support.watching import MAM, Watched, running

SETTINGS = """\
[defaults]
heartbeat_sec = 2.0
lease_sec = 30.0
sweep_sec = 0.5
grace_sec = 0.5
[agents.claude-code]
command = ["/bin/sh"]
mode = "exec"
stream = "plain"
"""

#: The document's two queries, word for word.
STATUS_QUERY = (
    ".tasks | to_entries | group_by(.value.status) | "
    "map({status: .[0].value.status, count: length, tasks: [.[].key]})"
)
SUMMARY_QUERY = (
    ".tasks | to_entries | group_by(.value.status) | "
    'map(.[0].value.status + ": " + (length|tostring)) | join(" | ")'
)


def jq(query: str, path: Path, *options: str) -> str:
    done = subprocess.run(
        ["jq", *options, query, str(path)], capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout


class Answer(NamedTuple):
    """What a command said."""

    stdout: str
    stderr: str


class Node:
    """One node: its folder is its home, its project and the place of its copy."""

    def __init__(self, folder: Path, name: str, file: Path | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.name = name
        self.path = file or folder / "dispatch-registry.json"
        self.file = TasksFile(str(self.path))
        self.specs = folder / "specs"
        self.specs.mkdir()
        (folder / "mam.toml").write_text(SETTINGS)

    def environ(self, **more: str) -> dict[str, str]:
        ours = {"HOME": str(self.folder), "NODE_NAME": self.name, "REGISTRY": str(self.path)}
        return {**os.environ, **ours, **more}

    def spec(self, name: str, text: str = "echo done") -> None:
        (self.specs / name).write_text(text)

    def mam(self, *words: str, code: int = 0, **environ: str) -> Answer:
        """``mam`` on this node, in this process for speed, and that it ended with this code."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
        here = os.getcwd()
        os.chdir(self.folder)
        try:
            with (
                patch.dict(os.environ, self.environ(**environ)),
                redirect_stdout(out),
                redirect_stderr(err),
            ):
                ended = main(words)
        finally:
            os.chdir(here)
        said = []
        for stream in (out, err):
            stream.flush()
            said.append(stream.detach().getvalue().decode())
        assert "mistake in mam" not in said[1], said[1]
        assert ended == code, said[1]
        return Answer(*said)

    def dispatch(self, *words: str, code: int = 0, **environ: str) -> Answer:
        return self.mam("dispatch", *words, code=code, **environ)

    @contextmanager
    def dispatching(self, *words: str, **environ: str) -> Iterator[Watched]:
        """``mam dispatch`` beside the test."""
        with running([*MAM, "dispatch", *words], self.folder, self.environ(**environ)) as watched:
            yield watched

    def init(self, **specs: str) -> None:
        """A registry with these specs: S01="echo done"."""
        for task, text in specs.items():
            self.spec(f"{task}-x.md", text)
        self.dispatch("init", "specs")

    @property
    def tasks(self) -> dict[str, dict[str, Any]]:
        """As any tool reads them."""
        found: dict[str, dict[str, Any]] = json.loads(self.path.read_text())["tasks"]
        return found

    def statuses(self) -> dict[str, str]:
        return {name: task["status"] for name, task in self.tasks.items()}

    def write(self, **tasks: Task) -> None:
        """The file, as we lay it out."""
        self.path.write_bytes(compose(Whole({"specs_dir": str(self.specs)}, tasks)))


@contextmanager
def remote_shell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A remote shell for which a host is a folder below `folder`: all else of rsync is real."""
    shell = folder / "rsh"
    shell.write_text(
        "#!/bin/sh\n"
        "# ssh HOST WORDS…, with the folder as that host's home\n"
        f'cd "{folder}/$1" 2>/dev/null || {{ echo "ssh: no route to host $1" >&2; exit 255; }}\n'
        "shift\n"
        'HOME=$PWD exec sh -c "$*"\n'
    )
    shell.chmod(0o755)
    monkeypatch.setenv("RSYNC_RSH", str(shell))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    yield folder
