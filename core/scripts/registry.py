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
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from mam_core.api import next_seq, pick_pending, register_job, registry_lock, update_status

__all__ = ["next_seq", "pick_pending", "register_job", "registry_lock", "update_status"]

if __name__ == "__main__":
    from mam_core.cli.main import entry

    entry("registry.py")
