"""Work beside the console's own thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any


def started(name: str, work: Callable[..., object], *given: Any) -> threading.Thread:
    """In the context of whoever asks, by which Textual finds the app; it ends with the process."""
    run = copy_context().run
    thread = threading.Thread(target=run, args=(work, *given), name=name, daemon=True)
    thread.start()
    return thread
