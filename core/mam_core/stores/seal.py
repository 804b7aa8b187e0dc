"""A folder's time stamp as a seal: has anybody else touched it since we last looked?

The kernel dates a folder with the moment of the last change in it. Where it
does so finely, that date is the seal. Where it counts in clock ticks, two
changes in one tick look like one; there we put a date of our own on the folder
when we have seen everything in it, a random moment of two seconds ago, which no
later change can produce. It is not the rule, because it costs a sixth of a claim.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mam_core.disk import Folder

_NS = 1_000_000_000


def seal_of(folder: Folder) -> int:
    return os.fstat(folder.fd).st_mtime_ns


def new_seal() -> int:
    """A date that is neither in use nor going to be: in the past, and random below the second."""
    return (int(time.time()) - 2) * _NS + int.from_bytes(os.urandom(4), "little") % _NS


def is_fine(folder: Folder, name: str) -> bool:
    """The kernel dates every change of a folder anew once its date has been asked for.

    Linux does since 6.13, on most file systems. Tried here, because no version tells: a file
    `name` is moved to and fro, and eight changes within microseconds have eight dates.
    """
    dates = set()
    for _ in range(4):
        for source, target in ((name, f"{name}.moved"), (f"{name}.moved", name)):
            folder.replace(source, target)
            dates.add(seal_of(folder))
    return len(dates) == 8


def set_seal(folder: Folder, seal: int) -> int:
    """Date the folder; the answer is the date as the file system kept it."""
    os.utime(folder.fd, ns=(seal, seal))
    return seal_of(folder)


class SealWatch:
    """For the length of a transaction: did the folder change outside of our own blocks?

    A stranger who does not take the lock can still slip in during the few
    microseconds of one of our own system calls; the periodic look at every file
    finds that, too.
    """

    def __init__(self, folder: Folder, known_seal: int) -> None:
        self._folder = folder
        self._expected = known_seal
        self.undisturbed = True

    @contextmanager
    def own_change(self) -> Iterator[None]:
        self._compare()
        try:
            yield
        finally:
            self._expected = seal_of(self._folder)

    def _compare(self) -> None:
        if seal_of(self._folder) != self._expected:
            self.undisturbed = False
