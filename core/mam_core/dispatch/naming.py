"""How a task and its job find each other, and whose name a task is claimed in.

A job of the registry belongs to a task by its key, which names the file and the
task; so any worker that claims the job knows which task to claim with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from mam_core.errors import MamError
from mam_core.records import Job
from mam_core.wiring import node_name

#: The group of every job that is a task: by it they are found in lists and in the console.
GROUP = "dispatch"
NODE_VARIABLE, MODE_VARIABLE = "NODE_NAME", "API_MODE"
MODES = ("direct", "zai")
_PREFIX = "dispatch:"


class BadVariable(MamError):
    """A variable of the environment has a value that it cannot have."""

    title = "Environment"
    exit_code = 2


class Surroundings(NamedTuple):
    """What the environment says, once for a whole run and never for a single task."""

    node: str
    api_mode: str

    @classmethod
    def of(cls, environ: Mapping[str, str] | None = None) -> Surroundings:
        environ = os.environ if environ is None else environ
        node = environ.get(NODE_VARIABLE) or node_name()
        if not node.isprintable():
            raise BadVariable(f"{NODE_VARIABLE} is {node!r:.60}: it must be a name")
        mode = environ.get(MODE_VARIABLE) or MODES[0]
        if mode not in MODES:
            raise BadVariable(f"{MODE_VARIABLE} is {mode!r:.60}: say {' or '.join(MODES)}")
        return cls(node, mode)


class TaskName(NamedTuple):
    """A task of a file."""

    path: str
    task_id: str

    @property
    def key(self) -> str:
        return f"{_PREFIX}{quote(self.task_id, safe='')}@{self.path}"

    @classmethod
    def of(cls, job: Job) -> TaskName | None:
        """None for a job that is no task."""
        if job.key is None or job.group != GROUP or not job.key.startswith(_PREFIX):
            return None
        task, at, path = job.key.removeprefix(_PREFIX).partition("@")
        return cls(path, unquote(task)) if at and os.path.isabs(path) else None
