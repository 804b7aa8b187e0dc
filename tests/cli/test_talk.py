"""``mam say``, ``mam answer``, ``mam interrupt`` and ``mam broadcast``: what is sent, what is said.

The worker's part is played by hand here; with a real worker and a real agent it is in
``tests/integration/test_work_talk.py``.
"""

from __future__ import annotations

import io
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.leases import LeaseTerms
from mam_core.messages import MAX_TEXT_BYTES, Message, MessageKind, Stage, unfinished
from mam_core.registry import Registry
from mam_core.wiring import open_registry
from tests.cli.conftest import Mam

WORKER = LeaseTerms("worker-1", 30.0)
NOW = "--timeout=0.05s"


@pytest.fixture
def registry(mam: Mam) -> Iterator[Registry]:
    with open_registry(str(mam.registry)) as opened:
        yield opened


def at_work(mam: Mam, registry: Registry, label: str = "tmux:a") -> str:
    """A job that a worker holds."""
    job_id = mam.register("count the stars", "--agent-session", label)
    assert registry.claim(label, lease=WORKER) is not None
    return job_id


def asks(registry: Registry, job_id: str, question: str, words: str = "Bash: make") -> None:
    data = {"tool": "Bash", "question": question}
    registry.publish(job_id, "permission_required", detail=words, data=data, attempt=1)


def state(registry: Registry, job_id: str, is_at: AgentState, **more: str) -> None:
    sign = Sign(is_at, Channel.STREAM, "a rule", 0.0, "Trust this folder?")
    registry.publish(job_id, "state", data={**sign.to_dict(), **more}, attempt=1)


def sent(registry: Registry, job_id: str) -> list[Message]:
    return list(registry.get(job_id).messages)


@contextmanager
def a_worker(mam: Mam, *job_ids: str, stage: Stage, words: str = "") -> Iterator[None]:
    """Gives each of these jobs one receipt, as soon as it has a message."""

    def deliver() -> None:
        left = set(job_ids)
        with open_registry(str(mam.registry)) as own:
            while left and not over.wait(0.02):
                for job_id in list(left):
                    for message in unfinished(own.get(job_id).messages):
                        own.receipt(job_id, message.n, stage, attempt=1, words=words)
                        left.discard(job_id)

    over = threading.Event()
    thread = threading.Thread(target=deliver)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def delivered_at_once(monkeypatch: pytest.MonkeyPatch, stage: Stage) -> None:
    """A worker that gives its receipt before anybody waits for it, however busy the machine is."""

    def send(registry: Registry, job_id: str, *given: Any, **more: Any) -> Message:
        message = really(registry, job_id, *given, **more)
        registry.receipt(job_id, message.n, stage, attempt=1)
        return message

    really = Registry.send
    monkeypatch.setattr(Registry, "send", send)


class TestSay:
    def test_what_was_taken_is_said_to_be_taken(self, mam: Mam, registry: Registry) -> None:
        job_id = at_work(mam, registry)
        with a_worker(mam, job_id, stage=Stage.ACCEPTED, words="a turn began"):
            said = mam.ok("say", job_id, "use", "tabs; not $(spaces)")
        assert said.lines == [job_id]
        assert f"job {job_id} took it: a turn began" in said.err
        (message,) = sent(registry, job_id)
        assert (message.kind, message.text) == (MessageKind.SAY, "use tabs; not $(spaces)")
        assert message.by, "the record says who"

    def test_what_was_refused_is_said_to_be_refused(self, mam: Mam, registry: Registry) -> None:
        job_id = at_work(mam, registry)
        words = "this agent takes no messages while it works"
        with a_worker(mam, job_id, stage=Stage.REFUSED, words=words):
            said = mam("say", job_id, "hello")
        assert (said.code, said.out) == (1, "")
        assert f"job {job_id} did not get it: {words}" in said.err

    @pytest.mark.parametrize(
        ("stage", "words"),
        [
            (None, "has not delivered it within 0.05 s; it stays on its way"),
            (Stage.SUBMITTED, "was given it, and has not shown within"),
            (Stage.UNCONFIRMED, "nobody can tell whether"),
        ],
    )
    def test_without_a_receipt_it_says_how_far_it_came(
        self,
        mam: Mam,
        registry: Registry,
        monkeypatch: pytest.MonkeyPatch,
        stage: Stage | None,
        words: str,
    ) -> None:
        job_id = at_work(mam, registry)
        if stage is not None:
            delivered_at_once(monkeypatch, stage)
        said = mam("say", job_id, "hello", NOW)
        assert said.code == 2
        assert words in said.err

    def test_it_need_not_be_waited_for(self, mam: Mam, registry: Registry) -> None:
        job_id = at_work(mam, registry)
        said = mam.ok("say", "--job", job_id, "--no-wait", "hello there")
        assert f"message 1 is on its way to job {job_id}" in said.err
        assert sent(registry, job_id)[0].text == "hello there"

    def test_the_text_may_come_from_stdin(
        self, mam: Mam, registry: Registry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And what a terminal would obey in it is left out."""
        job_id = at_work(mam, registry)
        given = io.TextIOWrapper(io.BytesIO("별\x1b[201~\n two\x07\n".encode()))
        monkeypatch.setattr(sys, "stdin", given)
        mam.ok("say", job_id, "-", "--no-wait")
        assert sent(registry, job_id)[0].text == "별\n two"

    @pytest.mark.parametrize("data", [b"x" * (MAX_TEXT_BYTES + 1), b"\xff\xfe"])
    def test_what_cannot_be_delivered_is_refused_with_a_sentence(
        self, mam: Mam, registry: Registry, monkeypatch: pytest.MonkeyPatch, data: bytes
    ) -> None:
        job_id = at_work(mam, registry)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        said = mam("say", job_id, "-")
        assert said.code == 2
        assert "the text" in said.err
        assert sent(registry, job_id) == []

    def test_a_megabyte_as_an_argument_is_refused(self, mam: Mam, registry: Registry) -> None:
        job_id = at_work(mam, registry)
        said = mam("say", job_id, "x" * 1024 * 1024)
        assert said.code == 2
        assert "1,048,576 bytes" in said.err

    def test_a_job_that_does_not_run_is_not_spoken_to(self, mam: Mam) -> None:
        job_id = mam.register()
        said = mam("say", job_id, "hello")
        assert said.code == 1
        assert "only an agent at work can be spoken to" in said.err

    def test_words_are_needed(self, mam: Mam, registry: Registry) -> None:
        assert mam("say").code == 2
        assert mam("say", at_work(mam, registry)).code == 2

    def test_who_said_what_stands_in_history(self, mam: Mam, registry: Registry) -> None:
        job_id = at_work(mam, registry)
        mam.ok("say", job_id, "--no-wait", "hello")
        events = list(registry.store.audit.events(job_id))
        (line,) = [line for line in events if line["event"] == "message_sent"]
        assert (line["text"], line["kind"]) == ("hello", "say")
        assert line["by"]


class TestAnswer:
    def test_the_question_that_is_open_gets_it(self, mam: Mam, registry: Registry) -> None:
        job_id = at_work(mam, registry)
        asks(registry, job_id, "q-1")
        with a_worker(mam, job_id, stage=Stage.ACCEPTED, words="the agent read it"):
            said = mam.ok("answer", job_id, "y")
        assert "the agent read it (Bash: make)" in said.err, "it says what was answered"
        (message,) = sent(registry, job_id)
        assert (message.kind, message.text, message.to) == (MessageKind.ANSWER, "y", "q-1")

    def test_where_nothing_is_asked_nothing_is_answered(self, mam: Mam, registry: Registry) -> None:
        job_id = at_work(mam, registry)
        said = mam("answer", job_id, "y")
        assert (said.code, sent(registry, job_id)) == (1, [])
        assert f"job {job_id} waits for no answer" in said.err

    def test_what_is_settled_is_not_open(self, mam: Mam, registry: Registry) -> None:
        job_id = at_work(mam, registry)
        asks(registry, job_id, "q-1")
        state(registry, job_id, AgentState.WORKING, settled="q-1")
        assert mam("answer", job_id, "y").code == 1
        assert mam("answer", job_id).code == 1

    def test_of_several_one_is_named(self, mam: Mam, registry: Registry) -> None:
        job_id = at_work(mam, registry)
        asks(registry, job_id, "alpha-1", "Bash: make")
        asks(registry, job_id, "beta-2", "Bash: rm -r build")
        said = mam("answer", job_id, "y", NOW)
        assert said.code == 1
        assert "2 open questions, say which by --question" in said.err
        assert mam("answer", job_id, "y", "--question", "gamma").code == 1
        mam.ok("answer", job_id, "n", "--question", "beta", "--no-wait")
        assert [message.to for message in sent(registry, job_id)] == ["beta-2"]

    def test_without_an_answer_it_shows_what_is_asked(self, mam: Mam, registry: Registry) -> None:
        """Foreign text reaches the terminal without its escapes."""
        job_id = at_work(mam, registry)
        asks(registry, job_id, "q-1", "Bash: \x1b]0;evil\x07make\u202e")
        shown = mam.ok("answer", job_id)
        assert shown.out == "q-1 Bash: \\x1b]0;evil\\x07make\\u202e\n"
        assert mam.ok("answer", job_id, "--json").json[0]["question"] == "q-1"
        assert sent(registry, job_id) == []

    def test_it_shows_in_full_what_would_be_done_where_it_can(
        self, mam: Mam, registry: Registry
    ) -> None:
        """An event has no places and keys in it (G23); whoever says yes must see them."""
        job_id = at_work(mam, registry)
        asks(registry, job_id, "q-1", "Bash: rm -r …/build")
        request = {"subtype": "can_use_tool", "input": {"command": "rm -r /srv/build\x1b[2K"}}
        line = {"type": "control_request", "request_id": "q-1", "request": request}
        place = Path(registry.store.audit.path) / job_id / "attempts" / "1"
        place.mkdir(parents=True, mode=0o700)
        (place / "output.log").write_text(f"noise q-1\n{json.dumps(line)}\ntorn")
        shown = mam.ok("answer", job_id)
        assert '"command": "rm -r /srv/build\\u001b[2K"' in shown.out
        assert mam.ok("answer", job_id, "--json").json[0]["input"] == request["input"]

    def test_a_dialog_on_the_screen_has_no_name(self, mam: Mam, registry: Registry) -> None:
        job_id = at_work(mam, registry)
        state(registry, job_id, AgentState.WAITING)
        assert mam.ok("answer", job_id).out == "- Trust this folder?\n"
        mam.ok("answer", job_id, "1", "--no-wait")
        assert [(one.text, one.to) for one in sent(registry, job_id)] == [("1", "")]

    def test_an_old_attempts_question_is_not_this_ones(self, mam: Mam, registry: Registry) -> None:
        """Decision 6."""
        job_id = at_work(mam, registry)
        asks(registry, job_id, "q-1")
        mam.ok("status", job_id, "--set", "pending")
        assert registry.claim("tmux:a", lease=WORKER) is not None
        assert mam("answer", job_id, "y").code == 1


class TestInterrupt:
    def test_it_is_a_message_without_words(self, mam: Mam, registry: Registry) -> None:
        job_id = at_work(mam, registry)
        mam.ok("interrupt", job_id, "--no-wait")
        (message,) = sent(registry, job_id)
        assert (message.kind, message.text) == (MessageKind.INTERRUPT, "")


class TestBroadcast:
    def test_each_session_that_fits_gets_it_and_says_so(self, mam: Mam, registry: Registry) -> None:
        first = at_work(mam, registry, "tmux:claude-1")
        second = at_work(mam, registry, "tmux:claude-2")
        other = at_work(mam, registry, "tmux:codex")
        with a_worker(mam, first, second, stage=Stage.ACCEPTED):
            said = mam.ok("broadcast", "--sessions", "claude-*", "stop", "at", "noon")
        assert said.lines == [first, second]
        assert [message.text for message in sent(registry, second)] == ["stop at noon"]
        assert sent(registry, other) == []

    def test_jobs_can_be_named_one_by_one(self, mam: Mam, registry: Registry) -> None:
        first, second, other = (at_work(mam, registry, f"tmux:claude-{n}") for n in "123")
        with a_worker(mam, first, second, stage=Stage.ACCEPTED):
            said = mam.ok("broadcast", "--job", second, "--job", first, "--job", second, "stop")
        assert said.lines == [second, first]
        assert [message.text for message in sent(registry, second)] == ["stop"]
        assert sent(registry, other) == []
        assert mam("broadcast", "--job", first, "--sessions", "*", "stop").code == 2
        assert mam("broadcast", "stop").code == 2

    def test_one_that_fails_makes_the_exit_code_tell(self, mam: Mam, registry: Registry) -> None:
        taken = at_work(mam, registry, "tmux:claude-1")
        script = mam.register("a script's", "--agent-session", "tmux:claude-2")
        mam.ok("pick", "--agent-session", "tmux:claude-2")
        with a_worker(mam, taken, stage=Stage.ACCEPTED):
            said = mam("broadcast", "--sessions", "tmux:*", "hello")
        assert (said.code, said.lines) == (1, [taken])
        assert f"job {script} is not run by a worker of ours" in said.err

    def test_nobody_there_is_an_error(self, mam: Mam, registry: Registry) -> None:
        at_work(mam, registry)
        said = mam("broadcast", "--sessions", "claude*", "hello")
        assert said.code == 1
        assert "no session that fits 'claude*' has a running job" in said.err

    def test_a_text_that_cannot_be_delivered_is_refused_once(
        self, mam: Mam, registry: Registry
    ) -> None:
        at_work(mam, registry)
        said = mam("broadcast", "--sessions", "*", "\x1b[201~")
        assert said.code == 2
        assert said.err.count("there is no text") == 1
