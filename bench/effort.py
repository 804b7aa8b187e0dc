"""How much is measured: the whole, or a quick look with fewer rounds and smaller sizes."""

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
)
