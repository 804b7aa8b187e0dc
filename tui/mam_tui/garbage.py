"""When Python looks for garbage: not before the first frame, and never among the jobs.

Each look goes through everything that was made since the last, and now and then through
everything there is. A hundred thousand jobs are no garbage, and a key would wait for the look.
"""

from __future__ import annotations

import gc


def hold() -> None:
    """Nothing is looked for until `set_aside`."""
    gc.disable()


def set_aside() -> None:
    """What there is now will stay, and is not looked at again."""
    if not gc.isenabled() or gc.get_freeze_count():  # else nobody asked for it: a test, say
        gc.freeze()
        gc.enable()


def let_go() -> None:
    """The console is left, and somebody else may go on in its place."""
    gc.unfreeze()
    gc.enable()
