"""The figures of the agents' sessions: what it costs to watch them, and to start them.

Watching is counted in processor time, of everybody who takes part: our process, its lasting
client, the tmux server, and for the yardstick the processes that it starts. Goals in shares of
a core stand as a yardstick of that length: five per cent of a core, once a second, are 50 ms.
"""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import libtmux
import psutil

from bench.figures import Figure, Measure, Wrong
from bench.ground import Ground
from bench.rounds import Runner, run
from bench.session_fleet import Fleet, crew, no_processes
from mam_core.tmux.control import TmuxGlance
from mam_core.tmux.facts import SessionPlan
from mam_core.tmux.server import TmuxServer

_WATCHED = 100
_REFRESH_GOAL_SEC = 0.05  #: of a core, once a second
_SHOWN = 16
_CAPTURE_GOAL_SEC = 0.30 / 5  #: of a core, five times a second
_SPAWNED = 20
#: Of so many workers one renews its lease in a second, and says something.
_RENEWED = 10

#: Processor time is counted in ticks of 10 ms: a turn is long enough for many of them.
_LOOKS = 40
_LIBTMUX_LOOKS = 3

_ASLEEP = ("sleep", "100000")
_COLOURED = (
    "sh",
    "-c",
    'i=0; while [ $i -lt 40 ]; do printf "\\033[3%dmline %d\\033[0m of a screen with some'
    ' \\033[1mbold\\033[0m words in it\\n" $((i % 8)) $i; i=$((i + 1)); done; exec sleep 100000',
)


class Stage:
    """A private tmux server with some sessions, a glance at it, and all of their processor time."""

    def __init__(self, ground: Ground, name: str, count: int, argv: tuple[str, ...]) -> None:
        self.path = ground.path(f"sessions-{name}")
        self.server = TmuxServer(self.path, f"mam-bench-{name}")
        self.glance = TmuxGlance(self.path, self.server.socket)
        self.home = ground.path("home")
        os.makedirs(self.home, exist_ok=True)
        for number in range(count):
            self.spawn(f"s{number}", argv)
        self.pane_ids = [pane.pane_id for pane in self.glance.panes()]
        if len(self.pane_ids) != count:
            raise Wrong(f"{len(self.pane_ids)} of {count} panes are there")
        self._server = psutil.Process(self._pid())

    def spawn(self, name: str, argv: tuple[str, ...] = _ASLEEP) -> None:
        plan = SessionPlan(name, argv, self.home, f"tmux:{name}", "bench", width=100, height=30)
        self.server.spawn(plan)

    def cpu(self) -> float:
        """Processor time so far, of all who take part."""
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        total = time.process_time() + children.ru_utime + children.ru_stime
        for other in (self._server, *psutil.Process().children()):  # the lasting clients
            times = other.cpu_times()
            total += times.user + times.system
        return total

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-L", self.server.socket, *words]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()

    def _pid(self) -> int:
        return int(self.tmux("display-message", "-p", "#{pid}"))


@contextmanager
def _stage(
    ground: Ground, name: str, count: int, argv: tuple[str, ...] = _ASLEEP
) -> Iterator[Stage]:
    """Its socket is in a folder of its own: no other tmux server is ever near."""
    with tempfile.TemporaryDirectory(prefix="mam-bench-", dir="/tmp") as sockets:
        before = os.environ.get("TMUX_TMPDIR")
        os.environ["TMUX_TMPDIR"] = sockets
        stage = None
        try:
            stage = Stage(ground, name, count, argv)
            yield stage
        finally:
            if stage is not None:
                stage.glance.close()
            end = ["tmux", "-L", f"mam-bench-{name}", "kill-server"]
            subprocess.run(end, capture_output=True, check=False)
            if before is None:
                del os.environ["TMUX_TMPDIR"]
            else:
                os.environ["TMUX_TMPDIR"] = before


def state(ground: Ground) -> list[Figure]:
    watched, times = ground.effort.some(_WATCHED), ground.effort.some(_LOOKS)
    with _stage(ground, "state", watched) as stage:
        theirs = libtmux.Server(socket_name=stage.server.socket)

        fleet = Fleet(ground, stage.path, stage.server)
        fleet.man(ground, stage.glance.panes())
        fleet.look()

        def ours() -> int:
            with no_processes():
                for _ in range(times):
                    fleet.live(_RENEWED)
                    fleet.look()
            return times

        def panes_alone() -> int:
            with no_processes():
                for _ in range(times):
                    if len(stage.glance.panes()) != watched or stage.glance.deaths():
                        raise Wrong("not every session is seen alive")
            return times

        def libtmux_looks() -> int:
            for _ in range(_LIBTMUX_LOOKS):
                if len(theirs.panes) != watched:
                    raise Wrong("libtmux does not see every session")
            return _LIBTMUX_LOOKS

        sides = [
            Runner("ours", ours),
            Runner("panes", panes_alone),
            Runner("libtmux", libtmux_looks),
        ]
        samples = run(sides, ground.effort.rounds, now=lambda: stage.cpu() - fleet.paused_sec)
        fleet.close()
    looks, panes = samples["ours"], samples["panes"]
    goal = [_REFRESH_GOAL_SEC] * len(looks)
    what = f"state of {watched} sessions at work, CPU of one look"
    bare = f"the {watched} panes alone, CPU of one look"
    return [
        Figure("state", what, "5 % of a core at 1 Hz", Measure.COST, looks, goal, 1, 0.5),
        Figure("state", bare, "5 % of a core at 1 Hz", Measure.COST, panes, goal, 1),
        Figure("state", bare, "libtmux Server.panes", Measure.COST, panes, samples["libtmux"]),
    ]


def capture(ground: Ground) -> list[Figure]:
    shown, times = ground.effort.some(_SHOWN), ground.effort.some(_LOOKS)
    with _stage(ground, "capture", shown, _COLOURED) as stage:
        theirs = libtmux.Server(socket_name=stage.server.socket).panes

        def ours() -> int:
            for _ in range(times):
                if len(stage.glance.captures(stage.pane_ids, colours=True)) != shown:
                    raise Wrong("not every pane is captured")
            return times

        def libtmux_captures() -> int:
            for _ in range(_LIBTMUX_LOOKS):
                for pane in theirs:
                    pane.cmd("capture-pane", "-p", "-e")  # as capture_pane of newer versions does
            return _LIBTMUX_LOOKS

        sides = [Runner("ours", ours), Runner("libtmux", libtmux_captures)]
        samples = run(sides, ground.effort.rounds, now=stage.cpu)
    looks = samples["ours"]
    goal = [_CAPTURE_GOAL_SEC] * len(looks)
    what = f"{shown} panes in colour, CPU of one look"
    return [
        Figure("capture", what, "30 % of a core at 5 Hz", Measure.COST, looks, goal, 1),
        Figure("capture", what, "libtmux capture_pane", Measure.COST, looks, samples["libtmux"]),
    ]


def spawn(ground: Ground) -> list[Figure]:
    count = ground.effort.some(_SPAWNED)
    with _stage(ground, "spawn", 1) as stage:
        window = ["tmux", "-L", stage.server.socket, "new-window", "-d", "-t", "=s0:"]

        def ours() -> int:
            for number in range(count):
                stage.spawn(f"new{number}")
            return count

        def bare() -> int:
            for _ in range(count):
                subprocess.run([*window, *_ASLEEP], capture_output=True, check=True)
            return count

        def clear() -> None:
            for pane in stage.server.panes():
                if pane.session != "s0":
                    stage.server.end(pane.session)
            stage.tmux("kill-window", "-a", "-t", "=s0:0")

        sides = [Runner("ours", ours, clear), Runner("bare", bare, clear)]
        samples = run(sides, ground.effort.rounds)
        command = Runner("ours", lambda: crew(ground, stage.server.socket, count), clear)
        manned = run([command, Runner("bare", bare, clear)], ground.effort.worker_rounds)
    return [
        Figure(
            "spawn",
            f"spawn of {count} sessions, each",
            "tmux new-window",
            Measure.COST,
            samples["ours"],
            samples["bare"],
            3,
        ),
        Figure(
            "spawn",
            f"mam spawn --count {count}, until every worker is up, each",
            "tmux new-window",
            Measure.COST,
            manned["ours"],
            manned["bare"],
        ),
    ]


FIGURES: Mapping[str, Callable[[Ground], list[Figure]]] = {
    "state": state,
    "capture": capture,
    "spawn": spawn,
}
