"""One job as a page of Markdown: what was asked, what happened, what it left and what it cost.

Made from the record, the audit log and the output log; without a record, from the logs
alone. Everything foreign stands in code spans and fenced blocks, so that no prompt and no
output can write a page of its own; secrets stay behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mam_core.clock import stamp
from mam_core.operations.markdown import block, code
from mam_core.operations.moments import Moment
from mam_core.operations.reports.account import Account, Deed, account_of
from mam_core.operations.timeline import Chapter, Timeline
from mam_core.operations.why import Reasons
from mam_core.records import DEFAULTS
from mam_core.redaction import without_secrets
from mam_core.registry import Registry

#: What was asked for, in the order of a page; the prompt has a block of its own.
_CONTRACT = (
    *("agent", "agent_session", "model", "workdir", "group", "priority", "key", "after"),
    *("not_before", "timeout_sec", "idle_timeout_sec", "max_attempts", "max_cost", "max_tokens"),
    *("memory_max", "expected_artifacts", "validate", "created_at"),
)


def report(registry: Registry, job_id: str, reasons: Reasons | None = None) -> str:
    """Raises `JobNotFound` for a job that is neither registered nor logged."""
    return page_of(account_of(registry, job_id, reasons=reasons), registry.clock.now())


def page_of(account: Account, now: float) -> str:
    told, values = account.told, account.values
    parts = [
        _head(account.job_id, told, values, now),
        _contract(values),
        *_why(account),
        *_attempts(told),
        *_artifacts(account),
        *_deeds(account.deeds),
        *_output(account),
        *_cost(told),
    ]
    page = "\n\n".join("\n".join(lines) for part in parts if (lines := list(part))) + "\n"
    return page if account.job is None else str(without_secrets(account.job, page))


def _head(job_id: str, told: Timeline, values: Mapping[str, Any], now: float) -> Iterator[str]:
    status = str(told.status) if told.status else "no longer in the registry"
    yield f"# Job {job_id}"
    yield ""
    reason = f" ({code(str(values['reason']))})" if told.status and values.get("reason") else ""
    yield f"**{status}**{reason}, attempt {told.current}. Written at {stamp(now)}."
    if told.status and values.get("detail"):
        yield ""
        yield code(str(values["detail"]), 2000)


def _contract(values: Mapping[str, Any]) -> Iterator[str]:
    yield "## Contract"
    yield ""
    for name in _CONTRACT:
        value = values.get(name)
        if value is None or value in ("", []) or value == DEFAULTS.get(name):
            continue
        several = value if isinstance(value, list | tuple) else [value]
        shown = ", ".join(code(str(one)) for one in several[:100])
        yield f"- {name.replace('_', ' ')}: {shown}"
    yield ""
    yield "### Prompt"
    yield ""
    yield block(str(values.get("prompt") or ""))


def _why(account: Account) -> Iterator[Iterator[str]]:
    if account.sentences:
        lines = (f"- {code(one, 1000)}" for one in account.sentences)
        yield iter(["## Why it stands there", "", *lines])


def _attempts(told: Timeline) -> Iterator[Iterator[str]]:
    yield iter(["## What happened"])
    for chapter in told.chapters:
        yield _chapter(chapter)


def _chapter(chapter: Chapter) -> Iterator[str]:
    if chapter.attempt:
        outcome = f": {code(chapter.outcome)}" if chapter.outcome else ""
        yield f"### Attempt {chapter.attempt}{outcome}"
    else:
        yield f"### After attempt {chapter.after}" if chapter.after else "### Before the first"
    yield ""
    if chapter.attempt:
        yield from _facts(chapter)
    for at, one in enumerate(chapter.moments):
        if chapter.left_out and at == len(chapter.moments) // 2:
            yield f"- … {chapter.left_out} moments are left out"
        yield _moment(one)


def _facts(chapter: Chapter) -> Iterator[str]:
    if chapter.reason or chapter.detail:
        words = ": ".join(filter(None, (chapter.reason, chapter.detail)))
        yield f"- reason: {code(words, 2000)}"
    if (elapsed := chapter.elapsed_sec) is not None:
        yield f"- it took {elapsed:g} s"
    for name, value in chapter.facts.items():
        shown = _tokens(value) if name == "tokens" else code(str(value))
        yield f"- {name.replace('_', ' ')}: {shown}"
    if chapter.events:
        counted = ", ".join(f"{code(name)} {count}" for name, count in chapter.events.items())
        yield f"- events: {counted}"


def _moment(one: Moment) -> str:
    at = stamp(one.at) if one.at is not None else "at some time"
    passed = "" if one.passed is None else " (passed)" if one.passed else " (failed)"
    text = f" {code(one.text, 1000)}" if one.text else ""
    by = f" by {code(one.by)}" if one.by else ""
    return f"- {at} {code(one.word)}{passed}{text}{by}"


def _artifacts(account: Account) -> Iterator[Iterator[str]]:
    found = account.artifacts
    if found is None:
        return
    lines = []
    for one in found.found:
        passed = "passed" if one.check.passed else "failed"
        size = "" if one.size is None else f", {one.size:,} {_unit(one.is_folder)}"
        lines.append(f"- {passed}: {code(one.check.what)}{size}: {code(one.check.words)}")
    if (last := found.last_check) is not None:
        passed = "passed" if last.passed else "failed"
        lines.append(f"- {passed}: the validate command, attempt {last.attempt}")
        if last.output:
            lines += ["", block(last.output, 4000)]
    if lines:
        yield iter(["## Artifacts and checks", "", *lines])


def _deeds(deeds: tuple[Deed, ...]) -> Iterator[Iterator[str]]:
    if deeds:
        yield iter(["## What people did", "", *map(_deed, deeds)])


def _deed(deed: Deed) -> str:
    act = deed.act
    words = f" {code(act.words, 1000)}" if act.words else ""
    stage = f" ({code(deed.stage)})" if deed.stage else ""
    return f"- {stamp(act.at)} {code(act.by)} {code(act.verb)}{words}{stage}"


def _output(account: Account) -> Iterator[Iterator[str]]:
    if (printed := account.printed) is not None:
        heading = f"## The end of what attempt {printed.attempt} printed"
        yield iter([heading, "", block(printed.text, 200_000)])


def _cost(told: Timeline) -> Iterator[Iterator[str]]:
    facts = [chapter.facts for chapter in told.chapters if chapter.attempt]
    costs = [one["cost"] for one in facts if isinstance(one.get("cost"), int | float)]
    counted = [_counted(one.get("tokens")) for one in facts]
    tokens = [count for count in counted if count is not None]
    if costs or tokens:
        lines = [f"- cost: {sum(costs):.4f} US dollars"] if costs else []
        lines += [f"- tokens: {sum(tokens):,}"] if tokens else []
        yield iter(["## Cost of all attempts", "", *lines])


def _tokens(value: Any) -> str:
    return ", ".join(f"{code(str(name))} {code(str(count))}" for name, count in value.items())


def _counted(value: Any) -> int | None:
    if not isinstance(value, Mapping):
        return None
    parts = [value.get(name) for name in ("input", "output")]
    return sum(part for part in parts if isinstance(part, int) and not isinstance(part, bool))


def _unit(is_folder: bool) -> str:
    return "entries" if is_folder else "bytes"
