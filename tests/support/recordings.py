"""The recordings of real agents, and what is read from them, as text that a person can check.

Run as a program it writes ``tests/samples/expected/`` anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC
from pathlib import Path
from typing import NamedTuple

from mam_core.agents.streams import (
    Happening,
    Kind,
    Outcome,
    StreamFormat,
    StreamParser,
    parser_for,
)

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
#: 2026-11-16T02:20:00Z, when the recordings were made.
RECORDED_AT = 1794795600.0

FORMATS = {
    "claude": StreamFormat.CLAUDE,
    "codex": StreamFormat.CODEX,
    "gemini": StreamFormat.GEMINI,
    "opencode": StreamFormat.OPENCODE,
    "aider": StreamFormat.AIDER,
}
_SHOWN_CHARS = 100


class Recording(NamedTuple):
    """One run of one agent."""

    agent: str
    name: str
    exit_code: int | None
    signal: int | None
    output: bytes
    aside: bytes

    @property
    def form(self) -> StreamFormat:
        if self.agent == "gemini" and ".json." in self.name:
            return StreamFormat.GEMINI_DOCUMENT
        return FORMATS[self.agent]


class Reading(NamedTuple):
    """What a parser made of it."""

    happenings: list[Happening]
    outcome: Outcome

    def of(self, kind: Kind) -> list[Happening]:
        return [happening for happening in self.happenings if happening.kind is kind]


def recordings(agent: str) -> Iterator[Recording]:
    exits: dict[str, int] = json.loads((SAMPLES / "exits.json").read_text())[agent]
    for name, code in exits.items():
        path = SAMPLES / agent / name
        aside = path.with_name(f"{name.rpartition('.')[0]}.stderr.txt")
        yield Recording(
            agent,
            name,
            code if code >= 0 else None,
            -code if code < 0 else None,
            path.read_bytes() if path.exists() else b"",
            aside.read_bytes() if aside.exists() else b"",
        )


def recording(agent: str, name: str) -> Recording:
    return next(found for found in recordings(agent) if found.name == name)


def new_parser(form: StreamFormat, now: float = RECORDED_AT) -> StreamParser:
    return parser_for(form, lambda: now, UTC)


def read(record: Recording, chunks: Iterable[bytes] | None = None) -> Reading:
    """Standard output first, since nobody recorded how the two were mixed."""
    parser = new_parser(record.form)
    happenings: list[Happening] = []
    for chunk in (record.output,) if chunks is None else chunks:
        happenings += parser.feed(chunk)
    happenings += parser.feed(record.aside, aside=True)
    happenings += parser.close()
    return Reading(happenings, parser.end(record.exit_code, record.signal))


def shown(agent: str) -> str:
    """Every recording of an agent, its happenings a line each, and its outcome."""
    pages = []
    for record in recordings(agent):
        reading = read(record)
        ended = f"exit {record.exit_code}" if record.signal is None else f"signal {record.signal}"
        lines = [f"== {record.name} ({ended})", *_listed(reading.happenings)]
        pages.append("\n".join([*lines, _outcome(reading.outcome)]))
    return "\n\n".join(pages) + "\n"


def _listed(happenings: list[Happening]) -> Iterator[str]:
    repeats = 0
    for number, (kind, text, data) in enumerate(happenings):
        following = happenings[number + 1 : number + 2]
        if kind is Kind.PARTIAL and following and following[0].kind is Kind.PARTIAL:
            repeats += 1
            continue
        words = text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + f"… ({len(text)})"
        told = json.dumps(data) if data else ""
        times = f"x{repeats + 1}" if repeats else ""
        quoted = json.dumps(words) if words and not repeats else ""
        yield " ".join(filter(None, (kind.value, times, told, quoted)))
        repeats = 0


def _outcome(outcome: Outcome) -> str:
    told = [outcome.reason.value if outcome.reason else "ok"]
    told += [json.dumps(outcome.detail, ensure_ascii=False)] if outcome.detail else []
    told += [f"tokens={'/'.join(map(str, outcome.tokens))}"] if outcome.tokens.total else []
    told += [f"cost={outcome.cost:.6f}"] if outcome.cost else []
    told += [f"until=+{outcome.quota_until - RECORDED_AT:g}"] if outcome.quota_until else []
    told += [f"denials={','.join(outcome.denials)}"] if outcome.denials else []
    told += [] if outcome.session_id else ["no session"]
    return "=> " + " ".join(told)


def expected_path(agent: str) -> Path:
    return SAMPLES / "expected" / f"{agent}.txt"


if __name__ == "__main__":
    expected_path("x").parent.mkdir(exist_ok=True)
    for each in FORMATS:
        expected_path(each).write_text(shown(each))
