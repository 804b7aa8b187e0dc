"""A console for pictures: everything in it is fixed, from the ids to the clock on the wall.

The registry is a real one, filled by its own verbs. What the machine would add (a broker, tmux,
the names of host and folders) is put in its place by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mam_core import acts
from mam_core.agents.states import Shown, ShownState
from mam_core.clock import fine_stamp, stamp
from mam_core.config import Config, load
from mam_core.events.feed import FeedState
from mam_core.machine import Machine
from mam_core.operations.evidence import gather
from mam_core.operations.listing import listing, query
from mam_core.operations.nodes import Node, NodeState
from mam_core.operations.sessions import Seen, SessionState
from mam_core.records import Job, Reason, Status
from mam_core.registry import Registry
from mam_core.sessions import Session
from mam_core.stores.base import GateKind, Paper
from mam_core.tmux.facts import Capture, PaneFact
from mam_tui.arrivals import Loaded
from mam_tui.bridge import Bridge
from mam_tui.desk import Desk
from mam_tui.nodes.watch import NodeLook, NodeWatch
from mam_tui.sessions.rows import SessionRow
from mam_tui.sessions.watch import SessionLook, SessionWatch
from mam_tui.state_watch import States
from tests.console.detail_story import WORKER, registry_in, two_attempts
from tests.support.clock import FakeClock

UP = FeedState(True, 0.0, "", True, 0.0, "", 0, 0, {}, "")
_SCREEN = (
    "\x1b[1mclaude-code\x1b[0m  counting the stars",
    "",
    "  \x1b[32m✔\x1b[0m read sky.txt",
    "  \x1b[33m?\x1b[0m May I write stars.txt?",
    "    1. yes   2. no",
    "\x1b[7m>\x1b[0m ",
)


class StillBridge(Bridge):
    """Tells what it is given, and nothing else."""

    told: Sequence[Any] = ()
    stands = UP

    def start(self) -> None:
        self._put(*self.told)

    def tell(self, *arrivals: Any) -> None:
        self._put(*arrivals)

    @property
    def state(self) -> FeedState:
        return self.stands


class StillPanes:
    """One session of tmux, and what it shows."""

    def __init__(self, job_id: str, now: float, config: Config) -> None:
        self.config = config
        self.pane = PaneFact(
            *("%1", "alpha", 4711, False, None, None, "counting", "tmux:alpha"),
            *("claude-code", job_id, 2, 80, 24, now - 400, now - 3),
        )

    def facts(self) -> list[PaneFact]:
        return [self.pane]

    def captures(self, pane_ids: Sequence[str]) -> dict[str, Capture]:
        return {one: Capture(_SCREEN, (2, 5), "counting") for one in pane_ids}

    def plain(self, pane_id: str) -> Capture:
        return Capture(("May I write stars.txt?", "1. yes   2. no"), (0, 0), "counting")

    def close(self) -> None:
        return


class StillDesk(Desk):
    """One whose registry goes by our clock."""

    def __init__(self, path: str, config: Config, clock: FakeClock) -> None:
        super().__init__(path, config, clock=clock.now)
        self._clock = clock

    def open_registry(self) -> Registry:
        registry = super().open_registry()
        registry.clock = self._clock
        return registry

    def services(self, registry: Registry) -> None:
        """Which workers run here is the machine's, too."""


class Scene:
    """A registry with a job in every state, made once for all pictures of a tour."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        self.folder, self.clock = folder, clock
        self.has_sessions = self.has_tmux = self.has_nodes = self.has_broker = True
        workdir = folder / "work"
        workdir.mkdir()
        self.registry = registry_in(folder, clock)
        self._shown: dict[str, Shown] = {}
        with self.registry:
            self.asking = two_attempts(self.registry, clock, workdir)
            self._see(self.asking, ShownState.WAITING, "May I write stars.txt?")
            self._fill()
            self.registry.heartbeat(self.asking, WORKER, attempt=2)
            found = listing(self.registry, query())
            groups = {job.group for job in found.jobs if job.group is not None}
            evidence = gather(self.registry, None, (), groups)
        self.told = (Loaded(found), States(self._shown, evidence))

    def _fill(self) -> None:
        for state, prompt, words in (
            (ShownState.WORKING, "Write tests for the parser", "editing parser.py"),
            (ShownState.STARTING, "Translate the manual into 한국어 and Čeština", ""),
            (ShownState.IDLE, "Look through the logs of last night", ""),
            (ShownState.FINISHING, "Sort the imports", ""),
            (ShownState.STALE, "Fetch the weather data", "no heartbeat for 40s"),
            (ShownState.LOST, "Bake the documentation", "its worker has died"),
            (ShownState.WORKING, "Rename every module", ""),
        ):
            self._see(self._run(prompt).job_id, state, words)
        self.registry.request_cancel(list(self._shown)[-1])
        self._end(self._run("Update the licence"), Status.COMPLETED, None)
        self._end(self._run("Make it faster"), Status.ERROR, Reason.EXIT)
        self.registry.request_cancel(self._add("Not needed any more"))
        self._add("Draw the icons", "gemini")
        self.registry.pause(GateKind.AGENT, "gemini", why="quota used up")
        self._add("Check the links", group="nightly")
        self._add("A prompt of several lines,\nand \x1b[31ma hostile one\x1b[0m", priority=5)
        (self.folder / "jobs" / "damaged1.json").write_text("{ this is no JSON")

    def _add(self, prompt: str, agent: str = "codex", **more: Any) -> str:
        request = {"prompt": prompt, "agent": agent, "agent_session": "tmux:beta", **more}
        self.clock.pass_time(7)
        return self.registry.register([request])[0].job_id

    def link(self, docs_words: str = "Write the documentation in 한국어 too") -> list[Job]:
        """Jobs that come after others, and one pause."""
        registry, release = self.registry, {"group": "release"}
        old = self._add("Fetch the sources of last week")
        plan = self._add("Plan the release, and write down who does what")
        api = self._add("Write the new API", after=[plan], **release)
        docs = self._add(docs_words, after=[plan], **release)
        tests = self._add("Test the API", after=[api, plan], **release)
        ids = [old, plan, api, docs, tests]
        ids.append(self._add("Build them", after=[old]))
        ids.append(self._add("Publish it", after=[tests, docs, plan], **release))
        ids.append(self._add("Tell everybody about it", "gemini", after=[ids[-1]]))
        ids.append(self._add("Send the charts", not_before="2030-01-01T08:00:00Z"))
        for done in (old, plan, ids[5]):
            registry.set_status(done, Status.COMPLETED)
        registry.set_status(api, Status.RUNNING)
        registry.set_status(docs, Status.ERROR)
        registry.pause(GateKind.AGENT, "gemini", why="quota used up")
        return [registry.get(job_id) for job_id in ids]

    def _run(self, prompt: str) -> Job:
        self._add(prompt)
        self.clock.pass_time(11)
        job = self.registry.claim("tmux:beta", lease=WORKER)
        assert job is not None
        return job

    def _end(self, job: Job, status: Status, reason: Reason | None) -> None:
        self.clock.pass_time(29)
        self.registry.finish(job.job_id, status, attempt=1, reason=reason)

    def _see(self, job_id: str, state: ShownState, words: str) -> None:
        self._shown[job_id] = Shown(state, words, "stream", "turn", self.clock.now())

    def desk(self, config: Config) -> StillDesk:
        made = StillDesk(str(self.folder / "jobs"), config, self.clock)
        vars(made)["panes"] = StillPanes(self.asking, self.clock.now(), config)
        return made

    def sessions(self) -> SessionLook:
        if not self.has_sessions or not self.has_tmux:
            return SessionLook(has_tmux=self.has_tmux)

        def kept(name: str, agent: str, mode: str) -> Session:
            began = stamp(self.clock.now() - 4000)
            return Session(
                name, f"tmux:{name}", agent, mode, "/srv/sky", "/srv", began, "operator", "host"
            )

        pane = StillPanes(self.asking, self.clock.now(), load()).pane
        alive, dead = SessionState.ALIVE, SessionState.DEAD
        asking = Shown(ShownState.WAITING, "May I write stars.txt?", "stream", "turn", None)
        ended = pane._replace(pane_id="%2", session="gamma", dead=True, exit_code=3, job_id="")
        return SessionLook(
            (
                SessionRow(
                    Seen(
                        "alpha",
                        alive,
                        kept("alpha", "claude-code", "stream"),
                        pane,
                        jobs=(self.asking,),
                        queued=2,
                        memory=312_000_000,
                    ),
                    asking,
                    self.asking,
                    0.42,
                ),
                SessionRow(Seen("beta", alive, kept("beta", "codex", "interactive"), queued=3)),
                SessionRow(Seen("gamma", dead, kept("gamma", "codex", "stream"), ended)),
            )
        )

    def scale(self) -> None:
        """A person set one group, and the autoscaler decided about another."""
        figures = {"cores": 8, "cpu": 12.5, "memory": 34.0, "load": 0.8, "swapped": 0}
        with self.registry as registry:
            registry.set_slots("nightly", 4, why="it is late")
            with registry.store.transaction() as tx:
                paper = acts.decode(tx.paper(Paper.ACTS))
                at = fine_stamp(registry.clock.now() - 90)
                why = "CPU below 40 % and memory below 60 %"
                step = acts.Act(
                    at, "autoscaler host:7", acts.Deed.UP, "release", 2, 3, why, figures
                )
                tx.set_paper(Paper.ACTS, acts.encode(paper.with_act(step)))
                tx.set_gates(tx.gates_to_change().with_slots("release", 3))

    def nodes(self) -> NodeLook:
        """One at work, one that drains, one that was cut off, and one of the records only."""
        if not self.has_nodes:
            return NodeLook()
        now = self.clock.now()
        big = Machine(16, 6.4, 64 << 30, 21 << 30)
        none: tuple[str, ...] = ()
        up = Node(
            *("elm", NodeState.UP, None, 2, 6, (self.asking, "job00003", "job00004")),
            *(("tmux:alpha", "tmux:beta"), ("0.9.0",), big, 0.02, now - 3),
        )
        lime = up._replace(name="lime", running=("job00005",), sessions=("tmux:gamma",))
        lime = lime._replace(machine=Machine(4, 0.3, 8 << 30, 5 << 30), clock_offset=-301.4)
        oak = up._replace(name="oak", state=NodeState.STALE, since=now - 250, heard_at=now - 250)
        ash = Node("ash", NodeState.SILENT, None, 0, 0, ("job00007",), none, none, None, None, None)
        nodes = (up, lime.drained("new disk on Monday"), oak._replace(clock_offset=None), ash)
        if self.has_broker:
            return NodeLook(nodes)
        trouble = "the broker does not answer: hosts are as they were heard last"
        return NodeLook(nodes, trouble, is_stale=True)


def still_sessions(monkeypatch: pytest.MonkeyPatch, look: Callable[[], SessionLook]) -> None:
    """The view of sessions sees these, whatever runs here."""
    monkeypatch.setattr(SessionWatch, "_look", lambda self: self._deliver(look()))


def still_nodes(monkeypatch: pytest.MonkeyPatch, look: Callable[[], NodeLook]) -> None:
    """Likewise."""
    monkeypatch.setattr(NodeWatch, "_look", lambda self: self._deliver(look()))
