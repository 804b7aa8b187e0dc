"""`mam retry --resume`: the agent goes on in its own session; by default it begins anew."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Mam, is_one_sentence

SESSION = "0b1f9c1e-5f0c-4a5b-9f6e-3f1d2c4b5a69"


def ended(mam: Mam, agent: str = "claude-code", session: str | None = SESSION) -> str:
    """A job whose last attempt failed, in a session that its worker wrote down."""
    job_id = mam.register("go", "--agent", agent)
    mam.ok("pick", "--label", "tmux:a")
    mam.ok("status", job_id, "--set", "error")
    record = {**mam.record(job_id), "agent_session_id": session}
    mam.path(job_id).write_text(json.dumps(record))
    return job_id


def test_the_next_attempt_takes_the_session_up(mam: Mam) -> None:
    job_id = ended(mam)
    answer = mam.ok("retry", "--resume", job_id)
    assert answer.out == job_id + "\n"
    assert f"pending again and goes on in session {SESSION}" in answer.err
    assert mam.record(job_id)["resume"] == SESSION
    mam.ok("pick", "--label", "tmux:a")
    assert mam.record(job_id)["resume"] == SESSION


@pytest.mark.parametrize("words", [[], ["--fresh"]])
def test_it_begins_anew_by_default(mam: Mam, words: list[str]) -> None:
    job_id = ended(mam)
    answer = mam.ok("retry", *words, job_id)
    assert "session" not in answer.err
    assert mam.record(job_id)["resume"] is None


def test_without_a_known_session_it_is_refused(mam: Mam) -> None:
    job_id = ended(mam, session=None)
    answer = mam("retry", "--resume", job_id)
    assert (answer.code, answer.out) == (1, "")
    assert is_one_sentence(answer.err)
    assert "not known in which session" in answer.err
    assert mam.record(job_id)["status"] == "error"


@pytest.mark.parametrize(
    ("agent", "words"),
    [("aider", "aider takes up no earlier session"), ("nobody", "there is no agent 'nobody'")],
)
def test_an_agent_that_cannot_is_refused(mam: Mam, agent: str, words: str) -> None:
    job_id = ended(mam, agent)
    answer = mam("retry", "--resume", job_id)
    assert answer.code == 1
    assert is_one_sentence(answer.err)
    assert words in answer.err
    assert mam.record(job_id)["status"] == "error"


def test_the_settings_say_what_an_agent_can(mam: Mam) -> None:
    """Decision 24: `resume` of [agents.NAME]."""
    job_id = ended(mam, "mine")
    settings = mam.folder / "mam.toml"
    settings.write_text('[agents.mine]\ncommand = ["mine"]\n')
    assert mam("retry", "--resume", job_id).code == 1
    settings.write_text('[agents.mine]\ncommand = ["mine"]\nresume = ["--go-on", "{session}"]\n')
    mam.ok("retry", "--resume", job_id)


def test_one_refusal_keeps_no_other_waiting(mam: Mam) -> None:
    one, two = ended(mam), ended(mam, session=None)
    answer = mam("retry", "--resume", two, one)
    assert (answer.code, answer.lines) == (1, [one])


def test_both_ways_at_once_are_none(mam: Mam) -> None:
    job_id = ended(mam)
    assert mam("retry", "--resume", "--fresh", job_id).code == 2


def test_budgets_can_be_edited_and_cleared(mam: Mam) -> None:
    job_id = mam.register("p", "--max-cost", "1", "--max-tokens", "5")
    mam.ok("edit", job_id, "--max-cost", "0.25", "--clear", "max-tokens")
    record = mam.record(job_id)
    assert (record["max_cost"], record["max_tokens"]) == (0.25, None)
    for words in (["--max-cost", "0"], ["--max-cost", "nan"], ["--max-tokens", "-1"]):
        answer = mam("edit", job_id, *words)
        assert answer.code == 2
        assert is_one_sentence(answer.err)
        assert words[0] in answer.err


def test_budgets_of_jobs_that_name_none(mam: Mam) -> None:
    settings = mam.folder / "mam.toml"
    settings.write_text("[defaults]\nmax_cost = 2\nmax_tokens = 70\n")
    usual, own = mam.register("p"), mam.register("q", "--max-cost", "0.5")
    assert [mam.record(usual)[name] for name in ("max_cost", "max_tokens")] == [2, 70]
    assert [mam.record(own)[name] for name in ("max_cost", "max_tokens")] == [0.5, 70]


def test_budgets_in_bulk(mam: Mam) -> None:
    line = {"prompt": "p", "agent": "a", "agent_session": "s", "max_cost": 3, "max_tokens": 9}
    path = mam.folder / "jobs.ndjson"
    path.write_text(json.dumps(line) + "\n")
    (job_id,) = mam.ok("register", "--bulk", path).lines
    record = mam.record(job_id)
    assert (record["max_cost"], record["max_tokens"]) == (3, 9)
