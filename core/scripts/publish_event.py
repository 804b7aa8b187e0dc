#!/usr/bin/env python3
"""Publish one event of a job, for callers of the original.

``publish_event.py --job ID --event completed [--detail TEXT] [--data JSON]``;
``import publish_event`` gives `publish_event`. The registry alone says where
the event goes. With the broker down it is queued, and that is no error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

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

__all__ = ["publish_event"]


def publish_event(
    job_id: str,
    event: str,
    detail: str = "",
    data: Mapping[str, Any] | None = None,
    registry_dir: str | os.PathLike[str] | None = None,
    *,
    attempt: int | None = None,
) -> dict[str, Any]:
    """The event as it is told, with its `seq`; it is on disk when this returns."""
    from mam_core.config import load
    from mam_core.locations import registry_place
    from mam_core.operations.publish import publish
    from mam_core.wiring import open_registry

    config = load()
    path = registry_place(os.fspath(registry_dir) if registry_dir else config.registry_dir).path
    with open_registry(path, config=config) as registry:
        sent = publish(
            registry, path, config, job_id, event, detail=detail, data=data, attempt=attempt
        )
    return sent.published.event.to_dict()


if __name__ == "__main__":
    from mam_core.cli.main import entry

    sys.argv.insert(1, "publish")
    entry("publish_event.py")
