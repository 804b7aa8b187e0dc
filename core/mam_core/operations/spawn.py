"""Start sessions: a worker each, in a tmux session that carries its label."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from mam_core import worktrees
from mam_core.agents.profiles import Profile, profile_of
from mam_core.clock import SystemClock, stamp
from mam_core.config import Config
from mam_core.errors import InvalidField
from mam_core.operations.sessions import SessionState, stand
from mam_core.operations.starting import Start, Starting, Tell, check_agent, worker_argv
from mam_core.sessions import Session, SessionFolder, check_name, name_of
from mam_core.tmux.facts import SessionExists
from mam_core.wiring import actor, node_name, tmux_socket

MAX_COUNT = 64
MAX_SLOTS = 256

_LIVE = (SessionState.ALIVE, SessionState.STOPPING)


class Wanted(NamedTuple):
    """What a person asks for."""

    label: str  #: ``tmux:NAME``
    agent: str
    how_many: int = 1  #: more than one is a pool
    workdir: str | None = None  #: None: where we are
    worktree: bool = False
    slots: int = 1


class Plan(NamedTuple):
    """What is to be started, checked, and nothing of it done yet."""

    starts: tuple[Start, ...]
    profile: Profile
    socket: str
    registry_path: str

    def told(self) -> Iterator[str]:
        """Line by line, for a person."""
        for start in self.starts:
            session = start.session
            yield f"session: {session.name}, for jobs of {session.label}"
            yield f"folder: {session.workdir}"
            if start.worktree is not None:
                worktree = start.worktree
                how = f"new, from {worktree.base[:12]}" if worktree.is_new else "there already"
                yield f"worktree: {worktree.path} on branch {worktree.branch} ({how})"
            tmux = ["tmux", "-L", self.socket, "new-session", "-d", "-s", session.name]
            yield f"command: {shlex.join([*tmux, *worker_argv(start, self.registry_path)])}"
        yield f"agent: {shlex.join(self.profile.command)}"


def plan(
    registry_path: str,
    config: Config,
    wanted: Wanted,
    *,
    config_path: str | None = None,
    allow_network: bool = False,
) -> Plan:
    """Everything that can be known to be wrong is said now, before anything is made."""
    name = name_of(wanted.label)
    profile = profile_of(config, wanted.agent)
    _check_numbers(wanted, profile)
    workdir = os.path.realpath(os.path.expanduser(wanted.workdir or "."))
    if not os.path.isdir(workdir):
        raise InvalidField(f"--workdir: there is no folder {workdir}")
    registry_path = os.path.abspath(registry_path)
    pool = [f"{name}-{number}" for number in range(1, wanted.how_many + 1)]
    common = Session(
        name,
        wanted.label,
        profile.name,
        profile.mode,
        workdir,
        settings_from=os.getcwd(),
        created_at=stamp(SystemClock().now()),
        created_by=actor(),
        node=node_name(),
        slots=wanted.slots,
        config=os.path.abspath(os.path.expanduser(config_path)) if config_path else None,
    )
    starts = [
        _start(common._replace(name=check_name(one)), wanted, registry_path, allow_network)
        for one in (pool if wanted.how_many > 1 else [name])
    ]
    return Plan(tuple(starts), profile, tmux_socket(registry_path, config), registry_path)


def _check_numbers(wanted: Wanted, profile: Profile) -> None:
    if not 1 <= wanted.how_many <= MAX_COUNT:
        raise InvalidField(f"--count must be between 1 and {MAX_COUNT}")
    if not 1 <= wanted.slots <= MAX_SLOTS:
        raise InvalidField(f"--slots must be between 1 and {MAX_SLOTS}")
    if wanted.slots > 1 and not profile.is_headless:
        raise InvalidField(
            f"{profile.name} is interactive and takes one job at a time: say --count for more"
        )


def _start(session: Session, wanted: Wanted, registry_path: str, allow_network: bool) -> Start:
    if not wanted.worktree:
        return Start(session, None, allow_network)
    worktree = worktrees.planned(registry_path, session.name, session.workdir)
    moved = session._replace(
        workdir=worktree.relocation.place(session.workdir),
        repository=worktree.repository,
        worktree=worktree.path,
        branch=worktree.branch,
        base=worktree.base,
    )
    return Start(moved, worktree, allow_network)


def spawn(planned: Plan, config: Config, tell: Tell) -> list[Session]:
    """All of them or none. Raises `SessionExists` for a twin, `TmuxMissing`, `AgentMissing`."""
    starting = Starting(planned.registry_path, config, tell)
    _check_ground(planned, config, starting)
    folder = SessionFolder(planned.registry_path)
    with folder.changing():
        refuse_twins(planned, starting)
        for start in planned.starts:
            if start.worktree is not None and not start.worktree.is_new:
                tell(f"the worktree {start.worktree.path} is taken up as it is")
        starting.bring_up(list(planned.starts))
    return [start.session for start in planned.starts]


def rehearse(planned: Plan, config: Config) -> None:
    """Raises what `spawn` would be refused with as things stand now; nothing is changed."""
    starting = Starting(planned.registry_path, config, lambda _: None)
    _check_ground(planned, config, starting)
    refuse_twins(planned, starting)
    starting.check_room(start.session for start in planned.starts)


def _check_ground(planned: Plan, config: Config, starting: Starting) -> None:
    for start in planned.starts:
        check_agent(config, start.session)
    starting.server.panes()  # without tmux nothing is made, not even a folder


def refuse_twins(planned: Plan, starting: Starting) -> None:
    """Two that serve one label are a pool, and a pool is started as one."""
    label = planned.starts[0].session.label
    names = {start.session.name for start in planned.starts}
    folder = SessionFolder(planned.registry_path)
    for seen in stand(folder, starting.server.panes, node_name()):
        if seen.state is SessionState.UNKNOWN and seen.name in names:
            raise SessionExists(f"session {seen.name} may be alive: {seen.note}")
        if seen.state in _LIVE and seen.label == label and seen.pane is not None:
            raise SessionExists(
                f"session {seen.name} serves {label} already: `mam stop {seen.name}` ends it"
            )
