"""The files of a job are on the host that ran it: what lies here under the same names is not them.

Hosts may share a disk. An attempt of which this host sees the folder, with its output and the
mark of its process, has its other files here as well; of any other nothing is claimed.
"""

from __future__ import annotations

import os

from mam_core.errors import MamError
from mam_core.operations.elsewhere import is_elsewhere
from mam_core.records import Job
from mam_core.registry import Registry
from mam_core.work.witnesses import ATTEMPTS


class RanElsewhere(MamError):
    """Another host ran it."""

    title = "On another host"


def need_its_files(registry: Registry, job: Job, attempt: int) -> None:
    """Raises `RanElsewhere` where the files of this attempt are not to be had here."""
    place = os.path.join(registry.store.audit.path, job.job_id, ATTEMPTS, str(attempt))
    if is_elsewhere(registry, job) and not os.path.isdir(place):
        raise RanElsewhere(f"job {job.job_id} was run on {job.node}: its files are there")
