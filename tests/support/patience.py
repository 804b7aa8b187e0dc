"""Waiting for something to be so: in short steps, with a limit that only a failure reaches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.pilot import Pilot

PATIENCE_SEC = 60.0


def eventually(is_so: Callable[[], Any], what: str, timeout: float = PATIENCE_SEC) -> Any:
    """The first answer that was true."""
    deadline = time.monotonic() + timeout
    while not (answer := is_so()):
        assert time.monotonic() < deadline, f"not within {timeout:g} s: {what}"
        time.sleep(0.02)
    return answer


async def until(pilot: Pilot[Any], is_so: Callable[[], Any], what: str = "it comes to that") -> Any:
    """The same, while a console goes on beside it."""
    deadline = time.monotonic() + PATIENCE_SEC
    while not (answer := is_so()):
        assert time.monotonic() < deadline, f"not within {PATIENCE_SEC:g} s: {what}"
        await pilot.pause(0.02)
    return answer
