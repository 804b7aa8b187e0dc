"""``mam demo``: it lives, it can be acted on, and nothing of it stays, however it ends."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mam_core.config import load
from mam_core.operations.answer import answer
from mam_core.operations.delivery import Wait
from mam_core.operations.demo import demo
from mam_core.operations.retry import retry
from mam_core.records import Status
from mam_core.stores.base import Query
from mam_core.wiring import open_registry
from tests.support.patience import eventually
from tests.support.supervision import end_surely, with_word
from tests.support.tmux import private_tmux
from tests.support.watching import MAM, Watched, running


class Theatre:
    """Where a demonstration runs: temporary folder, home and sockets are its own."""

    def __init__(self, folder: Path, sockets: Path) -> None:
        self.folder = folder
        self.temp = folder / "temp"
        self.home = folder / "home"
        self.sockets = sockets
        for made in (self.temp, self.home):
            made.mkdir()

    @contextmanager
    def demo(self, *words: str, **environ: str) -> Iterator[Watched]:
        own = {"TMPDIR": str(self.temp), "HOME": str(self.home), **environ}
        command = [*MAM, "demo", "--no-console", *words]
        with running(command, self.folder, {**os.environ, **own}) as watched:
            yield watched

    @property
    def root(self) -> Path:
        (root,) = self.temp.glob("mam-demo-*")
        return root

    def words_of(self, watched: Watched, task: str) -> list[str]:
        """How a job stood, one after the other."""
        found = [line.split("  ", 2) for line in list(watched.out) if line.endswith(task)]
        return [parts[1].strip() for parts in found]

    def is_swept(self) -> bool:
        """No folder, no socket, nobody who was told of the folder."""
        left = [*self.temp.iterdir(), *self.sockets.glob("tmux-*/mam-*")]
        return not left and not with_word(str(self.temp))

    def until_swept(self) -> None:
        eventually(self.is_swept, f"all is gone: {with_word(str(self.temp))}")
        assert list(self.home.iterdir()) == []
        assert {path.name for path in self.folder.iterdir()} == {"temp", "home"}


@pytest.fixture
def theatre(tmp_path: Path) -> Iterator[Theatre]:
    with private_tmux() as sockets:
        made = Theatre(tmp_path, sockets)
        try:
            yield made
        finally:
            for pid in with_word(str(made.temp)):
                end_surely(pid)


def test_it_shows_every_state_and_takes_everything_with_it(theatre: Theatre) -> None:
    """O: jobs queue, run, ask, fail, retry, meet a limit; an answer lets one go on."""
    asks, tries, writes = "Clear the build folder", "is flaky", "Write the release notes"
    fails = "Rename the table of the users"
    strange = {"MAM_REGISTRY_DIR": str(theatre.folder / "mine"), "MQTT_BROKER": "example.invalid"}
    with theatre.demo("--jobs", "8", **strange) as watched:

        def stood(task: str, words: str) -> bool:
            return any(words in found for found in theatre.words_of(watched, task))

        watched.until(lambda: stood(asks, "waiting for input"), "one asks")
        assert any("simulated" in line for line in watched.err)
        root = theatre.root
        config = load(str(root / "mam.toml"))
        with open_registry(str(root / "jobs"), config=config) as registry:

            def named(task: str) -> str:
                jobs = registry.store.find(Query())[0]
                (found,) = [one.job_id for one in jobs if one.head.startswith(task)]
                return found

            assert answer(registry, named(asks), "y", Wait()).ok
            watched.until(lambda: stood(fails, "error"), "one fails")
            watched.until(lambda: stood("Translate the manual", "blocked (quota)"), "a limit")
            watched.until(lambda: stood(writes, "completed"), "one is completed")
            watched.until(lambda: stood(tries, "blocked (exit)"), "one waits for its next try")
            assert retry(registry, [named(fails)])[0].ok
            watched.until(lambda: stood(fails, "attempt 2"), "one is tried again")
            watched.until(lambda: stood(asks, "completed"), "the answer let it go on")
            watched.until(lambda: stood(tries, "attempt 2"), "and one by itself")
            assert registry.get(named(asks)).status is Status.COMPLETED
        assert (root / "project" / "docs" / "release-notes.md").read_text().count("Simulated") == 1
        logs = (root / "delegate_job_logs").glob("*/attempts/*/output.log")
        lines = [line for log in logs for line in log.read_text().splitlines()]
        assert lines
        assert [line for line in lines if "simulated" not in line] == []
        watched.send(signal.SIGTERM)
        assert watched.code() == 128 + signal.SIGTERM
        assert theatre.is_swept()
        theatre.until_swept()


def test_killed_with_nine_it_is_cleared_away_by_its_guard(theatre: Theatre) -> None:
    with theatre.demo("--jobs", "4") as watched:
        watched.until(lambda: any("working" in line for line in watched.out), "one works")
        watched.process.kill()
        theatre.until_swept()


@pytest.mark.release
def test_the_next_one_clears_away_what_is_left_of_one_without_a_guard(theatre: Theatre) -> None:
    with theatre.demo("--jobs", "4") as watched:
        watched.until(lambda: any("working" in line for line in watched.out), "one works")
        root = theatre.root
        (guard,) = with_word(f"mam_core.demo.guard\0{root}")
        end_surely(guard)
        watched.process.kill()
        eventually(lambda: watched.process.poll() is not None, "it is dead")
    assert root.exists()
    with theatre.demo("--seconds", "0.1") as after:
        assert after.code() == 0
        assert after.says("cleared away what 1 killed")
    theatre.until_swept()


@pytest.mark.release
def test_without_tmux_the_agents_run_all_the_same(theatre: Theatre) -> None:
    bare = theatre.folder / "home" / "bin"
    bare.mkdir()
    (bare / "sh").symlink_to("/bin/sh")
    with theatre.demo("--jobs", "4", PATH=str(bare)) as watched:
        watched.until(lambda: any("completed" in line for line in watched.out), "one completes")
        assert watched.says("tmux is not here")
        watched.send(signal.SIGINT)
        assert watched.code() == 0
    (bare / "sh").unlink()
    bare.rmdir()
    theatre.until_swept()


@pytest.mark.release
def test_a_console_that_breaks_takes_it_down_as_well(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(theatre.temp))
    told: list[str] = []

    def breaks() -> None:
        with demo(8, told.append) as staged:
            assert Path(staged.registry_path).is_dir()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        breaks()
    assert told == []
    theatre.until_swept()


@pytest.mark.release
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_in_a_terminal_it_opens_the_console(theatre: Theatre, number: signal.Signals) -> None:
    import fcntl
    import pty
    import struct
    import termios

    environ = {"TMPDIR": str(theatre.temp), "HOME": str(theatre.home), "TERM": "xterm-256color"}
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(theatre.folder)
        words = [sys.executable, "-m", "mam_core.cli.main", "demo"]
        os.execve(sys.executable, words, {**os.environ, **environ})
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
    seen = bytearray()

    def shows(word: bytes) -> bool:
        try:
            seen.extend(os.read(fd, 65536))
        except OSError:
            return word in seen
        return word in seen

    try:
        eventually(lambda: shows(b"Write the rel"), "the board shows a job")
        time.sleep(0.5)
        os.kill(pid, number)
        if number is not signal.SIGKILL:
            eventually(lambda: shows(b"\x1b[?1049l"), "the screen is given back")
        os.close(fd)
        os.waitpid(pid, 0)
        theatre.until_swept()
    finally:
        end_surely(pid)
