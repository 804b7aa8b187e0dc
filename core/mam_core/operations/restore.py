"""Bring back the sessions that a reboot, or the end of their tmux server, has taken."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import NamedTuple

from mam_core import worktrees
from mam_core.agents.profiles import profile_of
from mam_core.config import Config
from mam_core.errors import MamError
from mam_core.operations.sessions import Seen, SessionState, stand
from mam_core.operations.starting import NotStarted, Start, Starting, Tell, check_agent
from mam_core.sessions import Session, SessionFolder
from mam_core.wiring import node_name
from mam_core.worktrees import Worktree


class Restored(NamedTuple):
    """What became of one session; `message` is a whole sentence."""

    name: str
    is_back: bool
    is_trouble: bool
    message: str


def restore(
    registry_path: str,
    config: Config,
    tell: Tell,
    *,
    allow_network: bool = False,
    names: Collection[str] | None = None,
) -> list[Restored]:
    """One after the other, each told as it comes; `names`: only these. Those that live are left
    alone, and so are those that a person stopped."""
    registry_path = os.path.abspath(registry_path)
    folder = SessionFolder(registry_path)
    if not any(folder.all()):
        return []
    outcomes: list[Restored] = []
    starting = Starting(registry_path, config, tell)
    with folder.changing():
        for seen in stand(folder, starting.server.panes, node_name()):
            if names is not None and seen.name not in names:
                continue
            outcome = _restored(seen, starting, config, allow_network)
            tell(outcome.message)
            outcomes.append(outcome)
    return outcomes


def _restored(seen: Seen, starting: Starting, config: Config, allow_network: bool) -> Restored:
    name = seen.name
    if seen.session is None or not _is_missed(seen):
        is_elsewhere = seen.session is not None and seen.session.node != node_name()
        is_dark = seen.state in (SessionState.DAMAGED, SessionState.UNKNOWN)
        return Restored(
            name, False, is_dark and not is_elsewhere, f"session {name} {_left_alone(seen)}"
        )
    try:
        session = seen.session._replace(mode=profile_of(config, seen.session.agent).mode)
        check_agent(config, session)
        starting.bring_up(
            [Start(session, _worktree(starting.registry_path, session), allow_network)]
        )
    except (MamError, OSError) as problem:
        words = problem.message if isinstance(problem, MamError) else str(problem)
        return Restored(name, False, True, f"session {name} is not restored: {words}")
    return Restored(name, True, False, f"session {name} is back, in {session.workdir}")


def _is_missed(seen: Seen) -> bool:
    """One whose worker ended in order was ended by somebody; one that broke was not."""
    if seen.state is SessionState.DEAD and seen.pane is not None:
        return seen.pane.exit_code != 0
    is_ending = seen.state is SessionState.STOPPING and seen.pane is None
    return seen.state is SessionState.GONE or (is_ending and not _is_stopped(seen.session))


def _is_stopped(session: Session | None) -> bool:
    return session is not None and session.stopped_at is not None


def _left_alone(seen: Seen) -> str:
    if seen.state is SessionState.DEAD:
        return "ended in order: `mam spawn` starts it anew"
    words = {
        SessionState.ALIVE: "is alive",
        SessionState.STOPPING: "is stopping",
        SessionState.STOPPED: "was stopped by a person",
        SessionState.UNRECORDED: "is not on record here",
        SessionState.UNKNOWN: "cannot be asked",
        SessionState.DAMAGED: "cannot be read",
    }[seen.state]
    return f"{words}: {seen.note}" if seen.note else words


def _worktree(registry_path: str, session: Session) -> Worktree | None:
    """The same one; if somebody removed its folder, it is made again from its branch."""
    if session.repository is not None and not os.path.isdir(session.repository):
        raise NotStarted(f"its repository is not there: {session.repository}")
    return worktrees.of_session(registry_path, session)
