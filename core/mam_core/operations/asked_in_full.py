"""A question in full, where this host has the agent's output.

An event tells it short, without keys and places, since events travel. Whoever says
yes should see all of what he permits; that stands in the attempt's own log, which
only its owner can read.
"""

from __future__ import annotations

import json
import os
from typing import Any

from mam_core.disk import Folder
from mam_core.errors import MamError
from mam_core.records import Job
from mam_core.registry import Registry
from mam_core.work.output import OUTPUT

#: So far back from the end of the log: an agent that waits says little more.
_LOOK_BACK = 8 * 1024 * 1024


def asked_in_full(registry: Registry, job: Job, name: str) -> dict[str, Any] | None:
    """The input of the tool that the agent asks for; None where it cannot be had."""
    place = os.path.join(registry.store.audit.path, job.job_id, "attempts", str(job.attempt))
    try:
        with Folder.open(place) as folder:
            fd, status = folder.open_file(OUTPUT)
            with os.fdopen(fd, "rb") as file:
                file.seek(max(0, status.st_size - _LOOK_BACK))
                lines = file.read(_LOOK_BACK).split(b"\n")
    except (OSError, MamError):
        return None
    wanted = json.dumps(name).encode()
    found = (_given(line, name) for line in lines if wanted in line)
    return next((given for given in found if given is not None), None)


def _given(line: bytes, name: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
        if entry["type"] != "control_request" or entry["request_id"] != name:
            return None
        given = entry["request"]["input"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
    return given if isinstance(given, dict) else None
