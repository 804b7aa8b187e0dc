"""An agent that speaks both ways, run by a real worker under a real supervisor.

The agent is a stand-in that follows a recording of the real one; what a person says to
it goes through the registry, as `mam say`, `mam answer` and `mam interrupt` do.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mam_core.messages import MessageKind, Stage
from mam_core.records import MAX_PROMPT_BYTES, Job, Reason, Status
from tests.support.patience import eventually
from tests.support.recordings import SAMPLES
from tests.support.supervision import end_surely
from tests.support.working import Workshop, workshop

RECORDING = SAMPLES / "claude" / "permission.control.jsonl"
ANSWER, SAY, INTERRUPT = MessageKind.ANSWER, MessageKind.SAY, MessageKind.INTERRUPT


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Workshop]:
    with workshop(tmp_path) as made:
        made.agent("talks", "two_way", RECORDING, *TWO_WAY, mode="stream", stream="stream-json")
        yield made


TWO_WAY = ("--input-format", "stream-json")


def asked(shop: Workshop, job_id: str, count: int = 1) -> list[dict[str, Any]]:
    """The questions that were told, once there are so many."""

    def told() -> list[dict[str, Any]]:
        return [event for event in shop.told(job_id) if event["event"] == "permission_required"]

    eventually(lambda: len(told()) >= count, "it asks")
    return told()


def receipt(shop: Workshop, job_id: str, n: int = 1) -> str:
    """Where the message stands when it is finished, and why."""

    def find() -> list[Any]:
        return [one for one in shop.job(job_id).messages if one.n == n and one.is_finished]

    eventually(lambda: bool(find()), f"message {n} comes to its end")
    return f"{find()[0].stage}: {find()[0].words}"


def ended(shop: Workshop, job_id: str) -> Job:
    return shop.until_status(job_id, Status.COMPLETED, Status.ERROR, Status.CANCELLED)


def settled(shop: Workshop, job_id: str) -> list[dict[str, Any]]:
    return [event for event in shop.told(job_id) if "settled" in event["data"]]


def granted(shop: Workshop) -> int:
    return len(list(shop.workdir.glob("granted-*")))


HOSTILE = {
    "a megabyte": "a" * MAX_PROMPT_BYTES,
    "a megabyte in Korean": "별" * (MAX_PROMPT_BYTES // 3),
    "a megabyte that JSON makes six of": "\x01" * (MAX_PROMPT_BYTES - 1) + "x",
    "the end of a paste": "before \x1b[201~ after \x1b[200~",
    "a trailing semicolon": "echo one;",
    "a trailing backslash": "a line that goes on \\",
    "a leading dash": "--dangerously-skip -p",
    "control bytes": "".join(map(chr, range(1, 32))) + "\x7f\x85\u2028\u202e\ufeff",
    "a NUL": "one \0 two",
    "lines like its own": '{"type": "control_request"}\n{"type": "user"}\r\n\n',
    "a shell's": "$(touch x) `id` ${HOME} 'a' \"b\" %s",
}


@pytest.mark.parametrize("prompt", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_prompt_arrives_byte_for_byte(shop: Workshop, prompt: str) -> None:
    """H5, promise 6: one line of JSON, whatever it holds; the agent's own reading of it counts."""
    job = shop.run("talks", prompt)
    assert job.status is Status.COMPLETED, job.detail
    digest = hashlib.sha256(prompt.encode()).hexdigest()
    assert f"what it was told: {digest}" in shop.output(job.job_id)
    assert [path.name for path in shop.workdir.iterdir()] == ["said.jsonl"]


def test_a_turn_without_questions_ends_by_itself(shop: Workshop) -> None:
    """Its input is closed when all is said; the prompt arrives word for word (H5)."""
    prompt = "say \"hello\"; $(rm -rf /) 'x'\n별을 세어라… \x1b[31m {}"
    job = shop.run("talks", prompt)
    assert job.status is Status.COMPLETED
    (first,) = (shop.workdir / "said.jsonl").read_text().splitlines()
    assert json.loads(first)["message"]["content"][0]["text"] == prompt
    states = [
        event["data"]["state"] for event in shop.told(job.job_id) if event["event"] == "state"
    ]
    assert states == ["working", "idle"]


@pytest.mark.parametrize(
    ("answer", "verb", "stands"),
    [("y", "allowed", 1), ("n", "denied", 0), ("not now", "denied", 0)],
)
def test_a_permission_is_asked_for_and_answered(
    shop: Workshop, answer: str, verb: str, stands: int
) -> None:
    """A person's no is not a setting's: the job is not called refused for it."""
    job_id = shop.add("talks", "permission")
    with shop.at_work():
        (question,) = asked(shop, job_id)
        assert question["data"]["tool"] == "Bash"
        assert "print(6*7)" in question["detail"], "what would be done, not how it is described"
        assert "print(6*7)" in question["data"]["input"]["command"]
        with shop.mam("answer", job_id, answer) as command:
            assert command.code() == 0, (command.err, shop.told(job_id))
        assert receipt(shop, job_id).startswith("accepted")
        job = ended(shop, job_id)
    assert (job.status, job.reason) == (Status.COMPLETED, None)
    assert granted(shop) == stands
    (over,) = settled(shop, job_id)
    assert over["data"]["settled"] == question["data"]["question"]
    assert over["data"]["state"] == "working"
    assert over["detail"].startswith(verb)
    if answer == "not now":
        assert "It was denied: not now" in shop.output(job_id), "the agent read the words"


def test_the_idle_clock_stands_still_while_it_waits(shop: Workshop) -> None:
    """Decision 23."""
    job_id = shop.add("talks", "permission", idle_timeout_sec=3)
    with shop.at_work():
        asked(shop, job_id)
        eventually(lambda: _waited(shop, job_id) > 4.0, "more than the idle time has passed")
        assert shop.job(job_id).status is Status.RUNNING
        shop.registry.send(job_id, ANSWER, "y")
        assert ended(shop, job_id).status is Status.COMPLETED


def _waited(shop: Workshop, job_id: str) -> float:
    signs = [e["data"] for e in shop.told(job_id) if e["data"].get("state") == "waiting"]
    return shop.registry.clock.now() - float(signs[0]["at"]) if signs else 0.0


def test_two_questions_at_once_are_told_apart(shop: Workshop) -> None:
    job_id = shop.add("talks", "twice")
    with shop.at_work():
        first, second = (one["data"]["question"] for one in asked(shop, job_id, 2))
        shop.registry.send(job_id, ANSWER, "n", to=second)
        receipt(shop, job_id)
        assert [e["data"]["state"] for e in settled(shop, job_id)] == ["waiting"], "for the other"
        shop.registry.send(job_id, ANSWER, "y", to=first)
        assert ended(shop, job_id).status is Status.COMPLETED
    assert granted(shop) == 1


def test_a_question_takes_the_answer_itself(shop: Workshop) -> None:
    job_id = shop.add("talks", "a question")
    with shop.at_work():
        (question,) = asked(shop, job_id)
        assert question["detail"] == "Which colour? (1 Red, 2 Blue)"
        shop.registry.send(job_id, ANSWER, "2")
        assert ended(shop, job_id).status is Status.COMPLETED
    assert "The colour is Blue." in shop.output(job_id)


def test_one_turn_follows_the_other(shop: Workshop) -> None:
    """A message at work waits for its turn; the job ends after the last one."""
    job_id = shop.add("talks", "permission")
    with shop.at_work():
        asked(shop, job_id)
        shop.registry.send(job_id, SAY, "and another thing;\tquoted 'x'\x1b[201~\n$(ls)")
        eventually(lambda: shop.job(job_id).messages[0].stage is Stage.SUBMITTED, "it is written")
        shop.registry.send(job_id, ANSWER, "y")
        assert receipt(shop, job_id, 1) == "accepted: a turn began"
        assert ended(shop, job_id).status is Status.COMPLETED
    last = json.loads((shop.workdir / "said.jsonl").read_text().splitlines()[1])
    assert last["message"]["content"][0]["text"] == "and another thing;\tquoted 'x'\n$(ls)"
    assert "answer to: and another thing" in shop.output(job_id)


def test_an_interrupted_turn_is_followed_by_what_the_person_says(shop: Workshop) -> None:
    job_id = shop.add("talks", "slow")
    with shop.at_work():
        shop.until_said(job_id, "tick")
        shop.registry.send(job_id, INTERRUPT)
        assert receipt(shop, job_id, 1) == "accepted: the agent stopped its turn"
        shop.registry.send(job_id, SAY, "do it another way")
        assert receipt(shop, job_id, 2) == "accepted: a turn began"
        assert ended(shop, job_id).status is Status.COMPLETED


def test_an_answer_that_comes_too_late_is_refused(shop: Workshop) -> None:
    """What was withdrawn is not answered, and no other question gets its yes."""
    job_id = shop.add("talks", "withdraw")
    with shop.at_work():
        (question,) = asked(shop, job_id)
        eventually(lambda: bool(settled(shop, job_id)), "the question is withdrawn")
        shop.registry.send(job_id, SAY, "permission")
        asked(shop, job_id, 2)
        shop.registry.send(job_id, ANSWER, "y", to=question["data"]["question"])
        assert receipt(shop, job_id, 2) == "refused: the question is no longer open"
        assert granted(shop) == 0
        shop.registry.send(job_id, ANSWER, "y")
        assert ended(shop, job_id).status is Status.COMPLETED


def test_a_request_that_nobody_knows_does_not_hold_the_agent_up(shop: Workshop) -> None:
    job = shop.run("talks", "odd")
    assert job.status is Status.COMPLETED
    assert "does not do sing" in shop.output(job.job_id)


@pytest.mark.release
def test_a_turn_that_follows_from_the_background_is_waited_for(shop: Workshop) -> None:
    """Two result lines: the first is not the end."""
    job = shop.run("talks", "background")
    assert job.status is Status.COMPLETED
    assert "the task is done" in shop.output(job.job_id)


def test_a_failed_turn_fails_the_job(shop: Workshop) -> None:
    job = shop.run("talks", "fail")
    assert (job.status, job.reason) == (Status.ERROR, Reason.AGENT)


def test_a_job_that_waits_is_cancelled_at_once(shop: Workshop) -> None:
    job_id = shop.add("talks", "permission")
    with shop.at_work():
        asked(shop, job_id)
        shop.registry.request_cancel(job_id)
        assert ended(shop, job_id).status is Status.CANCELLED
    shop.until_nobody_lives()


def test_half_a_character_is_refused_before_anything_is_started(shop: Workshop) -> None:
    """Our own commands take no such prompt; another tool may have written the record."""
    job_id = shop.add("talks")
    with shop.registry.store.transaction() as tx:
        tx.put(tx.get(job_id).evolve(prompt="half \ud800"), None)
    shop.drain()
    job = shop.job(job_id)
    assert (job.status, job.reason) == (Status.ERROR, Reason.OTHER)
    assert job.detail is not None
    assert "half a character" in job.detail
    assert not (shop.workdir / "said.jsonl").exists()


def test_an_agent_that_only_listens_once_takes_no_messages(shop: Workshop) -> None:
    shop.agent("hangs", "hangs")
    job_id = shop.add("hangs")
    with shop.at_work():
        shop.until_said(job_id, "hangs")
        shop.registry.send(job_id, SAY, "hello?")
        words = "refused: this agent takes no messages while it works"
        assert receipt(shop, job_id) == words
        shop.registry.request_cancel(job_id)
        ended(shop, job_id)


def test_the_same_agent_one_way_gets_its_prompt_as_it_is(shop: Workshop) -> None:
    """A user's own command without --input-format: as it always was."""
    shop.agent("reads", "behaves", mode="stream", stream="stream-json")
    job = shop.run("reads", "count the stars")
    assert "prompt of 15 bytes" in shop.output(job.job_id)


def test_a_worker_that_dies_leaves_no_message_half_told(shop: Workshop) -> None:
    """Between written and taken: nobody can say whether the agent read it, and that is said."""
    job_id = shop.add("talks", "slow")
    with shop.mam_work() as worker:
        shop.until_said(job_id, "tick")
        shop.registry.send(job_id, SAY, "when you are done")
        eventually(lambda: shop.job(job_id).messages[0].stage is Stage.SUBMITTED, "it is written")
        end_surely(worker.process.pid)
    with shop.mam_work():
        eventually(lambda: shop.job(job_id).attempt == 2, "it is run again")
        shop.until_said(job_id, "tick", 2)
        (message,) = shop.job(job_id).messages
        assert (message.stage, message.attempt) == (Stage.UNCONFIRMED, 1)
        shop.registry.request_cancel(job_id)
        ended(shop, job_id)
    said = (shop.workdir / "said.jsonl").read_text()
    assert said.count("when you are done") <= 1, "it is not said to the next one"
