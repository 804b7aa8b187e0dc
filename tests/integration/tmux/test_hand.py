"""What a worker pastes into its pane arrives byte for byte, as one paste, or not at all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mam_core.tmux.facts import PaneFact, TmuxFailed, UnsafePaste
from mam_core.tmux.hand import PaneHand
from mam_core.tmux.server import TmuxServer
from tests.integration.tmux.conftest import Spawn
from tests.support.patience import eventually
from tests.support.tmux import tmux

#: A receiver as agents are: raw mode, bracketed paste asked for, everything kept.
_RECEIVER = r"""
import os, sys, tty
tty.setraw(0)
os.write(1, b"\x1b[?2004h" if sys.argv[2] == "on" else b"")
os.write(1, b"ready")
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while data := os.read(0, 65536):
    os.write(out, data)
"""

#: Every hazard of a prompt that a key or a shell string would change.
HAZARDS = {
    "leading dashes": b"--help -x",
    "ends with a semicolon": b"do it;",
    "ends with an escaped semicolon": b"do it\\;",
    "is a key": b"Enter",
    "is a control key": b"C-c",
    "lines": b"one\ntwo\r\nthree\n",
    "controls": bytes(range(1, 32)) + b"\x7f",
    "tab": b"a\tb",
    "UTF-8": "한글 é 🙂 \u202e".encode(),
    "not UTF-8": bytes(range(128, 256)) + b"\xff\xfe\xc3",
    "NUL": b"a\0b",
    "shell": b'"$(touch pwned)" `touch pwned` \' ; | & ~ ! \\',
    "formats": b"#{pane_id} #(touch pwned) ## %H %%",
    "an opening of a paste": b"\x1b[200~ again",
    "other sequences": b"\x1b[31m\x1b]0;title\x07\x1b[2J\x1b",
    "4097 bytes in one line": b"x" * 4097,
    "100 KB": b"0123456789" * 10_000,
    "200 KB with an end": b"0123456789" * 20_000 + b";",
}


class Receiver:
    """A stand-in agent that writes down every byte it gets."""

    def __init__(self, spawn: Spawn, hand_of: Callable[[PaneFact], PaneHand], path: Path) -> None:
        self._path = path
        self._spawn = spawn
        self._hand_of = hand_of

    def start(self, bracketed: str = "on") -> PaneHand:
        argv = (sys.executable, "-I", "-S", "-c", _RECEIVER, str(self._path), bracketed)
        hand = self._hand_of(self._spawn("receiver", *argv))
        eventually(lambda: hand.capture().lines[0] == "ready", "the receiver is ready")
        return hand

    def got(self, length: int) -> bytes:
        eventually(
            lambda: self._path.exists() and self._path.stat().st_size >= length, "all has arrived"
        )
        data = self._path.read_bytes()
        self._path.write_bytes(b"")
        return data


@pytest.fixture
def receiver(spawn: Spawn, hand_of: Callable[[PaneFact], PaneHand], tmp_path: Path) -> Receiver:
    return Receiver(spawn, hand_of, tmp_path / "received")


def test_every_hazard_is_pasted_byte_for_byte(receiver: Receiver, server: TmuxServer) -> None:
    """H5, E2, faults 46 and 47."""
    hand = receiver.start()
    for name, text in HAZARDS.items():
        hand.paste(text)
        whole = b"\x1b[200~" + text + b"\x1b[201~"
        assert receiver.got(len(whole)) == whole, name
    assert tmux(server.socket, "list-buffers") == ""
    assert not Path("pwned").exists()


@pytest.mark.parametrize("end", [b"\x1b[201~", b"\x9b201~", b"\xc2\x9b201~"])
def test_a_paste_that_would_end_itself_is_refused(receiver: Receiver, end: bytes) -> None:
    """What follows the end would count as keys: nothing of it is pasted."""
    hand = receiver.start()
    with pytest.raises(UnsafePaste):
        hand.paste(b"harmless" + end + b"rm -rf .\r")
    hand.paste(b"next")
    assert receiver.got(16) == b"\x1b[200~next\x1b[201~"


def test_an_agent_that_did_not_ask_for_brackets_gets_none(receiver: Receiver) -> None:
    hand = receiver.start("off")
    hand.paste(b"plain;")
    assert receiver.got(6) == b"plain;"


def test_keys_are_pressed_by_name_and_nothing_else_is(receiver: Receiver) -> None:
    hand = receiver.start()
    wanted = {"Enter": b"\r", "Escape": b"\x1b", "C-c": b"\x03", "y": b"y", ";": b";", "-": b"-"}
    for key, sent in wanted.items():
        hand.press(key)
        assert receiver.got(len(sent)) == sent
    for no_key in ("", "Enter Enter", "hello", "한", "\n", "-l", "$(id)"):
        with pytest.raises(TmuxFailed, match="is no key"):
            hand.press(no_key)


def test_a_pane_in_which_somebody_scrolls_still_gets_its_keys(
    receiver: Receiver, server: TmuxServer
) -> None:
    hand = receiver.start()
    tmux(server.socket, "copy-mode", "-t", hand.pane_id)
    hand.paste(b"text")
    hand.press("Enter")
    assert receiver.got(17) == b"\x1b[200~text\x1b[201~\r"


def test_somebody_who_only_looks_on_keeps_no_key_away(
    receiver: Receiver, server: TmuxServer
) -> None:
    hand = receiver.start()
    look_on = ["tmux", "-L", server.socket, "-C", "attach-session", "-r", "-t", "=receiver:"]
    flags = ("list-clients", "-F", "#{client_flags}")
    with subprocess.Popen(look_on, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL):
        eventually(lambda: "read-only" in tmux(server.socket, *flags), "somebody looks on")
        hand.paste(b"text")
        hand.press("Enter")
        assert receiver.got(17) == b"\x1b[200~text\x1b[201~\r"


def test_a_dead_pane_takes_nothing_and_says_so(
    spawn: Spawn,
    server: TmuxServer,
    hand_of: Callable[[PaneFact], PaneHand],
    dead: Callable[[str], PaneFact],
) -> None:
    spawn("other")
    spawn("x", "sh", "-c", "exit 0")
    hand = hand_of(dead("x"))
    with pytest.raises(TmuxFailed, match="ended"):
        hand.paste(b"text")
    with pytest.raises(TmuxFailed, match="ended"):
        hand.press("Enter")
    assert {pane.session for pane in server.panes()} == {"other", "x"}
    server.end("x")
    with pytest.raises(TmuxFailed):
        hand.paste(b"text")
    with pytest.raises(TmuxFailed):
        hand.press("Enter")
    with pytest.raises(TmuxFailed):
        hand.capture()
    assert tmux(server.socket, "list-buffers") == ""


def test_a_hand_looks_by_one_client_which_goes_to_its_own_session(
    spawn: Spawn,
    server: TmuxServer,
    hand_of: Callable[[PaneFact], PaneHand],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pane, other = spawn("x", "sh", "-c", "echo here; exec sleep 1000"), spawn("other")
    hand = hand_of(pane)
    eventually(lambda: hand.capture().lines[0] == "here", "it is seen")
    assert tmux(server.socket, "list-clients", "-F", "#{client_session}") == "x"
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", None)
        for _ in range(50):
            assert hand.capture().lines[0] == "here"
    server.end(other.session)
    assert hand.capture().lines[0] == "here"
    for client in tmux(server.socket, "list-clients", "-F", "#{client_name}").split():
        tmux(server.socket, "detach-client", "-t", client)
    eventually(lambda: hand.capture().lines[0] == "here", "it comes back")
    hand.close()
    eventually(lambda: tmux(server.socket, "list-clients") == "", "and goes")


def test_a_hand_labels_its_own_pane(
    spawn: Spawn, server: TmuxServer, hand_of: Callable[[PaneFact], PaneHand]
) -> None:
    other, pane = spawn("other"), spawn("x")
    hand_of(pane).label("job1", 2, "job1 · attempt 2")
    seen = {found.pane_id: found for found in server.panes()}
    mine, others = seen[pane.pane_id], seen[other.pane_id]
    assert (mine.job_id, mine.attempt, mine.title) == ("job1", 2, "job1 · attempt 2")
    assert (others.job_id, others.attempt) == ("", 0)


@pytest.mark.parametrize("said", ["", "nonsense", ",1,0"])
def test_outside_of_tmux_there_is_no_hand(said: str) -> None:
    with pytest.raises(TmuxFailed, match="no pane of tmux"):
        PaneHand(said, "%0")
