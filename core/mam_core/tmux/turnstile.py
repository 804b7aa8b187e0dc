"""Nobody comes in while a session begins or ends, or another client goes: tmux falls over that.

A control client that has said *what* it is, and not yet all of *who* it is, gets such news too
early: tmux 3.3 reads through a null pointer, and every pane goes with it (seen in 10 of 60 starts
beside clients that came and went). So whoever of us comes in, goes, starts or ends a session does
it alone. It excludes our own processes only: a person who leaves a session in the very
moment in which a console comes in is not held back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from mam_core.errors import LockTimeout
from mam_core.file_lock import lock_within
from mam_core.tmux.command import PATIENCE_SEC, Address
from mam_core.tmux.facts import TmuxFailed
from mam_core.tmux.names import turnstile_path


@contextmanager
def alone(address: Address) -> Iterator[None]:
    """One after the other, from the first word to the last answer: comes in, goes, starts, ends."""
    fd = _opened(address)
    try:
        if fd is not None:
            try:
                lock_within(fd, turnstile_path(address.path), PATIENCE_SEC)
            except LockTimeout as problem:
                raise TmuxFailed(problem.message) from None
        yield
    finally:
        if fd is not None:
            os.close(fd)


def _opened(address: Address) -> int | None:
    """Beside the socket, which is all that every client knows; None where no file can be made."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        os.makedirs(os.path.dirname(address.path), mode=0o700, exist_ok=True)  # as tmux makes it
        return os.open(turnstile_path(address.path), flags, 0o600)
    except OSError:
        return None
