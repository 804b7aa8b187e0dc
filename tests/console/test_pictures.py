"""Every view and every situation as a picture; see `snapshots` for how to draw them anew.

A further view is one line: the name of the picture, and the keys that lead there from the one
before. A tour is one console, so that many pictures cost little more than one.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from textual.command import CommandList, CommandPalette
from textual.pilot import Pilot
from textual.screen import Screen
from textual.theme import BUILTIN_THEMES
from textual.widgets import Input, TextArea

from mam_core import registration, wiring
from mam_core.config import load
from mam_core.events.feed import JobChanged, Origin
from mam_core.operations.preferences import Preferences
from mam_core.record_parts import Broker
from mam_tui.app import Console
from mam_tui.arrivals import Loaded
from mam_tui.desk import Deed
from mam_tui.plain import usual_theme
from mam_tui.screens.attention import AttentionScreen
from mam_tui.screens.compare import CompareScreen
from mam_tui.screens.fleet import FleetScreen
from mam_tui.screens.graph import GraphScreen
from mam_tui.screens.groups import GroupsScreen
from mam_tui.screens.history import HistoryScreen
from mam_tui.screens.nodes import NodesScreen
from mam_tui.screens.sessions import SessionsScreen
from mam_tui.screens.timed import TimedView
from mam_tui.widgets.detail.panel import DetailPanel
from mam_tui.widgets.search_line import SearchLine
from tests.console.at_rest import what_moves
from tests.console.picture_story import UP, Scene, StillBridge, still_nodes, still_sessions
from tests.console.snapshots import FOLDER, differences, svg_of
from tests.support.clock import FakeClock
from tests.support.patience import PATIENCE_SEC, until

pytestmark = pytest.mark.usefixtures("_still")

#: What the console takes by itself on such a terminal, by the name that this Textual has for it.
SIXTEEN_COLOURS = usual_theme("standard", BUILTIN_THEMES)


class Stage(NamedTuple):
    """What a situation is made with."""

    app: Console
    bridge: StillBridge
    scene: Scene


class Stop(NamedTuple):
    """One picture, and the way to it from the one before."""

    name: str
    keys: str = ""  #: with blanks between them
    size: tuple[int, int] | None = None
    theme: str = ""
    first: Callable[[Stage], object] = lambda stage: None  #: what happens before the keys
    then: Callable[[Stage], object] = lambda stage: None  #: and after them


class Tour(NamedTuple):
    """One console, and what is looked at."""

    stops: tuple[Stop, ...]
    size: tuple[int, int] = (120, 40)
    is_empty: bool = False
    ascii_only: bool = False
    colourless: bool = False
    is_first: bool = False


def lose_broker(stage: Stage) -> None:
    stage.bridge.stands = UP._replace(broker_up=False, broker_text="connection refused")
    stage.app._tick()


def lose_folder(stage: Stage) -> None:
    stage.bridge.stands = UP._replace(blind="the folder is not there")
    stage.app._tick()
    stage.scene.clock.pass_time(12)
    stage.app._tick()


def stop_all(stage: Stage) -> None:
    stage.scene.has_sessions = False


def lose_tmux(stage: Stage) -> None:
    stage.scene.has_tmux = False


def no_hosts(stage: Stage) -> None:
    stage.scene.has_nodes = False


def lose_hosts(stage: Stage) -> None:
    stage.scene.has_broker = False
    listen_again(stage)


def find_hosts(stage: Stage) -> None:
    stage.scene.has_broker = True
    listen_again(stage)


def listen_again(stage: Stage) -> None:
    view = stage.app.views.current
    assert isinstance(view, NodesScreen)
    view.last = None
    view.watch_nodes.rounds.soon()


def fail(stage: Stage) -> None:
    words = ("job job00011 has ended already",)
    stage.app.tell(Deed(stage.scene.clock.now(), words, False, "mam cancel job00011"))


def find_all(stage: Stage) -> None:
    stage.bridge.stands = UP
    stage.app._tick()


def change(stage: Stage) -> None:
    job = stage.scene.registry.get(stage.scene.asking)
    stage.bridge.tell(JobChanged(job.job_id, job, Origin.DIRECTORY, 0.0))


def link(stage: Stage) -> None:
    for job in stage.scene.link():
        stage.bridge.tell(JobChanged(job.job_id, job, Origin.DIRECTORY, 0.0))


def forget(stage: Stage) -> None:
    shutil.rmtree(stage.scene.registry.store.audit.path)


def scale(stage: Stage) -> None:
    stage.scene.scale()


def act(stage: Stage) -> None:
    done, failed = ("job job00010 is cancelled",), ("job job00011 has ended already",)
    now = stage.scene.clock.now()
    stage.app.desk.deeds.append(Deed(now - 60, done, True, "mam cancel job00010"))
    stage.app.desk.deeds.append(Deed(now - 5, failed, False, "mam cancel job00011"))


TOURS = {
    "board": Tour(
        (
            Stop("board", "g"),
            Stop("board-sorted", "S R"),
            Stop("board-marks", "R T space space"),
            Stop("confirm", "c"),
            Stop("board-filter-typed", "escape ctrl+backslash slash c o d e x space s t a t e :"),
            Stop("board-filter", "escape escape slash c o d e x enter"),
            Stop("board-filter-empty", "slash z z z enter"),
            Stop("command-line", "escape colon s o r t space -"),
            Stop("board-held", "escape p", then=change),
            Stop("board-read-only", "p colon r e a d - o n l y enter"),
            Stop("board-broker-lost", "colon r e a d - o n l y enter", first=lose_broker),
            Stop("board-folder-gone", "", first=lose_folder),
            Stop("help", "question_mark", first=find_all),
            Stop("deeds", "escape at", first=act),
            Stop("board-failed", "escape", then=fail),
            Stop("palette-all", "escape ctrl+p"),
            Stop("palette", "c a n"),
            Stop("board-light", "escape escape g", theme="textual-light"),
            Stop("board-sixteen-colours", theme=SIXTEEN_COLOURS),
            Stop("board-narrow", size=(60, 20), theme="textual-dark"),
            Stop("board-wide", size=(200, 50)),
        )
    ),
    "job": Tour(
        (
            Stop("job-timeline", "g enter"),
            Stop("job-tail", "right_square_bracket"),
            Stop("job-pane", "right_square_bracket"),
            Stop("job-record", "right_square_bracket"),
            Stop("job-artifacts", "right_square_bracket"),
            Stop("job-output", "right_square_bracket"),
            Stop("job-diff", "right_square_bracket"),
            Stop("job-why", "right_square_bracket"),
            Stop("job-narrow", "right_square_bracket", size=(60, 20)),
            Stop("job-wide", size=(200, 50)),
            Stop("job-light", size=(100, 30), theme="textual-light"),
        ),
        size=(100, 30),
    ),
    "forms": Tour(
        (
            Stop("form-new", "g n"),
            Stop("form-spawn", "escape s"),
            Stop("form-say", "escape m"),
            Stop("form-answer", "escape A"),
            Stop("form-export", "escape e"),
            Stop("form-bulk", "escape N"),
            Stop("columns", "escape C"),
            Stop("form-edit", "escape slash l i n k s enter E"),
            Stop("sessions", "escape escape 2"),
            Stop("sessions-narrow", size=(60, 20)),
            Stop("sessions-wide", size=(200, 50)),
            Stop("sessions-light", size=(100, 34), theme="textual-light"),
            Stop("sessions-sixteen-colours", theme=SIXTEEN_COLOURS),
        ),
        size=(100, 34),
    ),
    "attention": Tour(
        (
            Stop("attention", "4"),
            Stop("attention-failed", "G"),
            Stop("attention-narrow", "g", size=(60, 20)),
            Stop("attention-wide", size=(200, 50)),
            Stop("attention-light", size=(120, 40), theme="textual-light"),
        )
    ),
    "attention-empty": Tour((Stop("attention-empty", "4"),), (100, 24), is_empty=True),
    "history": Tour(
        (
            Stop("history", "7"),
            Stop("history-marks", "space space"),
            Stop("history-search", "ctrl+backslash slash c o d e x space t e s t s"),
            Stop("history-acts", "escape escape o"),
            Stop("history-narrow", "o g", size=(60, 20)),
            Stop("history-wide", size=(200, 50)),
            Stop("compare", "G equals_sign", size=(120, 40)),
            Stop("compare-timeline", "tab"),
            Stop("compare-narrow", "tab", size=(60, 20)),
        )
    ),
    "history-empty": Tour((Stop("history-empty", "7", first=forget),), (100, 24), is_empty=True),
    "fleet": Tour(
        (
            Stop("fleet", "3"),
            Stop("fleet-marks", "space right space"),
            Stop("fleet-broadcast", "b h i enter"),
            Stop("fleet-one", "escape underscore underscore"),
            Stop("fleet-narrow", "plus plus", size=(60, 20)),
            Stop("fleet-wide", size=(200, 50)),
        )
    ),
    "fleet-empty": Tour(
        (Stop("fleet-empty", "3", first=stop_all), Stop("sessions-empty", "2")), (100, 24)
    ),
    "no-tmux": Tour((Stop("sessions-no-tmux", "2", first=lose_tmux),), (100, 24)),
    "graph": Tour(
        (
            Stop("graph", "8 g j j j j", first=link),
            Stop("graph-groups", "f O"),
            Stop("graph-narrow", "O g", size=(60, 20)),
            Stop("graph-wide", size=(200, 50)),
        )
    ),
    "nodes": Tour(
        (
            Stop("nodes", "9"),
            Stop("nodes-drain", "j x"),
            Stop("nodes-broker-lost", "escape", first=lose_hosts),
            Stop("nodes-narrow", "g", first=find_hosts, size=(60, 20)),
            Stop("nodes-wide", size=(200, 50)),
            Stop("nodes-light", size=(120, 30), theme="textual-light"),
            Stop("nodes-sixteen-colours", theme=SIXTEEN_COLOURS),
        ),
        (140, 30),
    ),
    "nodes-empty": Tour((Stop("nodes-empty", "9", first=no_hosts),), (100, 24), is_empty=True),
    "groups": Tour(
        (
            Stop("groups", "0 j", first=scale),
            Stop("groups-narrow", size=(60, 20)),
            Stop("groups-wide", size=(200, 50)),
        )
    ),
    "graph-empty": Tour((Stop("graph-empty", "8"),), (100, 24), is_empty=True),
    "gantt": Tour(
        (
            Stop("gantt", "5"),
            Stop("gantt-groups", "b b G plus"),
            Stop("gantt-narrow", "b underscore g", size=(60, 20)),
            Stop("gantt-wide", size=(200, 50)),
            Stop("charts-wide", "6"),
            Stop("charts", size=(120, 40)),
            Stop("charts-sessions", "b b b"),
            Stop("charts-narrow", "b", size=(60, 20)),
            Stop("charts-light", size=(120, 40), theme="textual-light"),
            Stop("gantt-light", "5"),
            Stop("gantt-sixteen-colours", theme=SIXTEEN_COLOURS),
        )
    ),
    "gantt-empty": Tour(
        (Stop("gantt-empty", "5", first=forget), Stop("charts-empty", "6")),
        (100, 24),
        is_empty=True,
    ),
    "past": Tour(
        (
            Stop("past", "t"),
            Stop("past-earlier", "left left left greater_than_sign"),
            Stop("past-gantt", "5"),
            Stop("past-sessions", "2"),
            Stop("past-narrow", "1", size=(60, 20)),
            Stop("past-wide", size=(200, 50)),
        )
    ),
    "past-ascii": Tour((Stop("past-ascii", "t"),), (100, 30), ascii_only=True),
    "past-plain": Tour((Stop("past-no-colour", "t"),), (100, 30), colourless=True),
    "empty": Tour((Stop("board-empty"),), size=(100, 24), is_empty=True),
    "first": Tour((Stop("board-first-run"),), size=(100, 24), is_empty=True, is_first=True),
    "ascii": Tour(
        (
            Stop("board-ascii", "g"),
            Stop("confirm-ascii", "c"),
            Stop("sessions-ascii", "escape 2"),
            Stop("attention-ascii", "4"),
            Stop("gantt-ascii", "5"),
            Stop("charts-ascii", "6"),
            Stop("graph-ascii", "8", first=link),
            Stop("nodes-ascii", "9"),
        ),
        (100, 30),
        ascii_only=True,
    ),
    "plain": Tour(
        (
            Stop("board-no-colour", "g"),
            Stop("attention-no-colour", "4"),
            Stop("gantt-no-colour", "5"),
        ),
        colourless=True,
    ),
}


@pytest.fixture
def _still(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Nothing of this machine, of this hour or of chance is in a picture."""
    numbers = count(1)
    made = registration.Registration
    monkeypatch.setattr(made, "_fresh_id", lambda _: f"job{next(numbers):05}")
    monkeypatch.setattr(wiring, "node_name", lambda: "host")
    monkeypatch.setattr(wiring, "_broker_of_new_jobs", lambda *_: lambda: Broker("::1", 1883))
    for name, value in {"TZ": "UTC", "USER": "operator", "TERM": "xterm-256color"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "git"):
        (programs / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(programs))
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder whose name is always as long, since it is on some of the pictures."""
    with tempfile.TemporaryDirectory(prefix="mam-", dir="/tmp") as made:
        yield Path(made)


@pytest.mark.parametrize("name", TOURS)
async def test_pictures(
    name: str, place: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tour = TOURS[name]
    monkeypatch.chdir(place)
    if tour.colourless:
        monkeypatch.setenv("NO_COLOR", "1")
    scene = Scene(place, clock)
    still_sessions(monkeypatch, scene.sessions)
    still_nodes(monkeypatch, scene.nodes)
    desk = scene.desk(load())
    bridges: list[StillBridge] = []

    def bridge(ring: Callable[[], None]) -> StillBridge:
        made = StillBridge(desk.registry_path, desk.config, ring, with_duties=False)
        loaded: Loaded = scene.told[0]
        made.told = [Loaded(loaded.jobs._replace(jobs=[], unreadable=[]))]
        if not tour.is_empty:
            made.told = scene.told
        bridges.append(made)
        return made

    kept = Preferences(hint_seen=not tour.is_first)
    app = Console(desk, ascii_only=tour.ascii_only, kept=kept, bridge=bridge)
    found = []
    async with app.run_test(size=tour.size, notifications=True) as pilot:
        app.animation_level = "none"
        stage = Stage(app, bridges[0], scene)
        for stop in tour.stops:
            drawn = await _drawn(stage, stop, pilot, {str(place): "/tmp/mam-" + "·" * 8})
            found.append(differences(stop.name, drawn))
    assert not any(found), "\n".join(filter(None, found))


def test_every_textual_has_a_theme_of_sixteen_colours() -> None:
    assert SIXTEEN_COLOURS in BUILTIN_THEMES


def test_every_picture_that_is_kept_is_drawn() -> None:
    drawn = {stop.name for tour in TOURS.values() for stop in tour.stops}
    assert {kept.stem for kept in FOLDER.glob("*.svg")} == drawn


async def _drawn(stage: Stage, stop: Stop, pilot: Pilot[None], hidden: dict[str, str]) -> str:
    """When two looks in a row are the same, and nothing is asked any more."""
    app = stage.app
    stop.first(stage)
    app.theme = stop.theme or app.theme
    if stop.size is not None:
        await pilot.resize_terminal(*stop.size)
    for key in stop.keys.split():
        await pilot.press({":": "colon", "-": "minus"}.get(key, key))
        if isinstance(graph := app.screen, GraphScreen):  # keys move among its lines
            await until(pilot, partial(_is_done, graph), "the graph is drawn")
    stop.then(stage)
    before = moves = ""
    deadline = time.monotonic() + PATIENCE_SEC
    while time.monotonic() < deadline:
        await pilot.pause(0.05)
        for box in (*app.screen.query(Input), *app.screen.query(TextArea)):
            box.cursor_blink = False
        drawn = svg_of(app, hidden)
        is_behind = app.desk.past is None and app.desk.needing.is_behind
        is_asked = _looks(app.screen) or app.is_reading_past or is_behind
        moves = "a look" if is_asked else what_moves(app)
        if drawn == before and not moves:
            return drawn
        before = drawn
    raise AssertionError(f"{stop.name} never came to rest: {moves or 'it is drawn anew'}")


def _is_done(screen: Screen[Any]) -> bool:
    return not _looks(screen)


def _looks(screen: Screen[Any]) -> bool:
    """It asks, or looks for something, and will show it."""
    if any(line._due is not None for line in screen.query(SearchLine)):
        return True
    if isinstance(screen, FleetScreen) and screen.grid.is_waiting:
        return True
    if isinstance(screen, SessionsScreen):
        return screen._last is None and screen.desk.past is None
    if isinstance(screen, NodesScreen):
        return screen.last is None
    if isinstance(screen, CommandPalette):
        return not screen.query_one(CommandList).option_count
    if isinstance(screen, GraphScreen):
        is_asked = screen.state.is_being_made or screen._asked is not None
        return is_asked or not screen.times_made
    if isinstance(screen, GroupsScreen):
        return screen._seen is None
    if isinstance(screen, AttentionScreen):
        return screen._rest is not None or screen._reading.is_reading
    if isinstance(screen, TimedView):
        return screen.is_waiting
    if isinstance(screen, HistoryScreen):
        seen = screen._seen.get(screen.part)
        return seen is None or seen.want.text != screen.text or not screen.reader.is_idle
    if isinstance(screen, CompareScreen):
        return screen.is_waiting
    panels = [panel for panel in screen.query(DetailPanel) if panel.is_seen]
    return any(panel._asking.is_waiting or panel._due is not None for panel in panels)
