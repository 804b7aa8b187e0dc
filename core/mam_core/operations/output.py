"""What an attempt printed: the end of it, and from there on whatever is added.

The log is read in pieces of bounded size, through open folders and without following
links. It turns over at half of its cap, so a reader keeps the file's own number
beside its place in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from mam_core.disk import Folder, explain
from mam_core.errors import MamError
from mam_core.records import check_job_id
from mam_core.registry import Registry
from mam_core.work.output import EARLIER, OUTPUT
from mam_core.work.witnesses import ATTEMPTS

#: As much as is read at once.
PIECE_BYTES = 256 * 1024


#: Colours and moves of the cursor; what else is odd becomes visible where it is shown.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")


class NoOutput(MamError):
    """Nothing that the attempt printed is kept here."""

    title = "No output"


class Place(NamedTuple):
    """Where a reader stands: in which file, and after how many of its bytes."""

    file: int
    offset: int


class Piece(NamedTuple):
    """Some bytes of a log, as they were printed."""

    data: bytes
    place: Place  #: where to go on
    skipped: int  #: bytes right before these that are not in any piece
    is_anew: bool  #: it does not follow what was read before
    size: int  #: of all that is kept


def without_escapes(data: bytes) -> str:
    """What was printed, as a text to be read and not to be played."""
    return _ESCAPES.sub("", data.decode("utf-8", "replace"))


def attempts_with_output(registry: Registry, job_id: str) -> tuple[int, ...]:
    """The numbers of those that left an output log, in order."""
    try:
        with (
            Folder.open(os.path.join(registry.store.audit.path, check_job_id(job_id))) as log,
            log.subfolder(ATTEMPTS) as attempts,
        ):
            numbers = sorted(int(name) for name in attempts.names() if name.isdecimal())
            return tuple(n for n in numbers if _has_output(attempts, n))
    except (OSError, MamError):
        return ()


def read_output(
    registry: Registry,
    job_id: str,
    attempt: int,
    after: Place | None = None,
    limit: int = PIECE_BYTES,
) -> Piece:
    """What stands after a place; without one, or when that is too far back, the end of the log.

    Raises `NoOutput`.
    """
    with _attempt_folder(registry, job_id, attempt) as folder, ExitStack() as opened:
        files = _open(folder, opened)
        if not files:
            raise NoOutput(f"attempt {attempt} of job {job_id} has printed nothing")
        size = sum(file.size for file in files)
        start = _position(files, after)
        first = start if start is not None and size - start <= limit else max(0, size - limit)
        data = b"".join(_parts(files, first))
        # What was added since we looked is the next piece's.
        place = Place(files[-1].number, files[-1].size)
        return Piece(data, place, first - (start or 0), start is None, size)


class _File(NamedTuple):
    fd: int
    number: int
    size: int


def _has_output(attempts: Folder, number: int) -> bool:
    try:
        with attempts.subfolder(str(number)) as folder:
            return folder.has(OUTPUT) or folder.has(EARLIER)
    except (OSError, MamError):
        return False


@contextmanager
def _attempt_folder(registry: Registry, job_id: str, attempt: int) -> Iterator[Folder]:
    path = os.path.join(registry.store.audit.path, check_job_id(job_id))
    try:
        with (
            Folder.open(path) as log,
            log.subfolder(ATTEMPTS) as attempts,
            attempts.subfolder(str(int(attempt))) as folder,
        ):
            yield folder
    except FileNotFoundError:
        raise NoOutput(
            f"of attempt {attempt} of job {job_id} no output is kept: no worker of this host ran it"
        ) from None
    except OSError as problem:
        raise explain(problem, f"the output of job {job_id} cannot be read") from None


def _open(folder: Folder, opened: ExitStack) -> list[_File]:
    """The earlier file and the present one. The present one is opened first: should it turn over
    meanwhile, both are the same, and nothing in between is missed."""
    files: list[_File] = []
    for name in (OUTPUT, EARLIER):
        try:
            fd, state = folder.open_file(name)
        except FileNotFoundError:
            continue
        opened.callback(os.close, fd)
        if all(file.number != state.st_ino for file in files):
            files.insert(0, _File(fd, state.st_ino, state.st_size))
    return files


def _position(files: list[_File], after: Place | None) -> int | None:
    """Where a reader stands in both files together; None when it must begin anew."""
    before = 0
    for file in files:
        if after is not None and file.number == after.file and after.offset <= file.size:
            return before + after.offset
        before += file.size
    return None


def _parts(files: list[_File], first: int) -> Iterator[bytes]:
    for file in files:
        if first < file.size:
            yield os.pread(file.fd, file.size - first, first)
        first = max(0, first - file.size)
