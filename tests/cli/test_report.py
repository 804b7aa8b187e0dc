"""``mam report``: one file that says what became of jobs."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Mam
from tests.support.html_pages import Page


def test_a_job_or_a_day_becomes_a_page(mam: Mam, tmp_path: Path) -> None:
    first, second = mam.register("count the stars"), mam.register("name them")
    said = mam.ok("report", "--job", first, "-o", "one.html")
    assert said.err.strip() == f"mam: a report about 1 job is in {Path.cwd() / 'one.html'}"
    assert "name them" not in Path("one.html").read_text()
    mam.ok("report", "--since", "1d", "-o", "day.html")
    assert {"count the stars", "name them"} <= set(Page(Path("day.html").read_text()).words)
    mam.ok("report", second, "--output", "one.md")
    assert Path("one.md").read_text().startswith(f"# Job {second}\n")


def test_what_is_asked_wrongly_is_one_sentence(mam: Mam) -> None:
    job_id = mam.register()
    for words, sentence, code in (
        ([job_id, "--since", "1d", "-o", "x.html"], "name jobs or a time (--since), not both", 2),
        ([job_id, "-o", "x.pdf"], "x.pdf must end in .html or .md", 2),
        (["nobody", "-o", "x.html"], "there is no job nobody", 1),
        ([job_id], "the following arguments are required: -o/--output", 2),
        (["--since", "soon", "-o", "x.html"], "is no duration", 2),
    ):
        answer = mam("report", *words)
        assert answer.code == code, answer.err
        assert sentence in answer.err
        assert len(answer.err.strip().splitlines()) == 1
    assert not list(Path.cwd().glob("x.*"))
