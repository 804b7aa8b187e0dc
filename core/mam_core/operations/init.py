"""A project's first ``mam.toml``: what is here to begin with, and how the file gets there.

Nothing that a person wrote is lost: a file that is there is left alone, or kept beside the
new one where the person says that it is to be replaced.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple

from mam_core import fields
from mam_core.agents.profiles import BUILT_IN, Profile, find_program
from mam_core.config.draft import draft
from mam_core.config.finding import FILE_NAME
from mam_core.config.json_schema import json_schema
from mam_core.config.loading import KeyPath
from mam_core.disk import sync_fd, temp_name, write_all
from mam_core.errors import InvalidField, MamError
from mam_core.registry import Registry
from mam_core.rights import Right

#: Stands beside the settings, for editors.
SCHEMA_NAME = "mam.schema.json"
_GROUP = "agents"
#: Written down for a coding agent, which may say nothing while it thinks or runs a test suite; a
#: job that names a figure of its own keeps that.
_CODING_IDLE_SEC = 900
_KEPT = ".bak"
_MODE = 0o644  # less the umask: it is a file of the project, and holds no secret


class CannotInit(MamError):
    """The settings could not be written."""

    title = "Init"


class Wish(NamedTuple):
    """What a person wants of a first configuration; None leaves it open."""

    agent: str | None = None
    agent_session: str | None = None
    slots: int | None = None  #: jobs at once, in all
    timeout_sec: float | None = None
    store: str | None = None
    registry_dir: str | None = None


class Written(NamedTuple):
    """What stands on disk now."""

    path: str
    schema: str | None  #: the path of the schema, where one was asked for
    kept: str | None  #: where the file went that was there before
    above: str | None  #: a file of a folder above, which is no longer read here


def start_again(registry: Registry) -> str:
    """A person accepts that the registry which was here is gone; says what that means."""
    registry.check_allowed(Right.INIT)
    if not registry.store.removal():
        return "no registry was removed here: nothing to accept"
    registry.store.forget_removal()
    return "accepted: mam no longer warns that a registry was removed here"


def installed_agents() -> list[str]:
    """The built-in agents whose programs are here, in the order in which mam would offer them."""
    return [
        name for name, profile in BUILT_IN.items() if not profile.by_name_only and _here(profile)
    ]


def known_agents() -> list[str]:
    return list(BUILT_IN)


def is_here(agent: str) -> bool:
    return agent in BUILT_IN and _here(BUILT_IN[agent])


def label_for(agent: str) -> str:
    """The label that its sessions have when nobody chooses one."""
    return f"tmux:{os.path.basename(BUILT_IN[agent].program)}" if agent != "shell" else "tmux:shell"


def check(wish: Wish) -> None:
    """Raises `InvalidField` for the first thing that no settings may say."""
    if wish.agent is not None and wish.agent not in BUILT_IN:
        raise InvalidField(
            f"there is no built-in agent {wish.agent[:60]!r}: say one of {', '.join(BUILT_IN)}; "
            "one of your own is a table [agents.NAME] in mam.toml"
        )
    given = {
        name: value
        for name in ("agent_session", "timeout_sec")
        if (value := getattr(wish, name)) is not None
    }
    fields.checked(given, now=0.0)
    if wish.slots is not None and not 1 <= wish.slots <= 10_000:
        raise InvalidField(f"slots: it must be between 1 and 10000, not {wish.slots}")


def init(path: str, wish: Wish, *, force: bool = False, schema: bool = False) -> Written:
    """Write the settings to `path`; the file is there whole, or as it was."""
    check(wish)
    path = os.path.abspath(os.path.expanduser(path))
    found = installed_agents()
    notes = (f"Agents that were found here: {', '.join(found) or 'none'}.",)
    text = draft(_chosen(wish), notes=notes, schema=f"./{SCHEMA_NAME}" if schema else "")
    if not force and os.path.lexists(path):
        raise CannotInit(f"{path} is there already: `mam init --force` keeps it as {path}{_KEPT}")
    # Before the settings, which name it; and it is only ever what this version of mam makes of it.
    schema_path = os.path.join(os.path.dirname(path), SCHEMA_NAME) if schema else None
    if schema_path is not None:
        _put(schema_path, json.dumps(json_schema(), indent=2) + "\n", force=True, keep=False)
    kept = _put(path, text, force=force, keep=True)
    return Written(path, schema_path, kept, _above(path))


def _chosen(wish: Wish) -> dict[KeyPath, Any]:
    chosen: dict[KeyPath, Any] = {
        ("defaults", "agent"): wish.agent,
        ("defaults", "agent_session"): wish.agent_session,
        ("defaults", "timeout_sec"): wish.timeout_sec,
        ("store", "url"): wish.store,
        ("store", "registry_dir"): wish.registry_dir,
    }
    if wish.agent not in (None, "shell"):
        chosen["defaults", "idle_timeout_sec"] = _CODING_IDLE_SEC
    if wish.slots is not None:
        chosen["defaults", "group"] = _GROUP
        chosen["groups", _GROUP, "slots"] = wish.slots
    return {path: value for path, value in chosen.items() if value is not None}


def _put(path: str, text: str, *, force: bool, keep: bool) -> str | None:
    """By a temp file in the same folder; the name under which the file before was kept, if any.

    Without `force` nothing is ever replaced, not even a file that somebody made in this very
    moment.
    """
    folder = os.path.dirname(path)
    temp = os.path.join(folder, temp_name(FILE_NAME))
    kept = None
    try:
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
        try:
            write_all(fd, text.encode())
            sync_fd(fd, temp)
        finally:
            os.close(fd)
        if not force:
            os.link(temp, path)
        else:
            kept = _kept(path) if keep else None
            os.replace(temp, path)
    except FileExistsError:
        raise CannotInit(f"{path} is there already: nothing was written") from None
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        raise CannotInit(f"{path} cannot be written: {why}") from None
    finally:
        with suppress(OSError):
            os.unlink(temp)
    return kept


def _kept(path: str) -> str | None:
    """Another name for what is there; one that was kept before stays, too."""
    for number in count():
        name = f"{path}{_KEPT}{number or ''}"
        try:
            os.link(path, name, follow_symlinks=False)
        except FileExistsError:
            continue
        except FileNotFoundError:
            return None
        return name
    return None


def _above(path: str) -> str | None:
    """Only the nearest file counts, so the one above is silent from now on."""
    if os.path.basename(path) != FILE_NAME:
        return None
    folder = os.path.dirname(os.path.dirname(path))
    while True:
        candidate = os.path.join(folder, FILE_NAME)
        if os.path.isfile(candidate):
            return candidate
        if folder == os.path.dirname(folder):
            return None
        folder = os.path.dirname(folder)


def _here(profile: Profile, environ: Mapping[str, str] | None = None) -> bool:
    path = (environ or os.environ).get("PATH", os.defpath)
    return find_program(profile, path) is not None
