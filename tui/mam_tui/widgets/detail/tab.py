"""What every tab is: a view, a question that is asked on a thread, and what the answer shows.

A tab does not load by itself. The panel asks its question when it is looked at and
something may have changed, and hands it the answer on the console's own thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from mam_core.events.feed import EventHeard
from mam_core.summaries import Summary
from mam_tui.widgets.detail.line_view import LineView

if TYPE_CHECKING:
    from mam_core.operations.replay import Then
    from mam_core.registry import Registry

#: Runs on a thread, with a registry handle of its own.
Question: TypeAlias = "Callable[[Registry], Any]"


class Setting(NamedTuple):
    """What tabs are shown with."""

    clock: Callable[[], float]
    ascii_only: bool = False

    def glyph(self, fine: str, plain: str) -> str:
        return plain if self.ascii_only else fine

    def plain(self, text: str) -> str:
        """Sentences of the core, for a terminal that has no arrows."""
        return text.replace("→", "->") if self.ascii_only else text


class Tab:
    """One way to look at a job."""

    name: ClassVar[str]
    #: Between two looks at what nobody tells of, while the job runs; None: news are enough.
    look_sec: float | None = None

    def __init__(self, setting: Setting, view: LineView) -> None:
        self.setting = setting
        self.view = view
        self.job_id = ""
        self.note = ""  #: stands beside the job's state

    def show(self, job_id: str) -> None:
        """Another job: of the one before nothing may be seen any more."""
        self.job_id = job_id
        self.note = ""
        self.view.say("")
        self.forget()

    def forget(self) -> None:
        raise NotImplementedError

    def question(self) -> Question:
        """What to ask, with all that the asking needs: it is asked on another thread."""
        raise NotImplementedError

    def question_then(self, then: Then, at: float) -> Question | None:
        """What was known of the job at a moment of the past; None: nobody keeps that."""
        return None

    def renew(self) -> None:
        """The next answer is about another moment of the same job: it stands for itself."""

    def answer(self, answer: Any) -> None:
        raise NotImplementedError

    def sorry(self, words: str) -> None:
        """There is no answer, and why."""
        self.forget()
        self.view.say(words)

    def is_stale(self, was: Summary | None, now: Summary | None) -> bool:
        """The record changed: whether the question must be asked again."""
        return True

    def hear(self, heard: Sequence[EventHeard]) -> bool:
        """Events of this job; True when `flush` has something to show of them."""
        return False

    def flush(self) -> None:
        """Show what was heard since."""

    def other_attempt(self, step: int) -> bool:
        """The one before or after; True when there is one and it must be asked for."""
        return False
