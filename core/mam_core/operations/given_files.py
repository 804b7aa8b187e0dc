"""Files that an operator names: opened and read alike, whoever asks, with one sentence when not."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

from mam_core.errors import InvalidField

_MAX_PASSWORD_BYTES = 4096


def open_file(path: str) -> BinaryIO:
    """To be read as bytes; whatever can be opened will do, a pipe too."""
    try:
        return open(path, "rb")
    except OSError as problem:
        raise unreadable(path, problem) from None
    except ValueError as problem:  # a NUL in the name
        raise InvalidField(f"{path}: {problem}") from None


def open_regular(path: str) -> BinaryIO:
    """One that ends: a pipe or a device would keep its reader waiting, perhaps for ever."""

    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as problem:
        raise unreadable(path, problem) from None
    except ValueError as problem:
        raise InvalidField(f"{path}: {problem}") from None
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(fd, "rb")
    os.close(fd)
    what = "a folder" if stat.S_ISDIR(mode) else "not a plain file"
    raise InvalidField(f"{path}: it is {what}")


def read_password(path: str) -> str:
    """The first line of a file, which no command line and no screen should show."""
    with open_file(path) as file:
        try:
            return first_line(path, file.read(_MAX_PASSWORD_BYTES))
        except OSError as problem:
            raise unreadable(path, problem) from None


def first_line(path: str, data: bytes) -> str:
    """Of what was read there; an empty one is no password."""
    first = data[:_MAX_PASSWORD_BYTES].split(b"\n", 1)[0].removesuffix(b"\r")
    if not first:
        raise InvalidField(f"the first line of {path} is empty")
    return os.fsdecode(first)


def unreadable(path: str, problem: OSError) -> InvalidField:
    return InvalidField(f"{path}: {(problem.strerror or str(problem)).lower()}")
