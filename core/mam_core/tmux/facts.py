"""What others see of tmux: plain facts, typed failures, and the shape of the three doors.

The doors are made by ``wiring``: `Server` acts (spawn, label, end), `Glance` reads
without a process for each look, `Hand` types into the pane that a worker lives in.
A failure to ask tmux is *unknown*, and never means that something is dead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from mam_core.errors import MamError


class TmuxFailed(MamError):
    """tmux could not be asked, so what its panes do is unknown."""

    title = "tmux"


class TmuxMissing(TmuxFailed):
    """tmux is not installed: agent sessions need tmux 3.2 or newer."""

    title = "No tmux"


class NoServer(TmuxFailed):
    """No tmux server runs for this registry."""


class SessionExists(MamError):
    """A session of this name is there already."""

    title = "Session exists"


class NoSuchSession(MamError):
    """There is no such session."""

    title = "No such session"


class ForeignSession(MamError):
    """The session was not started by mam, so mam does not end it."""

    title = "Not ours"


class BadSessionName(MamError):
    """A session's name has neither '.' nor ':' nor control characters in it."""

    title = "Bad session name"
    exit_code = 2


class UnsafePaste(MamError):
    """The text holds the sequence that ends a paste, so the rest would count as keys."""

    title = "Not pasted"


class PaneLabel(NamedTuple):
    """What is written on a pane of the jobs in it, as ``@job_id`` and ``@attempt``.

    One job stands there as it is. Of several, for a worker with more than one slot,
    each has its attempt after a slash, ``a/1 b/2``, and ``@attempt`` is empty.
    """

    job_id: str
    attempt: int

    @classmethod
    def of(cls, jobs: Sequence[tuple[str, int]]) -> PaneLabel:
        if len(jobs) == 1:
            return cls(*jobs[0])
        return cls(" ".join(f"{job_id}/{attempt}" for job_id, attempt in jobs), 0)

    @property
    def jobs(self) -> tuple[tuple[str, int], ...]:
        """Each with its attempt; anybody may have written there, so what is no job is left out."""
        if self.attempt:
            return ((self.job_id, self.attempt),)
        pairs = (word.rpartition("/") for word in self.job_id.split())
        return tuple(
            (job_id, int(number))
            for job_id, _, number in pairs
            if job_id and number.isascii() and number.isdecimal()
        )


class PaneFact(NamedTuple):
    """One pane, as tmux tells it. The texts are foreign: show them through ``safe_text``."""

    pane_id: str  #: "%3"; unique for the life of one tmux server, and no longer
    session: str  #: tmux's session name
    pid: int  #: of the process that tmux started in it
    dead: bool  #: with neither code nor signal: these are not known, or not yet
    exit_code: int | None  #: of a dead one that exited
    exit_signal: int | None  #: of a dead one that was killed (tmux 3.3 and newer)
    title: str
    label: str  #: @session, for example "tmux:claude"; "" means that it is not ours
    agent: str
    job_id: str  #: "" between jobs; as in `PaneLabel`
    attempt: int  #: 0 between jobs, and where there are several
    width: int
    height: int
    created: float  #: of its session, seconds since 1970
    activity: float  #: the last output in its window, seconds since 1970

    @property
    def jobs(self) -> tuple[tuple[str, int], ...]:
        """The jobs that are written on it, each with its attempt."""
        return PaneLabel(self.job_id, self.attempt).jobs if self.job_id else ()


class SessionPlan(NamedTuple):
    """What is to be started: one session with one pane."""

    name: str
    argv: tuple[str, ...]  #: program and arguments, exactly; no shell sees them
    cwd: str
    label: str
    agent: str
    #: Set in addition to the environment of the process that spawns. They stand in tmux's own
    #: arguments for a moment, where other users can read them: never a secret.
    environ: Mapping[str, str] = MappingProxyType({})
    width: int = 200
    height: int = 50


class Capture(NamedTuple):
    """What a pane shows: foreign text, with colours as SGR sequences only when asked for."""

    lines: tuple[str, ...]
    cursor: tuple[int, int]  #: column and row of the visible part, from 0
    title: str


class Death(NamedTuple):
    """A pane whose process has ended, as the server's hook wrote it down at that moment."""

    pane_id: str
    session: str
    label: str
    job_id: str
    attempt: int
    exit_code: int | None
    exit_signal: int | None
    at: float  #: seconds since 1970


class Server(Protocol):
    """The registry's own tmux server: the door that acts."""

    def spawn(self, plan: SessionPlan) -> PaneFact:
        """Start a session, labelled from its first moment; SessionExists if there is one."""

    def panes(self) -> list[PaneFact]:
        """Every pane; none when no server runs."""

    def end(self, name: str) -> None:
        """End the session of exactly this name, if it carries our label; never the server."""

    def let_go(self) -> None:
        """Let a server of ours go that holds no session, and never held one."""

    def label(
        self,
        pane_id: str,
        *,
        job_id: str | None = None,
        attempt: int | None = None,
        title: str | None = None,
    ) -> None:
        """Write on a pane what it works on; None leaves a word as it is, "" and 0 clear it."""

    def attach_argv(self, name: str) -> list[str]:
        """The command that shows a session in the terminal of whoever runs it."""

    @property
    def is_running(self) -> bool:
        """Whether there is such a server now."""


class Glance(Protocol):
    """The door that reads: one lasting client, which comes back after every break.

    Everything raises TmuxFailed when tmux cannot be asked (NoServer when there is none).
    """

    def panes(self) -> list[PaneFact]: ...

    def capture(self, pane_id: str, *, colours: bool = False, lines_back: int = 0) -> Capture: ...

    def captures(
        self, pane_ids: Sequence[str], *, colours: bool = False, lines_back: int = 0
    ) -> dict[str, Capture]:
        """Many panes in one round trip; a pane that is gone is left out."""

    def deaths(self) -> list[Death]:
        """The panes that died since the last call, in order; asks the disk, not tmux."""

    def close(self) -> None: ...


class Hand(Protocol):
    """A worker's hold on the pane that it lives in."""

    @property
    def pane_id(self) -> str: ...

    def capture(self, *, colours: bool = False, lines_back: int = 0) -> Capture: ...

    def paste(self, text: bytes) -> None:
        """Exactly these bytes, as one paste; UnsafePaste if they would end it themselves."""

    def press(self, key: str) -> None:
        """One key by tmux's name for it, for example ``Enter``, ``Escape`` or ``C-c``."""

    def label(
        self,
        job_id: str | None = None,
        attempt: int | None = None,
        title: str | None = None,
    ) -> None: ...

    def close(self) -> None:
        """Let go of what is needed for looking."""
