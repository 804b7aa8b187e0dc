"""A terminal for tests: a shell in a pane of a private tmux, keys as a person presses them, and
everything that was ever written to it.

tmux is the terminal here, not what is tested: it draws what it is told, answers what terminals
are asked, and can be asked back what stands on the screen and which modes are on.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.support.brokers import processes_in
from tests.support.children import is_alive
from tests.support.patience import eventually
from tests.support.stream import Kind, pieces
from tests.support.tmux import new_socket_name, tmux

PROMPT = "shell> "
SIZE = (120, 36)
#: Of a person who types fast. Textual takes an Esc that is followed at once for the beginning of
#: another key, and tmux takes keys without any pause for a paste.
PACE_SEC = 0.05
#: What a terminal can have switched on, and a program must switch off when it goes.
_MODES = (
    *("alternate_on", "mouse_any_flag", "mouse_all_flag", "mouse_button_flag"),
    *("mouse_sgr_flag", "keypad_flag", "keypad_cursor_flag", "insert_flag"),
)


class Terminal:
    """A shell in which commands are typed; it survives what they do."""

    def __init__(self, folder: Path, size: tuple[int, int] = SIZE) -> None:
        self.folder = folder
        self.socket = new_socket_name()
        self._bytes = folder / f"{self.socket}.bytes"
        path = shlex.quote(str(self._bytes))
        width, height = size
        # The shell is a person's, who has no tmux around the terminal: TMUX is not set.
        shell = ["env", "-u", "TMUX", "-u", "TMUX_PANE", f"PS1={PROMPT}"]
        shell += [f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}"]
        shell += ["bash", "--noprofile", "--norc", "+o", "history"]
        tmux(
            *(self.socket, "-f", "/dev/null", "new-session", "-d", "-s", "terminal"),
            *("-x", str(width), "-y", str(height), "-c", str(folder), shlex.join(shell)),
            *(";", "pipe-pane", "-t", "=terminal:", f"exec cat >> {path}"),
        )
        self.until(PROMPT.strip())
        self._own = {one.pid for one in processes_in(folder)}  #: the shell, and who writes down

    # -- what is typed -------------------------------------------------------------------------

    def type(self, text: str) -> None:
        """Letters, as they are."""
        self._tmux("send-keys", "-t", "=terminal:", "-l", "--", text)

    def press(self, *keys: str) -> None:
        """Keys by tmux's names for them (``Enter``, ``Escape``, ``C-b``, ``q``), one by one."""
        for key in keys:
            self._tmux("send-keys", "-t", "=terminal:", "--", "\\;" if key == ";" else key)
            time.sleep(PACE_SEC)

    def paste(self, text: str) -> None:
        """As terminals do it: in brackets, without the controls that a keyboard could have sent."""
        kept = "".join(one for one in text if one >= " " and one != "\x7f")
        data = b"\x1b[200~" + kept.encode("utf-8", "surrogatepass") + b"\x1b[201~"
        for at in range(0, len(data), 500):  # a command has its greatest length
            self.send(data[at : at + 500])
        time.sleep(PACE_SEC)

    def send(self, data: bytes) -> None:
        """In one write, as keys come that were typed while the program was busy."""
        self._tmux("send-keys", "-t", "=terminal:", "-H", *(f"{byte:02x}" for byte in data))

    def run(self, command: str) -> None:
        """A command line, typed at the prompt."""
        self.type(command)
        self.press("Enter")

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-t", "=terminal:", "-x", str(width), "-y", str(height))

    # -- what is seen --------------------------------------------------------------------------

    def screen(self) -> str:
        """What stands there, line by line, without the blanks at the ends."""
        return self._tmux("capture-pane", "-p", "-t", "=terminal:")

    def lines(self) -> list[str]:
        """Every line with all its cells."""
        return self._tmux("capture-pane", "-p", "-N", "-t", "=terminal:").split("\n")

    def until(self, *words: str) -> str:
        """All of these stand on the screen."""
        return self._until(lambda seen: all(word in seen for word in words), f"{words} is seen")

    def until_gone(self, *words: str) -> str:
        return self._until(lambda seen: not any(word in seen for word in words), f"{words} is gone")

    def _until(self, is_so: Callable[[str], bool], what: str) -> str:
        seen = ""

        def look() -> bool:
            nonlocal seen
            seen = self.screen()
            assert "Traceback (most recent call last)" not in seen, "it broke down"
            return is_so(seen)

        try:
            eventually(look, what)
        except AssertionError as problem:
            raise AssertionError(f"{problem}\n{seen}") from None
        return seen

    def until_in_line(self, *words: str) -> str:
        """All of these stand in one line."""

        def is_there(seen: str) -> bool:
            return any(all(word in line for word in words) for line in seen.split("\n"))

        return self._until(is_there, f"{words} stand in one line")

    def until_told(self, words: str) -> None:
        """They were on the screen at some time, as toasts are, which go after a few seconds."""

        def is_there() -> bool:
            drawn = pieces(self.written())
            return words in "".join(one.text for one in drawn if one.kind is Kind.TEXT)

        eventually(is_there, f"{words!r} is told")

    def written(self) -> bytes:
        """Every byte that was written to the terminal since it was opened."""
        return self._bytes.read_bytes()

    # -- what is known of it -------------------------------------------------------------------

    def modes(self) -> dict[str, str]:
        """Alternate screen, mouse, cursor, keypad: 1 is on."""
        names = (*_MODES, "cursor_flag", "wrap_flag")
        told = self.ask(" ".join(f"#{{{name}}}" for name in names)).split()
        return dict(zip(names, told, strict=True))

    def ask(self, form: str) -> str:
        """One of tmux's formats."""
        return self._tmux("display-message", "-p", "-t", "=terminal:", form)

    @property
    def shell(self) -> psutil.Process:
        return psutil.Process(int(self.ask("#{pane_pid}")))

    def programs(self) -> list[psutil.Process]:
        """What the shell has started and not buried yet."""
        return self.shell.children()

    def until_prompt(self) -> None:
        """The shell has the terminal again."""
        eventually(lambda: not self._is_busy(), "the shell has the terminal again")
        self.until(PROMPT.strip())

    def until_alone(self) -> None:
        """What was started here is gone, with all that it started: nothing is at work here."""

        def left() -> list[psutil.Process]:
            return [one for one in processes_in(self.folder) if one.pid not in self._own]

        eventually(lambda: not left(), f"nothing is left of {left()}")

    def _is_busy(self) -> bool:
        return any(is_alive(each.pid) for each in self.programs())

    def close(self) -> None:
        tmux(self.socket, "kill-server")

    def _tmux(self, *words: str) -> str:
        return tmux(self.socket, *words)


@contextmanager
def terminal(folder: Path, size: tuple[int, int] = SIZE) -> Iterator[Terminal]:
    """To be opened inside a `private_tmux`."""
    made = Terminal(folder, size)
    try:
        yield made
    finally:
        made.close()
