"""What the charts say: six panels of figures, of everything or name by name.

Each has its unit in the heading, its scale at the side, and its sum in words below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mam_core.operations.bars import Dimension, Outcome
from mam_core.operations.statistics import Chart, Period, Point, Spread, Statistics
from mam_core.safe_text import cell_width, clip, one_line, pad
from mam_tui.bars.faces import OUTCOMES
from mam_tui.moments import count, money, span, time_of_day
from mam_tui.widgets.chart import Values, columns
from mam_tui.widgets.detail.spans import Line, Span
from mam_tui.widgets.gantt_chart import NAMELESS

#: Beside the plot: the scale.
_SCALE = 7
#: Of a panel besides its plot: heading, axis, sum.
AROUND = 3
_NAME_MOST = 18
_SPARK_MOST = 6
_STYLES = {"working": "key", "done": "good", "error": "bad", "idle": "muted", "blocked": "news"}


class Question(NamedTuple):
    """What is to be shown, and on how much room."""

    period: Period
    now: float
    by: Dimension | None  #: None: of everything together
    width: int
    height: int  #: of the plot
    ascii_only: bool = False

    @property
    def each(self) -> str:
        return span(self.period.value).removesuffix("00") if self.period.value > 60 else "minute"


class Figure(NamedTuple):
    """One kind of figure, and how it is read off a point."""

    title: str
    unit: str
    of: Callable[[Point], float]
    shown: Callable[[float], str]
    summed: Callable[[Chart], str]
    behind: Callable[[Point], float] | None = None
    brief: Callable[[Point], str] | None = None  #: of a whole period, beside a sparkline
    weight: Callable[[Point], float] = lambda point: point.ended


def cost(amount: float) -> str:
    return "<$0.01" if 0 < amount < 0.01 else money(amount)


def _number(value: float) -> str:
    return count(round(value))


def _rate(chart: Chart) -> str:
    rate = chart.per_hour
    return f"{_number(chart.total.ended)} ended, {rate:.1f} an hour" if rate else ""


def _durations(pick: Callable[[Point], Spread]) -> Callable[[Chart], str]:
    def words(chart: Chart) -> str:
        own = pick(chart.total)
        if own.median is None:
            return ""
        return f"median {span(own.median)}, p90 {span(own.p90)}, longest {span(own.most)}"

    return words


def _brief(pick: Callable[[Point], Spread]) -> Callable[[Point], str]:
    return lambda point: f"{span(pick(point).median)} / {span(pick(point).p90)}"


def _tokens(chart: Chart) -> str:
    total = chart.total
    if not total.tokens:
        return ""
    return f"{count(total.tokens)} tokens, {count(total.tokens // total.ended)} an attempt"


def _costs(chart: Chart) -> str:
    total = chart.total
    return f"{cost(total.cost)}, {cost(total.cost / total.ended)} an attempt" if total.cost else ""


def _times(name: str, words: str, pick: Callable[[Point], Spread]) -> Figure:
    return Figure(
        name,
        words,
        lambda point: pick(point).median or 0,
        span,
        _durations(pick),
        lambda point: pick(point).p90 or 0,
        _brief(pick),
        lambda point: pick(point).median or 0,
    )


FIGURES = (
    Figure("Throughput", "attempts that ended per {each}", lambda p: p.ended, _number, _rate),
    _times("Waiting time", "until claimed, median and p90 per {each}", lambda p: p.waiting),
    _times("Run time", "from claim to end, median and p90 per {each}", lambda p: p.running),
    Figure(
        "Tokens",
        "in and out, per {each}",
        lambda p: p.tokens,
        _number,
        _tokens,
        brief=lambda p: count(p.tokens),
        weight=lambda p: p.tokens,
    ),
    Figure(
        "Cost",
        "dollars per {each}",
        lambda p: p.cost,
        cost,
        _costs,
        brief=lambda p: cost(p.cost),
        weight=lambda p: p.cost,
    ),
)
PANELS = len(FIGURES) + 1


def panels(statistics: Statistics, asked: Question) -> list[list[Line]]:
    """The outcomes stand second: after how many there were one asks how they went."""
    whole = statistics.chart(asked.period, asked.now)
    if asked.by is None:
        made = [_panel(figure, whole, asked) for figure in FIGURES]
        made.insert(1, _outcomes(whole, asked))
        return made
    named = [
        (name, statistics.chart(asked.period, asked.now, (asked.by, name)))
        for name in [*statistics.names(asked.by), ""]
    ]
    named = [(name or NAMELESS[asked.by], chart) for name, chart in named if chart.total.ended]
    made = [_compared(figure, whole, named, asked) for figure in FIGURES]
    made.insert(1, _shares(whole, named, asked))
    return made


def _heading(title: str, unit: str, asked: Question) -> Line:
    unit = unit.format(each=asked.each)
    return (Span(title, "title"), Span(clip(f"  {unit}", asked.width - len(title)), "muted"))


def _summed(words: str, asked: Question, lacking: str) -> Line:
    indent = " " * _SCALE
    text = clip(f"{indent}{words or lacking}", asked.width)
    return (Span(text, "" if words else "muted"),)


def _panel(figure: Figure, chart: Chart, asked: Question) -> list[Line]:
    values = [figure.of(point) for point in chart.points]
    behind = [figure.behind(point) for point in chart.points] if figure.behind else ()
    most = max(*values, *behind)
    width = max(1, asked.width - _SCALE)
    plot = columns(values, width, asked.height, most, behind=behind, ascii_only=asked.ascii_only)
    edge = "|" if asked.ascii_only else "│"
    lines: list[Line] = [_heading(figure.title, figure.unit, asked)]
    for at, line in enumerate(plot):
        label = figure.shown(most) if at == 0 and most else ""
        lines.append((Span(f"{label:>{_SCALE - 1}}{edge}", "muted"), *line))
    lines.append(_axis(chart, asked, width))
    lines.append(_summed(figure.summed(chart), asked, f"nobody told of {figure.title.lower()}"))
    return lines


def _axis(chart: Chart, asked: Question, width: int) -> Line:
    corner, rule = ("+", "-") if asked.ascii_only else ("└", "─")
    began = chart.points[0].began_at
    first = time_of_day(began)[:5] if asked.period is Period.HOUR else f"{asked.period.word} ago"
    between = max(0, width - len(first) - len(" now") - 1)
    words = f"{'0':>{_SCALE - 1}}{corner}{first} {rule * between} now"
    return (Span(clip(words, asked.width), "muted"),)


def _outcomes(chart: Chart, asked: Question) -> list[Line]:
    """One line for each: sign and word tell them apart."""
    lines: list[Line] = [_heading("Outcomes", "how they ended, per {each}", asked)]
    total = chart.total.outcomes
    usual = (Outcome.COMPLETED, Outcome.ERROR)
    shown = [one for one in reversed(tuple(OUTCOMES)) if total.get(one) or one in usual]
    most = max(n for point in chart.points for n in (0, *point.outcomes.values()))
    for outcome in shown[: asked.height + 1]:
        face = OUTCOMES[outcome]
        values = [point.outcomes.get(outcome, 0) for point in chart.points]
        number = total.get(outcome, 0)
        share = f"{number:>5} {number * 100 // max(1, chart.total.ended):>3}%"
        name = f"{face.ascii if asked.ascii_only else face.glyph} {face.word:<10} "
        style = _STYLES.get(face.style, "warning")
        lines += _sparked(name, values, most, share, style, _high(len(shown), asked), asked)
    return _filled(lines, _summed(_worst(chart), asked, "nothing ended"), asked)


def _worst(chart: Chart) -> str:
    total = chart.total
    if not total.ended:
        return ""
    failed = total.outcomes.get(Outcome.ERROR, 0)
    return f"{_number(failed)} of {_number(total.ended)} failed" if failed else "none failed"


def _sparked(
    name: str, values: Values, most: float, end: str, style: str, high: int, asked: Question
) -> list[Line]:
    """A name, how it went, and a figure; where there is room for it, so many lines high."""
    wide = cell_width(name)
    room = max(1, asked.width - wide - cell_width(end))
    drawn = columns(values, room, high, most, style=style, ascii_only=asked.ascii_only)
    lines: list[Line] = [(Span(" " * wide), *line) for line in drawn[:-1]]
    return [*lines, (Span(name, style), *drawn[-1], Span(end))]


def _high(number: int, asked: Question) -> int:
    """Of each of so many."""
    return max(1, min(_SPARK_MOST, (asked.height + 1) // max(1, number)))


def _filled(lines: list[Line], last: Line, asked: Question) -> list[Line]:
    """As high as the other panels; the sum is the last line of each."""
    return [*lines, *[()] * (asked.height + AROUND - 1 - len(lines)), last]


def _compared(
    figure: Figure, whole: Chart, named: Sequence[tuple[str, Chart]], asked: Question
) -> list[Line]:
    """One line for each name, the highest first, all by one scale."""
    lines: list[Line] = [_heading(figure.title, figure.unit, asked)]
    ranked = sorted(named, key=lambda one: (-figure.weight(one[1].total), one[0]))
    ranked = [one for one in ranked if figure.weight(one[1].total)]
    shown, left = _room(ranked, asked)
    most = max((figure.of(p) for _, chart in shown for p in chart.points), default=0)
    brief = figure.brief or (lambda point: _number(point.ended))
    ends = [brief(chart.total) for _, chart in shown]
    wide = max(map(len, ends), default=0)
    for (name, chart), end in zip(shown, ends, strict=True):
        values = [figure.of(point) for point in chart.points]
        head, high = _clipped(name, asked), _high(len(shown), asked)
        lines += _sparked(head, values, most, f" {end:>{wide}}", "key", high, asked)
    if left:
        lines.append((Span(f"and {left} more", "muted"),))
    words = figure.summed(whole)
    scale = f"; peak {figure.shown(most)}" if words and most else ""
    lacking = f"nobody told of {figure.title.lower()}"
    return _filled(lines, _summed(f"{words}{scale}", asked, lacking), asked)


def _room(
    named: Sequence[tuple[str, Chart]], asked: Question
) -> tuple[Sequence[tuple[str, Chart]], int]:
    """Those that are shown, and how many are not."""
    rows = asked.height + 1
    if len(named) <= rows:
        return named, 0
    return named[: rows - 1], len(named) - rows + 1


def _clipped(name: str, asked: Question) -> str:
    return pad(one_line(name[:200]), min(_NAME_MOST, asked.width // 3) - 1) + " "


def _shares(whole: Chart, named: Sequence[tuple[str, Chart]], asked: Question) -> list[Line]:
    """How the attempts of each name ended: so many of its signs as is its share."""
    lines: list[Line] = [_heading("Outcomes", "how they ended, as shares", asked)]
    ranked = sorted(named, key=lambda one: (-one[1].total.ended, one[0]))
    shown, left = _room(ranked, asked)
    for name, chart in shown:
        total, end = chart.total, f" {_number(chart.total.ended):>5}"
        head = _clipped(name, asked)
        room = max(1, asked.width - cell_width(head) - len(end))
        lines += [()] * (_high(len(shown), asked) - 1)  # as the other panels stand
        lines.append((Span(head, "key"), *_signs(total, room, asked), Span(end)))
    if left:
        lines.append((Span(f"and {left} more", "muted"),))
    return _filled(lines, _summed(_worst(whole), asked, "nothing ended"), asked)


def _signs(total: Point, room: int, asked: Question) -> list[Span]:
    """Every outcome that there was has at least one, those that matter most first."""
    kinds = [one for one in OUTCOMES if total.outcomes.get(one)]
    sizes = [max(1, total.outcomes[one] * room // total.ended) for one in kinds]
    sizes[-1] = max(1, room - sum(sizes[:-1]))
    spans = []
    for outcome, size in zip(kinds, sizes, strict=True):
        face = OUTCOMES[outcome]
        sign = face.ascii if asked.ascii_only else face.glyph
        spans.append(Span(sign * size, _STYLES.get(face.style, "warning")))
    return spans
