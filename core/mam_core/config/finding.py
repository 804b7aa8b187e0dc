"""Where the settings are looked for: the project's file, the person's, the project's extensions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mam_core.errors import ConfigError

FILE_NAME = "mam.toml"
CONFIG_VARIABLE = "MAM_CONFIG"
#: Where a project keeps its own safety rules: ``.claude/skills/NAME-job-safety/mam.toml``, beside
#: the ``SKILL.md`` that agents read. Either may be there alone.
EXTENSION_HOMES = (os.path.join(".claude", "skills"), "mam.d")
EXTENSION_SUFFIX = "-job-safety"
SKILL_NAME = "SKILL.md"


class Extensions(NamedTuple):
    """What a project adds by its own ``*-job-safety`` folders."""

    files: tuple[str, ...]  #: settings, which are in force
    skills: tuple[str, ...]  #: texts for agents, of which nothing is in force here
    notices: tuple[str, ...]


def find_extensions(
    named: str | None, environ: Mapping[str, str], cwd: str, notices: tuple[str, ...] = ()
) -> Extensions:
    """The project's own safety rules, which every ``mam.toml`` wins over.

    They stand beside the project's ``mam.toml``, or where there is none, here or above.
    """
    said = list(notices)
    chosen = named or environ.get(CONFIG_VARIABLE)
    project = os.path.join(cwd, os.path.expanduser(chosen)) if chosen else _nearest(cwd)
    if project is not None:
        found = _extensions_in(os.path.dirname(project))
    else:
        found = next((there for folder in _upward(cwd) if (there := _extensions_in(folder))), [])
    files = (os.path.join(one, FILE_NAME) for one in found)
    skills = (os.path.join(one, SKILL_NAME) for one in found)
    return Extensions(
        tuple(path for path in files if os.path.isfile(path) and _is_ours(path, said)),
        tuple(path for path in skills if os.path.isfile(path)),
        tuple(said),
    )


def _extensions_in(folder: str) -> list[str]:
    """The folders that hold settings, a skill, or both."""
    found: list[str] = []
    for home in EXTENSION_HOMES:
        try:
            names = os.listdir(os.path.join(folder, home))
        except OSError:
            continue
        paths = (
            os.path.join(folder, home, name)
            for name in sorted(names)
            if name.endswith(EXTENSION_SUFFIX)
        )
        found += [path for path in paths if any(map(os.path.isfile, _files_of(path)))]
    return found


def _files_of(extension: str) -> tuple[str, str]:
    return os.path.join(extension, FILE_NAME), os.path.join(extension, SKILL_NAME)


def find_files(
    named: str | None, environ: Mapping[str, str], cwd: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files to read, the weaker first, and notices about those that are passed over.

    A named file is the only one: whoever names one wants to know what is in force.
    """
    chosen = named or environ.get(CONFIG_VARIABLE)
    if chosen:
        path = os.path.join(cwd, os.path.expanduser(chosen))
        if not os.path.exists(path):
            by = "" if named else f" (named by {CONFIG_VARIABLE})"
            raise ConfigError(f"there is no configuration file {path}{by}")
        return (path,), ()
    notices: list[str] = []
    found: list[str] = []
    for candidate in (_persons_path(environ), _nearest(cwd)):
        if candidate and candidate not in found and _is_ours(candidate, notices):
            found.append(candidate)
    return tuple(found), tuple(notices)


def _nearest(cwd: str) -> str | None:
    paths = (os.path.join(folder, FILE_NAME) for folder in _upward(cwd))
    return next(filter(os.path.isfile, paths), None)


def _upward(cwd: str) -> Iterator[str]:
    folder = os.path.abspath(cwd)
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _persons_path(environ: Mapping[str, str]) -> str | None:
    folder = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):  # the XDG rule: a relative one does not count
        folder = os.path.join(os.path.expanduser("~"), ".config")
    path = os.path.join(folder, "mam", FILE_NAME)
    return path if os.path.isfile(path) else None


def _is_ours(path: str, notices: list[str]) -> bool:
    """A file that was found, not named, must be ours: it says which commands are run."""
    state = os.stat(path)
    if state.st_uid not in (os.geteuid(), 0):
        why = f"it belongs to user {state.st_uid}"
    elif state.st_mode & 0o002:
        why = "everybody may write to it"
    else:
        return True
    notices.append(f"{path} is not read, because {why}; --config reads it all the same")
    return False
