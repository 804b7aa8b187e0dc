"""``mam`` on a host whose clock is wrong: ``python skewed.py SECONDS WORDS…``.

A time namespace moves the clocks since boot only: the wall clock is moved where Python asks it.
"""

from __future__ import annotations

import sys
import time

if __name__ == "__main__":
    _ahead, _right = float(sys.argv.pop(1)), time.time
    time.time = lambda: _right() + _ahead
    from mam_core.cli.main import entry

    entry()
