"""What reaches the agent: its prompt byte for byte, its surroundings, and no secret of ours."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
from typing import Any

import pytest

from mam_core.records import MAX_PROMPT_BYTES, Job, Status
from tests.support.working import LABEL, Workshop

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

#: Each has broken somebody's way of handing over a prompt.
PIECES = (
    *("-", "--help", "-rf /", ";", "; ", "\n", "\r\n", "\t", " ", "'", '"', "`", "\\", "\\n", "#"),
    *("$(touch x)", "${HOME}", "$1", "%s", "{prompt}", "{prompt_file}", "{options}", "~", "*", "!"),
    *("\x00", "\x01", "\x03", "\x04", "\x07", "\x08", "\x1a", "\x7f", "\x85"),
    *("\x1b[201~", "\x1b[200~", "\x1b]0;x\x07", "\x1b"),
    *("\u2028", "\u202e", "\ufeff", "\ufffd", "별을 세어라…", "👩\u200d👧", "e\u0301", "𝄞"),
    *("EOF", "exit", "/quit", "@file", "C-c", "Enter", "word"),
)
FIXED = (
    *PIECES,
    "",
    "-p\n--dangerously-skip",
    "ends with a semicolon;",
    "ends with a backslash\\",
    "\n\n\nstarts and ends with lines\n\n\n",
    "a" * MAX_PROMPT_BYTES,
    "별" * (MAX_PROMPT_BYTES // 3),
    "line\n" * 20_000,
)


def prompts(count: int) -> list[str]:
    """The well-known ones, then others made of their pieces; no two alike, the same every run."""
    made = dict.fromkeys(text for text in FIXED if text.strip())
    chance = random.Random(5)
    while len(made) < count:
        made["".join(chance.choices(PIECES, k=chance.randint(2, 30))) + "x"] = None
    return list(made)[:count]


def _arrive(shop: Workshop, texts: list[str], *, first: int = 0) -> None:
    """By standard input and by file in turn, beginning with either."""
    digest = "sha256sum"
    by_stdin = shop.agent("by-stdin", "/usr/bin/env", digest)
    by_file = shop.agent("by-file", "/usr/bin/env", digest, "{prompt_file}", prompt="file")
    requests: list[dict[str, Any]] = []
    for number, text in enumerate(texts):
        agent = (by_stdin, by_file)[(number + first) % 2]
        requests.append({"prompt": text, "agent": agent, "agent_session": LABEL})
        requests[-1]["workdir"] = str(shop.workdir)
    registered = shop.registry.register(requests)
    shop.drain(slots=4)
    for answer, text in zip(registered, texts, strict=True):
        job = shop.job(answer.job_id)
        assert job.status is Status.COMPLETED, (job.detail, text[:80])
        expected = hashlib.sha256(text.encode()).hexdigest()
        assert shop.output(job.job_id).split()[0] == expected, text[:80]
    assert list(shop.workdir.iterdir()) == []


class TestPrompts:
    def test_hostile_prompts_arrive_byte_for_byte(self, shop: Workshop) -> None:
        """H5, promise 6."""
        _arrive(shop, prompts(60))

    @pytest.mark.release
    def test_five_hundred_of_them(self, shop: Workshop) -> None:
        """All different; the well-known ones once more, each by the other way."""
        texts = prompts(500)
        assert len(set(texts)) == 500
        _arrive(shop, texts)
        _arrive(shop, [text for text in FIXED if text.strip()], first=1)

    def test_an_argument_is_one_argument_or_is_refused(self, shop: Workshop) -> None:
        echo = shop.agent("echo", "/usr/bin/env", "printf", "%s", "{prompt}", prompt="argument")
        fine = shop.run(echo, "-n; $(touch x)\n'quoted' ")
        assert shop.output(fine.job_id) == "-n; $(touch x)\n'quoted' "
        refused = shop.run(echo, "a NUL \0 in it")
        assert refused.status is Status.ERROR
        assert "NUL" in (refused.detail or "")


class TestSurroundings:
    def surroundings(self, shop: Workshop, **fields: Any) -> tuple[Job, dict[str, Any]]:
        teller = shop.agent("teller", "tells_surroundings", env={"MY_KEY": "sk-agent-own-key-1234"})
        job = shop.run(teller, **fields)
        found: dict[str, Any] = json.loads(shop.output(job.job_id).splitlines()[1])
        return job, found

    def test_it_is_told_about_its_job(self, shop: Workshop) -> None:
        """Decision 29."""
        job, told = self.surroundings(shop, expected_artifacts=["a.txt", "b/c.md"])
        environ = told["environ"]
        assert environ["MAM_JOB_ID"] == job.job_id
        assert environ["MAM_ATTEMPT"] == "1"
        assert environ["MAM_REGISTRY_DIR"] == str(shop.path)
        assert environ["MAM_WORKDIR"] == told["cwd"] == str(shop.workdir)
        assert environ["MAM_ARTIFACTS"] == "a.txt\nb/c.md"
        assert environ["DELEGATE_JOB_LOGS_DIR"] == shop.registry.store.audit.path
        assert re.fullmatch(r"[0-9a-f]{32}", environ["MAM_ATTEMPT_TOKEN"])
        assert environ["MY_KEY"] == "sk-agent-own-key-1234"

    def test_it_holds_no_file_of_ours(self, shop: Workshop) -> None:
        """Fault 26: a lock that an agent inherits is never released."""
        _, told = self.surroundings(shop)
        files = {number: name for number, name in told["files"].items() if int(number) > 2}
        assert files == {}
        assert not any(str(shop.path) in name for name in told["files"].values())

    def test_it_leads_a_session_and_ignores_no_signal(self, shop: Workshop) -> None:
        _, told = self.surroundings(shop)
        assert told["is_leader"]
        assert set(told["ignored"]) <= {"SIGPIPE", "SIGXFSZ"}  # Python's own
        assert told["blocked"] == []

    def test_no_secret_of_ours_reaches_anybody(self, shop: Workshop) -> None:
        """K5, decision 10: the token of the job, the password of its broker."""
        broker = {"host": "127.0.0.1", "port": 1, "username": "u", "password": "pass-4711-word"}
        job, told = self.surroundings(shop, auth_token=True, broker=broker)
        token = job.auth_token
        assert token
        folder = shop.folder / ".mam" / "delegate_job_logs" / job.job_id
        written = [path.read_text() for path in folder.rglob("*") if path.is_file()]
        seen = [json.dumps(told), json.dumps(shop.told(job.job_id)), *written]
        seen.append(shop.shown.read_text())
        for text in seen:
            assert token not in text
            assert "pass-4711-word" not in text

    def test_the_agents_own_token_is_in_no_event(self, shop: Workshop) -> None:
        job, told = self.surroundings(shop)
        events = json.dumps(shop.told(job.job_id)) + json.dumps(shop.audit(job.job_id))
        assert told["environ"]["MAM_ATTEMPT_TOKEN"] not in events
        assert "sk-agent-own-key" not in events
