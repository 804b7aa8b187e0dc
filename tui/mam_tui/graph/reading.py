"""The graph is made on a thread: of ten thousand jobs it takes a tenth of a second.

What holds jobs back is read there, too: the pauses, the slots, and whom the sessions serve.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from mam_core.errors import MamError
from mam_core.operations.blocking import Blocking, Gates, Served, gates_of, served_here
from mam_core.summaries import Summary
from mam_tui.desk import Desk
from mam_tui.graph.lines import NOTHING, Drawing, drawing


class Question(NamedTuple):
    """What is to be drawn; put together on the console's own thread."""

    jobs: list[Summary]
    folded: frozenset[str]  #: groups
    now: float


class Read(NamedTuple):
    """What came of it."""

    drawing: Drawing
    known: Mapping[str, Summary]  #: the jobs that it was made of
    blocking: Blocking
    served: Served
    trouble: str = ""
    took_sec: float = 0.0  #: of a processor


def nothing_yet() -> Read:
    return Read(NOTHING, {}, Blocking((), Gates()), {})


def read(desk: Desk, asked: Question) -> Read:
    """On a thread; what cannot be read holds nobody back, and is said."""
    began = time.thread_time()
    gates, slots, trouble = Gates(), {}, ""
    served: Served = {}
    try:
        with desk.open_registry() as registry:
            gates, slots = gates_of(registry), dict(registry.slots)
            served = served_here(desk.registry_path, registry.node)
    except (MamError, OSError) as problem:
        trouble = str(problem) or type(problem).__name__
    blocking = Blocking(asked.jobs, gates, slots)
    drawn = drawing(asked.jobs, lambda job: bool(blocking.of(job, asked.now, served)), asked.folded)
    known = {job.job_id: job for job in asked.jobs}
    return Read(drawn, known, blocking, served, trouble, time.thread_time() - began)
