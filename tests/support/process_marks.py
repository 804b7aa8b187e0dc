"""Marks of processes for tests: one that lives, one that has ended."""

from __future__ import annotations

import os
import subprocess

from mam_core.process_mark import ProcessMark


def us() -> ProcessMark:
    mark = ProcessMark.of(os.getpid())
    assert mark is not None
    return mark


def dead() -> ProcessMark:
    """A process of this boot that has ended."""
    process = subprocess.Popen(["sleep", "60"])
    mark = ProcessMark.of(process.pid)
    process.kill()
    process.wait()
    assert mark is not None
    return mark
