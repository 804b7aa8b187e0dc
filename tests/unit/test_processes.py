"""Processes by pid and start time, their descent, and the two marks of an attempt."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mam_core.work import processes
from mam_core.work.processes import (
    Process,
    ancestors,
    carriers,
    descendants,
    everybody,
    look,
    read_fact,
    send,
)
from mam_core.work.processes_ps import _parse as parse_ps

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

#: Says a line when it runs, and lives until its input ends, at most a minute.
SLEEPER = "import signal; signal.alarm(60); print('here', flush=True); input()"
CORE = os.path.dirname(os.path.dirname(os.path.dirname(processes.__file__)))


@contextmanager
def sleeper(program: str = SLEEPER, **given: object) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(  # type: ignore[call-overload]
        [sys.executable, "-I", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        **given,
    )
    try:
        assert process.stdout.readline() == b"here\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def process(pid: int, parent: int) -> Process:
    return Process(pid, parent, str(pid), 0.0, 0)


class TestOneProcess:
    def test_it_is_known_by_pid_and_start_time(self) -> None:
        us = look(os.getpid())
        assert us is not None
        assert us.parent == os.getppid()
        assert us.memory > 1 << 20
        assert us.cpu_sec > 0
        again = look(os.getpid())
        assert again is not None
        assert again.name == us.name

    def test_a_zombie_is_none(self) -> None:
        ended = subprocess.Popen([sys.executable, "-I", "-S", "-c", ""])
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert look(ended.pid) is None
        ended.wait()
        assert look(ended.pid) is None

    def test_one_whose_first_thread_has_ended_is_alive(self) -> None:
        """The kernel calls it a zombie; its other threads run on."""
        program = (
            "import ctypes, os, signal, threading, time\n"
            "signal.alarm(60)\n"
            "def on():\n"
            "    while ') Z' not in open(f'/proc/{os.getpid()}/stat').read(): time.sleep(0.01)\n"
            "    print('here', flush=True); time.sleep(60)\n"
            "threading.Thread(target=on).start()\n"
            "ctypes.CDLL(None).pthread_exit(None)"
        )
        with sleeper(program) as one:
            assert b") Z" in read_fact(one.pid, "stat")
            found = look(one.pid)
            assert found is not None
            assert found.send(signal.SIGKILL)
            one.wait()

    def test_a_name_with_blanks_and_brackets_confuses_nobody(self) -> None:
        program = "open('/proc/self/comm', 'w').write(') Z 1 (x')\n" + SLEEPER
        with sleeper(program) as one:
            found = look(one.pid)
            assert found is not None
            assert found.parent == os.getpid()

    def test_nobody_is_signalled_whose_start_time_differs(self) -> None:
        """Fault 41."""
        with sleeper() as one:
            assert not send(one.pid, "1", signal.SIGKILL)
            assert one.poll() is None
            found = look(one.pid)
            assert found is not None
            assert found.send(signal.SIGKILL)
            assert one.wait() == -signal.SIGKILL
            assert not found.send(signal.SIGKILL)

    def test_the_same_without_pidfds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An old kernel, or a container's filter."""

        def refuse(_pid: int) -> int:
            raise PermissionError(1, "not permitted")

        monkeypatch.setattr(os, "pidfd_open", refuse)
        with sleeper() as one:
            assert not send(one.pid, "1", signal.SIGKILL)
            found = look(one.pid)
            assert found is not None
            assert found.send(signal.SIGKILL)
            assert one.wait() == -signal.SIGKILL


class TestDescent:
    FAMILY = (process(1, 0), process(10, 1), process(11, 10), process(12, 11), process(20, 1))

    def test_descendants_come_parents_first_and_without_the_root(self) -> None:
        assert [one.pid for one in descendants({10}, list(self.FAMILY))] == [11, 12]
        assert {one.pid for one in descendants({1}, list(self.FAMILY))} == {10, 11, 12, 20}

    def test_a_ring_ends(self) -> None:
        """Made of two looks at different moments."""
        ring = [process(5, 6), process(6, 5)]
        assert {one.pid for one in descendants({5}, ring)} == {6}
        assert ancestors(5, ring) == {5, 6}

    def test_ancestors_include_oneself(self) -> None:
        assert ancestors(12, list(self.FAMILY)) == {12, 11, 10, 1}

    def test_our_own_child_is_below_us(self) -> None:
        with sleeper() as one:
            assert one.pid in {found.pid for found in descendants({os.getpid()}, everybody())}


class TestMarks:
    def test_the_token_in_the_environment_is_found(self) -> None:
        token = secrets.token_hex(16)
        with sleeper(env={"MAM_ATTEMPT_TOKEN": token, "LONG": "x" * 100_000}) as one:
            assert [found.pid for found in carriers(token, everybody())] == [one.pid]
            assert carriers(secrets.token_hex(16), everybody()) == []

    def test_a_part_of_it_is_not_enough(self) -> None:
        token = secrets.token_hex(16)
        with sleeper(env={"MAM_ATTEMPT_TOKEN": token + "0", "X": f"MAM_ATTEMPT_TOKEN={token}"}):
            assert carriers(token, everybody()) == []

    @pytest.mark.parametrize("user", [None, 65534])
    def test_the_mark_in_a_limit_stays_with_those_who_scrub(self, user: int | None) -> None:
        if user is not None and os.geteuid() != 0:
            pytest.skip("only root can become another user")
        token = secrets.token_hex(16)
        mark = f"import sys; sys.path.append({CORE!r})\n" + (
            "from mam_core.work.processes import put_on_mark\n"
            f"assert put_on_mark({token!r})\nimport os, signal\n"
            f"if {user!r}: os.setuid({user or 0})\n"
            "os.setsid()\n" + SLEEPER
        )
        with sleeper(mark, env={}) as one:
            assert [found.pid for found in carriers(token, everybody())] == [one.pid]

    def test_an_attempt_within_an_attempt_has_its_own_mark(self) -> None:
        """A user without privileges can only lower a limit, so each depth has its own range."""
        low, high = "0" * 32, "f" * 32
        program = (
            f"import sys; sys.path.append({CORE!r})\n"
            "from mam_core.work.processes import put_on_mark\n"
            "import os\n"
            "if os.geteuid() == 0: os.setuid(65534)\n"
            f"assert put_on_mark({low!r}) and put_on_mark({high!r})\n"
            "for _ in range(13): assert put_on_mark('e' * 32)\n"
            "assert not put_on_mark('e' * 32), 'there is an end to it'\n"
            "print('here', flush=True)"
        )
        with sleeper(program):
            pass


class TestWherePsIsAllThereIs:
    """macOS; written from its manual, tried here on its words only."""

    def test_a_line(self) -> None:
        found = parse_ps("  501   1 Ss   2048  1-02:03:04.50 Fri Jun 19 09:30:00 2026")
        assert found is not None
        assert (found.pid, found.parent, found.started) == (501, 1, "Fri Jun 19 09:30:00 2026")
        assert (found.cpu_sec, found.memory) == (93784.5, 2048 * 1024)

    def test_a_zombie_and_nonsense_are_none(self) -> None:
        assert parse_ps("501 1 Z 0 0:00.00 Fri Jun 19 09:30:00 2026") is None
        assert parse_ps("") is None
