#!/usr/bin/env python3
"""Follow jobs by their events, for callers of the original.

``job_subscriber.py --job ID … | --wait-any [--timeout S] [--idle-timeout S]``
prints one line for each event and exits 0 when all jobs completed, 1 when one
did not, 2 when time was over; ``import job_subscriber`` gives `subscribe`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

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

__all__ = ["subscribe"]


def subscribe(
    job_ids: str | Iterable[str] = (),
    *,
    wait_any: bool = False,
    timeout: float | None = None,
    idle_timeout: float | None = None,
    registry_dir: str | os.PathLike[str] | None = None,
) -> int:
    """Follow these jobs, or all live ones, to their ends; the answer is the exit code."""
    from mam_core.cli.main import main
    from mam_core.config import load
    from mam_core.locations import registry_place

    if registry_dir is None:  # the one of the folder that we are in, and of none above it
        registry_dir = registry_place(load().registry_dir).path
    words = ["watch"]
    for job_id in [job_ids] if isinstance(job_ids, str) else job_ids:
        words.append(f"--job={job_id}")
    if wait_any:
        words.append("--wait-any")
    for flag, value in (
        ("--timeout", timeout),
        ("--idle-timeout", idle_timeout),
        ("--registry-dir", registry_dir),
    ):
        if value is not None:
            words.append(f"{flag}={value}")
    return main(words)


if __name__ == "__main__":
    from mam_core.cli.main import entry

    sys.argv.insert(1, "watch")
    entry("job_subscriber.py")
