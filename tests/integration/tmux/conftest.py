"""A private tmux server for each test, seen through the doors of the product."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mam_core.tmux.control import TmuxGlance
from mam_core.tmux.facts import PaneFact, SessionPlan
from mam_core.tmux.hand import PaneHand
from mam_core.tmux.names import socket_path
from mam_core.tmux.server import TmuxServer
from tests.support.patience import eventually
from tests.support.tmux import new_socket_name, private_tmux


@pytest.fixture(autouse=True)
def sockets() -> Iterator[Path]:
    with private_tmux() as folder:
        yield folder


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    return tmp_path / "jobs"


@pytest.fixture
def server(registry: Path) -> TmuxServer:
    return TmuxServer(str(registry), new_socket_name())


@pytest.fixture
def glance(registry: Path, server: TmuxServer) -> Iterator[TmuxGlance]:
    made = TmuxGlance(str(registry), server.socket)
    yield made
    made.close()


Spawn = Callable[..., PaneFact]


@pytest.fixture
def spawn(server: TmuxServer, tmp_path: Path) -> Spawn:
    def made(name: str, *argv: str, environ: dict[str, str] | None = None) -> PaneFact:
        words = argv or ("sleep", "1000")
        label = f"tmux:{name}"
        return server.spawn(SessionPlan(name, words, str(tmp_path), label, "shell", environ or {}))

    return made


@pytest.fixture
def hand_of(server: TmuxServer) -> Iterator[Callable[[PaneFact], PaneHand]]:
    hands: list[PaneHand] = []

    def made(pane: PaneFact) -> PaneHand:
        hands.append(PaneHand(f"{socket_path(server.socket)},1,0", pane.pane_id))
        return hands[-1]

    yield made
    for hand in hands:
        hand.close()


@pytest.fixture
def dead(server: TmuxServer) -> Callable[[str], PaneFact]:
    """The pane of a session, once its process has ended."""

    def found(name: str) -> PaneFact:
        def look() -> PaneFact | None:
            panes = [pane for pane in server.panes() if pane.session == name]
            if not panes or not panes[0].dead:
                return None
            return panes[0] if (panes[0].exit_code, panes[0].exit_signal) != (None, None) else None

        pane: PaneFact = eventually(look, f"the process of {name} ends")
        return pane

    return found
