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

import os

POLL_VARIABLE = "MAM_POLL_SEC"


def paced(usual_sec: float) -> float:
    """The usual pause, capped. What is not a positive number caps nothing."""
    said = os.environ.get(POLL_VARIABLE)
    if said is None:
        return usual_sec
    try:
        cap_sec = float(said)
    except ValueError:
        return usual_sec
    return min(usual_sec, cap_sec) if cap_sec > 0 else usual_sec
