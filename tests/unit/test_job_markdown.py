"""One job as a page: everything that is known, nothing secret, and no text that becomes a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mam_core.errors import JobNotFound
from mam_core.operations.markdown import block, code
from mam_core.operations.reports.job_markdown import report
from mam_core.registry import Registry
from tests.console.detail_story import hostile, output_of, registry_in, two_attempts
from tests.support.clock import FakeClock
from tests.support.jobs import add


@pytest.fixture
def registry(tmp_path: Path, clock: FakeClock) -> Registry:
    return registry_in(tmp_path, clock)


def headings(page: str) -> list[str]:
    """Those that a reader of Markdown sees: outside of fenced blocks."""
    found, fence = [], ""
    for line in page.split("\n"):
        mark = re.match(r"(`{3,})(.*)", line)
        if fence:
            if mark and mark[2] == "" and len(mark[1]) >= len(fence):
                fence = ""
        elif mark:
            fence = mark[1]
        elif line.startswith("#"):
            found.append(line)
    assert not fence, "a block was left open"
    return found


def test_a_page_tells_all(registry: Registry, clock: FakeClock, tmp_path: Path) -> None:
    job_id = two_attempts(registry, clock, tmp_path, max_cost=2.5)
    page = report(registry, job_id)
    assert headings(page) == [
        f"# Job {job_id}",
        "## Contract",
        "### Prompt",
        "## Why it stands there",
        "## What happened",
        "### Before the first",
        "### Attempt 1: `error`",
        "### After attempt 1",
        "### Attempt 2: `running`",
        "## Artifacts and checks",
        "## What people did",
        "## The end of what attempt 2 printed",
        "## Cost of all attempts",
    ]
    for words in (
        "**running**, attempt 2.",
        "- agent: `claude-code`",
        "- max cost: `2.5`",
        "- expected artifacts: `stars.txt`, `missing.md`",
        "Count the stars\n\n  and write them down",
        "- reason: `exit: the agent left with 3`",
        "- exit code: `3`",
        "`May I write stars.txt? (stream turn)`",
        "- passed: `stars.txt`, 5 bytes",
        "- failed: `missing.md`",
        "- failed: the validate command, attempt 1",
        "second try\ngreen\nstill green\nno end",
        "- cost: 0.2500 US dollars",
        "- tokens: 1,500",
    ):
        assert words in page


def test_a_page_outlives_the_record(registry: Registry, clock: FakeClock, tmp_path: Path) -> None:
    job_id = add(registry, "keep this", auth_token=True)
    registry.request_cancel(job_id)
    registry.archive([job_id])
    page = report(registry, job_id)
    assert "**no longer in the registry**" in page
    assert "keep this" in page
    assert "Artifacts" not in page
    with pytest.raises(JobNotFound):
        report(registry, "nobody")


def test_nothing_hostile_leaves_its_block(
    registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    job_id = hostile(registry, clock, tmp_path)
    token = registry.get(job_id).auth_token
    assert token
    output_of(registry, job_id, 1).write_text(
        f"\n```\n# Owned\n````\n## Twice\n<script>x</script>\n{token}\n\x1b[31mred\x1b]0;t\x07\n"
    )
    page = report(registry, job_id)
    assert not [line for line in headings(page) if "Owned" in line or "Twice" in line]
    assert page.replace("\n", "").replace("\t", "").isprintable()
    assert token not in page
    assert "more characters" not in page
    assert len(page) < 200_000


@settings(max_examples=60)
@given(st.text(alphabet="`\n ab\t\x1b\r\u2028#~", max_size=60))
def test_a_block_holds_whatever_it_holds(text: str) -> None:
    page = f"before\n\n{block(text)}\n\n# after"
    assert headings(page) == ["# after"]


@settings(max_examples=60)
@given(st.text(alphabet="` ab\n\\<*_|", min_size=1, max_size=40))
def test_a_span_holds_whatever_it_holds(text: str) -> None:
    span = code(text)
    if not span:
        assert not text.strip()
        return
    ticks = re.match(r"`+", span)
    assert ticks is not None
    inside = span[len(ticks[0]) : -len(ticks[0])]
    assert span.endswith(ticks[0])
    assert "\n" not in span
    runs = [len(run) for run in re.findall(r"`+", inside)]
    assert len(ticks[0]) not in runs
    assert not inside.startswith("`")
    assert not inside.endswith("`")


def test_long_texts_are_cut_and_say_so() -> None:
    assert block("x" * 100, 40).endswith("… (60 characters are left out)\n```")
    assert code("x" * 1000, 10) == "`xxxxxxxxx…`"
