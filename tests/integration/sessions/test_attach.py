"""A session in the terminal of whoever asks: alone, inside another tmux, inside our own."""

from __future__ import annotations

import os
import pty
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.support.patience import eventually
from tests.support.sessions import SessionShop
from tests.support.watching import MAM


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, argv: list[str], **environ: str) -> None:
        self.shown = b""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, {**os.environ, "TERM": "xterm", **environ})

    def read(self) -> bytes:
        while select.select([self._fd], [], [], 0)[0]:
            try:
                self.shown += os.read(self._fd, 65536)
            except OSError:
                break
        return self.shown

    def code(self) -> int:
        ended: list[int] = []

        def is_over() -> bool:
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            ended.extend([status] if pid else [])
            return bool(ended)

        eventually(is_over, f"it ends; it shows {self.shown!r}")
        self.pid = 0
        return os.waitstatus_to_exitcode(ended[0])

    def close(self) -> None:
        if self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._fd)


@contextmanager
def attached(shop: SessionShop, name: str, **environ: str) -> Iterator[Terminal]:
    terminal = Terminal([*MAM, "attach", name], **environ)
    try:
        eventually(lambda: bool(terminal.read()) and clients(shop) == [name], "it is shown")
        yield terminal
    finally:
        terminal.close()


def clients(shop: SessionShop) -> list[str]:
    return shop.tmux("list-clients", "-F", "#{client_session}").split()


def test_a_session_is_shown_and_left_running(shop: SessionShop) -> None:
    shop.spawn("a", shop.agent("good", "behaves"))
    with attached(shop, "a") as terminal:
        shop.tmux("detach-client", "-s", "=a")
        assert terminal.code() == 0
    assert shop.in_tmux() == ["a"]
    refused = shop.say("attach", "a")  # pytest's own streams are no terminal
    assert refused.code == 2
    assert refused.err.startswith("mam: attach needs a terminal: this is none")


def test_inside_another_tmux_it_is_shown_there(shop: SessionShop) -> None:
    shop.spawn("a", shop.agent("good", "behaves"))
    with attached(shop, "a", TMUX="/tmp/tmux-0/default,1,0", TMUX_PANE="%0") as terminal:
        assert b"tmux inside tmux" in terminal.read()


def test_inside_our_own_the_client_goes_over(shop: SessionShop) -> None:
    agent = shop.agent("good", "behaves")
    shop.spawn("a", agent)
    shop.spawn("b", agent)
    with attached(shop, "a"):
        shop.tmux("new-window", "-t", "=a:", "-c", str(shop.folder), *MAM, "attach", "b")
        eventually(lambda: clients(shop) == ["b"], "it shows the other one")


def test_what_is_not_there_is_said(shop: SessionShop) -> None:
    said = shop.say("attach", "nobody")
    assert said.code == 1
    assert said.err.startswith("mam: there is no session nobody in tmux")
