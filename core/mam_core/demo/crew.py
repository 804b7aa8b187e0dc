"""The workers of a demonstration: in sessions of tmux, or as plain children where there is none.

Both ways a session is on record and its worker announces itself, so that it is found and ended
alike.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from contextlib import suppress

from mam_core.config import Config
from mam_core.demo.place import Place
from mam_core.demo.settings import PLAYERS, Player
from mam_core.operations.spawn import Plan, Wanted, plan, spawn
from mam_core.operations.starting import Start, Tell, worker_argv
from mam_core.pace import PARTING_SEC
from mam_core.sessions import SessionFolder
from mam_core.tmux.facts import TmuxMissing


class Crew:
    """Comes up all at once; `tell` hears what is not as it should be."""

    def __init__(self, place: Place, config: Config, tell: Tell) -> None:
        self._place = place
        self._config = config
        self._tell = tell
        self._children: list[subprocess.Popen[bytes]] = []

    def come_up(self) -> None:
        """Side by side, since most of a worker's start is waiting for its Python."""
        plans = [self._planned(player) for player in PLAYERS]
        starts = tuple(start for planned in plans for start in planned.starts)
        try:
            spawn(plans[0]._replace(starts=starts), self._config, self._tell)
        except TmuxMissing:
            self._tell("tmux is not here: the simulated agents run without sessions to look at")
            self._start_plainly(starts)

    def bury(self) -> None:
        """Plain children that were ended: nobody else can."""
        for child in self._children:
            with suppress(subprocess.TimeoutExpired):
                child.wait(PARTING_SEC)

    def _planned(self, player: Player) -> Plan:
        wanted = Wanted(
            player.label, player.agent, player.how_many, self._place.workdir, slots=player.slots
        )
        place = self._place
        return plan(place.registry_path, self._config, wanted, config_path=place.config_path)

    def _start_plainly(self, starts: Iterable[Start]) -> None:
        folder = SessionFolder(self._place.registry_path)
        for start in starts:
            with folder.changing():
                folder.put(start.session)
            child = subprocess.Popen(
                worker_argv(start, self._place.registry_path),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # ^C is meant for the demonstration, which ends them
            )
            self._children.append(child)
