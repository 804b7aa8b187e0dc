"""A preview of a file of jobs as lines: what is bad first, then what would be registered."""

from __future__ import annotations

from collections.abc import Iterator

from mam_core.operations.bulk_preview import Planned, Preview
from mam_core.safe_text import cell_width, clip, one_line, pad
from mam_tui.widgets.detail.spans import EMPTY, Paragraph, Span, said

_WIDEST_NAME = 24
_MOST_KINDS = 8


def summary(preview: Preview) -> str:
    """In one sentence, how many there are."""
    jobs = "1 job" if preview.jobs == 1 else f"{preview.jobs:,} jobs"
    if not preview.bad_lines:
        return f"{jobs} would be registered" if preview.jobs else ""
    bad = "1 bad line" if preview.bad_lines == 1 else f"{preview.bad_lines:,} bad lines"
    return f"{jobs}, and {bad}: all or nothing is registered"


def paragraphs(preview: Preview, width: int) -> list[Paragraph]:
    """Cut to `width` columns where columns matter; a sentence is broken instead."""
    return [*_bad(preview), *_kinds(preview), *_first(preview, width)]


def _bad(preview: Preview) -> Iterator[Paragraph]:
    if not preview.bad:
        return
    yield said(("bad lines", "title"))
    wide = len(f"{preview.bad[-1].number:,}")
    for number, sentence in preview.bad:
        words = (f"{number:>{wide},}  ", "bad"), one_line(sentence)
        yield said(*words, indent=wide + 2)
    if (more := preview.bad_lines - len(preview.bad)) > 0:
        yield said((f"… and {more:,} more", "muted"))
    yield EMPTY


def _kinds(preview: Preview) -> Iterator[Paragraph]:
    if not preview.kinds:
        return
    yield said(("jobs by agent and session", "title"))
    kinds = preview.kinds[:_MOST_KINDS]
    wide = len(f"{kinds[0].jobs:,}")
    names = _wide(kind.agent for kind in kinds)
    for kind in kinds:
        agent = pad(one_line(kind.agent), names)
        yield said((f"{kind.jobs:>{wide},}", "key"), f"  {agent}  {one_line(kind.label)}")
    if (more := len(preview.kinds) - len(kinds) + preview.other_kinds) > 0:
        yield said((f"… and {more:,} more agents and sessions", "muted"))
    yield EMPTY


def _first(preview: Preview, width: int) -> Iterator[Paragraph]:
    if not preview.first:
        return
    more = preview.jobs - len(preview.first)
    first = f"the first {len(preview.first):,} of {preview.jobs:,}" if more else "all of them"
    yield said((f"{first}: line, agent, session, prompt", "title"))
    wide = len(f"{preview.first[-1].number:,}")
    agents = _wide(one.agent for one in preview.first)
    labels = _wide(one.label for one in preview.first)
    for one in preview.first:
        yield _planned(one, wide, agents, labels, width)
    if more:
        yield said((f"… and {more:,} more", "muted"))


def _planned(one: Planned, wide: int, agents: int, labels: int, width: int) -> Paragraph:
    names = f"  {pad(one_line(one.agent), agents)}  {pad(one_line(one.label), labels)}  "
    number = f"{one.number:>{wide},}"
    room = width - len(number) - cell_width(names)
    prompt = clip(one_line(one.head), max(10, room))
    return Paragraph((Span(number, "muted"), Span(names, "key"), Span(prompt)))


def _wide(names: Iterator[str]) -> int:
    return min(_WIDEST_NAME, max(cell_width(one_line(name)) for name in names))
