"""How mam starts its own Python, so that no other code gets in before ours.

A `textual` in a folder of PYTHONPATH, or in the current one, would be imported in the place of what
mam was installed with. ``-E`` ignores the variables and leaves them in the environment, where the
agents need them; ``-P`` leaves out the current folder. ``-I`` would also leave out the person's own
site folder, which is where ``pip install --user`` puts us.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

_SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def own_python() -> tuple[str, ...]:
    """What every command that runs our code begins with."""
    if _found_by_surroundings():
        return (sys.executable, "-P")
    return (sys.executable, "-E", "-P")


def start_again_undisturbed() -> None:
    """The same command once more without the variables; returns where that cannot be done."""
    if sys.executable and not _found_by_surroundings():
        with suppress(OSError):
            os.execv(sys.executable, [*own_python(), *sys.orig_argv[1:]])


def _found_by_surroundings() -> bool:
    """Whether `mam_core` itself comes from where ``-E -P`` would not look."""
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if not sys.flags.safe_path:  # then the first one is the folder of the script, or the current
        folders.append(sys.path[0])
    if any(folder and os.path.realpath(folder) == os.path.realpath(_SOURCE) for folder in folders):
        return True
    base = os.environ.get("PYTHONUSERBASE", "")
    return bool(base) and _SOURCE.startswith(os.path.join(os.path.abspath(base), ""))
