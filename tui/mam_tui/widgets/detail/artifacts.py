"""What the job promised to leave behind: each artifact with what validation would say of it now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from mam_core.operations.artifacts import Artifact, Artifacts, LastCheck, artifacts
from mam_core.safe_text import cell_width
from mam_tui.moments import size, span, time_of_day
from mam_tui.widgets.detail.page import Page
from mam_tui.widgets.detail.spans import EMPTY, Paragraph, Span, line_of, plain_lines, said
from mam_tui.widgets.detail.tab import Question, Setting, Tab

_STATE = 24
_WIDEST = 40


class ArtifactsTab(Tab):
    """Looks at the files, and runs nothing."""

    name: ClassVar[str] = "artifacts"
    look_sec: float | None = 2.0

    def __init__(self, setting: Setting) -> None:
        self._page = Page()
        super().__init__(setting, self._page)

    def forget(self) -> None:
        self._page.clear()

    def question(self) -> Question:
        job_id = self.job_id

        def ask(registry: Any) -> Any:
            found = artifacts(registry, job_id)
            return found, list(self._paragraphs(found))

        return ask

    def answer(self, answer: Any) -> None:
        found, paragraphs = answer
        kept = sum(1 for one in found.found if one.check.passed)
        self.note = f"{kept} of {len(found.found)} as promised" if found.found else ""
        self._page.put(paragraphs)
        self._page.say("it promises no artifact and has no check of its own")

    # -- on the asking thread ----------------------------------------------------------------

    def _paragraphs(self, found: Artifacts) -> Iterator[Paragraph]:
        if found.found:
            yield Paragraph(
                line_of((f"in {found.job.workdir or 'the folder of its worker'}", "muted"))
            )
            wide = max(cell_width(_name(one)[0].text) for one in found.found)
            for one in found.found:
                yield self._artifact(one, min(_WIDEST, wide))
        if found.job.validate:
            if found.found:
                yield EMPTY
            yield Paragraph((Span("check  ", "key"), *line_of(found.job.validate)), 7)
            yield from self._last_check(found.last_check, found.job.attempt)

    def _artifact(self, one: Artifact, wide: int) -> Paragraph:
        passed = one.check.passed
        glyph = self.setting.glyph("✔", "+") if passed else self.setting.glyph("✖", "x")
        state = one.check.words.removeprefix(f"artifact {one.check.what} ")
        name = _name(one)
        room = " " * max(1, wide + 2 - sum(cell_width(each.text) for each in name))
        parts = []
        if one.size is not None:
            parts.append(f"{one.size} entries" if one.is_folder else size(one.size))
        if one.changed_at is not None:
            parts.append(f"{span(self.setting.clock() - one.changed_at)} ago")
        words = line_of((f"{glyph} {state}", "good" if passed else "bad"))
        gap = " " * max(2, _STATE - sum(cell_width(each.text) for each in words))
        return Paragraph(
            (*name, Span(room), *words, Span(gap), *line_of((", ".join(parts), "muted"))), 2
        )

    def _last_check(self, last: LastCheck | None, attempt: int) -> Iterator[Paragraph]:
        if last is None:
            yield said(("       it was not run yet", "muted"))
            return
        glyph = self.setting.glyph("✔", "+") if last.passed else self.setting.glyph("✖", "x")
        which = f"attempt {last.attempt}" + (" (earlier)" if last.attempt != attempt else "")
        when = f" at {time_of_day(last.at)}" if last.at is not None else ""
        yield Paragraph(
            (
                Span("       "),
                *line_of((f"{glyph} {last.words}", "good" if last.passed else "bad")),
                *said((f"  for {which}{when}", "muted")).line,
            ),
            7,
        )
        for line in plain_lines(last.output) if last.output else ():
            yield Paragraph((Span(f"       {line}", "muted"),), 7)


def _name(one: Artifact) -> tuple[Span, ...]:
    return line_of((one.check.what, "title")) or (Span("?"),)
