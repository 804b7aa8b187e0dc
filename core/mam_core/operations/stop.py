"""End sessions: their workers are asked first, and tmux only when they are gone."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import NamedTuple

from mam_core import worktrees
from mam_core.clock import SystemClock, stamp
from mam_core.config import Config
from mam_core.errors import MamError, StoreError
from mam_core.near_names import did_you_mean
from mam_core.operations.sessions import Seen, SessionState, by_session, is_ours, named, sessions
from mam_core.pace import paced
from mam_core.presence import announced, worker_of
from mam_core.process_mark import ProcessMark
from mam_core.registry import Registry
from mam_core.rights import Right
from mam_core.sessions import Session, SessionFolder, check_name
from mam_core.tmux.facts import ForeignSession, NoSuchSession, Server, TmuxFailed, TmuxMissing
from mam_core.wiring import actor, open_tmux

#: A worker that hands back ends its agents first, and lets a last check finish (20 s).
_HAND_BACK_SEC = 60.0
_LOOK_SEC = 0.1

Tell = Callable[[str], None]


class NotFromHere(MamError):
    """What is to be ended cannot be seen."""

    title = "Not from here"


class Stopped(NamedTuple):
    """What became of one session; `message` is a whole sentence."""

    name: str
    is_over: bool  #: False: its worker was asked, and is still there
    message: str


def stop(
    registry: Registry,
    registry_path: str,
    config: Config,
    name: str,
    *,
    now: bool,
    tell: Tell,
    is_interrupted: Callable[[], bool] = lambda: False,
) -> list[Stopped]:
    """The session of this name, or all of the pool of this name.

    Returns when they are gone, however long their jobs take; with `now` the jobs are handed
    back. An interrupt ends the waiting, and the sessions end by themselves.
    """
    registry.check_allowed(Right.STOP)
    server = open_tmux(registry_path, config)
    wanted = _named(registry, registry_path, server, check_name(name))
    folder = SessionFolder(registry_path)
    workers = _ask(folder, wanted, now=now)
    for one in wanted:
        if one.jobs and not now:
            tell(f"session {one.name} finishes {', '.join(one.jobs)} first; --now hands it back")
    deadline = time.monotonic() + _HAND_BACK_SEC + 2 * config.defaults.grace_sec
    while any(mark.is_alive for mark in workers.values()) and not is_interrupted():
        if now and time.monotonic() > deadline:
            break
        time.sleep(paced(_LOOK_SEC))
    with folder.changing():
        return [_close(folder, server, one.name, workers.get(one.name), tell) for one in wanted]


def _named(registry: Registry, registry_path: str, server: Server, name: str) -> list[Seen]:
    """Those on record. What somebody else started is not ours to end."""
    everyone = sessions(registry, registry_path, server.panes)
    found = [one for one in named(everyone, name) if one.session is not None]
    for one in found:
        if one.session is not None and one.session.node != registry.node:
            raise NoSuchSession(f"session {one.name} is on {one.session.node}: stop it there")
    if found:
        return found
    broken = next((one for one in everyone if one.name == name), None)
    if broken is not None and broken.state is SessionState.DAMAGED:
        raise StoreError(f"the file of session {name} cannot be read: {broken.note}")
    try:
        is_foreign = any(pane.session == name for pane in server.panes())
    except MamError:
        is_foreign = False
    if is_foreign:
        raise ForeignSession(f"tmux has a session {name} that mam did not start here: it stays")
    near = did_you_mean(name, {one.name for one in everyone})
    raise NoSuchSession(f"there is no session {name}, and no pool of that name{near}")


def _ask(folder: SessionFolder, wanted: list[Seen], *, now: bool) -> dict[str, ProcessMark]:
    """Written down before anybody is asked: whoever restores sessions leaves these alone."""
    workers = {}
    with folder.changing():
        for one in wanted:
            said = announced(folder, one.name)
            if said is not None and said.is_out_of_view:
                raise NotFromHere(
                    f"whether the worker of session {one.name} lives cannot be seen from here, "
                    "inside an agent's own PID namespace: stop it outside"
                )
        for one in wanted:
            session = folder.get(one.name)
            if session.stopped_at is None:
                at = stamp(SystemClock().now())
                folder.put(session._replace(stopped_at=at, stopped_by=actor()))
            worker = worker_of(folder, one.name)
            if worker is not None:
                workers[one.name] = worker
                worker.send(signal.SIGTERM if now else signal.SIGUSR1)
                worker.send(signal.SIGCONT)  # one that somebody suspended would never hear it
    return workers


def _close(
    folder: SessionFolder, server: Server, name: str, worker: ProcessMark | None, tell: Tell
) -> Stopped:
    if worker is not None and worker.is_alive:
        words = f"session {name} was asked to end, and its worker (pid {worker.pid}) is still there"
        return Stopped(name, False, words)
    try:
        session = folder.get(name)
    except NoSuchSession:
        return Stopped(name, True, f"session {name} is stopped")  # by another stop beside us
    if session.stopped_at is None:
        return Stopped(name, True, f"session {name} was stopped, and started again meanwhile")
    _end_pane(server, session, tell)
    kept = _put_away(folder.registry_path, session)
    if kept:
        return Stopped(name, True, f"session {name} is stopped; {kept}")
    folder.remove(name)
    return Stopped(name, True, f"session {name} is stopped")


def _end_pane(server: Server, session: Session, tell: Tell) -> None:
    """The pane that tmux keeps with the last words; a namesake of it stays."""
    try:
        pane = by_session(server.panes()).get(session.name)
        if pane is None:
            return
        if is_ours(session, pane, None):
            server.end(session.name)
        else:
            tell(f"tmux has a session {session.name} that mam did not start here: it stays")
    except NoSuchSession:
        return
    except (TmuxFailed, TmuxMissing) as problem:
        tell(f"its pane could not be closed: {problem.message}")


def _put_away(registry_path: str, session: Session) -> str:
    """Remove the worktree if nothing would be lost; else the words that say what stays, and why.

    The record stays with it, so that nobody forgets where the work is.
    """
    try:
        tree = worktrees.of_session(registry_path, session)
        if tree is not None:
            worktrees.remove(tree)
    except MamError as problem:
        return problem.message
    return ""
