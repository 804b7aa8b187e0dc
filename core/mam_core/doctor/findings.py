"""What a check answers: findings, each with how bad it is, in words, and with what mends it.

A check is a function from one `Look` to findings. It only looks; whatever it could
do about a finding stands in the finding's fix, which is run by nobody but the
operator's word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from mam_core.doctor.ground import Look


class Area(StrEnum):
    """What a finding is about; shown in this order."""

    MACHINE = "machine"
    TERMINAL = "terminal"
    AGENTS = "agents"
    REGISTRY = "registry"
    BROKER = "broker"
    SESSIONS = "sessions"
    JOBS = "jobs"
    PROCESSES = "processes"
    WORKTREES = "worktrees"
    RULES = "rules"


class Severity(StrEnum):
    """How bad it is."""

    OK = "ok"
    NOTE = "note"  #: good to know; nothing needs to be done
    WARNING = "warning"  #: harmless for now, or not ours to judge
    PROBLEM = "problem"  #: something does not do what it should


class Mended(NamedTuple):
    """What a fix came to; `words` is a whole sentence."""

    is_done: bool
    words: str


class Fix(NamedTuple):
    """What can be done about a finding."""

    words: str  #: as one would ask for it: "restore session a"
    act: Callable[[], Mended]  #: raises what the operation behind it raises
    is_safe: bool = True  #: False: nothing but a person's own yes will do
    otherwise: Fix | None = None  #: offered to whoever declines this one

    @property
    def choices(self) -> list[Fix]:
        """This one, and what is offered instead."""
        return [self, *(self.otherwise.choices if self.otherwise else [])]


class Finding(NamedTuple):
    """One answer of a check."""

    area: Area
    what: str  #: whom or what it is about: foreign text, shown through ``safe_text``
    severity: Severity
    words: str
    fix: Fix | None = None
    rule: str = ""  #: tells two findings about one thing apart
    advice: str = ""  #: what a person does about it, where we cannot

    @property
    def name(self) -> tuple[str, str, str]:
        """What makes it the same finding in a second look: its words may hold an age."""
        return self.area, self.rule, self.what

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        told: dict[str, Any] = {
            "area": self.area,
            "what": self.what,
            "severity": self.severity,
            "words": self.words,
            "fixes": [
                {"words": fix.words, "safe": fix.is_safe}
                for fix in (self.fix.choices if self.fix else [])
            ],
            "advice": self.advice or None,
        }
        return told


class Check(NamedTuple):
    """One question, and how it is to be asked."""

    area: Area
    name: str  #: what is well when it finds nothing
    look: Callable[[Look], Iterable[Finding]]
    is_about_registry: bool = True  #: there is nothing to ask before there is one
    twice: bool = True  #: between two looks the world moves on: what is seen once is not believed


def ok(area: Area, what: str, words: str) -> Finding:
    return Finding(area, what, Severity.OK, words)


def note(
    area: Area, what: str, words: str, fix: Fix | None = None, rule: str = "", advice: str = ""
) -> Finding:
    return Finding(area, what, Severity.NOTE, words, fix, rule, advice)


def warning(
    area: Area, what: str, words: str, fix: Fix | None = None, rule: str = "", advice: str = ""
) -> Finding:
    return Finding(area, what, Severity.WARNING, words, fix, rule, advice)


def problem(
    area: Area, what: str, words: str, fix: Fix | None = None, rule: str = "", advice: str = ""
) -> Finding:
    return Finding(area, what, Severity.PROBLEM, words, fix, rule, advice)


def many(count: int, thing: str, plural: str = "") -> str:
    """``1 job``, ``3 jobs``."""
    return f"{count} {thing}" if count == 1 else f"{count} {plural or thing + 's'}"
