"""The registry's folder and its log: are they ours alone, is there room, can the files be read?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from mam_core.disk import FILE_MODE, Folder
from mam_core.doctor.findings import (
    Area,
    Finding,
    Fix,
    Mended,
    many,
    note,
    ok,
    problem,
    warning,
)
from mam_core.doctor.ground import Look
from mam_core.errors import MamError, StoreError

_MEBIBYTE = 2**20
#: Below the first nothing can be relied on; below the second a few logs fill the rest.
_TOO_LITTLE = 64 * _MEBIBYTE
_LITTLE = 1024 * _MEBIBYTE
_FEW_INODES = 1000
#: So much is worth a word: the state that once slowed a queue down sixtyfold was of this size.
_MANY = 50 * 1000 * 1000
_RECORD = ".json"
_MAKE_ROOM = "make room; old outputs are attempts/*/output.log in the audit log"


def there(look: Look) -> Iterator[Finding]:
    path = look.ground.registry_path
    if os.path.lexists(path):
        yield ok(Area.REGISTRY, "folder", path)
    elif look.registry.store.url:
        words = f"what belongs to this host will be kept at {path}"
        yield ok(Area.REGISTRY, "folder", words)
    else:
        advice = "`mam register` or `mam submit` makes it; `mam init` writes settings"
        words = f"there is no registry at {path} yet"
        yield note(Area.REGISTRY, "folder", words, advice=advice)


def permissions(look: Look) -> Iterator[Finding]:
    """Prompts and logs hold what other users of the machine must not read."""
    for path in (look.ground.registry_path, look.registry.store.audit.path):
        try:
            folder = Folder.open(path)
        except FileNotFoundError:
            continue
        except StoreError as trouble:
            yield problem(Area.REGISTRY, path, trouble.message, rule="folder")
            continue
        with folder:
            yield from _folder(path, folder)
    yield from _records(look.ground.registry_path)


def _folder(path: str, folder: Folder) -> Iterator[Finding]:
    try:
        folder.check_owner()
    except MamError as trouble:
        yield problem(Area.REGISTRY, path, trouble.message, rule="owner")
        return
    if folder.is_loose:
        words = f"other users may look into it (mode {folder.mode:o})"
        fix = Fix(f"make {path} 700", partial(_tighten, path))
        yield warning(Area.REGISTRY, path, words, fix, "loose folder")


def _records(path: str) -> Iterator[Finding]:
    loose = _loose_records(path)
    if loose:
        words = f"other users may read {many(len(loose), 'record')}, such as {loose[0]}"
        fix = Fix("make them 600", partial(_tighten_records, path))
        yield warning(Area.REGISTRY, path, words, fix, "loose records")


def _loose_records(path: str) -> list[str]:
    found = []
    try:
        with Folder.open(path) as folder, folder.entries() as entries:
            for entry in entries:
                if not entry.name.endswith(_RECORD) or not entry.is_file(follow_symlinks=False):
                    continue
                state = entry.stat(follow_symlinks=False)
                if state.st_mode & 0o077 and state.st_uid == os.geteuid():
                    found.append(entry.name)
    except (OSError, StoreError):
        return []  # said by others
    return sorted(found)


def _tighten(path: str) -> Mended:
    with Folder.open(path) as folder:
        folder.check_owner()
        folder.tighten()
    return Mended(True, f"{path} is yours alone")


def _tighten_records(path: str) -> Mended:
    done = 0
    with Folder.open(path) as folder:
        for name in _loose_records(path):
            try:
                fd, _ = folder.open_file(name)
            except (FileNotFoundError, StoreError):
                continue
            try:
                os.fchmod(fd, FILE_MODE)
                done += 1
            finally:
                os.close(fd)
    return Mended(True, f"{many(done, 'record')} can be read by nobody else now")


def readable(look: Look) -> Iterator[Finding]:
    """A record that makes no sense is never claimed, and never changed by us."""
    for broken in look.registry.store.unreadable():
        yield warning(
            Area.REGISTRY,
            f"job {broken.job_id}",
            f"its record cannot be read: {broken.error}",
            rule="unreadable",
            advice="mend or remove its file",
        )


def disk(look: Look) -> Iterator[Finding]:
    places = map(_existing, (look.registry.store.audit.path, look.ground.registry_path))
    for path in {os.stat(place).st_dev: place for place in places}.values():
        state = os.statvfs(path)
        free = state.f_bavail * state.f_frsize
        words = f"{_size(free)} free at {path}"
        # A file system that makes inodes as it needs them counts none.
        few = state.f_files > 0 and state.f_favail < _FEW_INODES
        if few:
            words += f", and room for {many(state.f_favail, 'more file')} only"
        if free < _TOO_LITTLE or few:
            yield problem(Area.REGISTRY, "disk", words, advice=_MAKE_ROOM)
        elif free < _LITTLE:
            yield warning(Area.REGISTRY, "disk", words, advice=_MAKE_ROOM)
        else:
            yield ok(Area.REGISTRY, "disk", words)


def records(look: Look) -> Iterator[Finding]:
    """Claims do not slow down with what is over, and a folder to carry, back up and list does."""
    held = _size_of_records(look)
    if held is not None and held > _MANY:
        words = f"the records are {_size(held)}; `mam clean --older-than 7d` takes out what is over"
        yield warning(Area.REGISTRY, "records", words, rule="size")


def _size_of_records(look: Look) -> int | None:
    """None for a database on another host, whose keeper looks after that."""
    url = look.registry.store.url
    if url.startswith("sqlite:"):
        return os.stat(url.removeprefix("sqlite:")).st_size
    if url:
        return None
    with Folder.open(look.ground.registry_path) as folder, folder.entries() as entries:
        return sum(
            entry.stat(follow_symlinks=False).st_size
            for entry in entries
            if entry.name.endswith(_RECORD)
        )


def _existing(path: str) -> str:
    path = os.path.abspath(path)
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _size(count: int) -> str:
    mebibytes = count / _MEBIBYTE
    return f"{mebibytes:.0f} MiB" if mebibytes < 1024 else f"{mebibytes / 1024:.1f} GiB"
