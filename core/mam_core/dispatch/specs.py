"""The specs folder: which tasks it asks for, and the text that a task's agent gets.

A task is a file ``S*.md``; its name up to the first ``-`` is the task's. The folder
is remembered in the registry's header, with ``~`` where it is below the home folder,
so that another node finds its own.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from mam_core.dispatch.layout import Whole, compose
from mam_core.dispatch.tasks import DispatchError, Task, TaskStatus
from mam_core.dispatch.tasks_file import TasksFile
from mam_core.records import MAX_PROMPT_BYTES

SPECS_KEY = "specs_dir"


class Found(NamedTuple):
    """What a specs folder holds."""

    specs: dict[str, str]  #: by task, the name of its file
    doubles: dict[str, list[str]]  #: files that want to be the same task
    odd: list[str]  #: names that no task can have


class Made(NamedTuple):
    """What an `init` did."""

    added: list[str]
    kept: int  #: tasks that were there
    found: Found
    renamed: dict[str, tuple[str, str]]  #: by task, the file it has and the one in the folder


def look(folder: str) -> Found:
    """Raises `DispatchError` when the folder cannot be read."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                entry.name
                for entry in entries
                if entry.name.startswith("S") and entry.name.endswith(".md") and entry.is_file()
            )
    except (OSError, ValueError) as problem:  # a name from a file: no path can have a NUL
        why = (getattr(problem, "strerror", None) or str(problem)).lower()
        raise DispatchError(f"the specs folder {folder} cannot be read: {why}") from None
    by_task: dict[str, list[str]] = {}
    odd = []
    for name in names:
        if name.isprintable():
            by_task.setdefault(task_of(name), []).append(name)
        else:
            odd.append(name)
    specs = {task: files[0] for task, files in by_task.items() if len(files) == 1}
    doubles = {task: files for task, files in by_task.items() if len(files) > 1}
    return Found(specs, doubles, odd)


def task_of(name: str) -> str:
    return name.removesuffix(".md").partition("-")[0]


def init(file: TasksFile, folder: str) -> Made:
    """Add a pending task for each spec that is new; whatever is there stays as it is."""
    folder = os.path.abspath(os.path.expanduser(folder))
    found = look(folder)
    with file.changing(create=True) as draft:
        header, tasks = draft.whole()
        added = {
            task: Task(TaskStatus.PENDING, spec=name)
            for task, name in found.specs.items()
            if task not in tasks
        }
        renamed = {
            task: (spec, name)
            for task, name in found.specs.items()
            if task in tasks and (spec := tasks[task].spec) not in (None, name)
        }
        new: dict[str, Any] = {**header, SPECS_KEY: _short(folder)}
        draft.replace(compose(Whole(new, {**tasks, **added})))
    return Made(list(added), len(tasks), found, {t: (str(a), b) for t, (a, b) in renamed.items()})


def specs_folder(header: Any, named: str | None = None) -> str:
    """`named`, else the one that `init` remembered."""
    remembered = named or header.get(SPECS_KEY)
    if not isinstance(remembered, str) or not remembered:
        raise DispatchError("no specs folder is known: name it with --specs, or use init")
    return os.path.abspath(os.path.expanduser(remembered))


def prompt_of(task_id: str, task: Task, folder: str) -> str:
    """The text of a task's spec. Raises `DispatchError` with the reason why there is none."""
    name = task.spec if task.spec is not None else _guess(task_id, folder)
    if name != os.path.basename(name) or name in ("", ".", ".."):
        raise DispatchError(f"task {task_id}: its spec {name!r:.80} is no name of a file")
    path = os.path.join(folder, name)
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_PROMPT_BYTES + 1)
    except (OSError, ValueError) as problem:
        why = (getattr(problem, "strerror", None) or str(problem)).lower()
        raise DispatchError(f"task {task_id}: its spec {path} cannot be read: {why}") from None
    if len(data) > MAX_PROMPT_BYTES:
        raise DispatchError(f"task {task_id}: its spec {path} has more than 1 MiB")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise DispatchError(f"task {task_id}: its spec {path} is not UTF-8") from None
    if not text.strip():
        raise DispatchError(f"task {task_id}: its spec {path} is empty")
    return text


def _guess(task_id: str, folder: str) -> str:
    """Of a task that other tools made without a spec."""
    found = look(folder)
    if task_id in found.specs:
        return found.specs[task_id]
    raise DispatchError(f"task {task_id} names no spec, and {folder} has none of its own for it")


def _short(folder: str) -> str:
    home = os.path.expanduser("~")
    if folder == home or folder.startswith(home.rstrip(os.sep) + os.sep):
        return "~" + folder[len(home.rstrip(os.sep)) :]
    return folder
