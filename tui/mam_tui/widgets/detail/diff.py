"""What an attempt changed in its repository: notes, commits, files, and then the diff itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from mam_core.operations.diff import Diff, diff
from mam_core.registry import Registry
from mam_core.summaries import Summary
from mam_tui.moments import day_and_time
from mam_tui.widgets.detail.log import Log
from mam_tui.widgets.detail.sgr import PLAIN, parse
from mam_tui.widgets.detail.spans import Line, Span, line_of, said
from mam_tui.widgets.detail.tab import Question, Setting, Tab

#: More lines than this nobody reads in a panel; `mam diff` has them all.
_MOST_LINES = 20_000
_HEADS = ("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "similarity ", "rename ")


class DiffTab(Tab):
    """Asked of git, which may take its time: only when an attempt begins or ends."""

    name: ClassVar[str] = "diff"

    def __init__(self, setting: Setting) -> None:
        self._log = Log(_line, follows=False, ring=_MOST_LINES + 1000)
        super().__init__(setting, self._log)
        self._chosen: int | None = None
        self._shown: int | None = None

    def forget(self) -> None:
        self._log.clear()
        self._chosen = self._shown = None

    def question(self) -> Question:
        job_id, chosen = self.job_id, self._chosen

        def ask(registry: Registry) -> Any:
            found = diff(registry, job_id, chosen)
            return found, list(self._lines(found))

        return ask

    def answer(self, answer: Any) -> None:
        found: Diff = answer[0]
        self._shown = found.attempt
        until = "so far" if found.until_now else "in the end"
        files = f"{len(found.files)} file{'' if len(found.files) == 1 else 's'}"
        self.note = (
            f"of attempt {found.attempt} {until}, {files} +{found.additions} -{found.deletions}"
        )
        if found.attempt > 1 or self._chosen is not None:
            self.note += " (< >)"
        self._log.clear()
        self._log.extend(answer[1])

    def sorry(self, words: str) -> None:
        chosen = self._chosen
        super().sorry(words)
        self._chosen = self._shown = chosen

    def is_stale(self, was: Summary | None, now: Summary | None) -> bool:
        return was is None or now is None or (was.attempt, was.status) != (now.attempt, now.status)

    def other_attempt(self, step: int) -> bool:
        if self._shown is None or self._shown + step < 1:
            return False
        self._chosen = self._shown + step
        return True

    # -- on the asking thread ----------------------------------------------------------------

    def _lines(self, found: Diff) -> Iterator[Line | str]:
        for note in found.notes:
            yield line_of((f"{self.setting.glyph('◆', '!')} {note}", "warning"))
        for commit in found.commits:
            yield (
                *said((f"commit {commit.commit[:10]}  {day_and_time(commit.at)}  ", "key")).line,
                *line_of(f"{commit.author}: {commit.subject}"),
            )
        for file in found.files:
            name = f"{file.old_path} → {file.path}" if file.old_path else file.path
            yield (*_counts(file.additions, file.deletions), *line_of(self.setting.plain(name)))
        if not found.files:
            until = "so far" if found.until_now else "in the end"
            yield line_of((f"attempt {found.attempt} has changed nothing {until}", "muted"))
            return
        yield ()
        lines = found.text.decode("utf-8", "replace").split("\n")
        yield from lines[:_MOST_LINES]
        if len(lines) > _MOST_LINES:
            more = f"… {len(lines) - _MOST_LINES:,} more lines are in mam diff"
            yield line_of((more, "muted"))


def _counts(additions: int | None, deletions: int | None) -> Line:
    if additions is None or deletions is None:
        return (Span(f"{'binary':>12}  ", "muted"),)
    return (Span(f"{f'+{additions}':>6}", "added"), Span(f"{f'-{deletions}':>6}  ", "removed"))


def _line(item: Line | str) -> Line:
    """A line of the diff, formed when it is drawn."""
    if isinstance(item, tuple):
        return item
    spans, _ = parse(PLAIN, item)
    text = "".join(span.text for span in spans)
    return (Span(text, _kind(item)),)


def _kind(line: str) -> str:
    if line.startswith(_HEADS):
        return "file"
    return {"+": "added", "-": "removed", "@": "hunk"}.get(line[:1], "")
