"""Why the job stands where it stands: who says so, by which rule, and what was said before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

from mam_core.board.why import Why
from mam_core.operations.past import Change, past
from mam_core.operations.replay import Then
from mam_core.operations.seen import explained
from mam_core.records import Status
from mam_core.registry import Registry
from mam_tui.desk import Desk
from mam_tui.hints import help_key
from mam_tui.moments import day_and_time, seconds
from mam_tui.widgets.detail.page import Page
from mam_tui.widgets.detail.spans import EMPTY, Paragraph, Span, line_of, said
from mam_tui.widgets.detail.tab import Question, Setting, Tab

_MOST = 200
_WHEN = 21
_STATE = 12
_FREE = "queued: no other job and no start time held it back"
_NOT_KNOWN = "not in the history: pauses, full groups, and who served its label"


class WhyTab(Tab):
    """Sentences first, then the changes that led here, the newest first."""

    name: ClassVar[str] = "why"

    def __init__(self, setting: Setting, desk: Desk) -> None:
        self._page = Page()
        super().__init__(setting, self._page)
        self._desk = desk

    def forget(self) -> None:
        self._page.clear()

    def question(self) -> Question:
        job_id, desk, bullet = self.job_id, self._desk, self.setting.glyph("·", "-")

        def ask(registry: Registry) -> list[Paragraph]:
            told = explained(
                *(registry, desk.others, job_id, desk.registry_path),
                with_history=True,
                services=desk.services(registry),
            )
            sentences = told.said(partial(help_key, desk))
            return list(_paragraphs(sentences, told.history or (), told.job.attempt, bullet))

        return ask

    def question_then(self, then: Then, at: float) -> Question:
        """By today's rules and what the history records; the past offers no help."""
        job_id, bullet = self.job_id, self.setting.glyph("·", "-")
        sentences = [f"shown as {then.shown(at).sentence(at)}"]
        if then.status is Status.PENDING:
            found = self._desk.board.reasons.why(then.summary, at)
            sentences = Why(found.holds).sentences(lambda _: "") or [_FREE]
            sentences.append(_NOT_KNOWN)

        def ask(registry: Registry) -> list[Paragraph]:
            history = [one for one in past(registry, job_id) if (seconds(one.at) or 0.0) <= at]
            return list(_paragraphs(sentences, history, then.stand.attempt, bullet))

        return ask

    def answer(self, answer: Any) -> None:
        self._page.put(answer)


def _paragraphs(
    sentences: Sequence[str], history: Sequence[Change], attempt: int, bullet: str
) -> Iterator[Paragraph]:
    for sentence in sentences:
        yield Paragraph((Span(f"{bullet} ", "muted"), *line_of(sentence)), 2)
    if not history:
        return
    yield EMPTY
    yield said(("how it came to this", "title"), ("  newest first", "muted"))
    for change in list(reversed(history))[:_MOST]:
        at = seconds(change.at)
        when = day_and_time(at) if at is not None else "?"
        state = line_of((change.state[:40], "key" if change.attempt == attempt else "muted"))
        room = " " * max(1, _STATE + 1 - sum(len(span.text) for span in state))
        which = f"#{change.attempt} " if change.attempt else ""
        who = f"({': '.join(filter(None, (change.channel, change.rule)))})"
        yield Paragraph(
            (
                Span(f"{when:<{_WHEN}}", "muted"),
                *said((which, "muted")).line,
                *state,
                Span(room),
                *line_of(change.words[:4000]),
                Span(" "),
                *line_of((who, "muted")),
            ),
            _WHEN,
        )
    if len(history) > _MOST:
        yield said((f"… {len(history) - _MOST} earlier ones are in mam why", "muted"))
