"""``mam mcp`` as a client starts it: a process, two pipes, and a clean end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from tests.cli.conftest import Mam, environment

START = [sys.executable, "-m", "mam_core", "mcp"]


def ask(server: subprocess.Popen[str], number: int, method: str, **params: Any) -> Any:
    answered: IO[str] | None = server.stdout
    assert server.stdin is not None
    assert answered is not None
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    server.stdin.write(json.dumps(message) + "\n")
    server.stdin.flush()
    answer = json.loads(answered.readline())
    assert answer["id"] == number
    return answer


def test_a_client_talks_to_it_while_it_waits(mam: Mam, tmp_path: Path) -> None:
    """A wait for a job that nobody runs keeps no other call waiting, and ends with the client."""
    job_id = mam.register("count the stars")
    with subprocess.Popen(
        [*START, "--allow-write"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=mam.folder,
        env=environment(),
    ) as server:
        assert server.stdin is not None
        assert server.stderr is not None
        hello = ask(server, 1, "initialize", protocolVersion="2025-11-25", capabilities={})
        assert "register_job" in hello["result"]["instructions"]
        wait = {"name": "wait_for_jobs", "arguments": {"job_ids": [job_id], "timeout_sec": 50}}
        for number in (2, 3):
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": wait}
            server.stdin.write(json.dumps(message) + "\n")
        gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
        server.stdin.write(json.dumps(gone) + "\n")
        given = {"prompt": "name them", "agent": "codex", "agent_session": "tmux:c"}
        made = ask(server, 4, "tools/call", name="register_job", arguments=given)
        found = json.loads(made["result"]["content"][0]["text"])
        assert mam.record(found["job_id"])["prompt"] == "name them"
        out, err = server.communicate(timeout=60)
    (last,) = map(json.loads, out.splitlines())
    assert last["id"] == 3, "the call that was taken back has no answer, the other has one"
    assert '"ended": false' in last["result"]["content"][0]["text"]
    assert (server.returncode, err) == (0, "")


def test_answers_that_cannot_be_written_end_it_quietly(mam: Mam) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            START,
            input=b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n',
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=mam.folder,
            env=environment(),
        )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--tools", "cancel_job"], "the tool cancel_job needs --allow-write"),
        (["--tools", "frob", "--allow-write"], "the tool frob is none of list_jobs"),
    ],
)
def test_tools_that_are_not_offered_are_said_at_once(
    mam: Mam, words: list[str], sentence: str
) -> None:
    done = subprocess.run(
        [*START, *words],
        input="",
        capture_output=True,
        text=True,
        cwd=mam.folder,
        env=environment(),
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
