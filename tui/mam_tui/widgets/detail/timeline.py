"""All that happened to a job, attempt by attempt; the newest attempt stands first.

An attempt that is over carries its own end in its heading and is marked as earlier, so
that an old error is never read as the present one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from mam_core.operations.moments import Moment
from mam_core.operations.timeline import Chapter, Timeline, timeline
from mam_core.records import Status
from mam_tui.faces import face_of
from mam_tui.moments import count, day_and_time, money, span, time_of_day
from mam_tui.widgets.detail.page import Page
from mam_tui.widgets.detail.spans import EMPTY, Paragraph, Span, line_of, said
from mam_tui.widgets.detail.tab import Question, Setting, Tab

if TYPE_CHECKING:
    from mam_core.operations.replay import Then

_WORD = 12
_INDENT = 2 + 8 + 2 + _WORD + 1
_STYLES = {
    "completed": "good",
    "error": "bad",
    "running": "good",
    "given back": "warning",
    "cancelled": "muted",
}


class TimelineTab(Tab):
    """From the audit log."""

    name: ClassVar[str] = "timeline"

    def __init__(self, setting: Setting) -> None:
        self._page = Page()
        super().__init__(setting, self._page)

    def forget(self) -> None:
        self._page.clear()

    def question(self) -> Question:
        job_id = self.job_id
        return lambda registry: (told := timeline(registry, job_id), self._paragraphs(told))

    def question_then(self, then: Then, at: float) -> Question:
        job_id = self.job_id
        return lambda registry: (told := timeline(registry, job_id, at), self._paragraphs(told))

    def answer(self, answer: Any) -> None:
        told, paragraphs = answer
        number = sum(1 for chapter in told.chapters if chapter.attempt)
        self.note = "1 attempt" if number == 1 else f"{number} attempts"
        if told.status is None:
            self.note += ", its record is gone or cannot be read"
        self._page.put(paragraphs)
        self._page.say("nothing is logged about this job")

    # -- on the asking thread ----------------------------------------------------------------

    def _paragraphs(self, told: Timeline) -> list[Paragraph]:
        page: list[Paragraph] = []
        for chapter in reversed(told.chapters):
            if page:
                page.append(EMPTY)
            page += self._chapter(chapter, told)
        return page

    def _chapter(self, chapter: Chapter, told: Timeline) -> list[Paragraph]:
        page = [self._heading(chapter, told)]
        if chapter.reason or chapter.detail:
            why = ": ".join(filter(None, (chapter.reason, chapter.detail)))
            page.append(Paragraph((Span("  "), *line_of(why)), 2))
        if facts := _facts(chapter):
            page.append(Paragraph((Span("  "), *line_of((facts, "muted"))), 2))
        middle = len(chapter.moments) // 2
        for at, moment in enumerate(chapter.moments):
            if chapter.left_out and at == middle:
                page.append(said((f"  … {chapter.left_out} more are in mam logs", "muted")))
            page.append(self._moment(moment))
        return page

    def _heading(self, chapter: Chapter, told: Timeline) -> Paragraph:
        if not chapter.attempt:
            words = (
                f"after attempt {chapter.after}" if chapter.after else "before the first attempt"
            )
            if chapter.after == told.current and told.status is Status.PENDING:
                words = f"{words}: it waits for {'another' if chapter.after else 'its first'} one"
            return said((words, "muted"))
        is_current = chapter.attempt == told.current and told.status is Status.RUNNING
        outcome = chapter.outcome or "no end is logged"
        face = face_of(
            "running" if is_current else "queued" if outcome == "given back" else outcome
        )
        glyph = self.setting.glyph(face.glyph, face.ascii)
        is_last = chapter.attempt == _last(told) and told.status is not Status.PENDING
        parts = [(f"attempt {chapter.attempt}  ", "title")]
        parts.append((f"{glyph} {outcome}", _STYLES.get(outcome, "muted")))
        if (elapsed := chapter.elapsed_sec) is not None:
            parts.append((f"  {span(elapsed)}", ""))
        if chapter.began_at is not None:
            parts.append((f"  {day_and_time(chapter.began_at)}", "muted"))
        parts.append(("" if is_last else "  (earlier)", "muted"))
        return said(*parts, indent=2)

    def _moment(self, moment: Moment) -> Paragraph:
        when = time_of_day(moment.at) if moment.at is not None else "?"
        style = {True: "good", False: "bad", None: "key"}[moment.passed]
        if moment.word in ("waiting", "asks"):
            style = "warning"
        word = line_of((moment.word, style))
        room = " " * max(1, _WORD + 1 - sum(len(each.text) for each in word))
        line = [
            Span(f"  {when:<8}  ", "muted"),
            *word,
            Span(room),
            *line_of(self.setting.plain(moment.text)),
        ]
        if moment.by:
            line += (Span("  " if moment.text else ""), *line_of((f"by {moment.by}", "muted")))
        return Paragraph(tuple(line), _INDENT)


def _last(told: Timeline) -> int:
    """The attempt that the record speaks of; without one, the last that is logged."""
    if told.status is not None:
        return told.current
    return max((chapter.attempt for chapter in told.chapters), default=0)


def _facts(chapter: Chapter) -> str:
    facts, parts = chapter.facts, []
    if chapter.events:
        number = sum(chapter.events.values())
        names = ", ".join(
            f"{many} {name}" for name, many in sorted(chapter.events.items(), key=lambda it: -it[1])
        )
        parts.append(f"{number} event{'' if number == 1 else 's'}: {names}")
    tokens = facts.get("tokens")
    if isinstance(tokens, dict):
        known = [part for part in tokens.values() if isinstance(part, int)]
        parts.append(f"{count(sum(known))} tokens")
    if isinstance(facts.get("cost"), int | float):
        parts.append(money(float(facts["cost"])))
    if isinstance(facts.get("peak_memory"), int):
        parts.append(f"{facts['peak_memory'] / 2**20:.0f} MB at most")
    return "; ".join(parts)
