"""One session comes up: its files, its pane, and the proof that its worker is at work.

Either the worker has announced itself, or nothing is left: no session in tmux, no
record, no new worktree. What it said last is the reason that is given.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from mam_core import worktrees
from mam_core.agents.profiles import profile_of, trouble_with
from mam_core.config import Config
from mam_core.errors import MamError
from mam_core.operations.sessions import by_session, is_ours
from mam_core.own_python import own_python
from mam_core.pace import paced
from mam_core.presence import announced, worker_of
from mam_core.process_mark import ProcessMark
from mam_core.safe_text import one_line
from mam_core.sessions import Session, SessionFolder
from mam_core.tmux.facts import ForeignSession, PaneFact, Server, SessionExists, SessionPlan
from mam_core.wiring import open_glance, open_tmux
from mam_core.worktrees import Worktree

#: A worker on a busy machine takes seconds to start; one that takes longer is stuck.
UP_SEC = 30.0
#: What a worker gets that must go again, or that is just ending: it has agents to end first.
DOWN_SEC = 15.0
_LOOK_SEC = 0.03
_LAST_LINES = 5

Tell = Callable[[str], None]


class NotStarted(MamError):
    """The session did not come up."""

    title = "Not started"


class AgentMissing(MamError):
    """The program of an agent is not on this machine."""

    title = "Agent missing"


class Start(NamedTuple):
    """One session that is to come up."""

    session: Session
    worktree: Worktree | None = None
    allow_network: bool = False


class _Made(NamedTuple):
    """What a start has brought about so far, to be undone if it fails."""

    start: Start
    before: Session | None  #: the record that was there
    has_branch: bool  #: the branch is new, too
    pane: PaneFact | None = None


def worker_argv(start: Start, registry_path: str) -> tuple[str, ...]:
    """The command that runs in the pane."""
    session = start.session
    words = [*own_python(), "-m", "mam_core", "work", "--agent-session", session.label]
    words += ["--agents", session.agent, "--session", session.name]
    if session.slots > 1:
        words += ["--slots", str(session.slots)]
    if session.worktree:
        words += ["--worktree", session.worktree]
    words += ["--registry-dir", registry_path]
    if session.config:
        words += ["--config", session.config]
    if start.allow_network:
        words.append("--allow-network-fs")
    return tuple(words)


def check_agent(config: Config, session: Session) -> None:
    """Raises `AgentMissing` when a job of this session could not be run here."""
    profile = profile_of(config, session.agent)
    # The worktree may not be there yet, and a program of the project's own is in both.
    folder = session.workdir if os.path.isdir(session.workdir) else session.repository or ""
    if trouble := trouble_with(profile, os.environ, folder):
        raise AgentMissing(trouble)


class Starting:
    """Brings sessions up. The caller holds the lock of the folder."""

    def __init__(self, registry_path: str, config: Config, tell: Tell) -> None:
        self.server: Server = open_tmux(registry_path, config)
        self._folder = SessionFolder(registry_path)
        self.registry_path = registry_path
        self._config = config
        self._tell = tell
        self._made: list[_Made] = []

    def bring_up(self, starts: list[Start]) -> None:
        """All of them or none: they start side by side, and are waited for together."""
        try:
            for start in starts:
                self._begin(start)
            for made in list(self._made):
                self._confirm(made)
        except BaseException:
            self._undo()
            raise
        self._made.clear()

    # -- one session -----------------------------------------------------------------------

    def _begin(self, start: Start) -> None:
        session = start.session
        before = self._record_before(session.name)
        self._make_room(session, before)
        has_branch = False
        if start.worktree is not None:
            has_branch = worktrees.create(start.worktree)
        made = _Made(start, before, has_branch)
        self._made.append(made)
        if not os.path.isdir(session.workdir):
            raise NotStarted(f"its folder is not there: {session.workdir}")
        if before is not None and before.worktree not in (None, session.worktree):
            self._tell(f"the worktree of the session before stays: {before.worktree}")
        self._folder.put(session)
        plan = SessionPlan(
            session.name,
            worker_argv(start, self.registry_path),
            session.settings_from if os.path.isdir(session.settings_from) else session.workdir,
            session.label,
            session.agent,
        )
        self._made[-1] = made._replace(pane=self.server.spawn(plan))

    def _make_room(self, session: Session, before: Session | None) -> None:
        """A pane that tmux kept for its last words gives way; whatever lives does not."""
        until = time.monotonic() + DOWN_SEC
        while (worker := worker_of(self._folder, session.name)) is not None:
            if time.monotonic() > until:
                raise SessionExists(
                    f"session {session.name} has a worker already, with pid {worker.pid}"
                )
            pane = by_session(self.server.panes()).get(session.name)
            if pane is not None and not pane.dead:
                raise SessionExists(f"session {session.name} is there already, and alive")
            time.sleep(paced(_LOOK_SEC))  # its pane is gone: it is handing back what it had
        pane = by_session(self.server.panes()).get(session.name)
        if pane is None:
            return
        _check_room(session, before, pane)
        self.server.end(session.name)
        self._tell(f"the dead session {session.name} is replaced")

    def check_room(self, sessions: Iterable[Session]) -> None:
        """Raises what `bring_up` would raise for these names, as tmux stands now."""
        there = by_session(self.server.panes())
        for session in sessions:
            pane = there.get(session.name)
            if pane is not None:
                _check_room(session, self._record_before(session.name), pane)

    def _record_before(self, name: str) -> Session | None:
        try:
            return self._folder.get(name)
        except MamError:
            return None  # none, or one that makes no sense and is replaced

    # -- is it there? ----------------------------------------------------------------------

    def _confirm(self, made: _Made) -> None:
        name, pane = made.start.session.name, made.pane
        assert pane is not None
        until = time.monotonic() + UP_SEC
        while True:
            said = announced(self._folder, name)
            is_its_own = said is not None and said.mark.pid == pane.pid
            if said is not None and is_its_own and (said.mark.is_alive or said.is_out_of_view):
                return
            if ProcessMark.of(pane.pid) is None and not self._is_alive_for_tmux(pane):
                raise NotStarted(f"session {name} did not come up: {self._last_words(pane)}")
            if time.monotonic() > until:
                raise NotStarted(f"session {name} did not come up within {UP_SEC:.0f} s")
            time.sleep(paced(_LOOK_SEC))

    def _is_alive_for_tmux(self, pane: PaneFact) -> bool:
        """Asked where its process is not to be seen: tmux may be outside of our PID namespace."""
        there = by_session(self.server.panes()).get(pane.session)
        return there is not None and there.pid == pane.pid and not there.dead

    def _last_words(self, pane: PaneFact) -> str:
        """What it said before it died, from the pane that tmux keeps."""
        try:
            glance = open_glance(self.registry_path, self._config)
            try:
                said = _said(glance.capture(pane.pane_id, lines_back=200).lines)
            finally:
                glance.close()
        except MamError as problem:
            return f"its worker ended, and its last words are not known ({problem.message})"
        return " / ".join(said[-_LAST_LINES:]) or "its worker ended without a word"

    # -- back ------------------------------------------------------------------------------

    def _undo(self) -> None:
        """The last first. What cannot be undone is told, and keeps nothing else from it."""
        while self._made:
            made = self._made.pop()
            session = made.start.session
            try:
                self._end(made)
                if made.before is None:
                    self._folder.remove(session.name)
                else:
                    self._folder.put(made.before)
                if made.start.worktree is not None and made.start.worktree.is_new:
                    worktrees.remove(made.start.worktree, with_branch=made.has_branch)
            except (MamError, OSError) as problem:
                self._tell(f"of session {session.name} something is left: {problem}")

    def _end(self, made: _Made) -> None:
        if made.pane is None:
            return
        mark = ProcessMark.of(made.pane.pid)
        if mark is not None:
            end_worker(mark, signal.SIGTERM, DOWN_SEC)
        with suppress(MamError):
            self.server.end(made.start.session.name)


def _check_room(session: Session, before: Session | None, pane: PaneFact) -> None:
    """Only a pane that is ours and dead may be put away."""
    if not pane.label:
        raise ForeignSession(
            f"tmux has a session {session.name} that mam did not start: take another name"
        )
    if not pane.dead or not is_ours(before or session, pane, None):
        raise SessionExists(f"session {session.name} is there already, for {pane.label}")


def _said(lines: Iterable[str]) -> list[str]:
    """Without the blank ones, and without tmux's own."""
    said = (one_line(line) for line in lines if not line.startswith("Pane is dead"))
    return [line for line in said if line]


def end_worker(mark: ProcessMark, number: signal.Signals, patience_sec: float) -> bool:
    """Ask it and wait; False when it is still there. Nobody is killed: it has agents to end."""
    mark.send(number)
    mark.send(signal.SIGCONT)
    until = time.monotonic() + patience_sec
    while mark.is_alive and time.monotonic() < until:
        time.sleep(paced(_LOOK_SEC))
    return not mark.is_alive
