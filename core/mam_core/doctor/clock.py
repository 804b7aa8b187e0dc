"""The clock: is its date possible, is it kept in step, and does the registry know a later one?

Leases do not depend on it. The order of jobs, timeouts that cross hosts and everything that
people read do.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Iterator

from mam_core.clock import parse_stamp, stamp
from mam_core.doctor.findings import Area, Finding, note, ok, problem, warning
from mam_core.doctor.ground import Look

_AREA = Area.MACHINE
#: This code did not exist before.
_EARLIEST = parse_stamp("2026-01-01T00:00:00Z")
_UNSYNCHRONISED = 5
#: Larger than the kernel's structure on every machine; zero means that nothing is to be changed.
_BUFFER_BYTES = 1024
#: Records say whole seconds, and two hosts differ by a few.
_AHEAD_SEC = 60


def wall(look: Look) -> Iterator[Finding]:
    now = time.time()
    if now < _EARLIEST:
        words = f"it shows {stamp(now)}, which is before this program was made"
        yield problem(_AREA, "clock", words, advice="set it: timedatectl set-ntp true, or date")
    elif _is_unsynchronised():
        words = f"{stamp(now)}; the kernel knows of nobody who keeps it in step"
        advice = "timedatectl set-ntp true; it matters where several hosts share a registry"
        yield note(_AREA, "clock", words, rule="alone", advice=advice)
    else:
        yield ok(_AREA, "clock", stamp(now))


def ahead(look: Look) -> Iterator[Finding]:
    """Jobs from the future: this clock was set back, or that of another host is fast."""
    now = time.time()
    dates = [(parse_stamp(job.updated_at), job.job_id) for job in look.pending]
    dates += [(parse_stamp(job.updated_at), job.job_id) for job in look.running.values()]
    late = [one for one in dates if one[0] > now + _AHEAD_SEC]
    if late:
        moment, job_id = max(late)
        words = (
            f"job {job_id} was changed at {stamp(moment)}, which is to come: this clock was set "
            "back, or another host's is fast"
        )
        yield warning(_AREA, "clock", words, rule="ahead", advice="compare the hosts' clocks")


def _is_unsynchronised() -> bool:
    """What the kernel says; False where it cannot be asked, or may not be."""
    if sys.platform != "linux":
        return False
    try:
        ask = ctypes.CDLL(None).adjtimex
    except (OSError, AttributeError):
        return False
    return bool(ask(ctypes.create_string_buffer(_BUFFER_BYTES)) == _UNSYNCHRONISED)
