"""The files of the settings under a long-lived command: read again when they have changed.

A file with a mistake, or one that is gone, leaves everything as it was, and a sentence says so.
What was opened or connected by the settings stays as it was until the next start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from mam_core.config import Config, Value, load
from mam_core.config.finding import find_extensions, find_files
from mam_core.config.loading import KeyPath
from mam_core.errors import ConfigError, MamError

#: Tables that count at the start only: where the records, the events and the sessions are.
FIXED: frozenset[KeyPath] = frozenset({("store",), ("broker",), ("tmux",)})
_NAMED = 3

#: What tells one version of the files from another.
_Versions = tuple[tuple[str, int, int, int], ...]


class Look(NamedTuple):
    """What one look at the files has found; nothing most of the time."""

    changed: tuple[str, ...] = ()
    later: tuple[str, ...] = ()  #: changed, and takes effect after a restart
    trouble: str = ""  #: why they were not taken over

    def words(self) -> str:
        """For a person; empty when there is nothing to say."""
        if self.trouble:
            return f"settings not reloaded: {self.trouble}"
        said = []
        if self.changed:
            said.append(f"settings reloaded: {_listed(self.changed)}")
        if self.later:
            said.append(f"takes effect after a restart: {_listed(self.later)}")
        return "; ".join(said)


class Settings:
    """Those of one command, for one thread at a time; `config` is renewed in place.

    `fixed` are places, or beginnings of places, that count at the start only. `check` raises
    `ConfigError` for what only the caller knows to be wrong.
    """

    def __init__(
        self,
        config: Config,
        config_path: str | None = None,
        *,
        fixed: Iterable[KeyPath] = (),
        check: Callable[[Config], object] = lambda _: None,
    ) -> None:
        self.config = config
        self._path = config_path
        self._fixed = FIXED | frozenset(fixed)
        self._check = check
        self._cwd = os.getcwd()
        self._read: _Versions | None = None  #: those that were read; at first it is not known which
        self._seen: _Versions | None = None

    def look(self, *, at_once: bool = False) -> Look:
        """Whether there is another version. It is read when the next look finds the same one, so
        that no file is read that is just being written, or at once."""
        try:
            seen = self._versions()
        except (MamError, OSError) as problem:
            seen, trouble = (), str(problem)
        else:
            trouble = ""
        is_settled, self._seen = at_once or seen == self._seen, seen
        if seen == self._read or not is_settled:
            return Look()
        self._read = seen
        return Look(trouble=trouble) if trouble else self._renewed()

    def _versions(self) -> _Versions:
        files, notices = find_files(self._path, os.environ, self._cwd)
        found = find_extensions(self._path, os.environ, self._cwd, notices)
        states = [(path, os.stat(path)) for path in (*found.files, *files)]
        return tuple((path, one.st_mtime_ns, one.st_size, one.st_ino) for path, one in states)

    def _renewed(self) -> Look:
        old = self.config
        try:
            newer = load(self._path, cwd=self._cwd)
            if gone := [path for path in old.files if path not in newer.files]:
                raise ConfigError(f"{gone[0]} was removed, or belongs to another user now")
            said, now = _in_files(old), _in_files(newer)
            others = {path: one for path, one in old.values.items() if path not in said}
            kept = {path: one for path, one in said.items() if self._is_fixed(path)}
            free = {path: one for path, one in now.items() if not self._is_fixed(path)}
            made = Config({**free, **kept, **others}, newer.files, newer.notices, newer.skills)
            self._check(made)
        except (MamError, OSError) as problem:
            return Look(trouble=str(problem))
        old.renew(made)
        differing = [path for path in _differing(said, now) if path not in others]
        return Look(
            tuple(".".join(path) for path in differing if not self._is_fixed(path)),
            tuple(".".join(path) for path in differing if self._is_fixed(path)),
        )

    def _is_fixed(self, path: KeyPath) -> bool:
        return any(path[: len(one)] == one for one in self._fixed)


def _in_files(config: Config) -> dict[KeyPath, Value]:
    """Neither by the environment nor by a flag: those are as they were when we were started."""
    return {path: one for path, one in config.values.items() if one.source == "file"}


def _differing(old: Mapping[KeyPath, Value], new: Mapping[KeyPath, Value]) -> list[KeyPath]:
    def said(by: Mapping[KeyPath, Value], path: KeyPath) -> Any:
        return by[path].value if path in by else None

    return sorted(path for path in {*old, *new} if said(old, path) != said(new, path))


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
