#!/usr/bin/env python3
"""The registry as one script: library and command line, for callers of the original.

``import registry`` gives `register_job`, `pick_pending`, `update_status`,
`next_seq` and `registry_lock`; run by path it takes the verbs of ``mam``. It
needs nothing installed: beside a clone's ``core/mam_core`` any Python will do.
"""

import os
import sys

try:
    import mam_core  # noqa: F401 — asks only whether it is installed
except ModuleNotFoundError:
    _core = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    _trouble = ""
    if sys.version_info < (3, 11):  # noqa: UP036 — this file may be run by the system's Python
        _trouble = f"mam needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}"
    elif not os.path.isdir(os.path.join(_core, "mam_core")):
        _trouble = (
            f"mam is not installed for {sys.executable} and not in {_core}: link to this script "
            "in a clone instead of copying it, or run it with the Python that has mam"
        )
    if _trouble:
        _trouble = f"{os.path.basename(__file__)}: {_trouble}"
        raise (SystemExit if __name__ == "__main__" else ImportError)(_trouble) from None
    sys.path.append(_core)

from mam_core.api import next_seq, pick_pending, register_job, registry_lock, update_status

__all__ = ["next_seq", "pick_pending", "register_job", "registry_lock", "update_status"]

if __name__ == "__main__":
    from mam_core.cli.main import entry

    entry("registry.py")
