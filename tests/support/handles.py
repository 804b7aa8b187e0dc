"""What a test holds open, and what makes a leak an error: descriptors, threads, children."""

from __future__ import annotations

import gc
import os
import sqlite3
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from mam_core.operations import relay
from mam_core.registry import Registry
from mam_core.work import supervised
from tests.support.patience import PATIENCE_SEC

_FILES = "/proc/self/fd"
_TASKS = "/proc/self/task"

#: Other systems do not list a process's descriptors and children in files.
CAN_LOOK = os.path.isdir(_FILES) and os.path.isdir(_TASKS)

_CLOSED = "closed meanwhile"  #: instead of what a descriptor led to
#: What the kernel calls the descriptors of a watch on a folder.
_OF_A_WATCH = {"anon_inode:inotify", "anon_inode:[eventpoll]", "anon_inode:[eventfd]", _CLOSED}


class _Closable(Protocol):
    def close(self) -> None: ...


_Thing = TypeVar("_Thing", bound="Registry | _Closable")

_to_close = ExitStack()


def close_later(thing: _Thing) -> _Thing:
    """Closes it after the test: for what is opened in the middle of one."""
    _to_close.callback(thing.store.close if isinstance(thing, Registry) else thing.close)
    return thing


def close_now() -> None:
    _to_close.close()


class Holdings(NamedTuple):
    """What is open, running or not waited for at one moment."""

    files: frozenset[int]
    threads: frozenset[threading.Thread]
    children: frozenset[int]

    def without(self, other: Holdings) -> Holdings:
        return Holdings(
            self.files - other.files, self.threads - other.threads, self.children - other.children
        )

    def lines(self) -> list[str]:
        """One line for each thing, for a person to find it by."""
        return [
            *(f"descriptor {fd}: {_target(fd)}" for fd in sorted(self.files)),
            *(f"thread {thread.name}" for thread in self.threads),
            *(f"child {pid}: {_command(pid)}" for pid in sorted(self.children)),
        ]


#: What lasts for the whole run, whichever test was the first to need it.
_lasting: list[Holdings] = []


@contextmanager
def opened_for_the_run() -> Iterator[None]:
    """A fixture of the session opens its things in this block: no test is blamed for them."""
    before = held()
    yield
    _lasting.append(held().without(before))


def held() -> Holdings:
    now = Holdings(_files(), frozenset(threading.enumerate()), _children())
    for each in _lasting:
        now = now.without(each)
    return now


def left_since(before: Holdings) -> list[str]:
    """What is here now and was not then; where there is something, it may end by itself first."""
    left = held().without(before)
    if not any(left):
        return []
    for thread in left.threads:  # the console does not wait for its errands when it is left
        thread.join(PATIENCE_SEC)
    gc.collect()
    for supervisor in tuple(supervised._unburied):  # a worker does not wait for them; a test does
        supervisor.wait()
    left = held().without(before)
    deadline = time.monotonic() + PATIENCE_SEC
    while _is_let_go(left) and time.monotonic() < deadline:
        time.sleep(0.02)
        left = held().without(before)
    # A relay outlives the command that started it, on purpose; the next one reaps it.
    return left._replace(children=left.children - frozenset(relay._left)).lines()


def _is_let_go(left: Holdings) -> bool:
    """Only what a closed watch on a folder had: a thread that is not Python's closes it soon."""
    return bool(left.files) and {_target(fd) for fd in left.files} <= _OF_A_WATCH


def _files() -> frozenset[int]:
    return frozenset(fd for fd in map(int, os.listdir(_FILES)) if _is_open(fd))


def _is_open(fd: int) -> bool:
    """The list names the descriptor that it was read by, too."""
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _children() -> frozenset[int]:
    found: set[int] = set()
    for task in os.listdir(_TASKS):
        with suppress(OSError), open(f"{_TASKS}/{task}/children", "rb", 0) as file:
            found.update(map(int, file.read().split()))
    return frozenset(found)


def _target(fd: int) -> str:
    with suppress(OSError):
        return os.readlink(f"{_FILES}/{fd}")
    return _CLOSED


def _command(pid: int) -> str:
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().replace(b"\0", b" ").decode(errors="replace").strip() or "ended"
    return "ended"


class _WatchedConnection(sqlite3.Connection):
    """Warns as Python 3.13 does when it is dropped without having been closed."""

    _is_open = False

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._is_open = True

    def close(self) -> None:
        self._is_open = False
        super().close()

    def __del__(self) -> None:
        if self._is_open:
            warnings.warn(f"unclosed database {self!r}", ResourceWarning, source=self, stacklevel=2)


def watch_connections() -> None:
    """Make Python 3.11 and 3.12 warn of a connection that is never closed, as 3.13 does."""
    if sys.version_info < (3, 13):
        watched = partial(sqlite3.connect, factory=_WatchedConnection)
        setattr(sqlite3, "connect", watched)  # noqa: B010 — its type has an overload
