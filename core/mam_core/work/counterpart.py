"""A job may have a counterpart in a file of somebody else's: a task of the dispatch registry.

The counterpart is asked before the job's agent is started, and told as it goes. It
belongs to the job and not to whoever started the worker, so that a job which a
person retries from the console keeps it wherever it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from mam_core.records import Job
from mam_core.registry import Registry


class Counterpart(Protocol):
    """Of one attempt of one job."""

    @property
    def environ(self) -> Mapping[str, str]:
        """What its agent is told beside the facts of every job."""

    def refusal(self) -> str:
        """Why the attempt must not begin, as a sentence; empty when it may, and is claimed there.

        Raises a `MamError` when that cannot be said now.
        """

    def started(self, pid: int, log: str) -> None:
        """Its process runs, and prints into this log."""

    def ended(self, job: Job) -> None:
        """The job, as it stands after the attempt."""


#: The counterpart of a job that was claimed; None for most.
CounterpartOf = Callable[[Registry, Job], Counterpart | None]


def no_counterpart(_registry: Registry, _job: Job) -> None:
    return None
