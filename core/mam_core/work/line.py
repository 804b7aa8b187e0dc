"""The supervisor's end of its line to the worker: orders in, reports out, never waiting.

A worker that is stopped reads nothing. What matters is kept until it does; what
is only a sign of life is left out when there is no room for it.
"""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Before the orders: their length.
LENGTH_BYTES = 4


class Line:
    """An open socket, by its number: the `socket` module would cost 8 ms."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.is_closed = False
        self._heard = b""
        self._unsaid = b""

    def orders(self) -> bytes | None:
        """Waits for them; None when the worker went away first."""
        head = self._take(LENGTH_BYTES)
        orders = self._take(int.from_bytes(head, "big")) if head else None
        os.set_blocking(self.fd, False)
        return orders

    def hear(self) -> list[list[str]]:
        """What the worker has said since, as words."""
        try:
            data = os.read(self.fd, 4096)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.is_closed = True
            return []
        *lines, self._heard = (self._heard + data).split(b"\n")
        return [line.decode("ascii").split() for line in lines if line]

    def say(self, report: str, **facts: Any) -> None:
        """A report that must arrive."""
        self._unsaid += _json(report, facts)
        self._flush()

    def mention(self, report: str, **facts: Any) -> None:
        """A report that is worth nothing when it is late."""
        self._flush()
        if not self._unsaid:
            self.say(report, **facts)

    def finish(self) -> None:
        """Wait until all is said, or nobody is there to hear it."""
        poll = select.poll()
        poll.register(self.fd, select.POLLOUT)
        while self._unsaid and not self.is_closed:
            poll.poll(1000)
            self._flush()

    def _flush(self) -> None:
        try:
            while self._unsaid and not self.is_closed:
                self._unsaid = self._unsaid[os.write(self.fd, self._unsaid) :]
        except BlockingIOError:
            return
        except OSError:
            # Its end is seen when we read; a report that nobody hears holds up nothing.
            self._unsaid = b""

    def _take(self, size: int) -> bytes | None:
        parts = []
        while size:
            part = os.read(self.fd, min(size, 1 << 20))
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _json(report: str, facts: dict[str, Any]) -> bytes:
    """One line. Its words are ours: letters, digits, blanks, nothing that needs an escape."""
    told = "".join(f', "{name}": {_value(value)}' for name, value in facts.items())
    return f'{{"report": "{report}"{told}}}\n'.encode()


def _value(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(_value(one) for one in value)}]"
    return str(value)
