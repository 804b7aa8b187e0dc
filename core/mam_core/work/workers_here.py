"""The workers of this host, in a session or not, as its list of processes shows them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mam_core.config import load
from mam_core.errors import MamError
from mam_core.locations import REGISTRY_VARIABLE, nearest_place
from mam_core.work.processes import read_fact

_PROGRAMS = ("mam", "mam_core")


def command_of(pid: int) -> list[str]:
    words = read_fact(pid, "cmdline").split(b"\0")
    return [os.fsdecode(word) for word in words[:-1]]


def is_mam(command: list[str]) -> bool:
    """Started as ``mam …`` or as ``python -m mam_core …``."""
    return any(os.path.basename(word).split(".")[0] in _PROGRAMS for word in command)


def options_of_worker(command: list[str]) -> dict[str, str] | None:
    """What follows each word of a ``mam work``, and each option before it; None for any other
    command."""
    if "work" not in command:
        return None
    at = command.index("work")
    if not is_mam(command[:at]):
        return None
    before = {name: value for name, value in _pairs(command[:at]).items() if name[:2] == "--"}
    return before | _pairs(command[at + 1 :])


def _pairs(command: list[str]) -> dict[str, str]:
    words: list[str] = []
    for word in command:
        words += word.split("=", 1) if word.startswith("--") else [word]
    return dict(zip(words, [*words[1:], ""], strict=True))


def registry_of_worker(pid: int, options: Mapping[str, str]) -> str | None:
    """The real path of the registry that a worker serves, empty for one that has ended; None where
    that cannot be said."""
    try:
        cwd = os.readlink(f"/proc/{pid}/cwd")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    except OSError:
        return None
    try:
        named = options.get("--registry-dir") or _set_for(variables_of(pid), options, cwd)
        path = nearest_place(named, {}, cwd).path
    except OSError:
        return None  # its folder is not in our view, as in a container, or was removed
    return os.path.realpath(path) if os.path.isdir(path) else None


def _set_for(environ: Mapping[str, str], options: Mapping[str, str], cwd: str) -> str | None:
    """What its variables and its settings, as they are now, say of the registry folder."""
    try:
        return load(options.get("--config"), environ=environ, cwd=cwd).registry_dir
    except MamError:
        return environ.get(REGISTRY_VARIABLE)


def variables_of(pid: int) -> dict[str, str]:
    """What a process was given at its start; nothing where it is not ours to read."""
    pairs = (entry.partition(b"=") for entry in read_fact(pid, "environ").split(b"\0"))
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
