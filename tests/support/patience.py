"""Waiting for something to be so: in short steps, with a limit that only a failure reaches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from mam_core.work.processes import look

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


def until_gone(find: Callable[[], Iterable[int]]) -> None:
    """Wait for the end of the processes that are found, and look for others only then.

    To find them, all processes of the machine are looked at: too much for every 20 ms.
    """
    while found := list(find()):
        for pid in found:
            eventually(partial(_is_gone, pid), f"the end of process {pid}")


def _is_gone(pid: int) -> bool:
    return look(pid) is None


async def until(pilot: Pilot[Any], is_so: Callable[[], Any], what: str = "it comes to that") -> Any:
    """The same, while a console goes on beside it."""
    deadline = time.monotonic() + PATIENCE_SEC
    while not (answer := is_so()):
        assert time.monotonic() < deadline, f"not within {PATIENCE_SEC:g} s: {what}"
        await pilot.pause(0.02)
    return answer
