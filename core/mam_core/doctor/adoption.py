"""A session of ours that lives without a record: its worker's command line says what it is.

Only what ``mam spawn`` started for this very registry is put on record. Several
registries may share a tmux server, and what belongs to another one is not looked at.
"""

from __future__ import annotations

import os
from contextlib import suppress

from mam_core.agents.profiles import profile_of
from mam_core.clock import stamp
from mam_core.doctor.findings import Mended
from mam_core.doctor.ground import Ground
from mam_core.errors import MamError
from mam_core.operations.sessions import by_session
from mam_core.sessions import Session, check_name
from mam_core.tmux.facts import PaneFact
from mam_core.wiring import actor
from mam_core.work.workers_here import command_of, options_of_worker, variables_of
from mam_core.worktrees import BRANCH, relocation_to


def is_of_another_registry(ground: Ground, pane: PaneFact) -> bool:
    """Its worker says so, or nobody says anything and the server may be shared."""
    options = options_of_worker(command_of(pane.pid))
    named = (options or {}).get("--registry-dir")
    if named is not None:
        return os.path.realpath(named) != os.path.realpath(ground.registry_path)
    return ground.config.tmux.socket is not None


def session_in(ground: Ground, pane: PaneFact) -> Session | None:
    """The record that a living pane should have; None where its worker does not say enough."""
    options = options_of_worker(command_of(pane.pid))
    if options is None or pane.dead or is_of_another_registry(ground, pane):
        return None
    if options.get("--session") != pane.session or options.get("--agent-session") != pane.label:
        return None
    with suppress(MamError, OSError, LookupError, ValueError):
        agent = options["--agents"]
        session = Session(
            check_name(pane.session),
            pane.label,
            agent,
            str(profile_of(ground.config, agent).mode),
            os.readlink(f"/proc/{pane.pid}/cwd"),
            settings_from=_started_in(pane.pid),
            created_at=stamp(pane.created),
            created_by=actor(),
            node=ground.registry.node,
            slots=int(options.get("--slots", "1")),
            config=options.get("--config"),
        )
        # Read back as it would be from disk: what is no record must not become one.
        return Session.from_dict(_with_worktree(session, options.get("--worktree")).to_dict())
    return None


def _with_worktree(session: Session, worktree: str | None) -> Session:
    if worktree is None:
        return session
    place = relocation_to(worktree)
    branch = BRANCH + session.name
    return session._replace(repository=place.repository, worktree=place.worktree, branch=branch)


def _started_in(pid: int) -> str:
    """tmux started it where the spawner stood, and told it so."""
    return variables_of(pid).get("PWD") or os.readlink(f"/proc/{pid}/cwd")


def adopt(ground: Ground, pane: PaneFact) -> Mended:
    """Put it on record, if it is still the one that was seen and nobody else has done it."""
    folder, name = ground.sessions, pane.session
    with folder.changing():
        try:
            known = folder.get(name)
        except MamError:
            known = None  # none, or one that makes no sense and is replaced
        if known is not None:
            return Mended(True, f"session {name} is on record by now")
        now = by_session(ground.tmux().panes()).get(name)
        session = session_in(ground, now) if now is not None else None
        if now is None or session is None or now.pid != pane.pid:
            return Mended(False, f"session {name} is not what it was: nothing was done")
        folder.put(session)
    return Mended(True, f"session {name} is on record; `mam stop {name}` ends it")
