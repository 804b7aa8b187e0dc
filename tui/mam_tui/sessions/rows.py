"""The sessions as data: a row for each, in an order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mam_core.operations.session_looks import SessionsNow
from mam_core.operations.sessions import Seen, SessionState
from mam_core.operations.shown import Shown
from mam_tui.faces import FACES, Face, face_of
from mam_tui.moments import seconds
from mam_tui.short_list import ShortList

#: Beside the states that a job can be in: those of a session without one.
SESSION_FACES = {
    face.word: face
    for face in (
        Face("dead", "✖", "x", "error", 1),
        Face("gone", "✗", "X", "error", 1),
        Face("damaged", "‼", "E", "error", 3),
        Face("stopping", "◍", "c", "warning", 4),
        Face("unknown", "◌", "~", "warning", 4),
        Face("unrecorded", "◌", "~", "warning", 7),
        Face("free", "○", "-", "idle", 12),
        Face("stopped", "⊝", "/", "idle", 14),
    )
}

_LABEL_PREFIX = "tmux:"


class SessionRow(NamedTuple):
    """One session as the console shows it."""

    seen: Seen
    shown: Shown | None = None  #: of the job that needs a person soonest
    job_id: str = ""  #: that very job
    cpu: float | None = None  #: cores in use since the last look

    @property
    def name(self) -> str:
        return self.seen.name

    @property
    def word(self) -> str:
        """What its agent does, while it lives; else how it stands."""
        if self.seen.state is not SessionState.ALIVE:
            return str(self.seen.state)
        if self.shown is not None:
            return self.shown.state.word
        return "running" if self.seen.jobs else "free"

    @property
    def face(self) -> Face:
        return SESSION_FACES.get(self.word) or face_of(self.word)

    @property
    def label(self) -> str:
        return self.seen.label

    @property
    def agent(self) -> str:
        return self.seen.agent

    @property
    def has_own_label(self) -> bool:
        return bool(self.label) and self.label != _LABEL_PREFIX + self.name

    @property
    def mode(self) -> str:
        return self.seen.session.mode if self.seen.session else ""

    @property
    def folder(self) -> str:
        return self.seen.session.workdir if self.seen.session else ""

    @property
    def branch(self) -> str:
        return (self.seen.session.branch if self.seen.session else "") or ""

    @property
    def begun(self) -> float | None:
        if self.seen.session is not None:
            return seconds(self.seen.session.created_at)
        return self.seen.pane.created if self.seen.pane is not None else None

    @property
    def says(self) -> str:
        """The question that it asks, or why it stands as it does. Foreign text."""
        if self.shown is not None and self.word in ("waiting", "lost", "stale"):
            return self.shown.words
        if self.seen.state is SessionState.DEAD:
            return self.seen.words
        return self.seen.note

    def to_dict(self) -> dict[str, object]:
        """For a file: what stands in the table, unshortened."""
        return {
            "session": self.name,
            "state": self.word,
            "label": self.label,
            "agent": self.agent,
            "mode": self.mode,
            "jobs": " ".join(self.seen.jobs),
            "queued": self.seen.queued,
            "memory": self.seen.memory,
            "cpu": None if self.cpu is None else round(self.cpu, 3),
            "folder": self.folder,
            "branch": self.branch,
            "says": self.says,
        }

    @property
    def is_live(self) -> bool:
        """tmux shows it now."""
        return self.seen.pane is not None and not self.seen.pane.dead

    @property
    def pane_id(self) -> str:
        return self.seen.pane.pane_id if self.seen.pane is not None else ""


class Usage:
    """How much of a core each session uses, from what it had used a look before."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[int, float, float]] = {}

    def rows(self, now: SessionsNow, at: float) -> list[SessionRow]:
        """`at` by a clock that never goes back."""
        found, used = [], {}
        for seen in now.seen:
            cpu = None
            if seen.worker is not None and seen.cpu_sec is not None:
                used[seen.name] = (seen.worker.pid, at, seen.cpu_sec)
                pid, then, had = self._before.get(seen.name, (0, at, 0.0))
                if pid == seen.worker.pid and at > then:
                    cpu = max(0.0, seen.cpu_sec - had) / (at - then)
            job_id = sooner({job_id: now.shown.get(job_id) for job_id in seen.jobs})
            found.append(SessionRow(seen, now.shown.get(job_id), job_id, cpu))
        self._before = used
        return found


def sooner(jobs: Mapping[str, Shown | None]) -> str:
    """The one of them that needs a person soonest; empty when there is none."""
    return min(jobs, key=lambda job_id: _rank(jobs[job_id]), default="")


def _rank(shown: Shown | None) -> int:
    face = FACES.get(shown.state.word) if shown is not None else None
    return face.rank if face is not None else len(FACES)


class SessionList(ShortList[SessionRow]):
    """The sessions in their order."""

    @property
    def used(self) -> frozenset[str]:
        """Columns that hold something for at least one session."""
        found = set()
        if any(row.has_own_label for row in self.rows):
            found.add("label")
        if any(row.branch for row in self.rows):
            found.add("branch")
        if any(row.says for row in self.rows):
            found.add("says")
        return frozenset(found)
