"""The lines of one job's history: numbered 1..n, appended whole, found from the end.

A line that was cut short, by a full disk or a power cut, is set aside before
the next one is written, and the repair is itself a line. No line is dated before
the one above it: a writer may have read its clock and then waited for another.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from mam_core import codec
from mam_core.clock import SystemClock, fine_stamp
from mam_core.disk import Folder, write_all

EVENTS = "events.ndjson"
TORN = "torn.log"
REPAIRED = "log_repaired"

#: A date further ahead of the clock was written before the clock was set back, and counts no more.
AHEAD_SEC = 60.0

_STAMPED = re.compile(rb'\{(?:"n": \d+, )?"timestamp": "(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"')
_TAIL_BYTES = 4096

#: How long to wait for another writer of the same job's history while nothing is added to it.
_PATIENCE_SEC = 1.0
#: The limit while others do add to it. The caller may hold the registry's lock, and whoever waits
#: for that gives up after five seconds.
_LONGEST_SEC = 4.0


def append_lines(folder: Folder, lines: Sequence[dict[str, Any]]) -> None:
    """Number the lines and append them together: one writer at a time, whole lines only."""
    fd = folder.open_in_place(EVENTS, os.O_RDWR | os.O_APPEND)
    try:
        _lock_briefly(fd)
        dated = ""

        def number_and_date(raw: bytes) -> int | None:
            nonlocal dated
            if (number := number_of(raw)) is not None:
                dated = date_of(raw)
            return number

        last, torn = newest(fd, number_and_date)
        if not last:
            last = _count_lines(fd)  # a history of the original, whose lines have no numbers
        lines = in_order(lines, dated)
        if torn:
            _set_aside(folder, fd, torn)
            last += 1
            line = lines[0]
            repair = {"n": last, "timestamp": line["timestamp"], "event": REPAIRED}
            write_all(fd, codec.dumps_line(repair | {"job_id": line["job_id"], "bytes": len(torn)}))
        write_all(fd, b"".join(numbered(last + n, line) for n, line in enumerate(lines, 1)))
    finally:
        os.close(fd)


def in_order(lines: Sequence[dict[str, Any]], dated: str) -> list[dict[str, Any]]:
    """The lines, none of them dated before `dated`, the date of the line above, or each other."""
    latest = latest_date()
    found = []
    for line in lines:
        own = line.get("timestamp")
        if isinstance(own, str) and own < dated <= latest:
            line = {**line, "timestamp": dated}
        elif isinstance(own, str):
            dated = own
        found.append(line)
    return found


def latest_date() -> str:
    """A line that is dated later than this is no reason to date the next one like it."""
    return fine_stamp(SystemClock().now() + AHEAD_SEC)


def date_of(raw: bytes) -> str:
    """When a line of ours was written; empty for one in another form."""
    found = _STAMPED.match(raw)
    return found[1].decode("ascii") if found else ""


def numbered(n: int, line: dict[str, Any]) -> bytes:
    """The line with its number in front: ours, whatever the line itself says."""
    numbered = {"n": 0, **line}
    numbered["n"] = n
    return codec.dumps_line(numbered)


def _lock_briefly(fd: int) -> None:
    """Appending takes microseconds; who holds the file for longer is stuck, and history waits.

    Many writers in turn are not stuck: the file grows, and patience starts anew with each line.
    Whose turn it is, is chance, and on a busy machine one of them may miss many turns.
    """
    size = -1
    deadline = 0.0
    latest = time.monotonic() + _LONGEST_SEC
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            now = time.monotonic()
            if (grown := os.fstat(fd).st_size) != size:
                size, deadline = grown, now + _PATIENCE_SEC
            if now > min(deadline, latest):
                raise
            time.sleep(0.001)
        else:
            return


def newest(fd: int, pick: Callable[[bytes], int | None]) -> tuple[int, bytes]:
    """What `pick` finds in the last line where it finds anything, and the torn end of the file."""
    size = os.fstat(fd).st_size
    reach = _TAIL_BYTES
    while True:
        start = max(0, size - reach)
        whole, newline, torn = os.pread(fd, size - start, start).rpartition(b"\n")
        lines = whole.split(b"\n") if newline else []
        # The first line of the chunk is cut by the chunk itself, unless it begins the file.
        for raw in reversed(lines if start == 0 else lines[1:]):
            if (found := pick(raw)) is not None:
                return found, torn if newline else b""
        if start == 0:
            return 0, torn
        reach *= 8


def _count_lines(fd: int) -> int:
    return os.pread(fd, os.fstat(fd).st_size, 0).count(b"\n")


def _set_aside(folder: Folder, events: int, torn: bytes) -> None:
    """Move a torn end to a file of its own, where it harms no reader and is not lost."""
    fd = folder.open_in_place(TORN, os.O_WRONLY | os.O_APPEND)
    try:
        write_all(fd, torn + b"\n")
    finally:
        os.close(fd)
    os.ftruncate(events, os.fstat(events).st_size - len(torn))


def number_of(raw: bytes) -> int | None:
    if raw.startswith(b'{"n": '):
        digits = raw[6:].partition(b",")[0]
        if digits.isdigit() and len(digits) < 20:
            return int(digits)
    try:
        number = json.loads(raw)["n"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return number if isinstance(number, int) else None


def revision_of(raw: bytes) -> int | None:
    try:
        revision = json.loads(raw)["revision"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return revision if isinstance(revision, int) else None


def published_seq(raw: bytes) -> int | None:
    """The number of the event that a line says was published."""
    if b'"published"' not in raw:
        return None
    try:
        line = json.loads(raw)
        if line["event"] != "published":
            return None
        if "seq" not in line:  # the original's, whose payload may be the text that was sent
            line = line["payload"]
            line = json.loads(line) if isinstance(line, str) else line
        seq = line["seq"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return seq if isinstance(seq, int) else None


class PublishedLines:
    """Collects the lines of some published events from a history that is read backwards."""

    def __init__(self, seqs: Collection[int]) -> None:
        self.lines: dict[int, bytes] = {}
        self._wanted = frozenset(seqs)
        self._lowest = min(self._wanted, default=0)

    def is_done(self, raw: bytes) -> bool:
        """Take one more line; True when none of the older ones can be wanted.

        A relay goes by the numbers: before a lower one there is no wanted one.
        """
        number = published_seq(raw)
        if number is None:
            return False
        if number in self._wanted:
            self.lines.setdefault(number, raw)
        return number < self._lowest or len(self.lines) == len(self._wanted)


def same_line(raw: bytes, line: dict[str, Any]) -> int | None:
    """1 for the line itself, 0 for one that is older, None to go on looking.

    Where it was written it may be dated later, like the line above it.
    """
    try:
        told = json.loads(raw)
        older = told["timestamp"] < line["timestamp"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if older:
        return 0
    same = all(told.get(name) == value for name, value in line.items() if name != "timestamp")
    return 1 if same else None
