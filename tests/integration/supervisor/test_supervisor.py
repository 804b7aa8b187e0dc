"""A supervisor runs an agent: what the agent gets, how it ends, what is reported of it."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from mam_core.process_mark import ProcessMark
from mam_core.work.orders import Isolation, new_token
from mam_core.work.reports import Exited, NotStarted, Started, Why
from mam_core.work.supervised import Supervised
from tests.support.supervision import Stage

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

#: For root the two ways differ; for others both are the second.
WAYS = pytest.mark.parametrize("way", [Isolation.AUTO, Isolation.OFF])


def surroundings(here: Stage, **given: Any) -> dict[str, Any]:
    run = here.run("tells_surroundings", **given)
    assert run.ended().code == 0
    told: dict[str, Any] = json.loads(run.output_is_over().splitlines()[1])
    return told


class TestWhatTheAgentGets:
    @WAYS
    def test_its_prompt_comes_byte_for_byte_by_its_stdin(self, here: Stage, way: Isolation) -> None:
        """Promise 6."""
        prompt = bytes(range(256)) * 400 + b"\x1b[201~;$(touch x)\n-"
        path = here.folder / "prompt"
        path.write_bytes(prompt)
        run = here.run("behaves", stdin=str(path), isolation=way)
        assert run.ended().code == 0
        assert hashlib.sha256(prompt).hexdigest() in run.output_is_over().decode()

    @WAYS
    def test_its_environment_is_what_was_given_and_the_token(
        self, here: Stage, way: Isolation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """N29: nothing comes along by accident."""
        monkeypatch.setenv("SECRET_OF_THE_WORKER", "x")
        given = {"PATH": "/bin", "ODD": "a\nb;$(x) ü", "EMPTY": ""}
        token = new_token()
        told = surroundings(here, environ=given, token=token, isolation=way)
        told["environ"].pop("LC_CTYPE", None)  # Python's own
        assert told["environ"] == {**given, "MAM_ATTEMPT_TOKEN": token}

    @WAYS
    def test_it_has_three_open_files_and_no_more(
        self, here: Stage, way: Isolation, tmp_path: Path
    ) -> None:
        """Fault 26: no file of the registry, no lock, no end of anybody's line."""
        lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
        os.set_inheritable(lock, True)  # a careless library
        try:
            told = surroundings(here, isolation=way)
        finally:
            os.close(lock)
        assert sorted(told["files"]) == ["0", "1", "2"]
        assert told["files"]["0"] == "/dev/null"

    def test_the_supervisor_holds_no_file_of_anybody(self, here: Stage) -> None:
        """Fault 26."""
        lock = os.open(here.folder / "lock", os.O_RDWR | os.O_CREAT)
        os.set_inheritable(lock, True)
        try:
            run = here.run("hangs", sample_sec=10_000)  # a sample reads files of others
            run.until_told(Started)
            folder = Path(f"/proc/{run.supervised.pid}/fd")
            held = {os.readlink(path).split(":")[0] for path in folder.iterdir()}
        finally:
            os.close(lock)
        # A new libffi, which is beneath ctypes, keeps the file open that it was loaded from.
        others = {name for name in held if "/libffi.so" not in name}
        assert others == {"/dev/null", "socket", "pipe"}
        assert os.readlink(f"/proc/{run.supervised.pid}/cwd") == "/"

    @WAYS
    def test_it_starts_where_it_should_as_a_session_of_its_own_with_fresh_signals(
        self, here: Stage, way: Isolation
    ) -> None:
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            told = surroundings(here, isolation=way)
        finally:
            signal.signal(signal.SIGHUP, before)
        assert told["cwd"] == os.path.realpath(here.folder)
        assert told["is_leader"]
        assert told["ignored"] == ["SIGPIPE", "SIGXFSZ"]  # by the stand-in's own Python
        assert told["blocked"] == []

    @WAYS
    def test_arguments_arrive_as_they_are(self, here: Stage, way: Isolation) -> None:
        words = ["", "-x", "a b", "$(touch x)", "ü\n", "\udcff"]
        told = surroundings_of(here, words, way)
        assert told["argv"][:-1] == words

    def test_its_output_goes_where_the_worker_wants_it(self, here: Stage) -> None:
        """100 MB in the release form of the worker's tests; here what a pipe cannot hold."""
        run = here.run("prints_much", 5_000_000)
        assert run.ended().code == 0
        assert len(run.output_is_over()) == 5_000_000 + len(
            "stand-in agent: this one prints much\n"
        )

    def test_the_worker_may_hand_over_its_own_standard_output(
        self, here: Stage, capfd: pytest.CaptureFixture[str]
    ) -> None:
        supervised = Supervised.start(here.orders("says_done"), stdout=1, stderr=2)
        ended = supervised.wait(60)
        supervised.close()
        assert ended is not None
        assert ended.code == 0
        assert "All done!" in capfd.readouterr().out


def surroundings_of(here: Stage, words: list[str], way: Isolation) -> dict[str, Any]:
    run = here.run("tells_surroundings", *words, isolation=way)
    assert run.ended().code == 0
    told: dict[str, Any] = json.loads(run.output_is_over().splitlines()[1])
    return told


class TestHowItEnds:
    """N31: ends are told apart."""

    @WAYS
    def test_well(self, here: Stage, way: Isolation) -> None:
        run = here.run("behaves", isolation=way)
        ended = run.ended()
        assert (ended.why, ended.code, ended.signal) == (Why.AGENT_ENDED, 0, None)
        assert (ended.told, ended.killed, ended.tree_empty) == (0, 0, True)
        assert ended.peak > 1 << 20
        assert ended.cpu_sec > 0
        assert not ended.was_oom
        [started] = run.told(Started)
        assert started.pid > 0
        assert run.told(Exited) == [Exited(code=0, signal=None)]
        assert run.reports[-1] == ended

    @WAYS
    def test_with_a_code(self, here: Stage, way: Isolation) -> None:
        ended = here.run("exits_three", 3, isolation=way).ended()
        assert (ended.why, ended.code, ended.signal) == (Why.AGENT_ENDED, 3, None)

    @WAYS
    @pytest.mark.parametrize("name", ["SEGV", "KILL", "TERM"])
    def test_by_a_signal(self, here: Stage, way: Isolation, name: str) -> None:
        ended = here.run("dies_by_signal", name, isolation=way).ended()
        assert (ended.code, ended.signal) == (None, signal.Signals[f"SIG{name}"])
        assert not ended.was_oom, "the kernel killed nobody for want of memory"

    @WAYS
    def test_killed_from_outside(self, here: Stage, way: Isolation) -> None:
        """Fault 4: kill -9 of the agent is seen at once."""
        run = here.run("hostile", isolation=way)
        run.until_said("ready")
        mark = ProcessMark.of(run.until_told(Started).pid)
        assert mark is not None
        assert mark.send(signal.SIGKILL)
        ended = run.ended()
        assert (ended.signal, ended.left) == (signal.SIGKILL, 4)
        assert here.survivors() == []

    @WAYS
    @pytest.mark.parametrize(
        ("change", "stage", "code", "words"),
        [
            ({"argv": ("no-such-agent",)}, "command", 127, "not found"),
            ({"argv": ("/no/such/agent",)}, "command", 127, "not found"),
            ({"argv": ("/etc/passwd",)}, "command", 126, "permission denied"),
            ({"argv": ("/",)}, "command", 126, "cannot be run"),
            ({"cwd": "/no/such/folder"}, "workdir", 126, "folder"),
            ({"cwd": "/etc/passwd"}, "workdir", 126, "not a directory"),
            ({"stdin": "/no/such/prompt"}, "stdin", 126, "input"),
        ],
    )
    def test_not_started_at_all(
        self, here: Stage, way: Isolation, change: dict[str, Any], stage: str, code: int, words: str
    ) -> None:
        """H12: told apart from an agent that ends with 127."""
        run = here.start(here.orders("behaves", isolation=way)._replace(**change))
        assert run.ended().why is Why.NOT_STARTED
        [no] = run.told(NotStarted)
        assert (no.stage, no.exit_code) == (stage, code)
        assert words in no.words
        assert run.told(Started) == []
        assert run.output_is_over() == b""

    def test_a_script_without_its_interpreter_is_no_missing_command(self, here: Stage) -> None:
        script = here.folder / "agent"
        script.write_text("#!/no/such/interpreter\n")
        script.chmod(0o700)
        run = here.start(here.orders("behaves")._replace(argv=(str(script),)))
        [no] = [run.until_told(NotStarted)]
        assert (no.stage, no.exit_code) == ("interpreter", 126)

    def test_an_agent_that_itself_ends_with_127_was_started(self, here: Stage) -> None:
        run = here.run("exits_three", 127)
        ended = run.ended()
        assert (ended.why, ended.code) == (Why.AGENT_ENDED, 127)
        assert run.told(NotStarted) == []

    def test_the_command_is_looked_for_in_the_agents_own_path(self, here: Stage) -> None:
        tool = here.folder / "bin" / "tool"
        tool.parent.mkdir()
        tool.write_text("#!/bin/sh\nexit 7\n")
        tool.chmod(0o700)
        orders = here.orders("behaves", environ={"PATH": f"/nowhere:{tool.parent}"})
        assert here.start(orders._replace(argv=("tool",))).ended().code == 7
