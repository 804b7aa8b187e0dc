"""One job as parts of an HTML page, from its outcome to the end of its output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mam_core.clock import stamp
from mam_core.discretion import without_paths
from mam_core.operations.bars import Bar
from mam_core.operations.moments import Moment
from mam_core.operations.reports.account import Account, Deed
from mam_core.operations.reports.discretion import Tell, tell_of
from mam_core.operations.reports.html_text import line, lines, took
from mam_core.operations.timeline import Chapter
from mam_core.records import DEFAULTS
from mam_core.work.validation import Artifact

#: What was asked for and is no default; the prompt has a block of its own.
_CONTRACT = (
    *("agent_session", "model", "group", "priority", "key", "after", "not_before"),
    *("timeout_sec", "idle_timeout_sec", "max_attempts", "max_cost", "max_tokens"),
    *("memory_max", "expected_artifacts", "validate", "created_at"),
)
_LONG_PROMPT = 600


def job_parts(account: Account, now: float, picture: str, *, whole: bool) -> Iterator[str]:
    """Without `whole`, what happened line by line is left out: many jobs share one page."""
    tell = tell_of(account.job)
    yield from facts(_facts(account))
    yield picture
    yield from _outcome(account, tell)
    yield from _prompt(account, tell)
    yield from _attempts(account, tell, now)
    yield from _artifacts(account, tell)
    yield from _deeds(account.deeds, tell)
    if whole:
        yield from _history(account, tell)
    yield from _output(account, tell)


def pill(status: str) -> str:
    return f'<span class="pill {line(status).replace(" ", "-")}">{line(status)}</span>'


def facts(values: Mapping[str, str]) -> Iterator[str]:
    """Names and safe texts; what is empty is left out."""
    told = "".join(
        f"<div><dt>{line(name)}</dt><dd>{text}</dd></div>" for name, text in values.items() if text
    )
    if told:
        yield f'<dl class="facts">{told}</dl>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Cells are safe texts; a column without any is left out.

    The end of a head says what is below: ``#`` numbers, ``@`` moments, ``+`` long texts, ``~`` the
    names of what stands beside them.
    """
    kinds = {"#": "number", "@": "when", "+": "wide", "~": "key"}
    told = list(rows)
    used = [at for at in range(len(heads)) if any(row[at] for row in told)]
    heads = [heads[at] for at in used]
    classes = [f' class="{kinds[head[-1]]}"' if head[-1:] in kinds else "" for head in heads]
    names = [head.rstrip("".join(kinds)) for head in heads]
    yield '<div class="scroll"><table>'
    if any(names):
        cells = (f"<th{kind}>{name}</th>" for name, kind in zip(names, classes, strict=True))
        yield f"<thead><tr>{''.join(cells)}</tr></thead>"
    yield "<tbody>"
    for row in told:
        shown = (row[at] for at in used)
        cells = (f"<td{kind}>{cell}</td>" for cell, kind in zip(shown, classes, strict=True))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _facts(account: Account) -> dict[str, str]:
    ran = [bar.run_sec for bar in account.bars if bar.run_sec is not None]
    waited = [bar.waiting_sec for bar in account.bars if bar.waiting_sec is not None]
    hosts = dict.fromkeys(bar.node for bar in account.bars if bar.node)
    workdir = account.values.get("workdir")
    return {
        "agent": line(str(account.values.get("agent") or ""), 40),
        "attempts": str(len(account.bars)),
        "ran": took(sum(ran)) if ran else "",
        "queued": took(sum(waited)) if waited else "",
        "tokens": "" if account.tokens is None else f"{account.tokens:,}",
        "cost": "" if account.cost is None else f"${account.cost:.4f}",
        "host": line(", ".join(hosts), 60),
        "folder": line(without_paths(str(workdir)), 60) if workdir else "",
    }


def _outcome(account: Account, tell: Tell) -> Iterator[str]:
    yield "<h3>Outcome</h3>"
    for sentence in account.sentences:
        yield f'<p class="why">{line(tell(sentence), 2000)}</p>'
    if account.told.status is None:
        yield "<p>Its record is gone: this is what the audit log has of it.</p>"


def _prompt(account: Account, tell: Tell) -> Iterator[str]:
    prompt = str(account.values.get("prompt") or "")
    yield "<h3>What was asked</h3>"
    block = f"<pre>{lines(tell(prompt))}</pre>"
    is_long = len(prompt) > _LONG_PROMPT
    summary = f"the prompt, {len(prompt):,} characters"
    yield f"<details><summary>{summary}</summary>{block}</details>" if is_long else block
    asked = [
        (name.replace("_", " "), shown)
        for name in _CONTRACT
        if account.values.get(name) != DEFAULTS.get(name)
        and (shown := line(tell(_plain(account.values.get(name))), 1000))
    ]
    yield from table(("~", "+"), asked)


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value[:100]))
    return "" if value is None else str(value)


def _attempts(account: Account, tell: Tell, now: float) -> Iterator[str]:
    if not account.bars:
        yield "<h3>Attempts</h3><p>None yet.</p>"
        return
    yield "<h3>Attempts</h3>"
    chapters = {chapter.attempt: chapter for chapter in account.told.chapters if chapter.attempt}
    heads = ("try#", "outcome", "began@", "ran#", "asked#", "exit#", "tokens#", "cost#", "why+")
    rows = (_attempt(bar, chapters.get(bar.attempt), tell, now) for bar in account.bars)
    yield from table(heads, rows)


def _attempt(bar: Bar, chapter: Chapter | None, tell: Tell, now: float) -> Sequence[str]:
    asked = sum(
        max(0.0, (now if one.ended_at is None else one.ended_at) - one.began_at)
        for one in bar.waits
    )
    words, code = bar.reason, ""
    if chapter is not None:
        words = ": ".join(filter(None, (chapter.reason, chapter.detail))) or words
        code = str(chapter.facts.get("exit_code", chapter.facts.get("signal", "")))
    return (
        str(bar.attempt),
        pill(str(bar.outcome)),
        _when(bar.began_at),
        took((now if bar.ended_at is None else bar.ended_at) - bar.began_at),
        took(asked) if asked else "",
        line(code, 20),
        "" if bar.tokens is None else f"{bar.tokens:,}",
        "" if bar.cost is None else f"${bar.cost:.4f}",
        line(tell(words), 1000),
    )


def _artifacts(account: Account, tell: Tell) -> Iterator[str]:
    found = account.artifacts
    if found is None or not (found.found or found.last_check):
        return
    yield "<h3>Artifacts and checks</h3>"
    rows = [_artifact(one, tell) for one in found.found]
    last = found.last_check
    if last is not None:
        name = f"<code>{line(tell(str(found.job.validate)), 300)}</code>"
        words = f"{last.words} (attempt {last.attempt})"
        rows.append((_passed(last.passed), name, "", _when(last.at), line(tell(words), 600)))
    yield from table(("check", "what", "size#", "changed@", "words+"), rows)
    if last is not None and last.output:
        yield f"<pre>{lines(tell(last.output), 4000)}</pre>"


def _artifact(one: Artifact, tell: Tell) -> tuple[str, ...]:
    unit = "entries" if one.is_folder else "bytes"
    return (
        _passed(one.check.passed),
        f"<code>{line(tell(one.check.what), 300)}</code>",
        "" if one.size is None else f"{one.size:,} {unit}",
        _when(one.changed_at),
        line(tell(one.check.words), 600),
    )


def _deeds(deeds: Sequence[Deed], tell: Tell) -> Iterator[str]:
    if not deeds:
        return
    yield "<h3>What people did and said</h3>"
    heads = ("when@", "who", "act", "words+", "how far")
    yield from table(heads, (_deed(deed, tell) for deed in deeds))


def _deed(deed: Deed, tell: Tell) -> Sequence[str]:
    act = deed.act
    return (
        _when(act.at),
        line(tell(act.by), 80),
        f"<code>{line(act.verb, 40)}</code>",
        line(tell(act.words), 1000),
        line(deed.stage, 40),
    )


def _history(account: Account, tell: Tell) -> Iterator[str]:
    yield "<h3>What happened</h3>"
    for chapter in account.told.chapters:
        if chapter.attempt:
            name = f"attempt {chapter.attempt}"
        else:
            name = f"after attempt {chapter.after}" if chapter.after else "before the first attempt"
        count = len(chapter.moments) + chapter.left_out
        told = "1 moment" if count == 1 else f"{count} moments"
        yield f"<details><summary>{name}: {told}</summary>"
        heads = ("when@", "what", "words+", "by")
        yield from table(heads, (_moment(one, tell) for one in chapter.moments))
        if chapter.left_out:
            yield f'<p class="quiet">{chapter.left_out} moments in the middle are left out.</p>'
        yield "</details>"


def _moment(one: Moment, tell: Tell) -> Sequence[str]:
    word = line(tell(one.word), 40)
    if one.passed is not None:
        word = f'<span class="{"passed" if one.passed else "failed"}">{word}</span>'
    return _when(one.at), word, line(tell(one.text), 1000), line(tell(one.by), 80)


def _output(account: Account, tell: Tell) -> Iterator[str]:
    if (printed := account.printed) is not None and printed.text.strip():
        yield f"<h3>The end of what attempt {printed.attempt} printed</h3>"
        yield f"<pre>{lines(tell(printed.text), 200_000)}</pre>"


def _passed(passed: bool) -> str:
    kind, glyph = ("passed", "✓") if passed else ("failed", "✗")
    return f'<span class="{kind}">{glyph} {kind}</span>'


def _when(at: float | None) -> str:
    return "" if at is None else stamp(at).replace("T", " ").removesuffix("Z")
