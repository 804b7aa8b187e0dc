"""Where a run was made: the numbers of another machine are not comparable, its ratios may be."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import time
from importlib.metadata import version

from mam_core.disk import Folder
from mam_core.stores.mounts import file_system_of

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def describe(folder: str) -> dict[str, str]:
    with Folder.open(folder) as opened:
        kind = file_system_of(opened)
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "file system": kind or "unknown",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "huey": version("huey"),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def temp_home() -> str | None:
    """Where to make the run's folder: the usual place if it is on the repository's own disk."""
    import tempfile

    usual = tempfile.gettempdir()
    same = os.stat(usual).st_dev == os.stat(REPOSITORY).st_dev
    return usual if same else REPOSITORY


def settle_in(folder: str) -> None:
    """No setting of whoever runs us, and no folder above, has a say in what is measured."""
    for name in [name for name in os.environ if name.startswith(("MAM_", "PYTHON", "COLUMNS"))]:
        del os.environ[name]
    for name in ("DELEGATE_JOB_LOGS_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        os.environ.pop(name, None)
    os.environ["HOME"] = folder
    os.chdir(folder)
    sys.path[:] = [os.path.abspath(entry) for entry in sys.path]
