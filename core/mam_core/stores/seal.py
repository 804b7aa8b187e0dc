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

from mam_core.disk import Folder

_NS = 1_000_000_000

#: No date: what an index has that has not seen everything.
BROKEN = -(2**62)


def seal_of(folder: Folder) -> int:
    return os.fstat(folder.fd).st_mtime_ns


def new_seal() -> int:
    """A date that is neither in use nor going to be: in the past, and random below the second."""
    return (int(time.time()) - 2) * _NS + int.from_bytes(os.urandom(4), "little") % _NS


def is_fine(folder: Folder, name: str) -> bool:
    """The kernel dates every change of a folder anew once its date has been asked for.

    Linux does since 6.13, but not for every change on every file system: a tmpfs dates removals by
    the tick. Tried here, because no version tells: names beginning with `name` come, replace one
    another and go, and eight changes within microseconds have eight dates.
    """
    one, two = f"{name}.one", f"{name}.two"
    dates = set()
    for _ in range(2):
        folder.put_new(one, b"")
        dates.add(seal_of(folder))
        folder.put_new(two, b"")
        dates.add(seal_of(folder))
        folder.replace(one, two)
        dates.add(seal_of(folder))
        folder.remove(two)
        dates.add(seal_of(folder))
    return len(dates) == 8


def set_seal(folder: Folder, seal: int) -> int:
    """Date the folder; the answer is the date as the file system kept it."""
    os.utime(folder.fd, ns=(seal, seal))
    kept = seal_of(folder)
    # Cut to seconds by the file system, it is still our date; any other is a stranger's already.
    return kept if kept in (seal - seal % _NS, seal - seal % (2 * _NS)) else seal


def renewed_seal(folder: Folder, *, fine: bool) -> int:
    """The seal after a change of our own."""
    return seal_of(folder) if fine else set_seal(folder, new_seal())
