"""What agents, tmux and people write, torn and at random: read, or refused in a sentence."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress

from mam_core.agents.channels.osc import Report, Scanner
from mam_core.agents.streams import Outcome, StreamFormat
from mam_core.records import Status
from mam_core.summaries import Unreadable
from mam_core.tmux.control_parser import ControlParser, Garbled
from mam_tui import commands
from mam_tui.filters import FIELDS, BadFilter, parse
from mam_tui.rows import Row
from tests.console.story import NOW, summary
from tests.fuzz.conftest import EVERY_COUNT, Tried, bounded
from tests.fuzz.mutants import SEED, mutants, pieces
from tests.support.recordings import FORMATS, new_parser, recordings

_WHOLE = 20_000  #: of one recording; a mutation in the middle of a long one is like any other


@EVERY_COUNT
def test_what_agents_print(tried: Tried, count: int) -> None:
    """Each recording under each parser, its own and the others'."""
    corpus = [one.output[:_WHOLE] for agent in FORMATS for one in recordings(agent) if one.output]
    forms = list(StreamFormat)
    for number, mutant in enumerate(mutants("streams", corpus, count)):
        chance = random.Random(number)
        parser = new_parser(forms[number % len(forms)])
        with bounded(mutant.label):
            for piece in pieces(mutant.data, chance, longest=4000):
                for happening in parser.feed(piece, aside=chance.random() < 0.1):
                    assert isinstance(happening.text, str), mutant.label
            outcome = parser.end(chance.choice((0, 1, 137, None)), None)
        assert isinstance(outcome, Outcome), mutant.label
        assert len(outcome.detail) <= 200, mutant.label
    tried("streams of agents", count)


_CONTROL = (
    b"%begin 1700000000 271 0\n%end 1700000000 271 0\n%session-changed $0 a\n"
    b"%begin 1700000001 276 1\nfirst \xff\xfe\n%end 1 2 3\n%exit\n\n%end 1700000001 276 1\n"
    b"%output %1 a\\012b\\134\n%begin 1700000001 277 1\ncan't find pane\n%error 1700000001 277 1\n"
)
_REPORTS = (
    b"plain \x1b]0;a title\x07 text\x1b]7501;state=working:app=codex\x1b\\ and \x1b]9;4;1;50\x07"
    b"\x1b]2;another\x1b\\\x1b[31mred\x1b[0m\x1bPq#0\x1b\\\x1b]7501;state=done\x07"
)


@EVERY_COUNT
def test_what_tmux_says(tried: Tried, count: int) -> None:
    for number, mutant in enumerate(mutants("control", [_CONTROL, _CONTROL * 3], count)):
        parser = ControlParser(line_limit=500, reply_limit=500)
        with bounded(mutant.label), suppress(Garbled):
            for piece in pieces(mutant.data, random.Random(number)):
                parser.feed(piece)
                assert parser.held <= 1000, mutant.label
    tried("tmux control", count)


@EVERY_COUNT
def test_what_terminals_report(tried: Tried, count: int) -> None:
    for number, mutant in enumerate(mutants("reports", [_REPORTS, _REPORTS * 2], count)):
        scanner = Scanner()
        with bounded(mutant.label):
            for piece in pieces(mutant.data, random.Random(number)):
                for report in scanner.feed(piece):
                    assert isinstance(report, Report), mutant.label
    tried("terminal reports", count)


# -- what operators type ---------------------------------------------------------------------

_ROWS = (
    Row(summary(1, agent="codex", head="a" * 200)),
    Row(summary(2, Status.ERROR, group="nightly", attempt=3, head="Fix \x1b[31m the \u202e test")),
    Row(Unreadable("job0004", "it is no JSON")),
)
_PARTS = (
    *(f"{name}:" for name in FIELDS),
    *("-", "/", '"', ",", ">", "<", " ", "a+", "(a+)+", "(", ")", "[", "]", "{9}", "{,}", "*", "?"),
    *(
        "(?:",
        "(?P<x>",
        "(?P=x)",
        "\\",
        "\\1",
        "|",
        "^",
        "$",
        ".",
        ".*",
        "error",
        "2h",
        "1e9",
        "any",
    ),
    *(
        "1" * 30,
        "٣",
        "²",
        "\x00",
        "\ud800",
        "İ",
        "ß",
        "(?i)",
        "(?#",
        "(?<=a)",
        "[^]",
        "[a-",
        "a" * 90,
    ),
)


def _typed(kind: str, number: int, parts: Sequence[str]) -> str:
    """Words of the language in an order that nobody would choose."""
    chance = random.Random(f"{SEED}/{kind}/{number}")
    return "".join(chance.choice(parts) for _ in range(chance.randint(1, 12)))


@EVERY_COUNT
def test_filters(tried: Tried, count: int) -> None:
    taken = 0
    for number in range(count):
        text = _typed("filters", number, _PARTS)
        with bounded(f"filter {text!r}"):
            try:
                chosen = parse(text)
            except BadFilter:
                continue
            taken += 1
            for row in _ROWS:
                chosen.fits(row, NOW)
    assert taken > count // 20
    tried("filters", count)


@EVERY_COUNT
def test_commands(tried: Tried, count: int) -> None:
    known = (*commands.names(), *commands.aliases())
    for number in range(count):
        line = _typed("commands", number, (*known, " ", *_PARTS))
        if number % 2:
            line = f"{known[number % len(known)]} {line}"
        with bounded(f"command {line!r}"):
            commands.completions(line)
            try:
                command = commands.parse(line)
            except commands.BadCommand:
                continue
        assert command is None or command.name in commands.names(), line
    tried("commands", count)
