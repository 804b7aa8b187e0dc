"""The record key by key, and the whole prompt with its own line ends; no secret is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from mam_core.operations.record import Record, record
from mam_core.registry import Registry
from mam_tui.widgets.detail.page import Page
from mam_tui.widgets.detail.spans import (
    EMPTY,
    Joined,
    Paragraph,
    Plain,
    Span,
    line_of,
    plain_lines,
    said,
)
from mam_tui.widgets.detail.tab import Question, Setting, Tab

_KEY = 20
_BODY = "prompt"


class RecordTab(Tab):
    """What stands on disk."""

    name: ClassVar[str] = "record"

    def __init__(self, setting: Setting) -> None:
        self._page = Page()
        super().__init__(setting, self._page)
        self._prompt: tuple[str, Plain] = ("", Plain(()))

    def forget(self) -> None:
        self._page.clear()

    def question(self) -> Question:
        job_id, known = self.job_id, self._prompt

        def ask(registry: Registry) -> Any:
            found = record(registry, job_id)
            prompt = found.values.get(_BODY)
            text = prompt if isinstance(prompt, str) else ""
            # It seldom changes, and may be a megabyte.
            body = known if known[0] == text else (text, Plain(plain_lines(text)))
            return list(_paragraphs(found, text)), body

        return ask

    def answer(self, answer: Any) -> None:
        first, self._prompt = answer
        self._page.put(Joined(first, self._prompt[1]))


def _paragraphs(found: Record, prompt: str) -> Iterator[Paragraph]:
    if found.notice:
        yield Paragraph(line_of((found.notice, "warning")))
    unset = []
    for name, value in found.values.items():
        if name == _BODY:
            continue
        if value in (None, "", [], {}):
            unset.append(name)
            continue
        yield from _pairs(name, value)
    if unset:
        yield _pair("not set", ", ".join(unset), "muted")
    yield EMPTY
    number = f"{len(prompt):,} character{'' if len(prompt) == 1 else 's'}"
    yield said((_BODY, "title"), (f"  {number}", "muted"))


def _pairs(name: str, value: Any) -> Iterator[Paragraph]:
    if isinstance(value, Mapping):
        for inner, inside in value.items():
            if inside not in (None, "", [], {}):
                yield from _pairs(f"{name}.{inner}", inside)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, inside in enumerate(value):
            if isinstance(inside, Mapping):
                yield from _pairs(f"{name}.{number + 1}", inside)
            else:
                yield _pair(name if not number else "", _word(inside))
    else:
        yield _pair(name, _word(value))


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pair(name: str, value: str, style: str = "") -> Paragraph:
    key = line_of((name[:64], "key"))
    room = " " * max(2, _KEY - sum(len(span.text) for span in key))
    return Paragraph((*key, Span(room), *line_of((value[:4000], style))), _KEY)
