"""``python -m mam_core.demo.guard FOLDER``: sleeps until the owner of a demonstration is gone.

An owner that ends well leaves it nothing to do. One that was killed leaves everything, and a
kill -9 is no reason for simulated agents to stay. It imports little before it is needed.
"""

from __future__ import annotations

import os
import signal
import sys

from mam_core.demo.place import Place, take_over


def main(root: str) -> int:
    # It is asked to end by its owner's end and by nothing else; ^C is meant for the owner.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    place = Place(root)
    lock = take_over(place, wait=True)
    if lock is None or not place.is_there:
        return 0
    try:
        from mam_core.demo.clearing import clear

        clear(place)
    finally:
        os.close(lock)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
