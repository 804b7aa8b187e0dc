"""Two attempts as pairs of lines: what is alike stands side by side, what is not is told apart.

No widget in here, and no time of day in what is compared: two attempts that did the same
did it at different hours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from mam_core.operations.compare import Comparison, Side
from mam_core.operations.diff import Change
from mam_core.operations.moments import Moment
from mam_tui.faces import face_of
from mam_tui.moments import count, day_and_time, money, span
from mam_tui.widgets.detail.sgr import PLAIN, parse_all
from mam_tui.widgets.detail.spans import Line, Span, line_of, plain_lines
from mam_tui.widgets.detail.tab import Setting

#: Of what each of them printed, so many lines at the end are compared.
_MOST_LINES = 400
_NAME = 10
_WORD = 12


class Pair(NamedTuple):
    """One line of each; None where one of them has none."""

    left: Line | None
    right: Line | None
    alike: bool


#: A line, and what of it is compared.
_Said = tuple[Line, object]


def compared(both: Comparison, setting: Setting) -> Mapping[str, list[Pair]]:
    """All parts, by their names. It may take a moment: not for whoever draws."""
    makers: Mapping[str, Callable[[Comparison, Setting], list[Pair]]] = {
        "outcome": _outcome,
        "timeline": _timeline,
        "output": _output,
        "files": _files,
    }
    return {name: make(both, setting) for name, make in makers.items()}


PARTS = ("outcome", "timeline", "output", "files")


# -- how they went ---------------------------------------------------------------------------


def _outcome(both: Comparison, setting: Setting) -> list[Pair]:
    left, right = (_facts(side, setting) for side in both)
    events = sorted(both.left.events.keys() | both.right.events.keys())
    for side, facts in zip(both, (left, right), strict=True):
        facts += [("events", f"{side.events.get(name, 0)} {name[:40]}") for name in events]
    pairs = []
    for (name, mine), (_, other) in zip(left, right, strict=True):
        if mine or other:
            pairs.append(Pair(_fact(name, mine), _fact(name, other), mine == other))
    return pairs


def _facts(side: Side, setting: Setting) -> list[tuple[str, str]]:
    outcome = side.outcome or "no end is logged"
    face = face_of("queued" if outcome == "given back" else outcome)
    files = f"{len(side.files)} +{side.additions} -{side.deletions}"
    return [
        ("outcome", f"{setting.glyph(face.glyph, face.ascii)} {outcome}"),
        ("reason", side.reason),
        ("detail", side.detail[:4000]),
        ("exit code", "" if side.exit_code is None else str(side.exit_code)),
        ("began", _moment(side.began_at)),
        ("ended", _moment(side.ended_at)),
        ("took", span(side.elapsed_sec)),
        ("tokens", count(side.tokens)),
        ("cost", money(side.cost)),
        ("files", "" if side.no_files else files),
    ]


def _moment(at: float | None) -> str:
    return "" if at is None else day_and_time(at)


def _fact(name: str, text: str) -> Line:
    key = line_of((name, "key"))
    room = " " * max(1, _NAME + 1 - sum(len(one.text) for one in key))
    return (*key, Span(room), *line_of(text or "-"))


# -- what happened ---------------------------------------------------------------------------


def _timeline(both: Comparison, setting: Setting) -> list[Pair]:
    return _aligned(*([_happened(one, side, setting) for one in side.moments] for side in both))


def _happened(moment: Moment, side: Side, setting: Setting) -> _Said:
    since = side.began_at
    when = "?" if moment.at is None or since is None else span(moment.at - since)
    style = {True: "good", False: "bad", None: "key"}[moment.passed]
    word = line_of((moment.word, style))
    room = " " * max(1, _WORD + 1 - sum(len(one.text) for one in word))
    text = line_of(setting.plain(moment.text[:4000]))
    return (
        (Span(f"{when:>5}  ", "muted"), *word, Span(room), *text),
        (moment.word, moment.text, moment.passed),
    )


# -- what they printed -----------------------------------------------------------------------


def _output(both: Comparison, setting: Setting) -> list[Pair]:
    return _aligned(*(_printed(side) for side in both))


def _printed(side: Side) -> list[_Said]:
    if side.no_output:
        return [(line_of((side.no_output, "warning")), ("none", side.job_id, side.attempt))]
    text = side.output.decode("utf-8", "replace").replace("\r\n", "\n")
    raw = text.removesuffix("\n").split("\n") if text else []
    lines, _ = parse_all(PLAIN, [line[:4000] for line in raw[-_MOST_LINES:]])
    texts = ["".join(one.text for one in line) for line in lines]
    return [((Span(plain_lines(text)[0]),), text) for text in texts]


# -- what they left --------------------------------------------------------------------------


def _files(both: Comparison, setting: Setting) -> list[Pair]:
    pairs = []
    for side, is_left in ((both.left, True), (both.right, False)):
        why = side.no_files or ("" if side.files else "it has changed nothing")
        if why:
            said = line_of((why, "warning" if side.no_files else "muted"))
            pairs.append(Pair(said if is_left else None, None if is_left else said, False))
    if len(pairs) == 2:
        first, second = pairs
        pairs = [Pair(first.left, second.right, first.left == second.right)]
    for path, mine, other in both.files:
        pairs.append(Pair(_file(path, mine), _file(path, other), mine == other))
    return pairs


def _file(path: str, change: Change | None) -> Line | None:
    if change is None:
        return None
    if change.additions is None or change.deletions is None:
        return (Span(f"{'binary':>12}  ", "muted"), *line_of(path))
    counts = Span(f"{f'+{change.additions}':>6}", "added"), Span(f"{f'-{change.deletions}':>6}  ")
    return (*counts, *line_of(path))


# -- side by side ----------------------------------------------------------------------------


def _aligned(left: Sequence[_Said], right: Sequence[_Said]) -> list[Pair]:
    """What is alike is beside each other; between that, the lines of both, one by one."""
    mine, other = ([what for _, what in side] for side in (left, right))
    pairs: list[Pair] = []
    for kind, a, b, c, d in SequenceMatcher(None, mine, other, autojunk=False).get_opcodes():
        alike = kind == "equal"
        for at in range(max(b - a, d - c)):
            one = left[a + at][0] if a + at < b else None
            two = right[c + at][0] if c + at < d else None
            pairs.append(Pair(one, two, alike))
    return pairs
