"""``mam output``: what a job printed, as bytes for programs and harmless for people."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Mam


def logged(mam: Mam, job_id: str, attempt: int, data: bytes) -> None:
    folder = Path(mam.registry).parent / "delegate_job_logs" / job_id / "attempts" / str(attempt)
    folder.mkdir(parents=True)
    (folder / "output.log").write_bytes(data)


def registered(mam: Mam) -> str:
    asked = ("register", "--prompt", "p", "--agent", "shell", "--agent-session", "s")
    return mam.ok(*asked).out.strip()


def test_the_newest_attempt_is_printed_and_any_other_by_its_number(mam: Mam) -> None:
    job_id = registered(mam)
    logged(mam, job_id, 1, b"first try\n")
    logged(mam, job_id, 2, b"second try\n")
    assert mam.ok("output", job_id).out == "second try\n"
    assert mam.ok("output", "--job", job_id, "--attempt", "1").out == "first try\n"


def test_only_the_end_of_much_is_printed_and_that_is_said(mam: Mam) -> None:
    job_id = registered(mam)
    logged(mam, job_id, 1, b"x" * 300_000 + b"the end\n")
    answer = mam.ok("output", job_id)
    assert answer.out.endswith("the end\n")
    assert "bytes before this are left out" in answer.err


def test_one_that_printed_nothing_says_so(mam: Mam) -> None:
    answer = mam("output", registered(mam))
    assert (answer.code, answer.out) == (1, "")
    assert "has printed nothing yet" in answer.err


def test_a_job_without_a_screen_says_why(mam: Mam) -> None:
    answer = mam("output", registered(mam), "--screen")
    assert answer.code == 1
    assert "it has no screen yet" in answer.err


def test_one_that_is_not_there(mam: Mam) -> None:
    assert mam("output", "nothere").code == 1
