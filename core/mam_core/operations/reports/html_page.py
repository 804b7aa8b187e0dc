"""Jobs as one page that a browser shows by itself: no script, no server, no font to fetch.

The page forbids itself everything but its own style sheet, which it names by its hash; so
even a text that had found a way past the two doors of `html_text` could do nothing.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from mam_core.clock import stamp
from mam_core.operations.reports.account import Account
from mam_core.operations.reports.discretion import tell_of
from mam_core.operations.reports.html_job import facts, job_parts, pill, table
from mam_core.operations.reports.html_text import line, took
from mam_core.operations.reports.picture import Mark, Row, picture

_MOST_ROWS = 60
_LEGEND = (
    '<p class="legend">Dotted: it waited to be claimed. Full: it ran. Hatched: its agent waited '
    "for a person. ◆ a person did something. Times are UTC.</p>"
)


def page_of(accounts: Sequence[Account], title: str, now: float, notes: Iterable[str] = ()) -> str:
    """One job fills the page; several stand below a table of them. Notes say what is left out."""
    style = _style()
    mark = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    body = _one(accounts[0], now) if len(accounts) == 1 else _many(accounts, title, now)
    notes_shown = "".join(f'<p class="quiet">{line(note)}</p>' for note in notes)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta http-equiv="Content-Security-Policy" '
            f"content=\"default-src 'none'; style-src 'sha256-{mark}'\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{line(title)}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            *body,
            f"<footer>{notes_shown}<p>Written by mam at {stamp(now)}. Secrets, what looks like a "
            "key, and the names of home folders are left out.</p></footer>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _one(account: Account, now: float) -> Iterator[str]:
    tell = tell_of(account.job)
    yield f"<h1>Job {line(account.job_id)} {pill(account.status)}</h1>"
    yield f'<p class="lead foreign">{line(tell(_head(account)), 200)}</p>'
    yield from job_parts(account, now, _picture(list(_by_attempt(account)), now), whole=True)


def _by_attempt(account: Account) -> Iterator[Row]:
    """What a person did belongs to the attempt that it came before, or came into."""
    begins = [bar.began_at if bar.queued_at is None else bar.queued_at for bar in account.bars]
    ends = [*begins[1:], float("inf")]
    spans = list(zip(account.bars, begins, ends, strict=False))
    for bar, begin, end in spans[-_MOST_ROWS:]:
        marks = [mark for mark in _marks(account) if begin <= mark.at < end]
        yield Row(f"attempt {bar.attempt}", [bar], marks)


def _many(accounts: Sequence[Account], title: str, now: float) -> Iterator[str]:
    yield f"<h1>{line(title)}</h1>"
    yield from facts(_totals(accounts))
    rows = [
        Row(one.job_id, one.bars, _marks(one), f"job-{one.job_id}") for one in accounts if one.bars
    ]
    yield _picture(rows[:_MOST_ROWS], now)
    if len(rows) > _MOST_ROWS:
        yield f'<p class="quiet">The picture shows the first {_MOST_ROWS} of {len(rows)} jobs.</p>'
    yield "<h2>Jobs</h2>"
    heads = ("job", "status", "agent", "attempts#", "ran#", "tokens#", "cost#", "prompt")
    yield from table(heads, map(_summary, accounts))
    for account in accounts:
        tell = tell_of(account.job)
        yield f'<section id="job-{line(account.job_id)}">'
        yield f"<h2>Job {line(account.job_id)} {pill(account.status)}</h2>"
        yield f'<p class="lead foreign">{line(tell(_head(account)), 200)}</p>'
        yield from job_parts(account, now, "", whole=False)
        yield "</section>"


def _summary(account: Account) -> Sequence[str]:
    tell = tell_of(account.job)
    ran = [bar.run_sec for bar in account.bars if bar.run_sec is not None]
    job_id = line(account.job_id)
    return (
        f'<a class="mono" href="#job-{job_id}">{job_id}</a>',
        pill(account.status),
        line(str(account.values.get("agent") or ""), 40),
        str(len(account.bars)),
        took(sum(ran)) if ran else "",
        "" if account.tokens is None else f"{account.tokens:,}",
        "" if account.cost is None else f"${account.cost:.2f}",
        line(tell(_head(account)), 120),
    )


def _totals(accounts: Sequence[Account]) -> Mapping[str, str]:
    counted = Counter(one.status for one in accounts)
    costs = [one.cost for one in accounts if one.cost is not None]
    tokens = [one.tokens for one in accounts if one.tokens is not None]
    return {
        "jobs": str(len(accounts)),
        **{status: str(count) for status, count in counted.most_common()},
        "attempts": str(sum(len(one.bars) for one in accounts)),
        "tokens": f"{sum(tokens):,}" if tokens else "",
        "cost": f"${sum(costs):.2f}" if costs else "",
    }


def _picture(rows: Sequence[Row], now: float) -> str:
    drawn = picture(rows, now)
    return f'<div class="scroll">{drawn}</div>{_LEGEND}' if drawn else ""


def _marks(account: Account) -> list[Mark]:
    tell = tell_of(account.job)
    acts = [deed.act for deed in account.deeds if deed.act.verb != "register"]
    return [Mark(act.at, tell(f"{act.by}: {act.verb} {act.words}")) for act in acts]


def _head(account: Account) -> str:
    """The first line of the prompt that says something."""
    said = str(account.values.get("prompt") or "").split("\n", 50)
    return next((one.strip() for one in said if one.strip()), "")


@cache
def _style() -> str:
    with open(os.path.join(os.path.dirname(__file__), "style.css"), encoding="utf-8") as file:
        return file.read()
