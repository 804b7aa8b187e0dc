"""How long a loop pauses between two looks: its usual pause, or less where somebody is in a hurry.

`MAM_POLL_SEC` caps every pause after which a loop only looks or tries again. Tests set it to a
few milliseconds, here and in the processes that they start, so that they wait for what happens
and not for the next look.

Two kinds of times do not go through here. One is part of the behaviour: a limit, a lease, a grace,
how long something must hold before it is believed, how often something is tried before it is given
up. The other is a look behind a notification, such as the feed's full rescan: were it frequent,
nobody would see that the notification is broken.
"""

from __future__ import annotations

import math
import os

POLL_VARIABLE = "MAM_POLL_SEC"

#: An ending command waits this long for its own threads. One that no longer moves (a database
#: that hangs, a disk that is gone) must not keep the process: it goes with it.
PARTING_SEC = 5.0

#: A try to connect costs as much as many looks: files are read, the kernel's table of sockets, a
#: login is checked. Its cap is so many times higher.
_LOOKS_A_TRY = 10


def paced(usual_sec: float) -> float:
    """The usual pause between two looks, capped."""
    return min(usual_sec, _cap_sec())


def paced_retry(usual_sec: float) -> float:
    """The usual pause before another try to connect, capped."""
    return min(usual_sec, _LOOKS_A_TRY * _cap_sec())


def _cap_sec() -> float:
    """What is not a positive number caps nothing."""
    try:
        cap_sec = float(os.environ.get(POLL_VARIABLE, "inf"))
    except ValueError:
        return math.inf
    return cap_sec if cap_sec > 0 else math.inf
