"""Worktrees on disk against the sessions that they belong to. What holds work is only named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from mam_core import worktrees
from mam_core.doctor.findings import Area, Finding, Fix, Mended, note, problem, warning
from mam_core.doctor.ground import Ground, Look
from mam_core.doctor.sessions import stop_session
from mam_core.errors import MamError
from mam_core.operations.sessions import Seen, SessionState
from mam_core.sessions import Session, SessionFolder
from mam_core.work.processes import HAS_PROC
from mam_core.work.relocation import below
from mam_core.worktrees import BRANCH, Worktree

_AREA = Area.WORKTREES
_LIVE = (SessionState.ALIVE, SessionState.STOPPING)


def of_sessions(look: Look) -> Iterator[Finding]:
    """A session's worktree is there; one that a person stopped was kept for what is in it."""
    for seen in look.sessions:
        session = seen.session
        if session is None or session.node != look.registry.node:
            continue
        tree = _tree_of(session)
        if tree is None:
            continue
        if seen.state in _LIVE and not os.path.lexists(tree.path):
            words = f"session {seen.name} lives, and its worktree is not there"
            fix = Fix(
                f"make it again, from branch {tree.branch}", partial(_make, look.ground, tree)
            )
            yield problem(_AREA, tree.path, words, fix, "missing")
        elif seen.state is SessionState.STOPPED:
            yield _kept(look.ground, seen, tree)


def _kept(ground: Ground, seen: Seen, tree: Worktree) -> Finding:
    kept = f"kept for session {seen.name}, which is stopped"
    if lost := worktrees.losses(tree):
        return note(_AREA, tree.path, f"{kept}: it has {', and '.join(lost)}", rule="kept")
    fix = Fix(
        f"remove it, and forget session {seen.name}", partial(stop_session, ground, seen.name)
    )
    return warning(_AREA, tree.path, f"{kept}; nothing would be lost by removing it", fix, "kept")


def of_nobody(look: Look) -> Iterator[Finding]:
    """A worktree that no session has. Where tmux cannot be asked, nobody knows that."""
    if look.tmux_trouble:
        return
    taken = _taken(look)
    for path in worktrees.listed(look.ground.registry_path):
        if os.path.realpath(path) in taken:
            continue
        yield _stray(look, path)


def _stray(look: Look, path: str) -> Finding:
    words = "no session on record has it"
    if pid := _somebody_in(look, path):
        return note(_AREA, path, f"{words}, and a process works in it (pid {pid})", rule="stray")
    try:
        tree = _tree_at(path)
        lost = worktrees.losses(tree)
    except MamError as trouble:
        return note(_AREA, path, f"{words}; {trouble.message}", rule="stray")
    if lost:
        return note(_AREA, path, f"{words}, and it has {', and '.join(lost)}", rule="stray")
    fix = Fix(f"remove it with its branch {tree.branch}", partial(_remove, look.ground, path))
    return warning(_AREA, path, f"{words}, and nothing would be lost by removing it", fix, "stray")


def _taken(look: Look) -> set[str]:
    """Also those of registries that stand beside ours, which keep theirs in the same place; and
    of sessions that are in tmux and not on record."""
    ours = look.ground.registry_path
    beside = os.path.dirname(os.path.realpath(ours))
    home = worktrees.home_of(ours)
    found = {os.path.realpath(os.path.join(home, pane.session)) for pane in look.panes()}
    try:
        with os.scandir(beside) as entries:
            registries = [entry.path for entry in entries if entry.is_dir()]
    except OSError:
        registries = []
    for path in {*registries, ours}:
        folder = SessionFolder(path)
        if not os.path.isdir(folder.path):
            continue
        on_record, damaged = folder.all()
        found |= {os.path.realpath(one.worktree) for one in on_record if one.worktree}
        # Nobody can say what one that cannot be read had: that of its name, most likely.
        found |= {os.path.realpath(os.path.join(home, one.name)) for one in damaged}
    return found


def _somebody_in(look: Look, path: str) -> int | None:
    if not HAS_PROC:
        return None
    place = os.path.realpath(path)
    for process in look.everybody:
        try:
            if below(place, os.readlink(f"/proc/{process.pid}/cwd")) is not None:
                return process.pid
        except OSError:
            continue
    return None


def _tree_of(session: Session) -> Worktree | None:
    if session.worktree is None or session.repository is None or session.branch is None:
        return None
    return Worktree(session.repository, session.worktree, session.branch, session.base or "HEAD")


def _tree_at(path: str) -> Worktree:
    place = worktrees.relocation_to(path)
    branch = BRANCH + os.path.basename(path)
    return Worktree(place.repository, place.worktree, branch, "HEAD", is_new=False)


# -- what is done about it ---------------------------------------------------------------------


def _make(ground: Ground, tree: Worktree) -> Mended:
    with ground.sessions.changing():
        if os.path.lexists(tree.path):
            return Mended(True, f"{tree.path} is there by now")
        worktrees.create(tree)
    return Mended(True, f"{tree.path} is there again, as branch {tree.branch} has it")


def _remove(ground: Ground, path: str) -> Mended:
    """Looked at once more while nobody can spawn; git itself looks at the last moment."""
    with ground.sessions.changing():
        look = Look(ground)
        if os.path.realpath(path) in _taken(look) or _somebody_in(look, path):
            return Mended(False, f"{path} is in use by now: it stays")
        worktrees.remove(_tree_at(path))
    return Mended(True, f"{path} is removed")
