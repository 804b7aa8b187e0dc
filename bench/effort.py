"""How much is measured: the whole, a quick look, or only whether every part still runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """Rounds, and operations in a turn: small ones, so that turns change within a second."""

    rounds: int
    claims: int  #: with an open handle
    new_handles: int
    few_claims: int  #: where the backlog is small and must last for all rounds
    scan_rounds: int
    scans: int
    crowd_rounds: int
    crowd_claims: int  #: by each of the processes
    registers: int
    bulk_rounds: int
    bulk: int  #: jobs in one call of the rounds; fewer than 10,000, which is harder on us
    lists: int
    starts: int
    events: int  #: brought to a broker in one turn
    worker_rounds: int
    jobs: int  #: that a worker runs in one turn
    pending: int  #: the usual backlog
    tasks: int  #: that dispatchers run in one round
    large: int  #: the backlog, and the history, that must not cost anything
    share: float  #: of the numbers and times that are the same in a whole run and in a quick one

    @property
    def claimable(self) -> int:
        """Of each backlog, so many jobs are registered in the usual way: those to be claimed."""
        return self.pending // 10

    @property
    def few(self) -> int:
        """A backlog that is next to none."""
        return self.pending // 25

    @property
    def logs(self) -> int:
        """Jobs with a long history."""
        return min(self.pending, self.large // 10)

    def some(self, usual: int) -> int:
        """At least two: a percentile needs as many."""
        return max(2, round(usual * self.share))

    def seconds(self, usual: float) -> float:
        """At least one: processor time is counted in ticks."""
        return max(1.0, usual * self.share)


FULL = Effort(
    rounds=15,
    claims=40,
    new_handles=20,
    few_claims=15,
    scan_rounds=7,
    scans=1,
    crowd_rounds=7,
    crowd_claims=25,
    registers=20,
    bulk_rounds=5,
    bulk=2_000,
    lists=9,
    starts=21,
    events=400,
    worker_rounds=3,
    jobs=200,
    pending=10_000,
    tasks=1_000,
    large=100_000,
    share=1.0,
)

QUICK = Effort(
    rounds=7,
    claims=20,
    new_handles=10,
    few_claims=10,
    scan_rounds=5,
    scans=1,
    crowd_rounds=5,
    crowd_claims=10,
    registers=10,
    bulk_rounds=5,
    bulk=300,
    lists=5,
    starts=7,
    events=150,
    worker_rounds=3,
    jobs=40,
    pending=10_000,
    tasks=60,
    large=10_000,
    share=1.0,
)

#: Nothing is measured by this: it tells whether a part still runs.
SMOKE = Effort(
    rounds=1,
    claims=2,
    new_handles=1,
    few_claims=1,
    scan_rounds=1,
    scans=1,
    crowd_rounds=1,
    crowd_claims=2,
    registers=2,
    bulk_rounds=1,
    bulk=20,
    lists=1,
    starts=1,
    events=5,
    worker_rounds=1,
    jobs=4,
    pending=1_000,
    tasks=4,
    large=1_000,
    share=0.02,
)
