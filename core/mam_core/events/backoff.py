"""Trying again, a bounded number of times, with growing pauses."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def with_retry(
    fn: Callable[[], T],
    attempts: int = 5,
    base_delay: float = 0.5,
    max_delay: float = 10.0,
    *,
    retry_on: tuple[type[BaseException], ...] = (Exception,),
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """What `fn` answers; after `attempts` failures the last one is raised.

    The pause doubles from `base_delay` up to `max_delay`, and is shortened at
    random by up to half, so that many clients of one broker do not return as one.
    """
    for tried in range(1, max(1, attempts)):
        try:
            return fn()
        except retry_on:
            pause = min(max_delay, base_delay * 2 ** (tried - 1))
            sleep(pause * random.uniform(0.5, 1.0))
    return fn()
