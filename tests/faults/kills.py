"""Random faults: a full cast plays, its members are killed, stopped and put back, then the rules.

    python -m tests.faults.kills [--rounds 1000] [--seconds T] [--seed N]

A run is cut into acts of a few dozen kills, each on a ground of its own with a
seed of its own, so that a violation comes with a short way back to it.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.faults.checker import check
from tests.faults.diary import Act, Phase, read_diaries
from tests.faults.ground import Ground
from tests.faults.nursery import Child, Nursery
from tests.faults.weather import leap, tear
from tests.faults.workload import CAST, Role
from tests.support.patience import eventually

KILLS_PER_ACT = 20
#: As in the experiment that the promises rest on: a kill every 20 to 150 ms.
_SHORTEST_SEC, _LONGEST_SEC = 0.02, 0.15
#: At most so many while one job is claimed: kills of players that do nothing prove nothing.
_KILLS_PER_CLAIM = 3


@dataclass
class Tally:
    """What a run did and what it found."""

    kills: int = 0
    in_the_lock: int = 0  #: of those, how many hit the holder of the lock as it was marked
    stops: int = 0
    indexes: int = 0  #: how often the index was thrown away under the players
    disturbances: int = 0  #: how often the server itself was killed
    leaps: int = 0  #: how often the wall clock was set an hour on or back
    torn: int = 0  #: how often a line of a history was torn
    jobs: int = 0
    claims: int = 0
    acknowledged: int = 0
    refused: int = 0
    violations: list[str] = field(default_factory=list)

    def figures(self) -> dict[str, int]:
        return {
            "kills": self.kills,
            "in the lock": self.in_the_lock,
            "stops": self.stops,
            "indexes": self.indexes,
            **({"servers": self.disturbances} if self.disturbances else {}),
            **({"leaps": self.leaps, "torn lines": self.torn} if self.leaps else {}),
            "jobs": self.jobs,
            "claims": self.claims,
            "acknowledged": self.acknowledged,
            "refused": self.refused,
            "violations": len(self.violations),
        }


class Troupe:
    """The cast on one ground: each member has a place, and an incarnation that counts up."""

    def __init__(self, nursery: Nursery, ground: Ground, seed: str) -> None:
        self._nursery = nursery
        self._ground = ground
        self._seed = seed
        self._children: list[Child] = []
        self._lives: Counter[int] = Counter()
        for place in range(len(CAST)):
            self._children.append(self._enter(place))

    def put_back(self, place: int) -> None:
        self._children[place].kill()
        self._children[place] = self._enter(place)

    def signal(self, place: int, number: signal.Signals) -> None:
        self._children[place].signal(number)

    def in_the_lock(self) -> int | None:
        """The place of the member that has marked the lock, if one has."""
        try:
            mark = (self._ground.registry_dir / ".lock").read_text()
        except OSError:
            return None
        pids = [str(child.pid) for child in self._children]
        holder = mark.partition(" ")[0]
        return pids.index(holder) if holder in pids else None

    def end(self) -> None:
        for child in self._children:
            child.signal(signal.SIGKILL)
        for child in self._children:
            child.wait()

    def _enter(self, place: int) -> Child:
        self._lives[place] += 1
        role: Role = CAST[place]
        name = f"{role}{place}.{self._lives[place]}"
        return self._nursery.start("play", role, str(self._ground.root), name, self._seed)


def one_act(
    nursery: Nursery,
    ground: Ground,
    seed: str,
    kills: int,
    tally: Tally,
    disturb: Callable[[], None] | None = None,
    *,
    bad_weather: bool = False,
) -> None:
    """Play, kill `kills` times at random, end everything, recover once, check.

    `disturb` is called now and then: something else that happens to a registry.
    In bad weather the clock leaps and lines are torn meanwhile.
    """
    dice = random.Random(seed)
    ground.diaries_dir.mkdir(parents=True)
    troupe = Troupe(nursery, ground, seed)
    try:
        for number in range(kills):
            time.sleep(dice.uniform(_SHORTEST_SEC, _LONGEST_SEC))
            # On a busy machine that pause alone may see nobody play.
            least = number / _KILLS_PER_CLAIM
            eventually(partial(_has_claims, ground, least), "a job is claimed")
            place = dice.randrange(len(CAST))
            if dice.random() < 0.6:
                # A kill inside the lock is worth more than one between two calls.
                for _ in range(200):
                    if (holder := troupe.in_the_lock()) is not None:
                        place = holder
                        tally.in_the_lock += 1
                        break
            if dice.random() < 0.3:
                troupe.signal(place, signal.SIGSTOP)
                time.sleep(dice.uniform(0.01, 0.5))
                troupe.signal(place, signal.SIGCONT)
                tally.stops += 1
            troupe.put_back(place)
            tally.kills += 1
            if bad_weather and dice.random() < 0.5:
                tally.leaps += leap(ground, dice)
                tally.torn += tear(ground, dice)
            if dice.random() < 0.1:
                tally.indexes += _throw_index_away(ground)
                if disturb is not None:
                    disturb()
                    tally.disturbances += 1
    finally:
        troupe.end()
    found = check(ground)
    tally.violations += [f"seed {seed!r}: {sentence}" for sentence in found]
    _count(ground, tally)


def _throw_index_away(ground: Ground) -> bool:
    """As an operator might with ``rm -r``: what is derived can go at any moment."""
    index = ground.registry_dir / ".index"
    if not index.exists():
        return False
    shutil.rmtree(index, ignore_errors=True)  # a player may be making it anew meanwhile
    return True


def _has_claims(ground: Ground, least: float) -> bool:
    return _claims(ground) >= least


def _claims(ground: Ground) -> int:
    """How many jobs were claimed so far."""
    return sum(
        entry.phase is Phase.DONE and entry.act is Act.CLAIM and bool(entry.facts)
        for entry in read_diaries(ground.diaries_dir)
    )


def _count(ground: Ground, tally: Tally) -> None:
    tally.claims += _claims(ground)
    for entry in read_diaries(ground.diaries_dir):
        tally.acknowledged += entry.phase is Phase.DONE
        tally.refused += entry.phase is Phase.REFUSED
        if entry.phase is Phase.DONE and entry.act is Act.REGISTER:
            tally.jobs += len(entry.facts["ids"])


def campaign(
    nursery: Nursery,
    place: Path,
    seed: int,
    rounds: int,
    seconds: float = float("inf"),
    *,
    store_url: Callable[[Path], str] | None = None,
    disturb: Callable[[], None] | None = None,
    bad_weather: bool = False,
) -> Tally:
    """Acts until so many kills were made or so much time has passed.

    `store_url` names the store of each act by its root; without it, a folder of files.
    """
    tally = Tally()
    end = time.monotonic() + seconds
    while tally.kills < rounds and time.monotonic() < end:
        kills = min(KILLS_PER_ACT, rounds - tally.kills)
        act_seed = f"{seed}+{tally.kills}"
        ground = Ground(place / act_seed)
        if store_url is not None:
            ground.keep_in(store_url(ground.root))
        one_act(nursery, ground, act_seed, kills, tally, disturb, bad_weather=bad_weather)
        ground.remove()
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description="random kill -9 against the registry")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    nursery = Nursery()
    try:
        with tempfile.TemporaryDirectory(prefix="mam-faults-") as place:
            tally = campaign(
                nursery, Path(place), arguments.seed, arguments.rounds, arguments.seconds
            )
    finally:
        nursery.close()
    print(*(f"{name}: {count}" for name, count in tally.figures().items()), sep="\n")
    print(*tally.violations, sep="\n")
    return 1 if tally.violations else 0


if __name__ == "__main__":
    sys.exit(main())
