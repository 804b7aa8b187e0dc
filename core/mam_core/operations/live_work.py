"""The worker of an interactive agent: the pane that it lives in, and whether there is one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TextIO, cast

from mam_core.agents.profiles import Profile, profile_of
from mam_core.clock import SystemClock
from mam_core.config import Config
from mam_core.disk import Folder
from mam_core.errors import ConfigError
from mam_core.locations import logs_path
from mam_core.registry import Registry
from mam_core.tmux.facts import Hand
from mam_core.wiring import pane_hand
from mam_core.work.counterpart import CounterpartOf
from mam_core.work.live.aside import Aside
from mam_core.work.live.pane import Pane
from mam_core.work.placard import Placard
from mam_core.work.screen import Screen
from mam_core.work.worker import Stops, Work, Worker

#: Beside the jobs' folders of the audit log, and by its dot none of them.
SESSIONS = ".sessions"


class LivePlace(NamedTuple):
    """A pane of tmux that this process is in."""

    pane: Pane
    hand: Hand
    folder: Folder
    aside: TextIO  #: where the worker's own lines go


def live_place(
    registry_path: str, config: Config, agent_session: str, agents: Sequence[str], slots: int
) -> LivePlace | None:
    """None for headless agents; `ConfigError` for interactive ones that cannot be run here."""
    interactive = [name for name in agents if not profile_of(config, name).is_headless]
    if not interactive:
        return None
    name = interactive[0]
    if len(interactive) < len(agents):
        other = next(agent for agent in agents if agent not in interactive)
        raise ConfigError(
            f"{name} is interactive and {other} is not: give each a worker of its own"
        )
    if slots != 1:
        raise ConfigError(f"{name} is interactive: its pane has room for one, so say --slots 1")
    server, pane_id = os.environ.get("TMUX"), os.environ.get("TMUX_PANE")
    if not server or not pane_id:
        raise ConfigError(
            f"{name} is interactive and needs a pane of tmux: start it with "
            f"mam spawn --agent-session {agent_session} --agent {name}"
        )
    kept_in = os.path.join(logs_path(registry_path), SESSIONS, _slug(agent_session, pane_id))
    folder = Folder.open(kept_in, create=True)
    try:
        pane = Pane()
    except BaseException:
        folder.close()
        raise
    aside = cast(TextIO, Aside(folder, lambda: pane.is_taken))
    return LivePlace(pane, pane_hand(server, pane_id), folder, aside)


def live_worker(
    place: LivePlace,
    plan: Work,
    open_registry: Callable[[], Registry],
    profiles: Callable[[str], Profile],
    screen: Screen,
    stops: Stops,
    counterpart_of: CounterpartOf,
    placard: Placard | None = None,
) -> Worker:
    from mam_core.work.live.session import LiveSession
    from mam_core.work.live.worker import LiveWorker

    session = LiveSession(place.pane, place.hand, place.folder, SystemClock())
    return LiveWorker(
        plan, open_registry, profiles, screen, stops, session, counterpart_of, placard
    )


def _slug(agent_session: str, pane_id: str) -> str:
    """Two workers of a pool have one label, and two panes."""
    return f"{re.sub('[^A-Za-z0-9_-]+', '-', agent_session)[:80]}-pane{pane_id.lstrip('%')}"
