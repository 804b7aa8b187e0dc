"""The graph is made on a thread: of ten thousand jobs it takes a tenth of a second."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from mam_core.board.why import BlockReasons
from mam_core.summaries import Summary
from mam_tui.graph.lines import NOTHING, Drawing, drawing


class Question(NamedTuple):
    """What is to be drawn; put together on the console's own thread."""

    jobs: list[Summary]
    folded: frozenset[str]  #: groups
    now: float
    reasons: BlockReasons  #: the board's


class Read(NamedTuple):
    """What came of it."""

    drawing: Drawing
    known: Mapping[str, Summary]  #: the jobs that it was made of
    reasons: BlockReasons
    took_sec: float = 0.0  #: of a processor


def nothing_yet() -> Read:
    return Read(NOTHING, {}, BlockReasons(_nobody))


def read(asked: Question) -> Read:
    """On a thread."""
    began = time.thread_time()
    known, reasons = {job.job_id: job for job in asked.jobs}, asked.reasons
    drawn = drawing(asked.jobs, lambda job: reasons.is_held(job, asked.now), asked.folded)
    return Read(drawn, known, reasons, time.thread_time() - began)


def _nobody(_: str) -> None:
    return None
