"""A terminal that hangs up, or takes nothing any more: the console ends by itself all the same, and
so does a demonstration, with its workers, its broker and its folder."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mam_core.wiring import open_registry
from tests.console.staging import add
from tests.support.patience import eventually
from tests.support.pty_program import Tty, tty
from tests.support.supervision import end_surely, with_word
from tests.support.tmux import private_tmux
from tests.support.watching import MAM

SIZE = (160, 45)

#: What is typed before the terminal goes: it is on its way through the console then.
QUEUED = {"idle": "", "lines": "jk" * 200, "views": "1234567890" * 40}


@pytest.fixture(autouse=True)
def _sockets() -> Iterator[None]:
    with private_tmux():
        yield


@contextmanager
def a_console(folder: Path, *, controls: bool = True) -> Iterator[Tty]:
    """Of a registry with one job; its embedded broker lives as long as it does."""
    path = folder / "jobs"
    with open_registry(str(path)) as registry:
        add(registry, "Survives its terminal")
    environ = {**os.environ, "TERM": "xterm-256color"}
    command = [*MAM, "--registry-dir", str(path)]
    try:
        with tty(command, folder, environ, SIZE, controls=controls) as made:
            made.until("Survives its terminal")
            yield made
    finally:
        for pid in with_word(str(path)):
            end_surely(pid)


@contextmanager
def a_demonstration(folder: Path, *words: str, controls: bool = True) -> Iterator[Tty]:
    for name in ("temp", "home"):
        (folder / name).mkdir()
    own = {"TMPDIR": str(folder / "temp"), "HOME": str(folder / "home"), "TERM": "xterm-256color"}
    command = [*(words or MAM), "demo"]
    try:
        with tty(command, folder, {**os.environ, **own}, SIZE, controls=controls) as made:
            made.until("Write the rel")
            yield made
    finally:
        for pid in with_word(str(folder / "temp")):
            end_surely(pid)


def until_swept(folder: Path) -> None:
    """Workers, broker, folder: nothing is left of the demonstration."""
    eventually(
        lambda: not with_word(str(folder / "temp")) and not list((folder / "temp").iterdir()),
        "nothing is left",
    )


def test_a_console_ends_when_its_terminal_closes_over_queued_keys(tmp_path: Path) -> None:
    with a_console(tmp_path) as seen:
        seen.type(QUEUED["views"])
        seen.hang_up()
        assert seen.ended() == 128 + signal.SIGHUP


def test_a_console_that_draws_nothing_and_gets_no_signal_notices_that_its_terminal_is_gone(
    tmp_path: Path,
) -> None:
    """Nor does it spend a processor on an input that is always at its end."""
    with a_console(tmp_path, controls=False) as seen:
        seen.hang_up()
        assert seen.ended() == 128 + signal.SIGHUP


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGHUP, marks=pytest.mark.release),
        pytest.param(signal.SIGINT, marks=pytest.mark.release),
    ],
)
def test_a_signal_ends_a_console_whose_terminal_takes_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    with a_console(tmp_path) as seen:
        seen.stop_reading()
        seen.type(QUEUED["views"])
        eventually(seen.is_full, "the terminal takes no more")
        seen.process.send_signal(number)
        assert seen.ended() == 128 + number


def test_a_signal_gives_the_screen_back(tmp_path: Path) -> None:
    with a_console(tmp_path) as seen:
        seen.process.send_signal(signal.SIGTERM)
        assert seen.ended() == 128 + signal.SIGTERM
        assert b"\x1b[?1049l" in seen.written


@pytest.mark.parametrize(
    "view", ["2", *(pytest.param(key, marks=pytest.mark.release) for key in "34567890")]
)
def test_a_view_that_is_only_being_opened_does_not_mind_that_the_console_is_left(
    tmp_path: Path, view: str
) -> None:
    with a_console(tmp_path) as seen:
        seen.type(f"{view}\x11")
        assert seen.ended() == 0


def test_a_demonstration_goes_with_its_terminal(tmp_path: Path) -> None:
    with a_demonstration(tmp_path) as seen:
        seen.type(QUEUED["lines"])
        seen.hang_up()
        assert seen.ended() == 128 + signal.SIGHUP
        until_swept(tmp_path)


@pytest.mark.release
@pytest.mark.parametrize("turn", range(10))
@pytest.mark.parametrize("keys", ["idle", "views"])
def test_a_demonstration_goes_with_its_terminal_every_time(
    tmp_path: Path, keys: str, turn: int
) -> None:
    with a_demonstration(tmp_path, controls=bool(turn % 2)) as seen:
        if QUEUED[keys]:
            seen.type(QUEUED[keys])
        seen.hang_up()
        assert seen.ended() == 128 + signal.SIGHUP
        until_swept(tmp_path)


@pytest.mark.release
def test_a_demonstration_goes_when_its_shell_is_killed(tmp_path: Path) -> None:
    """The shell is the terminal's session leader: the kernel hangs up."""
    shell = ["bash", "-c", '"$@"; true', "bash", *MAM]
    with a_demonstration(tmp_path, *shell) as seen:
        seen.type(QUEUED["lines"])
        seen.process.kill()
        until_swept(tmp_path)


@pytest.mark.release
def test_a_demonstration_goes_though_its_terminal_takes_nothing(tmp_path: Path) -> None:
    with a_demonstration(tmp_path) as seen:
        seen.stop_reading()
        seen.type(QUEUED["views"])
        eventually(seen.is_full, "the terminal takes no more")
        seen.process.send_signal(signal.SIGTERM)
        assert seen.ended() == 128 + signal.SIGTERM
        until_swept(tmp_path)
