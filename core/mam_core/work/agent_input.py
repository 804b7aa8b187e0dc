"""What is said to an agent at work: a queue before its input, so that nobody waits for it to read.

An agent that reads nothing for a while (a model is thinking) must not hold up the
loop that renews its lease. What it has not read is kept up to a bound; beyond
that the speaker is told, and decides what is worth keeping.
"""

from __future__ import annotations

import fcntl
import os
import sys
import termios

from mam_core.errors import MamError

#: More than this is not kept for an agent that does not read; a prompt of the largest size with
#: every byte escaped is.
BOUND_BYTES = 8 * 1024 * 1024
_CHUNK = 65536


class AgentDoesNotRead(MamError):
    """What was said before has not been read, and there is no room for more."""

    title = "Agent"


class AgentInput:
    """The writing end of a pipe or of a terminal; made non-blocking."""

    def __init__(self, fd: int, *, bound: int = BOUND_BYTES) -> None:
        self.fd = fd
        self.is_open = True  #: False when it was hung up, or nobody is there to read
        self._bound = bound
        self._unsaid = bytearray()
        self._hanging_up = False
        os.set_blocking(fd, False)

    @property
    def is_waiting(self) -> bool:
        """Something is to be done as soon as the file can be written to."""
        return self.is_open and bool(self._unsaid or self._hanging_up)

    @property
    def was_read(self) -> bool:
        """Nothing of it waits, here or in the pipe."""
        if self._unsaid or not self.is_open:
            return False
        try:
            unread = fcntl.ioctl(self.fd, termios.FIONREAD, bytes(4))
        except OSError:
            return False
        return not int.from_bytes(unread, sys.byteorder)

    def say(self, data: bytes) -> None:
        """All of it, now or later. What is said to one who has closed his input is lost."""
        if not self.is_open or self._hanging_up:
            return
        if len(self._unsaid) + len(data) > self._bound:
            raise AgentDoesNotRead(
                f"the agent has not read {len(self._unsaid):,} bytes that were said to it before"
            )
        self._unsaid += data
        self.flush()

    def hang_up(self) -> None:
        """End of input, after what was said before."""
        self._hanging_up = True
        self.flush()

    def flush(self) -> None:
        """As much as goes without waiting; `is_open` is False afterwards when it is over."""
        try:
            while self._unsaid:
                del self._unsaid[: os.write(self.fd, self._unsaid[:_CHUNK])]
        except BlockingIOError:
            return
        except OSError:  # nobody reads any more
            self._unsaid.clear()
            self._hanging_up = True
        if self._hanging_up:
            self.is_open = False
