"""A page for others: it tells everything, stands alone, hides what is secret and runs nothing."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mam_core.errors import InvalidField, JobNotFound, MamError
from mam_core.operations.bars import Bar, Outcome, Wait
from mam_core.operations.export import CannotExport
from mam_core.operations.report import MOST_JOBS, report
from mam_core.operations.reports.html_text import line, lines, took
from mam_core.operations.reports.picture import Mark, Row, picture
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from tests.console.detail_story import hostile, output_of, registry_in, two_attempts
from tests.support.clock import FakeClock
from tests.support.html_pages import Page
from tests.support.jobs import add

NASTY = (
    '</pre></style></title><script>alert(1)</script><img src=x onerror=alert(2)> "><svg onload=x> '
    "' onclick='x <!-- --> &lt;b&gt; <a href=javascript:x>y</a> \u202egnp.exe\u2066 \x1b[2J\x00\x9b"
)
#: Everything that our pages are made of.
ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "pre", "code", "a"),
    *("span", "dl", "dt", "dd", "div", "table", "thead", "tbody", "tr", "th", "td", "details"),
    *("summary", "section", "footer", "svg", "defs", "pattern", "line", "rect", "path", "text"),
}


@pytest.fixture
def registry(tmp_path: Path, clock: FakeClock) -> Registry:
    return registry_in(tmp_path, clock)


def written(registry: Registry, folder: Path, *job_ids: str, name: str = "page.html") -> str:
    place = folder / name
    place.unlink(missing_ok=True)
    report(registry, str(place), job_ids)
    assert place.stat().st_mode & 0o777 == 0o600
    return place.read_text()


def is_harmless(page: Page) -> None:
    """Only our own elements, nothing that acts, nothing from another place."""
    assert set(page.tags) <= ELEMENTS
    assert not page.comments
    for tag, name, value in page.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in ("src", "style", "srcset", "action"), (tag, name)
        if name == "href":
            assert re.fullmatch(r"#job-[\w-]+", value), value
    assert page.text.replace("\n", "").replace("\t", "").isprintable()


def test_a_page_tells_all(registry: Registry, clock: FakeClock, tmp_path: Path) -> None:
    job_id = two_attempts(registry, clock, tmp_path, max_cost=2.5)
    page = Page(written(registry, tmp_path, job_id))
    is_harmless(page)
    for words in (
        f"Job {job_id} ",
        "running",
        "Count the stars\n\n  and write them down",
        "max cost",
        "2.5",
        "exit: the agent left with 3",
        "1,500",
        "$0.2500",
        "missing.md",
        "✗ failed",
        "✓ passed",
        "artifact stars.txt is there",
        "no stars",
        "answer",
        "accepted",
        "retry",
        "attempt 2: 6 moments",
        "May I write stars.txt?",
        "second try\ngreen\nstill green\nno end",
        "error · 3m 05s",
    ):
        assert words in page.text, words
    assert page.tags.count("svg") == 1


def test_a_page_needs_nothing_and_forbids_itself_the_rest(
    registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    """The style sheet is named by its hash: no other style, no script, no picture can be loaded."""
    text = written(registry, tmp_path, two_attempts(registry, clock, tmp_path))
    assert "http://" not in text
    assert "https://" not in text
    policy = re.search(r"content=\"(default-src 'none'; style-src 'sha256-[\w+/=]+')\"", text)
    assert policy is not None
    assert text.index(policy[0]) < text.index("<style>")
    assert "prefers-color-scheme: dark" in text


def test_hostile_texts_stay_texts(registry: Registry, clock: FakeClock, tmp_path: Path) -> None:
    job_id = hostile(registry, clock, tmp_path)
    other = add(
        registry,
        f"{NASTY} asked",
        agent="shell",
        workdir=str(tmp_path),
        expected_artifacts=["<img src=x>.md"],
        validate="echo '<script>'",
    )
    registry.claim("alpha")
    registry.finish(other, Status.ERROR, attempt=1, reason=Reason.EXIT, detail=NASTY)
    output_of(registry, other, 1).write_text(f"{NASTY}\n")
    texts = [written(registry, tmp_path, *one) for one in ([job_id], [other], [])]
    for text in texts:
        is_harmless(Page(text))
        assert len(text) < 300_000
    page = Page(texts[1])
    assert "<script>alert(1)</script>" in page.text  # as words
    assert "\\u202egnp.exe\\u2066" in page.text


@pytest.mark.parametrize("name", ["page.html", "page.md"])
def test_no_secret_no_key_and_no_home_is_told(
    registry: Registry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.setenv("HOME", "/srv/ann")
    password = 'p&ss "<word>'
    broker = {"host": "127.0.0.1", "port": 1, "username": "u", "password": password}
    prompt = f"use {password} and sk-abcdefghijklmnopqrst in /srv/ann/notes or {tmp_path}/x"
    job_id = add(registry, prompt, auth_token=True, broker=broker, workdir=str(tmp_path))
    token = registry.get(job_id).auth_token
    assert token
    registry.claim("alpha")
    registry.finish(job_id, Status.ERROR, attempt=1, detail=f"{token} in /srv/ann/x")
    output_of(registry, job_id, 1).write_text("x" * 90_000 + f"\n{token} {password}\n")
    text = written(registry, tmp_path, job_id, name=name)
    told = Page(text).text if name.endswith("html") else text
    for secret in (token, password, "sk-abcdef", "/srv/ann", str(tmp_path)):
        assert secret not in told, secret
    assert "~/notes" in told
    assert "./x" in told


def test_a_job_whose_record_is_gone_is_told_from_its_log(
    registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    job_id = add(registry, "keep this", auth_token=True)
    registry.claim("alpha")
    clock.pass_time(75)
    registry.finish(job_id, Status.COMPLETED, attempt=1)
    registry.archive([job_id])
    for page in (
        Page(written(registry, tmp_path, job_id)),
        Page(written(registry, tmp_path)),  # something happened to it today
    ):
        assert "keep this" in page.text
        assert "Its record is gone" in page.text
        assert "completed · 1m 15s" in page.text


def test_a_day_holds_what_happened_in_it(
    registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    old = add(registry, "of yesterday")
    clock.pass_time(2 * 86400)
    new = [add(registry, f"of today {number}") for number in range(3)]
    page = Page(written(registry, tmp_path))
    assert old not in page.text
    assert [f"job-{one}" for one in new] == sorted(
        (value for _, name, value in page.attributes if name == "id" and value != "hatch"),
        key=lambda link: new.index(link.removeprefix("job-")),
    )
    assert "3 jobs since 2026-06-20T" in page.text
    report(registry, str(tmp_path / "more.html"), since_sec=3 * 86400)
    assert "of yesterday" in (tmp_path / "more.html").read_text()


def test_a_page_has_an_end(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mam_core.operations.report.MOST_JOBS", 2)
    assert MOST_JOBS == 200
    ids = [add(registry, f"number {number}") for number in range(4)]
    said = report(registry, str(tmp_path / "page.html"), ids)
    assert said.endswith("page.html; 2 more are left out")
    assert "These are 2 of 4 jobs" in (tmp_path / "page.html").read_text()


def test_what_cannot_be_written_is_said_and_leaves_nothing(
    registry: Registry, tmp_path: Path
) -> None:
    job_id = add(registry)
    place = tmp_path / "page.html"
    refused: list[tuple[str, list[str], type[MamError]]] = [
        (str(tmp_path / "page.pdf"), [job_id], InvalidField),
        (str(place), [job_id, "nobody"], JobNotFound),
        (str(tmp_path / "no" / "folder.html"), [job_id], CannotExport),
    ]
    for path, ids, error in refused:
        with pytest.raises(error):
            report(registry, path, ids)
        assert not os.path.exists(path)
    place.write_text("mine")
    with pytest.raises(CannotExport, match="there already"):
        report(registry, str(place), [job_id])
    assert place.read_text() == "mine"


def test_a_day_without_jobs_is_said(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(JobNotFound, match="nothing happened to any job since"):
        report(registry, str(tmp_path / "page.html"))


def test_a_page_of_markdown_has_a_part_for_each_job(
    registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    first, second = two_attempts(registry, clock, tmp_path), add(registry, "another one")
    page = written(registry, tmp_path, first, second, name="page.md")
    assert page.count("\n---\n") == 1
    assert "## What people did" in page
    assert "`answer` `yes` (`accepted`)" in page


def a_bar(**more: object) -> Bar:
    bar = Bar("job1", 1, "shell", "alpha", "", "host", 1000.0, 1060.0, Outcome.COMPLETED)
    return bar._replace(**more)  # type: ignore[arg-type]


def test_a_picture_shows_waits_queues_and_deeds(clock: FakeClock) -> None:
    bar = a_bar(queued_at=940.0, waits=(Wait(1010.0, 1030.0), Wait(1050.0, None)))
    drawn = picture([Row("attempt 1", [bar], [Mark(1020.0, "ann: answer yes")])], 1060.0)
    Page(drawn)
    assert drawn.count('class="waits"') == 2
    assert drawn.count('class="queued"') == 1
    assert "<title>ann: answer yes</title>" in drawn
    assert "completed · 1m 00s" in drawn


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.floats(0, 2e9), st.one_of(st.none(), st.floats(0, 2e9)), st.floats(0, 2e9)),
        min_size=1,
        max_size=5,
    )
)
def test_whatever_the_clocks_said_a_picture_can_be_drawn(
    spans: list[tuple[float, float | None, float]],
) -> None:
    """Ends before begins, a moment or sixty years: nothing leaves the picture."""
    rows = [
        Row("x", [a_bar(began_at=begin, ended_at=end, queued_at=queued)])
        for begin, end, queued in spans
    ]
    drawn = picture(rows, 1e9)
    Page(drawn)
    for x in re.findall(r' x\d?="(-?[\d.]+|nan|inf)"', drawn):
        assert -1 <= float(x) <= 975
    assert drawn.count('class="tick"') <= 12


@settings(max_examples=80)
@given(st.text(max_size=80))
def test_whatever_a_text_holds_the_doors_hold(text: str) -> None:
    for shown in (f'<p title="{line(text)}">{line(text)}</p>', f"<pre>{lines(text)}</pre>"):
        page = Page(shown)
        assert set(page.tags) <= {"p", "pre"}
        assert page.text.replace("\n", "").replace("\t", "").isprintable()


def test_times_are_said_in_two_places() -> None:
    told = [took(seconds) for seconds in (0, 4.24, 59.9, 65, 7620, 3 * 86400 + 4 * 3600)]
    assert told == ["0.0 s", "4.2 s", "59.9 s", "1m 05s", "2h 07m", "3d 4h"]
