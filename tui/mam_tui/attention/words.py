"""One need on a page: the whole question with its choices, or why it ended; and what to do."""

from __future__ import annotations

from collections.abc import Iterator

from mam_core.operations.asked import Asked
from mam_core.operations.attention import Need, NeedKind
from mam_core.operations.need_detail import NeedDetail
from mam_core.safe_text import safe_json
from mam_tui.actions import ACTIONS, key_of
from mam_tui.desk import Desk
from mam_tui.hints import help_key
from mam_tui.widgets.detail.spans import EMPTY, Paragraph, Plain, Span, line_of, plain_lines, said
from mam_tui.widgets.key_bar import key_name

#: Of one text; the form that answers shows more.
_MOST_CHARS = 20_000
_MOST_CHOICES = 9

_NEXT = {
    NeedKind.PERMISSION: "{attend} answers, {attach} shows its screen, {say} says something else",
    NeedKind.QUESTION: "{attend} answers, {attach} shows its screen, {say} says something else",
    NeedKind.LOST: "{look} shows what it did; it is tried again by itself while it may, "
    "{retry} tries it again after that",
    NeedKind.VALIDATION: "{retry} tries it again, {look} shows what it left behind",
    NeedKind.BUDGET: "{retry} tries it again with a fresh budget, {look} shows what it used",
    NeedKind.RETRIES: "{retry} tries it again, {look} shows why it failed",
    NeedKind.STUCK: "{look} opens the first of them, {cancel} cancels it",
    NeedKind.UNSERVED: "{look} opens the first of them, {cancel} cancels it",
    NeedKind.QUOTA: "it goes on by itself; {cancel} cancels it",
}


def paragraphs(need: Need, detail: NeedDetail | None, desk: Desk) -> list[Paragraph]:
    """`detail` is None while it is being read."""
    found = list(_questions(detail.asked) if detail is not None and detail.asked else ())
    if not found:
        words = detail.detail if detail is not None and detail.detail else need.words
        found = list(_text(words, "title"))
        if detail is None:
            found.append(said(("reading …", "muted")))
    helps = [Paragraph(line_of(help.sentence(help_key(desk, help))), 2) for help in need.help]
    return [*found, *([EMPTY] if helps else []), *helps, EMPTY, said((_next(need, desk), "muted"))]


def _questions(questions: tuple[Asked, ...]) -> Iterator[Paragraph]:
    for at, asked in enumerate(questions, start=1):
        if at > 1:
            yield EMPTY
        if len(questions) > 1:
            yield said((f"question {at} of {len(questions)}", "key"))
        if asked.question.words or not asked.screen:
            yield from _text(asked.question.words or "it does not say what", "title")
        for name, value in (asked.question.given or {}).items():
            whole = value if isinstance(value, str) else safe_json(value, indent=2)
            first, *rest = plain_lines(whole[:_MOST_CHARS])
            yield Paragraph((*line_of((f"{name}:", "key")), Span(" "), *line_of(first)), 2)
            yield from Plain(rest, "", 2)
        yield from _text("\n".join(asked.screen), "muted")
        for number, choice in enumerate(asked.choices[:_MOST_CHOICES], start=1):
            yield Paragraph((Span(f" {number}  ", "key"), *line_of(choice.words)), 4)


def _text(text: str, style: str) -> Iterator[Paragraph]:
    return iter(Plain(plain_lines(text[:_MOST_CHARS]), style)) if text else iter(())


def _next(need: Need, desk: Desk) -> str:
    names = {}
    for action in ACTIONS.values():
        key = key_of(action, desk)
        names[action.name] = key_name(key) if key else f":{action.name}"
    return _NEXT[need.kind].format_map(names)
