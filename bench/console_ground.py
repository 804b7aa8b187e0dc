"""The ground of the console's figures: registries of many sizes, and the console on a stage.

The console is the installed command, started as a person starts it; only its preferences are
made beforehand: no panel and no hint of a first run, so that all of the width is the table's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bench.console_stage import Show, Stage
from bench.figures import Wrong
from bench.ground import Ground, bare_jobs
from bench.machine import REPOSITORY
from bench.processes import MAM
from mam_core.operations.preferences import Preferences

#: What the board says when it has read a registry without jobs.
NO_JOBS = "there are no jobs yet"


def registry(ground: Ground, jobs: int) -> str:
    """So many pending jobs, none of them ever claimed; made once a run."""
    path = ground.path(f"console-{jobs}")
    if not os.path.exists(path):
        os.makedirs(path, mode=0o700)
        bare_jobs(path, jobs)
    return path


def open_console(ground: Ground, stage: Stage, path: str, *options: str) -> tuple[Show, float]:
    """The console on a registry, and when it was asked for."""
    home = os.path.join(ground.root, "console-home")
    settings = {"XDG_CONFIG_HOME": home, "XDG_STATE_HOME": home, "XDG_DATA_HOME": home}
    Preferences(panel=False, hint_seen=True).save(settings | {"HOME": home})
    return stage.start([MAM, "--registry-dir", path, *options], **settings)


def until_shown(show: Show, jobs: int) -> float:
    """The moment at which the console shows what there is."""
    return show.wait_for(f"{jobs} queued" if jobs else NO_JOBS)


class Source:
    """The process from which news come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def begin(self, kind: str, jobs: Sequence[str], number: int, rate: float, **more: Any) -> None:
        """Rate 0: as fast as it goes."""
        assert self._process.stdin is not None
        orders = {"kind": kind, "jobs": list(jobs), "number": number, "rate": rate, **more}
        self._process.stdin.write(json.dumps(orders) + "\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """Until all of it is done."""
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "ready":
            raise Wrong("the process that makes news has ended")


@contextmanager
def source(path: str) -> Iterator[Source]:
    command = [sys.executable, "-m", "bench.console_source", path]
    environment = os.environ | {"PYTHONPATH": REPOSITORY}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            made = Source(process)
            made.end()
            yield made
        finally:
            process.kill()
