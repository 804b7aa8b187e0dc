"""Something that is done once, a little later, and is never forgotten.

A timer of Textual that should ring once never rings when its time has passed before it was
set up: with a millisecond to go, and another thread at work for five, that happens. Whoever
waits for it, and sets up no other meanwhile, would wait for good.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual.message_pump import MessagePump


def soon(pump: MessagePump, pause_sec: float, do: Callable[[], object]) -> asyncio.TimerHandle:
    """On the console's own thread, among the messages of `pump`; the answer can be cancelled."""
    return asyncio.get_running_loop().call_later(pause_sec, pump.call_later, do)
