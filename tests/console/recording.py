"""A session of ``mam demo``, recorded: ``python -m tests.console.recording``.

A real terminal of ours runs the command, keys are pressed, and whatever it prints goes to
``screenshots/demo.cast`` (asciinema, version 2). That file is then played to a tmux pane, which
is looked at after each act; the looks become ``screenshots/demo.png``, an animated PNG, drawn by
chromium where it is installed. Every agent in it is simulated, and says so.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import NamedTuple

from rich.ansi import AnsiDecoder
from rich.console import Console

from tests.console.animation import animated
from tests.console.pictures import FOLDER, as_png, plain_letters

WIDE, HIGH = 132, 36
#: Players skip what is longer; nothing is taken out of the recording.
_LONGEST_PAUSE_SEC = 2.0
_SCALE = 0.65  #: of what a page is wide
_PATIENCE_SEC = 40.0
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_MARK = "m"  #: an event of the format: a place to look at
_FONT_FACES = re.compile(r"@font-face\s*\{.*?\}", re.DOTALL)


class Step(NamedTuple):
    """Press, wait for a word on the screen, and let it settle; then it is looked at, for so long in
    the picture (not at all where that is 0)."""

    keys: str
    until: str  #: a word that is not there before
    settle: float
    name: str
    shown_sec: float = 2.5


ESC = "\x1b"
STEPS = (
    Step("", "completed", 14, "the board fills by itself", 0),
    Step("g", "", 3, "agents work, wait and end"),
    Step("jj", "", 3, "a job and its history", 0),
    Step("\r", "board >", 4, "the job on the whole screen", 0),
    Step(ESC, "mam board", 3, "back", 0),
    Step("4", "attention", 4, "what needs a person"),
    Step("A", "asks", 3, "its question in full"),
    Step(ESC, "", 3, "back", 0),
    Step("3", "fleet", 4, "up to sixteen screens at once"),
    Step("2", "sessions", 5, "the sessions", 0),
    Step("5", "gantt", 5, "attempts over time"),
    Step("7", "history", 5, "every job that ever was"),
    Step("1", "mam board", 4, "back to the board", 0),
    Step("/status:error\r", "showing", 4, "only what failed"),
    Step(ESC, "", 3, "all again", 0),
    Step("?", "valid", 3, "the keys that are valid here", 0),
    Step(ESC, "", 2, "the board", 0),
)


def record(path: Path) -> None:
    """The session, as it happens."""
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        environment |= {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
        for name in ("TMUX", "TMUX_PANE", "NO_COLOR"):
            environment.pop(name, None)
        os.execvpe(sys.executable, [sys.executable, "-m", "mam_core", "demo"], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", HIGH, WIDE, 0, 0))
    head = {
        "version": 2,
        "width": WIDE,
        "height": HIGH,
        "title": "mam demo: simulated agents",
        "idle_time_limit": _LONGEST_PAUSE_SEC,
        "env": {"TERM": "xterm-256color"},
    }
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(head) + "\n")
        tape = _Tape(terminal, file)
        for step in STEPS:
            tape.forget()
            os.write(terminal, step.keys.encode())
            tape.roll(_PATIENCE_SEC, step.until)
            tape.roll(step.settle)
            tape.note(_MARK, step.name)
        os.write(terminal, b"q")
        tape.roll(_PATIENCE_SEC, "the demonstration is over")
    os.close(terminal)
    os.waitpid(pid, 0)


class _Tape:
    """Writes down what a terminal is given to show."""

    def __init__(self, terminal: int, file: io.TextIOWrapper) -> None:
        self._terminal, self._file = terminal, file
        self._began = time.monotonic()
        self._held = b""  #: the beginning of a character that has not ended
        self._seen = ""  #: what was shown since it was last forgotten

    def forget(self) -> None:
        self._seen = ""

    def roll(self, seconds: float, word: str | None = None) -> None:
        """For so long, or until a word was shown; an empty one always was."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if word is not None and word in _ESCAPES.sub("", self._seen):
                return
            if not select.select([self._terminal], [], [], left)[0]:
                return
            try:
                data = self._held + os.read(self._terminal, 65536)
            except OSError:  # it has ended
                return
            text, self._held = _whole(data)
            self._seen += text
            self.note("o", text)

    def note(self, kind: str, text: str) -> None:
        moment = round(time.monotonic() - self._began, 3)
        self._file.write(json.dumps([moment, kind, text], ensure_ascii=False) + "\n")


def _whole(data: bytes) -> tuple[str, bytes]:
    """As much as is whole characters, and the rest."""
    for cut in range(4):
        try:
            end = len(data) - cut
            return data[:end].decode(), data[end:]
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8", "replace"), b""


# -- looking at it ---------------------------------------------------------------------------


def looks(cast: Path, folder: Path) -> list[str]:
    """The screen at each mark, as text with colours, by a terminal that is really there."""
    server = ("tmux", "-f", "/dev/null", "-S", str(folder / "socket"))
    screen, found = folder / "screen", []
    os.mkfifo(screen)
    size = ("-x", str(WIDE), "-y", str(HIGH))
    show = f"stty raw -echo; exec cat {screen}"
    subprocess.run([*server, "new-session", "-d", *size, show], check=True)
    try:
        with screen.open("wb", buffering=0) as shown:
            for line in cast.read_text(encoding="utf-8").splitlines()[1:]:
                _, kind, text = json.loads(line)
                if kind == "o":
                    shown.write(text.encode())
                elif kind == _MARK:
                    time.sleep(0.7)  # until tmux has drawn what is in the pipe
                    found.append(_captured(server))
    finally:
        subprocess.run([*server, "kill-server"], check=False, capture_output=True)
    return found


def _captured(server: tuple[str, ...]) -> str:
    command = [*server, "capture-pane", "-p", "-e", "-N"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def as_svg(screen: str) -> str:
    console = Console(
        width=WIDE,
        height=HIGH,
        record=True,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
    )
    decoder = AnsiDecoder()  # one for all lines: tmux says a colour where it changes
    for line in screen.removesuffix("\n").split("\n")[:HIGH]:
        console.print(decoder.decode_line(line), no_wrap=True, crop=True, overflow="crop")
    return plain_letters(_FONT_FACES.sub("", console.export_svg(title="mam demo")))


def main() -> int:
    cast = FOLDER / "demo.cast"
    if sys.argv[1:] != ["--draw"]:
        record(cast)
        print(cast.name)
    if shutil.which("chromium") is None or shutil.which("tmux") is None:
        print("no chromium or no tmux: the animated picture is not drawn")
        return 0
    with tempfile.TemporaryDirectory() as made:
        folder, frames = Path(made), []
        for number, screen in enumerate(looks(cast, folder)):
            if not STEPS[number].shown_sec:
                continue
            svg = folder / f"{number:02}.svg"
            svg.write_text(as_svg(screen), encoding="utf-8")
            as_png(svg, _SCALE)
            frames.append((svg.with_suffix(".png"), STEPS[number].shown_sec))
        if keep := os.environ.get("MAM_FRAMES"):
            shutil.copytree(folder, keep, ignore=shutil.ignore_patterns("s*"), dirs_exist_ok=True)
        (FOLDER / "demo.png").write_bytes(animated(frames))
    print("demo.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
